import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkContainers
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct AccountSignOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out", abstract: "Signs a container out of its account.",
        discussion: """
            By default the account's records are set aside, including edits that the cloud does not have; 'tidemark quarantine' shows \
            and restores them.

            Examples:
              tidemark account sign-out MyJournal.tidemark
              tidemark account sign-out MyJournal.tidemark --records keep
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "How to treat the account's records in the container: quarantine, keep or delete.")
    var records: SignOutChoice = .quarantine

    @OptionGroup var outcome: Outcome

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container)
            let settings = try StoreReader(container: directory).accountSettings()
            guard let email = settings.email else {
                return try outcome.tell("account sign-out", ["signedOut": false], text: "no account is signed in")
            }
            let store = try RecordStore(container: directory, notifier: StoreChangeNotifier(container: directory, role: .tool))
            // A running synchronisation must not go on with the stores that are set aside.
            let lock = try SyncLock(directory)
            defer { lock.release() }
            let reason = "\(email) has signed out"
            let shared = try RecordStore(
                container: directory, scope: .shared, notifier: StoreChangeNotifier(container: directory, role: .tool))
            let pending = try await store.outbox().pending + shared.outbox().pending
            let quarantine = try await store.signOut(records, reason: reason)
            let others = try await shared.signOut(records, reason: reason)
            // The session ends also if standard output is closed.
            await endSession(settings, directory)
            let setAside = [quarantine, others].compactMap { $0 }.filter { !$0.isEmpty }.map(SetAside.init)
            guard !outcome.json else {
                return try outcome.tell(
                    "account sign-out",
                    [
                        "signedOut": true, "email": email, "records": records.rawValue, "setAside": setAside,
                        "deletedChanges": records == .delete ? pending : nil,
                    ])
            }
            switch records {
            case .quarantine:
                var text = "signed out"
                if let quarantine, !quarantine.isEmpty {
                    text += "; \(quarantine.counts("the cloud")): \(quarantine.id.uuidString.lowercased())"
                }
                try Output.line(text)
                if let others, !others.isEmpty {
                    try Output.line("of what others share: \(others.counts("the cloud")): \(others.id.uuidString.lowercased())")
                }
            case .keep: try Output.line("signed out; the records stay")
            case .delete:
                let lost = pending > 0 ? ", with \(Wording.count(pending, "change")) that no cloud has" : ""
                try Output.line("signed out; the records are deleted here\(lost)")
            }
        }
    }

    /// Ends the session at the server. Here it is removed whatever the server answers.
    private func endSession(_ settings: AccountSettings, _ directory: ContainerDirectory) async {
        guard let cloud = settings.cloud, ServerAddress.isAddress(cloud) else { return }
        do {
            try await HTTPCloud(named: cloud, for: directory, settings).signOut()
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

extension Quarantine {
    var isEmpty: Bool { records == 0 && pending == 0 && refused == 0 }

    /// The counts of the records that were set aside, in words, without zeros.
    ///
    /// - Parameter place: The name of the place that lacks the changes.
    func counts(_ place: String) -> String {
        var things: [String] = []
        if records > 0 { things.append(Wording.count(records, "record")) }
        if refused > 0 { things.append(Wording.count(refused, "refused save")) }
        let changes = "\(Wording.count(pending, "change")) that \(place) does not have"
        // Only deletions may be pending: they are changes without records.
        guard !things.isEmpty else { return pending > 0 ? "set aside: \(changes)" : "nothing set aside" }
        let text = "\(things.joined(separator: " and ")) set aside"
        return pending > 0 ? "\(text), with \(changes)" : text
    }
}

/// The JSON object on records that were set aside when the account changed.
struct SetAside: Encodable {
    let identifier, scope: String
    let records, pending, refused: Int

    init(_ quarantine: Quarantine) {
        (identifier, scope) = (quarantine.id.uuidString.lowercased(), quarantine.scope.name)
        (records, pending, refused) = (quarantine.records, quarantine.pending, quarantine.refused)
    }
}
