import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTransfer

/// Goal: bulk changes don't delay a person's edits. Method: a real import, and edits made while its batches are sent.
@Suite(.timeLimit(.minutes(30))) struct BulkLaneTests {
    /// - Parameter padding: How many bytes each caption is longer.
    private func importing(
        _ scratch: Scratch, _ count: Int, picture: Int = 1, padding: Int = 0, into container: URL
    ) async throws {
        try scratch.write(Picture.png(picture), to: "1.png")
        let more = String(repeating: "x", count: padding)
        let lines = (0..<count).map {
            #"{"id": "r\#($0)", "caption": "\#($0)\#(more)"\#($0 == 0 ? #", "image": "1.png""# : "")}"#
        }
        try scratch.writeLines(lines, to: "records.jsonl")
        let options = ImportOptions.destination { $0.assetFields = ["image"] }
        _ = try await BulkImport(source: .file(scratch["records.jsonl"]), into: container, options: options).run()
    }

    @Test func `a person's edit is sent with the next batch, before any bulk changes`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await importing(scratch, 3000, into: scratch["a.tidemark"])
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        // An edit of a new record, and one of a record that is pending in bulk.
        recording.afterRequest(2) {
            try? await a.set("mine", ["caption": .string("new")])
            try? await a.set("r2999", ["caption": .string("edited")])
        }
        #expect(try await a.engine.sync().isComplete)
        let (mine, other) = (recording.request(of: "mine"), recording.request(of: "r2999"))
        #expect(mine == 3)
        #expect(other == 3)
        #expect(recording.sizes.reduce(0, +) == 3001)
        #expect(recording.sizes.max() == 400)
    }

    @Test func `the device asks whether the account has room before it sends bulk changes`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await importing(scratch, 1500, into: scratch["a.tidemark"])
        var account = cloud.account
        account.quota = 10
        try await cloud.cloud.update(account)
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        let report = try await a.engine.sync(patience: .zero)
        #expect(report.failure?.reason.contains("quotaExceeded") == true, "\(report)")
        #expect(recording.sizes.isEmpty)
    }

    @Test func `bulk deletions are sent even if there is no room, and make some`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        // Deleted records count less than before, and stored answers to requests count as well.
        try await importing(scratch, 1000, padding: 500, into: scratch["a.tidemark"])
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        #expect(try await a.engine.sync().isComplete)
        var account = cloud.account
        account.quota = try #require(await cloud.database().account().used)
        try await cloud.cloud.update(account)
        let before = recording.sizes.reduce(0, +)

        #expect(
            try await a.store.delete(matching: RecordQuery(type: "Destination"), author: .init("test", origin: .save)).count
                == 1000)
        try await importing(scratch, 1000, picture: 2, into: scratch["a.tidemark"])
        let report = try await a.engine.sync(patience: .zero)
        #expect(report.isComplete, "\(report)")
        #expect(recording.sizes.reduce(0, +) == before + 2000)
    }
}
