import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkStore
import TidemarkSync

struct AccountSignOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out", abstract: "Ends the synchronisation with an account's cloud.",
        discussion: """
            By default the account's records are set aside whole, edits that the cloud does not have among them; 'tidemark quarantine' \
            shows and restores them.

            Examples:
              tidemark account sign-out MyJournal.tidemark
              tidemark account sign-out MyJournal.tidemark --records keep
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "What becomes of the account's records here: quarantine, keep or delete.")
    var records: SignOutChoice = .quarantine

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let settings = try StoreReader(container: directory).accountSettings()
            guard let email = settings.email else {
                return try Output.line("nobody is signed in")
            }
            let store = try RecordStore(container: directory, doorbell: Doorbell(container: directory, role: .tool))
            // A synchronisation that is under way is not to go on with what is set aside.
            let lock = try SyncLock(directory)
            defer { lock.release() }
            let pending = try await store.outbox().pending
            let reason = "\(email) has signed out"
            let quarantine = try await store.signOut(records, reason: reason)
            let shared = try RecordStore(
                container: directory, scope: .shared, doorbell: Doorbell(container: directory, role: .tool))
            let others = try await shared.signOut(records, reason: reason)
            switch records {
            case .quarantine:
                let text = quarantine.map {
                    "; \(Wording.count($0.records, "record")) set aside, with \(Wording.count($0.pending, "change")) that the cloud does not have: \($0.id.uuidString.lowercased())"
                }
                try Output.line("signed out\(text ?? "")")
                if let others {
                    try Output.line(
                        "what others share is set aside, too: \(Wording.count(others.records, "record")), with \(Wording.count(others.pending, "change")) that the cloud does not have: \(others.id.uuidString.lowercased())"
                    )
                }
            case .keep: try Output.line("signed out; the records stay")
            case .delete:
                let lost = pending > 0 ? ", with \(Wording.count(pending, "change")) that no cloud has" : ""
                try Output.line("signed out; the records are deleted here\(lost)")
            }
            await endSession(settings, directory)
        }
    }

    /// Has the server forget the session; here it is gone whatever the server says.
    private func endSession(_ settings: AccountSettings, _ directory: ContainerDirectory) async {
        guard let cloud = settings.cloud, ServerAddress.isAddress(cloud) else { return }
        do {
            try await HTTPCloud(named: cloud, for: directory, container: settings.cloudContainer).signOut()
        } catch {
            if FileManager.default.fileExists(atPath: directory.session.path) {
                Output.error(
                    "note: the session could not be removed from the container: \(error.reason); delete \(directory.session.path)"
                )
            } else {
                Output.error(
                    "note: the session could not be ended on the server, which knows it until it expires: \(error.reason)")
            }
        }
    }
}
