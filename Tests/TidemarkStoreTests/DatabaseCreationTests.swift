import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a database is made as a whole or not at all, and a power cut takes no commit from its log that the log has shown.
///
/// Method: the files that an interrupted making can leave, at each length; the files after a making that fails; the order of
/// syncs.
/// `make prove-power` has the power cuts.
@Suite(.timeLimit(.minutes(30))) struct DatabaseCreationTests {
    @Test(arguments: StoreScope.allCases.filter { ContainerDirectory.scopes.contains($0) })
    func `an interrupted making of a store leaves no store, and the next writer makes it`(scope: StoreScope) async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        if scope != .private { _ = try RecordStore(container: container) }
        let other = try ContainerDirectory(openingOrCreatingAt: scratch["Other.tidemark"])
        let whole = try withExtendedLifetime(RecordStore(container: other, scope: scope)) {
            try Data(contentsOf: other.store(scope))
        }
        let path = container.store(scope).path
        for length in [0, 1, 5_000, 16_384, 20_000, whole.count] {
            for suffix in ["", "-lock", "-wal", "-shm", "-journal"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            for suffix in ["", "-wal", "-shm", "-journal"] {
                try whole.prefix(length).write(to: URL(fileURLWithPath: path + "-new" + suffix))
            }
            #expect(!container.hasStore(scope))
            if scope != .private { #expect(try StoreReader(container: container).types() == []) }
            let store = try RecordStore(container: container, scope: scope)
            #expect(try withExtendedLifetime(store) { try StoreReader(container: container, scope: scope).types() } == [])
            #expect(try FileManager.default.contentsOfDirectory(atPath: container.url.path).filter { $0.contains("-new") } == [])
            #expect(try StoreVerification(of: container).run().problems == [], "\(length) bytes")
        }
    }

    @Test func `a database is durable before it gets its name, and the name is durable when the making ends`() throws {
        let scratch = try Scratch()
        let (url, log) = (scratch["new.sqlite"], StepLog())
        let note: @Sendable (String) -> Void = { path in
            let hasName = FileManager.default.fileExists(atPath: url.path)
            log.add("\(URL(fileURLWithPath: path).lastPathComponent), \(hasName ? "named" : "without its name")")
        }
        try DurableFile.$onSynchronized.withValue(.init(note)) {
            try DatabaseCreation.make(at: url, pageSize: 4096) { try $0.execute(sql: "CREATE TABLE a (b)") }
        }
        #expect(log.all == ["new.sqlite-new, without its name", "\(scratch.url.lastPathComponent), named"])
    }

    @Test func `a failed making leaves nothing, and a log is durable from its first page on`() async throws {
        let scratch = try Scratch()
        let url = scratch["new.sqlite"]
        struct Refusal: Error {}
        #expect(throws: Refusal.self) {
            try DatabaseCreation.make(at: url, pageSize: 4096) { db in
                try db.execute(sql: "CREATE TABLE a (b)")
                throw Refusal()
            }
        }
        func files() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path).filter {
                $0.contains("new.sqlite")
            }
        }
        #expect(try files() == [])
        try DatabaseCreation.make(at: url, pageSize: 4096) { try $0.execute(sql: "CREATE TABLE a (b)") }
        #expect(try files() == ["new.sqlite"])
        let pool = try DatabaseCreation.openPool(url.path, Configuration())
        // One page: the pool by itself would have written two, without a sync.
        #expect(try Data(contentsOf: URL(fileURLWithPath: url.path + "-wal")).count == 32 + 24 + 4096)
        #expect(try await pool.read { try String.fetchOne($0, sql: "PRAGMA journal_mode") } == "wal")
        try pool.close()
    }
}
