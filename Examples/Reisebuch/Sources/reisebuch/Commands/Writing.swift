import ArgumentParser
import Foundation
import ReisebuchModel
import Tidemark

struct New: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Begins a trip.")

    @OptionGroup var options: BookOptions
    @Argument(help: "Its title.") var title: String
    @Option(help: "Its first day.", transform: Date.day) var begins: Date
    @Option(help: "Its last day.", transform: Date.day) var ends: Date?
    @Option(help: "train, ship, car or foot.") var by: String?

    @MainActor func run() async throws {
        let editor = await TripEditor(newTripIn: try await options.open())
        (editor.trip.title, editor.trip.begins, editor.trip.ends) = (title, begins, ends)
        if let by { editor.trip.transport = Transport(rawValue: by) }
        try Screen.outcome(await editor.save(), saved: "„\(title)“ ist angelegt.")
    }
}

struct AddStop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "stop", abstract: "Adds a stop to a trip.")

    @OptionGroup var about: TripOptions
    @Argument(help: "The place.") var place: String
    @Option(help: "The day of the arrival.", transform: Date.day) var arrival: Date
    @Option(help: "The country.") var country: String?
    @Option(help: "How many nights.") var nights = 1
    @Option(name: .customLong("tag"), help: "A tag; may be given several times.") var tags: [String] = []

    @MainActor func run() async throws {
        let (book, trip) = try await about.open()
        guard let editor = try await TripEditor(trip.id, in: book) else { return }
        var stop = editor.addStop(place, country: country, arrival: arrival)
        stop.nights = nights
        stop.tags = try await book.tags(named: tags)
        editor.update(stop)
        try Screen.outcome(await editor.save(), saved: "„\(place)“ ist Halt \(stop.position) von „\(trip.title)“.")
    }
}

struct Write: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Writes an entry of the diary, at the last stop of a trip.")

    @OptionGroup var about: TripOptions
    @Argument(help: "The heading.") var heading: String
    @Argument(help: "The text.") var text: String

    func run() async throws {
        let (book, trip) = try await about.open()
        guard let stop = try await book.container.fetchAll(Trip.stops, of: trip).last else {
            throw ArgumentParser.ValidationError("„\(trip.title)“ hat noch keinen Halt.")
        }
        try await book.container.save(DiaryEntry(at: stop, on: stop.arrival, heading: heading, text: text))
        print("Geschrieben: \(stop.place), \(heading)")
    }
}

struct AddPhoto: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "photo", abstract: "Adds a photo to the last stop of a trip.")

    @OptionGroup var about: TripOptions
    @Argument(help: "The file.") var file: String
    @Option(help: "What it shows.") var caption = ""

    func run() async throws {
        let (book, trip) = try await about.open()
        guard let stop = try await book.container.fetchAll(Trip.stops, of: trip).last else {
            throw ArgumentParser.ValidationError("„\(trip.title)“ hat noch keinen Halt.")
        }
        let photo = try await PhotoAlbum(of: stop, in: book)
            .add(URL(fileURLWithPath: file), caption: caption, takenAt: stop.arrival)
        print("Aufgenommen: \(photo.image.size ?? 0) Bytes bei „\(stop.place)“")
    }
}

struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Deletes a trip with its stops, photos and entries.")

    @OptionGroup var about: TripOptions

    func run() async throws {
        let (book, trip) = try await about.open()
        print(Screen.text(try await book.delete(trip), of: trip))
    }
}

struct Undo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Takes the last step back.")

    @OptionGroup var options: BookOptions

    func run() async throws {
        let history = EditHistory(of: try await options.open())
        guard let last = try history.steps().first else { throw CleanExit.message("Es gibt nichts zurückzunehmen.") }
        let counts = try await history.undo(last)
        print("Zurückgenommen: \(counts.inserted) wieder da, \(counts.updated) wie vorher, \(counts.deleted) wieder weg")
    }
}
