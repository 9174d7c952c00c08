import ArgumentParser
import Foundation
import ReisebuchModel
import Tidemark

@main struct Reisebuch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reisebuch", abstract: "A travel book that is synchronised, and shared with people.",
        discussion: "Its texts for people are German. Begin with 'reisebuch demo'.",
        subcommands: [
            New.self, AddStop.self, Write.self, AddPhoto.self, List.self, Show.self, Delete.self, Undo.self, Search.self,
            Stats.self,
            Widget.self, SignIn.self, ShareTrip.self, Accept.self, Sync.self, Demo.self,
        ])

    static func main() async {
        ErrorLanguage.use(.german)
        await main(nil)
    }
}

/// What all commands are told.
struct BookOptions: ParsableArguments {
    @Option(help: "The folder of the travel book.") var book = "reisebuch-daten"
    @Flag(help: "Prints the SQL statements with their time to standard error.") var sql = false

    var folder: URL { URL(fileURLWithPath: book, isDirectory: true) }

    func open() async throws -> TravelBook {
        if sql { SQLTrace.start() }
        return try await TravelBook(in: folder)
    }
}

/// The trip that a command is about.
struct TripOptions: ParsableArguments {
    @OptionGroup var options: BookOptions
    @Argument(help: "The title of the trip, or its beginning.") var trip: String

    func open() async throws -> (TravelBook, Trip) {
        let book = try await options.open()
        guard let found = try await book.trip(trip) else {
            throw ArgumentParser.ValidationError("Es gibt keine Reise „\(trip)“.")
        }
        return (book, found)
    }
}

extension Date {
    /// Reads a day: `2025-06-03`.
    @Sendable static func day(_ text: String) throws -> Date {
        let parts = text.split(separator: "-").compactMap { Int($0) }
        guard parts.count == 3, (1...12).contains(parts[1]), (1...31).contains(parts[2]) else {
            throw ArgumentParser.ValidationError("„\(text)“ ist kein Tag. Ein Tag ist zum Beispiel 2025-06-03.")
        }
        return Date(year: parts[0], month: parts[1], day: parts[2])
    }
}
