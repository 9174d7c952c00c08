import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: the reported pending changes are those of the rows and history, though neither is read as a whole. Method: a real
/// container in all the states that a change goes through, each time compared with a count of everything.
@Suite(.timeLimit(.minutes(30))) struct WaitingTests {
    /// The names of pending records, from every row and all of history; and their number.
    private func everything(_ device: Device) throws -> [String] {
        let reader = try device.reader()
        let types = try reader.types().map(\.name)
        return try reader.read { db in
            var names: [String] = []
            for type in types {
                names += try String.fetchAll(db, sql: "SELECT _name FROM _\(type) WHERE _pending IS NOT NULL")
            }
            let deletions = """
                SELECT CAST(c.key AS TEXT) FROM tide_changes c JOIN tide_transactions t ON t.id = c.transaction_id
                WHERE c.kind = 3 AND c.tag IS NOT NULL AND (
                    (c.type_id, c.first_row) IN (SELECT type_id, first_row FROM tide_outbox WHERE kind = 3)
                    OR t.origin <> 'cloud' AND c.id > coalesce((SELECT value FROM tide_sync WHERE key = 'outbox_change'), 0))
                """
            return try (names + String.fetchAll(db, sql: deletions)).sorted()
        }
    }

    private func check(_ device: Device, _ count: Int, _ when: Comment) throws {
        let reader = try device.reader()
        let waiting = try everything(device)
        #expect(waiting.count == count, when)
        #expect(try reader.outbox().pending == count, when)
        #expect(try reader.syncIssues().map(\.record).sorted() == waiting, when)
        #expect(try reader.syncIssues(limit: 3).count == min(count, 3), when)
        for name in waiting.prefix(5) { #expect(try reader.syncIssues(record: name).map(\.record) == [name], when) }
    }

    @Test func `counts and entries are those of all pending changes, in every state`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        let edits = (0..<900).map { number in
            RecordEdit(
                record: RecordName(type: "Destination", name: "r\(number)"), base: .any, values: ["rating": .int64(1)],
                fields: ["rating"])
        }
        try await a.store.apply(
            edits, schemas: [RecordTypeSchema(name: "Destination", fields: [.init(name: "rating", type: .int64)])])
        try check(a, 900, "nothing was sent")
        try await a.set("r5", ["rating": .int64(2)])
        try await a.set("photo", ["of": .reference("r5")], type: "Photo")
        try check(a, 901, "history is ahead of the outbox")
        recording.afterRequest(2) {
            do {
                try await a.set("r899", ["rating": .int64(3)])
                try await a.delete("r898")
                try check(a, try everything(a).count, "half is sent")
            } catch {
                Issue.record(error)
            }
        }
        #expect(try await a.engine.sync().isComplete)
        try check(a, 0, "everything is sent")

        try await a.delete("r1")
        try await a.delete("photo", type: "Photo")
        try await a.set("r2", ["rating": .int64(4)])
        try check(a, 3, "deletions wait")
        _ = try await a.store.outbox()
        try check(a, 3, "the outbox has them")
        try await a.set("large", ["caption": .string(String(repeating: "x", count: 2_000_000))])
        try await a.set("child", ["of": .reference("large")], type: "Photo")
        #expect(try await a.engine.sync().outbox.pending == 2)
        try check(a, 2, "one was refused, one waits for it")
        try await a.set("r0", ["rating": .int64(5)])
        try check(a, 3, "one is behind the refused one")
        #expect(try a.reader().syncIssues().first?.record == "large")
    }
}
