import Foundation
import Tidemark
import TidemarkEmbeddedCloud

/// The code of the README's section on synchronisation. Not run: it opens the person's own.
enum ReadMeSync {
    static func run() async throws {
        let journal = try PersistentContainer(named: "Journal")
        let cloud = try EmbeddedCloud(at: URL(fileURLWithPath: "cloud"))
        let ada = try await cloud.addAccount("ada@example.org")
        let database = try cloud.database(.private, of: "iCloud.org.example.journal", account: ada.id)

        var configuration = SyncConfiguration()
        configuration.mergePolicy = { type in type == "Destination" ? .latestEdit : .mergeByPropertyObjectTrump }
        let engine = try await journal.syncEngine(with: database, configuration: configuration)

        // What it does, as it does it.
        Task {
            for await event in engine.events where event.end != nil {
                print(event.kind.name, event.records, event.failure?.reason ?? "done")
            }
        }

        // Until there is nothing left to do now.
        let report = try await engine.sync()
        print("\(report.imported) fetched, \(report.exported) sent, \(report.outbox.pending) waiting")

        // Why something has not gone.
        for entry in try journal.syncIssues() {
            print(entry.record, entry.code ?? "queued", entry.reason ?? "")
        }

        // And from then on, as things change, until the task is cancelled.
        try await engine.run()

        // The account goes, and its records are set aside. When it is back and synchronised, they come back.
        try await engine.signOut()
        _ = try await engine.sync()
        for quarantine in try journal.quarantines() { try await engine.restore(quarantine) }
    }
}
