import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTransfer

/// Goal: preparing the next request while one is sent changes nothing but the time that it takes. Method: bulk uploads of several
/// requests, with edits, refusals and a process that ends in between.
@Suite(.timeLimit(.minutes(30))) struct LookingAheadTests {
    /// The number of records that were imported at once; a request takes 400.
    private static let count = 2000

    private func fill(_ device: Device) async throws {
        let edits = (0..<Self.count).map { number in
            RecordEdit(
                record: RecordName(type: "Destination", name: "r\(number)"), base: .any,
                values: ["caption": .string("Destination \(number)"), "rating": .int64(Int64(number % 5))],
                fields: ["caption", "rating"])
        }
        let schema = RecordTypeSchema(
            name: "Destination", fields: [.init(name: "caption", type: .string), .init(name: "rating", type: .int64)])
        try await device.store.apply(edits, schemas: [schema])
    }

    @Test func `bulk records are sent once each, in order, and arrive whole`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: database)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await fill(a)
        #expect(try await a.engine.sync().exported == Self.count)
        #expect(database.sent == (0..<Self.count).map { "r\($0)" })
        #expect(database.sizes == [400, 400, 400, 400, 400])
        #expect(try await b.engine.sync().imported == Self.count)
        #expect(try a.records() == b.records())
        #expect(try a.reader().outbox().pending == 0)
        #expect(try await a.store.sentRequests().isEmpty)
    }

    @Test func `an edit is sent before the prepared request, and none of its records is lost`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: database)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await fill(a)
        // One record of the request that is being sent, one of the prepared request, and one of the last request.
        let edited = ["r500", "r900", "r1999"]
        database.afterRequest(2) {
            for name in edited { try? await a.set(name, ["caption": .string("edited")]) }
        }
        let report = try await a.engine.sync()
        #expect(report.isComplete)
        let position = try #require(database.sent.firstIndex(of: "r1999"))
        #expect(position < 1200, "it waited for more than two requests")
        _ = try await b.engine.sync()
        #expect(try a.records() == b.records())
        for name in edited { #expect(try b.records()[name]?["caption"] == .string("edited")) }
        #expect(try a.reader().outbox().pending == 0)
    }

    @Test(arguments: 1...8)
    func `a process that ends between two requests leaves nothing unsent and sends nothing twice`(steps: Int) async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        let database = RecordingDatabase(try cloud.database())
        do {
            let a = try Device(scratch["a.tidemark"], database: database)
            try await fill(a)
            for _ in 0..<steps { _ = try await a.engine.step() }
        }
        let a = try await Device.opening(scratch["a.tidemark"], database: database)
        try await a.set("r1700", ["caption": .string("edited")])
        #expect(try await a.engine.sync().isComplete)
        // The edited record may have been sent before.
        #expect(Set(database.sent).count == Self.count && database.sent.count <= Self.count + 1)
        _ = try await b.engine.sync()
        #expect(try a.records() == b.records())
        #expect(try await a.store.sentRequests().isEmpty)
    }

    @Test func `a request that is too large for the cloud is halved, and everything arrives`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: database)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await fill(a)
        database.refusesMore(than: 150)
        #expect(try await a.engine.sync().isComplete)
        #expect(database.sent.count == Self.count)
        _ = try await b.engine.sync()
        #expect(try a.records() == b.records())
    }

    @Test func `prepared records are sent with their assets`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try scratch.write(Picture.png(1), to: "1.png")
        let lines = (0..<900).map {
            #"{"id": "r\#($0)", "caption": "\#($0)"\#($0 == 850 ? #", "image": "1.png""# : "")}"#
        }
        try scratch.writeLines(lines, to: "records.jsonl")
        let options = ImportOptions.destination { $0.assetFields = ["image"] }
        _ = try await BulkImport(source: .file(scratch["records.jsonl"]), into: scratch["a.tidemark"], options: options).run()
        let database = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: database)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        #expect(try await a.engine.sync().isComplete)
        #expect(database.sizes.reduce(0, +) == 900 && database.uploads == 1)
        #expect((database.request(of: "r850") ?? 0) > 1)
        #expect(try await b.engine.sync().isComplete)
        #expect(try a.records() == b.records())
        #expect(try b.records()["r850"]?["image"] != nil)
    }
}
