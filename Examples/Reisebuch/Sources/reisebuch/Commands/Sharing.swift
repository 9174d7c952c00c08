import ArgumentParser
import Foundation
import ReisebuchModel
import Tidemark
import TidemarkEmbeddedCloud

struct SignIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says with which cloud the travel book is synchronised, and as whom.")

    @OptionGroup var options: BookOptions
    @Option(help: "The directory of the cloud.") var cloud: String
    @Option(help: "Your address.") var email: String
    @Option(help: "Your name.") var name: String?

    func run() async throws {
        let url = URL(fileURLWithPath: cloud, isDirectory: true)
        try await EmbeddedCloud(at: url).addAccount(email, name: name.map { PersonName(givenName: $0) })
        try Account(cloud: url.path, email: email).save(in: options.folder)
        print("Angemeldet als \(email)")
    }
}

struct ShareTrip: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Shares a trip with a person, and prints the link to send them.")

    @OptionGroup var about: TripOptions
    @Argument(help: "The person's address.") var email: String
    @Flag(help: "They may only read.") var readOnly = false

    func run() async throws {
        let (book, trip) = try await about.open()
        let sharing = TripSharing(book, with: try await Account.databases(of: about.options.folder))
        print("Geteilt wird: \(Screen.contents(try await sharing.preview(of: trip)))")
        print(try await sharing.invite(email, to: trip, mayEdit: !readOnly))
    }
}

struct Accept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Accepts an invitation.")

    @OptionGroup var options: BookOptions
    @Argument(help: "The link.") var link: String

    func run() async throws {
        let sharing = TripSharing(try await options.open(), with: try await Account.databases(of: options.folder))
        print("Angenommen: \(try await sharing.describe(link))")
        try await sharing.accept(link)
    }
}

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetches what others have written, and sends what was written here.")

    @OptionGroup var options: BookOptions

    func run() async throws {
        let container = try await options.open().container
        let report = try await container.sync(with: Account.databases(of: options.folder)).sync()
        if let failure = report.failure { throw failure }
        print("\(report.imported) geholt, \(report.exported) gesendet. \(SyncLine.text(try container.syncStatus())).")
    }
}
