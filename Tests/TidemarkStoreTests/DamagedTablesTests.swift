import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkTransfer

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a damaged page of a store's tables is reported as damage, and does not crash. Method: each column in turn has NULL in
/// all rows, and all stored values are read; tables of history and of the schema are in `HostileStoreTests`.
@Suite(.timeLimit(.minutes(30))) struct DamagedTablesTests {
    private typealias Reading = @Sendable (RecordStore, StoreReader) async throws -> Void

    private static let record = RecordName(type: "Destination", name: "a")

    private static let readings: [Reading] = [
        { _, reader in _ = try reader.zones() },
        { _, reader in _ = try reader.syncIssues() },
        { _, reader in _ = try reader.outbox() },
        { _, reader in _ = try reader.events() },
        { _, reader in _ = try reader.deferredRecords() },
        { _, reader in _ = try reader.syncState() },
        { _, reader in _ = try reader.changes(ofRecord: "a") },
        { store, _ in _ = try await store.zone(of: record) },
        { store, _ in _ = try await store.graph(of: [record]) },
        { store, _ in _ = try await store.damagedRows() },
        { store, _ in _ = try await store.undigested(sizes: [1]) },
        { store, _ in _ = try await store.remoteAssets(["1"]) },
        { store, _ in _ = try await store.blobs(["1"]) },
        { store, _ in _ = try await store.unnamedAssets() },
        { store, _ in _ = try await store.sentRequests() },
    ]

    @Test func `a missing value in a row is reported, and does not crash`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], .destination())
        let columns = try NullColumn.allow(
            in: scratch["Test.tidemark/private.sqlite"],
            tables: [
                "Destination", "tide_assets", "tide_deferred", "tide_events", "tide_outbox", "tide_requests", "tide_sync_issues",
                "tide_zones",
            ],
            values: ["identifier": "'8A1F3C77-1B5D-4B8E-8F0A-2E6D9C4B7A12'", "tide_deferred.reason": "'schema'"])
        var told: Set<String> = []
        for column in columns {
            let folder = scratch["\(column).tidemark"]
            try column.copy(scratch.container, to: folder, database: "private.sqlite")
            let container = try ContainerDirectory(openingAt: folder)
            let (store, reader) = (try RecordStore(container: container), try StoreReader(container: container))
            for reading in Self.readings {
                do {
                    try await reading(store, reader)
                } catch let error as StoreError where error.code == .corrupt {
                    told.insert(column.description)
                } catch let error as StoreError where error.code == .notFound {
                    // A record without its key is not found.
                    #expect(column.description == "Destination._key", "\(error)")
                }
            }
            try FileManager.default.removeItem(at: folder)
        }
        let expected: Set = [
            "Destination._zone", "tide_assets.size", "tide_deferred.fields", "tide_events.start", "tide_outbox.last_row",
            "tide_requests.items", "tide_zones.name",
        ]
        #expect(expected.subtracting(told) == [], "\(told.sorted())")
    }
}
