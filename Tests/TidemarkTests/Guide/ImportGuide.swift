import Foundation
import GRDB
import Tidemark
import TidemarkTransfer

/// The code of the guide to imports. Not run: it names files of the current folder.
enum ImportGuide {
    static func run() async throws {
        let journal = URL(fileURLWithPath: "MyJournal.tidemark")

        // Reading the manifest, copying pictures and writing rows overlap. Each batch is one durable transaction.
        let bulkImport = BulkImport(
            source: .file(URL(fileURLWithPath: "journal.jsonl")), into: journal,
            options: ImportOptions(type: "Destination", nameField: "id", assetFields: ["image"]))
        async let running = bulkImport.run()
        for await progress in bulkImport.progress { print("\(progress.summary.read) records so far") }
        let summary = try await running
        print("\(summary.changes.inserted) new, \(summary.changes.updated) updated, \(summary.rejected) refused")
    }
}

private func importGuideReads(_ journal: URL) throws {
    // Records with typed values, or any SQL.
    let reader = try StoreReader(container: ContainerDirectory(openingAt: journal))
    try reader.forEachRecord(RecordQuery(type: "Destination", sortField: "createdAt", isDescending: true, limit: 10)) { record in
        print(record.name, record.values)
    }
    let container = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: journal))
    let captions = try container.reader()?.read { db in
        try String.fetchAll(db, sql: "SELECT caption FROM Destination WHERE caption LIKE 'S%'")
    }
    print(captions ?? [])
}
