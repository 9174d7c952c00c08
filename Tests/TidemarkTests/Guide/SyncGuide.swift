import Foundation
import Tidemark
import TidemarkEmbeddedCloud

/// The code of the guide to synchronisation. Not run: it opens the user's own container.
enum SyncGuide {
    static func run() async throws {
        let journal = try PersistentContainer(named: "Journal")
        let cloud = try EmbeddedCloud(at: URL(fileURLWithPath: "cloud"))
        let ada = try await cloud.addAccount("ada@example.org")
        let database = try cloud.database(.private, of: "iCloud.org.example.journal", account: ada.id)

        var configuration = SyncConfiguration()
        configuration.mergePolicy = { type in type == "Destination" ? .latestEdit : .mergeByPropertyObjectTrump }
        let engine = try await journal.syncEngine(with: database, configuration: configuration)

        // Events, while they happen.
        Task {
            for await event in engine.events where event.end != nil {
                print(event.kind.name, event.records, event.failure?.reason ?? "done")
            }
        }

        // Synchronises once.
        let report = try await engine.sync()
        print("\(report.imported) fetched, \(report.exported) sent, \(report.outbox.pending) waiting")

        // Why a record was not sent.
        for entry in try journal.syncIssues() {
            print(entry.record, entry.code ?? "queued", entry.reason ?? "")
        }

        // Synchronises whenever something changes, until the task is cancelled.
        try await engine.run()

        // Signs out, which moves the account's records into quarantine. After the next sign-in they can be restored.
        try await engine.signOut()
        _ = try await engine.sync()
        for quarantine in try journal.quarantines() { try await engine.restore(quarantine) }
    }
}
