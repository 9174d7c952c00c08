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
}
