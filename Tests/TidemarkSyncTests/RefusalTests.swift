import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// Goal: if a cloud refuses a change, nothing is lost, other changes are sent, and the sync issues give the reason. Method: real
/// containers and a real cloud, which gets changes that it refuses.
@Suite(.timeLimit(.minutes(30))) struct RefusalTests {
    private func fields(_ count: Int) -> [String: FieldValue?] {
        Dictionary(uniqueKeysWithValues: (0..<count).map { ("f\($0)", .int64(Int64($0))) })
    }

    @Test func `a record with too many fields is not sent, others are, and the sync issues say why`() async throws {
        let scratch = try Scratch()
        var limits = CloudLimits()
        limits.fieldsPerType = 100
        let cloud = try await TestCloud(scratch, limits: limits)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        try await a.set("large", fields(200), type: "Wide")
        try await a.set("senja", ["caption": .string("Senja")])
        let report = try await a.engine.sync()
        #expect(report.exported == 1)
        #expect(report.outbox.pending == 1)
        let entry = try #require(try a.reader().syncIssues(record: "large").first)
        #expect(entry.code == "invalidArguments" || entry.code == "limitExceeded", "\(entry)")
        #expect(entry.attempts >= 1)
        #expect(entry.pendingSince != nil)
        #expect((entry.nextTry != nil) == (entry.code == "limitExceeded"))
    }

    @Test func `a record of 2 MB is not sent, others are, and it is sent once it is smaller`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        for index in 0..<20 { try await a.set("r\(index)", ["caption": .string("\(index)")]) }
        try await a.set("large", ["caption": .string(String(repeating: "x", count: 2_000_000))])
        for index in 20..<40 { try await a.set("r\(index)", ["caption": .string("\(index)")]) }
        let report = try await a.engine.sync()
        #expect(report.exported == 40)
        let entry = try #require(try a.reader().syncIssues(record: "large").first)
        #expect(entry.code == "limitExceeded", "\(entry)")
        #expect(entry.reason?.contains("Put what is large into an asset") == true, "\(entry)")
        try await a.set("large", ["caption": .string("small")])
        #expect(try await a.engine.sync().isComplete)
        _ = try await b.engine.sync()
        #expect(try b.records().count == 41)
        #expect(try a.records() == b.records())
    }

    @Test func `nothing is sent before the first page, which gives the cloud's incarnation`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        try await a.set("senja", ["caption": .string("Senja")])
        recording.changesFail(with: CloudError(.serviceUnavailable, "as it was told"))
        _ = try await a.engine.sync(patience: .zero)
        #expect(recording.sent == [])
        recording.changesFail(with: nil)
        #expect(try await a.engine.sync(patience: .seconds(60)).isComplete)
        #expect(recording.sent == ["senja"])
    }

    /// The seconds until a refused record is sent again; `nil` if only an edit sends it.
    @Test(
        arguments: [
            (.referenceViolation, 60), (.unknownItem, 60), (.quotaExceeded, 600), (.permissionFailure, 600),
            (.notAuthenticated, 600),
            (.limitExceeded, 86_400), (.invalidArguments, nil),
        ] as [(code: CloudError.Code, seconds: Int64?)])
    func `a refused record is sent again after a minute, after ten if a person has to act, after a day, or when it is edited`(
        code: CloudError.Code, seconds: Int64?
    ) async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        recording.refuses("senja", with: code)
        let clock = LockedValue<Int64>(1_700_000_000_000_000)
        var environment = SyncEnvironment.system
        environment.now = { clock.withLock { $0 } }
        let a = try Device(scratch["a.tidemark"], database: recording, environment: environment)
        try await a.set("senja", ["caption": .string("Senja")])
        try await a.set("lofoten", ["caption": .string("Lofoten")])
        _ = try await a.engine.sync(patience: .zero)
        #expect(recording.sent == ["lofoten"])
        let issue = try #require(try a.reader().syncIssues(record: "senja").first)
        #expect(issue.code == code.rawValue)
        #expect(issue.nextTry == seconds.map { clock.withLock { $0 } + $0 * 1_000_000 })
    }

    @Test func `a record that is tried again keeps its sync issue until it was sent or is refused again`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        recording.refuses("senja", with: .invalidArguments)
        let a = try Device(scratch["a.tidemark"], database: recording)
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync(patience: .zero)
        let refused = try #require(try a.reader().syncIssues(record: "senja").first)
        #expect(refused.code == "invalidArguments" && refused.attempts == 1 && !refused.isAwaitingRetry)
        // The set-up allows another try, and the request does not reach the cloud.
        recording.fails(with: .serviceUnavailable)
        let failed = try await a.engine.sync(patience: .zero)
        #expect(failed.outbox.pending == 1 && failed.outbox.blocked == 1 && failed.outbox.nextTry == nil, "\(failed)")
        let waiting = try #require(try a.reader().syncIssues(isRefused: true).first)
        #expect(waiting.isAwaitingRetry && waiting.nextTry == nil && waiting.attempts == 1, "\(waiting)")
        #expect(waiting.code == "invalidArguments" && waiting.lastTry == refused.lastTry)
        recording.fails(with: nil)
        _ = try await a.engine.sync(patience: .zero)
        let again = try #require(try a.reader().syncIssues(record: "senja").first)
        #expect(again.code == "invalidArguments" && again.attempts == 2 && !again.isAwaitingRetry, "\(again)")
        recording.refuses("senja", with: nil)
        #expect(try await a.engine.sync().isComplete)
        #expect(try a.reader().syncIssues().isEmpty)
        #expect(try a.reader().outbox().blocked == 0)
    }

    @Test func `a refused record that is merged with a record of the cloud has no sync issue any more`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        recording.refuses("senja", with: .invalidArguments)
        let a = try Device(scratch["a.tidemark"], database: recording)
        let schema = RecordTypeSchema(
            name: "Destination", fields: [.init(name: "caption", type: .string)], uniqueKeys: [["caption"]])
        try await a.store.declare([schema], environment: .development)
        try await a.set("senja", ["caption": .string("Senja")])
        #expect(try await a.engine.sync(patience: .zero).outbox.blocked == 1)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await b.set("another", ["caption": .string("Senja")])
        #expect(try await b.engine.sync().isComplete)
        for _ in 0..<2 { _ = try await a.engine.sync(patience: .zero) }
        #expect(try a.records().keys.sorted() == ["another"])
        let outbox = try a.reader().outbox()
        #expect(outbox.pending == 0 && outbox.blocked == 0 && outbox.nextTry == nil, "\(outbox)")
    }

    @Test func `a record that was too large is sent after the cloud's limits change, and after a day`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        let clock = LockedValue<Int64>(1_700_000_000_000_000)
        var environment = SyncEnvironment.system
        environment.now = { clock.withLock { $0 } }
        let a = try Device(scratch["a.tidemark"], database: recording, environment: environment)
        /// The record is refused once, and then no longer: with the same limits it is not tried again.
        func refuse(_ name: String) async throws {
            recording.refuses(name, with: .limitExceeded)
            try await a.set(name, ["caption": .string(name)])
            _ = try await a.engine.sync(patience: .zero)
            recording.refuses(name, with: nil)
            _ = try await a.engine.sync(patience: .zero)
            #expect(try a.reader().syncIssues(record: name).first?.code == "limitExceeded")
        }
        try await refuse("senja")
        var limits = CloudLimits()
        limits.bytesPerRecord = 3_000_000
        recording.announces(limits)
        _ = try await a.engine.sync(patience: .zero)
        #expect(recording.sent == ["senja"])
        try await refuse("lofoten")
        clock.withLock { $0 += 86_401 * 1_000_000 }
        _ = try await a.engine.sync(patience: .zero)
        #expect(recording.sent == ["senja", "lofoten"])
        #expect(try a.reader().syncIssues().isEmpty)
    }

    @Test func `children of a refused parent wait for it, and are sent with it`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        let large = FieldValue.string(String(repeating: "x", count: 2_000_000))
        try await a.set("child", ["of": .reference("parent")], type: "Photo")
        try await a.set("grandchild", ["of": .reference("child")], type: "Photo")
        try await a.set("parent", ["caption": large])
        try await a.set("other", ["caption": .string("other")])
        let report = try await a.engine.sync()
        #expect(report.exported == 1)
        #expect(report.outbox.pending == 3)
        #expect(try a.reader().syncIssues(record: "child").first?.waitsFor == "parent")
        #expect(try a.reader().syncIssues(record: "grandchild").first?.waitsFor == "child")
        try await a.set("parent", ["caption": .string("small")])
        #expect(try await a.engine.sync().isComplete)
        _ = try await b.engine.sync()
        #expect(try b.records("Photo").keys.sorted() == ["child", "grandchild"])
        #expect(try b.records().count == 2)
    }

    @Test func `children are sent when their refused parent is deleted`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        try await a.set("child", ["of": .reference("parent")], type: "Photo")
        try await a.set("parent", ["caption": .string(String(repeating: "x", count: 2_000_000))])
        #expect(try await a.engine.sync().outbox.pending == 2)
        try await a.delete("parent")
        #expect(try await a.engine.sync().isComplete)
    }

    @Test func `a name that the cloud has with another type does not delay others, and no record is deleted for it`() async throws
    {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        for name in ["x", "clean"] { try await a.set(name, ["caption": .string("old")], type: "Entry") }
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        for name in ["x", "clean"] {
            try await a.delete(name, type: "Entry")
            try await a.set(name, ["title": .string("new")], type: "Place")
        }
        #expect(try await a.engine.sync().exported == 4)
        try await b.set("x", ["caption": .string("edited")], type: "Entry")
        try await b.set("y", ["caption": .string("innocent")], type: "Entry")
        let report = try await b.engine.sync()
        #expect(report.outbox.pending == 1, "\(report)")
        #expect(try b.reader().syncIssues(record: "x").first?.code == "conflict")
        // If no device has edited the old record, the new one replaces it.
        #expect(try b.records("Place").keys.sorted() == ["clean"])
        #expect(try b.records("Entry").keys.sorted() == ["x", "y"])
        try await b.delete("x", type: "Entry")
        #expect(try await b.engine.sync().isComplete)
        _ = try await b.engine.sync()
        _ = try await a.engine.sync()
        #expect(try b.records("Place").keys.sorted() == ["clean", "x"])
        #expect(try a.records("Place") == b.records("Place"))
        #expect(try a.records("Entry") == b.records("Entry"))
    }

    @Test func `parents are sent before children, even if they were made later`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        try await a.set("child", ["of": .reference("parent")], type: "Photo")
        try await a.set("parent", ["caption": .string("parent"), "of": .reference("root")])
        try await a.set("root", ["caption": .string("root")])
        #expect(try await a.engine.sync().isComplete)
        #expect(recording.sent == ["root", "parent", "child"])
    }

    @Test func `a full account is reported to a person, and pending changes are sent when there is room`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        var account = cloud.account
        account.quota = 100
        try await cloud.cloud.update(account)
        try await a.set("senja", ["caption": .string(String(repeating: "x", count: 1000))])
        let report = try await a.engine.sync(patience: .zero)
        #expect(report.failure?.reason.contains("quotaExceeded") == true, "\(report)")
        #expect(try a.reader().syncIssues(record: "senja").first?.code == "quotaExceeded")
        // Downloads still work.
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await b.set("lofoten", ["caption": .string("L")])
        account.quota = .max
        try await cloud.cloud.update(account)
        #expect(try await b.engine.sync().isComplete)
        let again = try await a.engine.sync()
        #expect(again.imported == 1)
    }

    @Test func `after an expired token everything is fetched again, and deleted records are removed`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let faulty = FaultyDatabase(try cloud.database(), plan: FaultPlan(seed: 1))
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: faulty)
        for name in ["one", "two", "three"] { try await a.set(name, ["caption": .string(name)]) }
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await a.delete("two")
        try await a.set("three", ["caption": .string("of A")])
        _ = try await a.engine.sync()
        try await b.set("one", ["caption": .string("of B")])
        faulty.inject([.slow, .slow, .changeTokenExpired])
        let report = try await b.engine.sync()
        #expect(faulty.counts[.changeTokenExpired] == 1, "\(faulty.counts)")
        #expect(report.isComplete)
        _ = try await a.engine.sync()
        #expect(try b.records() == a.records())
        #expect(try b.records().keys.sorted() == ["one", "three"])
        #expect(try b.records()["one"]?["caption"] == .string("of B"))
    }

    @Test func `a purged zone empties the store, and nothing is uploaded again`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database)
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync()
        try await a.set("lofoten", ["caption": .string("Lofoten")])
        try await database.purgeZone(CloudZoneID("TidemarkZone"))
        let report = try await a.engine.sync()
        #expect(report.failure != nil)
        #expect(try a.records().isEmpty)
        try await a.set("later", ["caption": .string("later")])
        #expect(try await a.engine.sync().exported == 0)
        await #expect(throws: CloudError(.userDeletedZone, "")) {
            try await database.zoneChanges(CloudZoneID("TidemarkZone"), since: nil, limit: nil, desiredKeys: nil)
        }
    }

    @Test func `a zone that is gone without a purge is made again, and everything is uploaded again`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database)
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync()
        try await database.modifyZones(saving: [], deleting: [CloudZoneID("TidemarkZone")])
        try await a.set("lofoten", ["caption": .string("Lofoten")])
        #expect(try await a.engine.sync(patience: .seconds(600)).isComplete)
        let b = try Device(scratch["b.tidemark"], database: database)
        _ = try await b.engine.sync()
        #expect(try b.records().keys.sorted() == ["lofoten", "senja"])
    }

    @Test func `a zone that is lost between two requests is made again, and everything is uploaded again`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let recording = RecordingDatabase(database)
        recording.refusesMore(than: 1)
        let a = try Device(scratch["a.tidemark"], database: recording)
        for name in ["senja", "lofoten"] { try await a.set(name, ["caption": .string(name)]) }
        // The page of this synchronisation was fetched before.
        recording.afterRequest(1) {
            try? await database.modifyZones(saving: [], deleting: [CloudZoneID("TidemarkZone")])
        }
        #expect(try await a.engine.sync(patience: .seconds(600)).isComplete)
        let b = try Device(scratch["b.tidemark"], database: database)
        _ = try await b.engine.sync()
        #expect(try b.records().keys.sorted() == ["lofoten", "senja"])
    }

    @Test func `batches are halved until they fit the cloud's limit`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        recording.refusesMore(than: 7)
        let a = try Device(scratch["a.tidemark"], database: recording)
        for index in 0..<50 { try await a.set("r\(index)", ["caption": .string("\(index)")]) }
        #expect(try await a.engine.sync().isComplete)
        #expect(Set(recording.sent).count == 50)
        #expect(recording.sizes.allSatisfy { $0 <= 7 })
    }

    @Test func `imports continue while exports fail`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        for failure in [CloudError.Code.serviceUnavailable, .internalError, .zoneBusy, .permissionFailure] {
            recording.fails(with: failure)
            try await a.set("mine-\(failure.rawValue)", ["caption": .string("A")])
            try await b.set("theirs-\(failure.rawValue)", ["caption": .string("B")])
            _ = try await b.engine.sync()
            let report = try await a.engine.sync(patience: .zero)
            #expect(report.imported == 1, "\(failure.rawValue)")
            #expect(report.outbox.pending >= 1)
        }
    }

    @Test func `a refused record is not tried again when others are edited`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        recording.refuses("senja", with: .limitExceeded)
        let a = try Device(scratch["a.tidemark"], database: recording)
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync(patience: .zero)
        recording.refuses("senja", with: nil)
        for name in ["lofoten", "bodø"] {
            try await a.set(name, ["caption": .string(name)])
            _ = try await a.engine.sync(patience: .zero)
        }
        #expect(recording.sent == ["lofoten", "bodø"])
        #expect(try a.reader().syncIssues(record: "senja").first?.code == "limitExceeded")
        try await a.set("senja", ["caption": .string("Senja in May")])
        #expect(try await a.engine.sync().isComplete)
        #expect(recording.sent == ["lofoten", "bodø", "senja"])
    }
}
