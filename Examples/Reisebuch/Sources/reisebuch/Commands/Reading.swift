import ArgumentParser
import Foundation
import ReisebuchModel
import Tidemark

struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the trips, newest first.")

    @OptionGroup var options: BookOptions
    @Option(help: "Only trips with a stop in this country.") var country: String?

    @MainActor func run() async throws {
        let list = TripList(try await options.open(), filter: country.map { .visiting(country: $0) } ?? .all)
        try await list.loaded()
        Screen.trips(list)
    }
}

struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Shows a trip with its stops.")

    @OptionGroup var about: TripOptions

    func run() async throws {
        let (book, trip) = try await about.open()
        guard let page = try await TripPage(of: trip.id, in: try book.container.snapshot()) else { return }
        Screen.page(page)
        for titled in try EditHistory(of: book).titles(of: trip).dropFirst() { print("hieß früher „\(titled.title)“") }
    }
}

struct Search: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Looks for words in the diary.")

    @OptionGroup var options: BookOptions
    @Argument(help: "The words; \"two words\" are a phrase.") var words: [String]
    @Option(help: "Only entries of stops in this country.") var country: String?

    func run() async throws {
        let book = try await options.open()
        Screen.hits(try await book.search(words.joined(separator: " "), in: country))
    }
}

struct Stats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints numbers about all trips.")

    @OptionGroup var options: BookOptions

    func run() async throws { Screen.statistics(try await Statistics(of: try await options.open())) }
}

struct Widget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints what a widget would show; opens the travel book for reading only.")

    @OptionGroup var options: BookOptions

    func run() async throws { print(try await TravelWidget(in: options.folder).line()) }
}
