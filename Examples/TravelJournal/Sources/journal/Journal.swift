import ArgumentParser
import Foundation
import Tidemark

@main struct Journal: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "A travel journal that is synchronised, and shared with people.",
        subcommands: [
            SignIn.self, Add.self, List.self, Show.self, Edit.self, Delete.self, Sync.self, ShareIt.self, Invite.self,
            Permit.self, Remove.self, Accept.self, Stop.self, Leave.self,
        ])
}

/// What all commands are told first.
struct Folder: ParsableArguments {
    @Argument(help: "The folder of the journal.")
    var folder: String

    var journal: TravelJournal {
        get throws { try TravelJournal(in: URL(fileURLWithPath: folder, isDirectory: true)) }
    }
}

struct SignIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Says with which cloud the journal is synchronised, and as whom.")

    @OptionGroup var folder: Folder
    @Option(help: "The directory of the cloud.") var cloud: String?
    @Option(help: "The server that has the cloud; it asks for the password.") var server: String?
    @Option(help: "One's address.") var email: String
    @Option(help: "One's given name.") var givenName: String?
    @Option(help: "One's family name.") var familyName: String?

    func run() async throws {
        if let server {
            guard let password = getpass("password: ") else {
                throw ValidationError("there is no terminal to ask for the password on")
            }
            return try await folder.journal.signIn(server: server, email: email, password: String(cString: password)) {
                print("code of the authenticator app: ", terminator: "")
                return readLine() ?? ""
            }
        }
        guard let cloud else { throw ValidationError("name the cloud: --cloud or --server") }
        let name = PersonName(givenName: givenName, familyName: familyName)
        try await folder.journal.signIn(
            cloud: URL(fileURLWithPath: cloud, isDirectory: true), email: email, name: name.title.isEmpty ? nil : name)
    }
}

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetches what others have written, and sends what was written here.")

    @OptionGroup var folder: Folder

    func run() async throws {
        let journal = try folder.journal
        let report = try await journal.container.sync(with: journal.databases()).sync()
        if let failure = report.failure { throw failure }
        print("\(report.imported) fetched, \(report.exported) sent, \(report.outbox.pending) waiting")
        // Changes that were not permitted are reverted, and not lost.
        for refused in try journal.container.refusedSaves() {
            print("reverted: \(refused.kind) of \(refused.record.name): \(refused.reason)")
        }
    }
}
