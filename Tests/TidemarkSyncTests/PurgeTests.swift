import TestSupport
import Testing
import TidemarkModel
import TidemarkStore
import TidemarkSync

/// Goal: purging the history removes nothing that is still to be sent. Method: pending edits and deletions, a purge, and another
/// device.
@Suite(.timeLimit(.minutes(30))) struct PurgeTests {
    @Test func `pending changes are sent after a purge of the history`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        for name in ["kept", "edited", "deleted"] { try await a.set(name, ["caption": .string(name)]) }
        #expect(try await a.engine.sync().isComplete)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        #expect(try await b.engine.sync().isComplete)
        try await a.set("edited", ["caption": .string("edited since")])
        try await a.set("new", ["caption": .string("new")])
        try await a.delete("deleted")
        // The newest transaction always stays.
        try await a.set("last", ["caption": .string("last")])
        #expect(try await a.store.purgeHistory(olderThan: .zero, keepingAtLeast: .zero).changes > 0)
        #expect(try await a.engine.sync().isComplete)
        #expect(try await b.engine.sync().isComplete)
        #expect(try b.records() == a.records())
        #expect(try b.records().keys.sorted() == ["edited", "kept", "last", "new"])
        #expect(try b.records()["edited"]?["caption"] == .string("edited since"))
    }

    @Test func `a transaction that is exactly as old as the limit stays`() async throws {
        let scratch = try Scratch()
        let time = LockedValue<Int64>(1_700_000_000_000_000)
        let store = try RecordStore(
            container: ContainerDirectory(openingOrCreatingAt: scratch.container), scope: .private, notifier: nil,
            now: { time.withLock { $0 } })
        for number in 1...2 {
            let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "n", type: .int64)])
            let edit = RecordEdit(
                record: RecordName(type: "Destination", name: "r\(number)"), base: .any, values: ["n": .int64(1)], fields: ["n"])
            _ = try await store.save(
                [edit], schemas: [schema], blobs: [], author: TransactionAuthor("test", origin: .save),
                policy: { _ in .overwrite }, check: { _ in })
            time.withLock { $0 += 5_000_000 }
        }
        #expect(try await store.purgeHistory(olderThan: .seconds(10), keepingAtLeast: .zero).changes == 0)
        time.withLock { $0 += 1 }
        #expect(try await store.purgeHistory(olderThan: .seconds(10), keepingAtLeast: .zero).changes == 1)
    }
}
