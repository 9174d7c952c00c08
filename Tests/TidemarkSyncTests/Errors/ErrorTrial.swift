import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// A device, and a cloud that answers one kind of request with an error. The device has a change to send or to fetch that gets
/// the error, and another record to send.
struct ErrorTrial {
    private static let zone = CloudZoneID("TidemarkZone")
    private static let picture = Picture.png(7)
    private static let bad = ScriptedDatabase.record
    private static let hour = Duration.seconds(3600)
    /// How long a synchronisation waits for a cloud that fails each time.
    private static let patience = Duration.seconds(30)
    /// More requests in that time are a loop without pauses.
    private static let requestsMax = 600

    private let operation: ScriptedDatabase.Operation
    private let scratch: Scratch
    private let clock: TestClock
    private let cloud: EmbeddedCloud
    private let database: EmbeddedDatabase
    private let scripted: ScriptedDatabase
    private let device: Device

    init(_ operation: ScriptedDatabase.Operation) async throws {
        let (scratch, clock) = (try Scratch(), TestClock(movesWhenWaiting: true))
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { clock.now })
        let account = try await cloud.addAccount("anna@example.org")
        let database = try cloud.database(.private, of: TestCloud.container, account: account.id)
        let scripted = ScriptedDatabase(database)
        let device = try Device(scratch["a.tidemark"], database: scripted, environment: clock.environment)
        (self.operation, self.scratch, self.clock, self.cloud) = (operation, scratch, clock, cloud)
        (self.database, self.scripted, self.device) = (database, scripted, device)
        if operation != .makeZone {
            try await device.set("known", ["caption": .string("known")])
            if [.edit, .delete, .deleteRequest].contains(operation) {
                try await device.set(Self.bad, ["caption": .string("old")])
            }
            #expect(try await device.engine.sync(patience: Self.hour).isComplete)
        }
        switch operation {
        case .account, .makeZone, .saveRequest, .save, .edit: try await device.set(Self.bad, ["caption": .string("bad")])
        case .delete, .deleteRequest: try await device.delete(Self.bad)
        case .missingAssets, .upload: try await LazyDevices.save(Self.picture, as: Self.bad, on: device, caption: "bad")
        case .listZones, .fetch: try await saveElsewhere(["caption": .string("bad")])
        case .download:
            let asset = AssetDigest.asset(of: Self.picture)
            _ = try await database.upload(Self.picture, of: asset, at: 0, in: Self.zone)
            try await saveElsewhere(["caption": .string("bad"), "image": .asset(asset)])
        }
        try await device.set("good", ["caption": .string("good")])
    }

    /// As another device does.
    private func saveElsewhere(_ fields: [String: CloudValue]) async throws {
        let record = CloudRecord(CloudRecordID(Self.bad, in: Self.zone), type: "Destination", fields: fields)
        let request = ModifyRecordsRequest(zone: Self.zone, operations: [RecordOperation(.create, record)])
        for case .failed(let error) in try await database.modify(request) { throw error }
    }

    /// Makes the cloud answer with a code, and checks the outcome.
    func run(_ code: CloudError.Code, always: Bool, expecting outcome: ErrorOutcome) async throws {
        let what: Comment = "\(operation.rawValue), \(code.rawValue), \(always ? "each time" : "once")"
        scripted.answer(operation, code, times: always ? .max : 1)
        let begun = clock.elapsed
        let report = try await device.engine.sync(patience: always ? Self.patience : Self.hour)
        #expect(scripted.failures > 0, what)
        #expect(scripted.requests <= Self.requestsMax, what)
        if always { #expect(clock.elapsed - begun <= Self.patience, what) }
        switch outcome {
        case .done: #expect(report.isComplete, what)
        case .again where !always: #expect(report.isComplete && report.deferred == 0, what)
        case .again: expectFailure(report, code, what)
        case .issue(let seconds): try await expectIssue(code, seconds, what)
        case .deferred:
            #expect(report.failure == nil && report.deferred == 1, what)
            try await expectOthers(what)
        case .stops: expectFailure(report, code, what)
        case .emptied: try await restoreEmptied(report, code, what)
        }
        try await converge(what)
    }

    /// Checks that the failure is reported with a remedy, and that all pending changes are kept.
    private func expectFailure(_ report: SyncReport, _ code: CloudError.Code, _ what: Comment) {
        #expect(report.failure?.reason.contains(code.rawValue) == true, what)
        #expect(report.failure?.isPassing == ErrorReaction(code).isPassing, what)
    }

    private func expectIssue(_ code: CloudError.Code, _ seconds: Int64?, _ what: Comment) async throws {
        let reader = try device.reader()
        let issue = try #require(try reader.syncIssues(record: Self.bad).first { $0.code != nil }, what)
        // A content that the cloud refuses is an issue of its record.
        let isOfContent = operation == .upload && seconds == 60
        #expect(issue.code == (isOfContent ? CloudError.Code.assetNotAvailable.rawValue : code.rawValue), what)
        #expect(issue.reason?.isEmpty == false, what)
        let lastTry = try #require(issue.lastTry, what)
        #expect(issue.nextTry == seconds.map { lastTry + $0 * 1_000_000 }, what)
        #expect(try reader.outbox().pending > 0, what)
        // Without a cause among the records there is no reason to send one of them.
        let isOfRecord = [.save, .edit, .delete].contains(operation) && code != .batchRequestFailed
        if isOfRecord || isOfContent { try await expectOthers(what) }
    }

    /// Checks that the other record was sent.
    private func expectOthers(_ what: Comment) async throws {
        #expect(try await inCloud()["good"] == "good", what)
    }

    /// Checks that the store is empty and sends nothing, and that what was set aside can be restored after another sign-in.
    private func restoreEmptied(_ report: SyncReport, _ code: CloudError.Code, _ what: Comment) async throws {
        #expect(report.failure?.reason.contains(code.rawValue) == true, what)
        #expect(try device.records().isEmpty, what)
        #expect(try await device.engine.sync(patience: Self.hour).failure != nil, what)
        scripted.heal()
        let quarantine = try #require(try device.container.quarantines().first, what)
        #expect(quarantine.pending > 0, what)
        try await device.store.updateSyncState { $0.isPurged = false }
        #expect(try await device.engine.sync(patience: Self.hour).isComplete, what)
        try await device.engine.restore(quarantine)
    }

    /// Checks that both sides have everything once the cloud answers again and records with issues were edited.
    private func converge(_ what: Comment) async throws {
        scripted.heal()
        let issues = try device.reader().syncIssues().filter { $0.code != nil && $0.nextTry == nil && $0.kind == .save }
        for issue in issues { try await device.set(issue.record, ["note": .string("again")]) }
        let waitsForLimits = try device.reader().syncIssues().contains { $0.code == CloudError.Code.limitExceeded.rawValue }
        clock.advance(by: .seconds(waitsForLimits ? 86_401 : 601))
        let report = try await device.engine.sync(patience: Self.hour)
        #expect(report.isComplete && report.deferred == 0 && report.refused == 0, what)
        #expect(try device.reader().syncIssues().isEmpty, what)
        var here: [String: String] = [:]
        for (name, values) in try device.records() {
            if case .string(let caption)? = values["caption"] { here[name] = caption }
        }
        let isDeleted = [.delete, .deleteRequest].contains(operation)
        var expected = isDeleted ? ["good": "good"] : ["good": "good", Self.bad: "bad"]
        if operation != .makeZone { expected["known"] = "known" }
        #expect(here == expected, what)
        #expect(try await inCloud() == expected, what)
        guard [.missingAssets, .upload, .download].contains(operation) else { return }
        guard case .asset(let id)? = try device.records()[Self.bad]?["image"], let file = device.store.file(of: id) else {
            Issue.record("\(what.rawValue): the picture is missing")
            return
        }
        #expect(try Data(contentsOf: file) == Self.picture, what)
        let asset = AssetDigest.asset(of: Self.picture)
        #expect(
            try await database.download(asset, in: Self.zone, from: 0, count: Self.picture.count) == Self.picture, what)
    }

    /// The captions of the cloud's records.
    private func inCloud() async throws -> [String: String] {
        let page = try await database.zoneChanges(Self.zone, since: nil, limit: nil, desiredKeys: nil)
        var captions: [String: String] = [:]
        for case .saved(let record) in page.changes {
            if case .string(let caption)? = record.fields["caption"] { captions[record.id.recordName] = caption }
        }
        return captions
    }
}
