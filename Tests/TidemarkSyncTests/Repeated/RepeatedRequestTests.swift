import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// Goal: each request of a synchronisation has one effect, even if its answer is lost or it arrives twice. Method: two devices do
/// the same again and again, each time with another request disturbed; records, contents, the cloud's count of changes and the
/// bytes of the account's quota must be those of an undisturbed run.
@Suite(.timeLimit(.minutes(30))) struct RepeatedRequestTests {
    /// The kinds of requests of this run: each of them is disturbed at least once.
    private static let kinds: Set<String> = [
        "account", "modifyZones", "modify", "databaseChanges", "zoneChanges", "missingAssets", "upload", "download",
    ]
    private static let zone = CloudZoneID("TidemarkZone")

    /// The result of a run.
    private struct Outcome: Equatable {
        let records: [String: [String: FieldValue]]
        /// The number of the cloud's last change.
        let changes: Int64?
        /// The bytes that the account uses.
        let used: Int64?
        /// The bytes that are reserved for contents being uploaded.
        let reserved: [Int64]
        /// The digests of the cloud's contents, and of partial uploads.
        let contents: [String]
    }

    /// Two devices make, change and delete records with and without contents, and change the same field.
    private func run(_ sequence: RequestSequence, _ what: Comment) async throws -> Outcome {
        let (scratch, clock) = (try Scratch(), TestClock(movesWhenWaiting: true))
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { clock.now })
        let account = try await cloud.addAccount("anna@example.org")
        let database = try cloud.database(.private, of: TestCloud.container, account: account.id)
        let (a, b) = (
            try Device(
                scratch["a.tidemark"], database: DisturbedDatabase(database, sequence), environment: clock.environment),
            try Device(
                scratch["b.tidemark"], database: DisturbedDatabase(database, sequence), environment: clock.environment)
        )
        func sync(_ device: Device) async throws {
            let report = try await device.engine.sync(patience: .seconds(3600))
            #expect(report.isComplete && report.deferred == 0, "\(what.rawValue): \(report)")
        }
        for name in ["senja", "lofoten", "gone"] { try await a.set(name, ["caption": .string(name), "rating": .int64(1)]) }
        try await LazyDevices.save(LazyDevices.picture(1, bytes: 400), as: "kept", on: a)
        try await LazyDevices.save(LazyDevices.picture(2, bytes: 400), as: "removed", on: a)
        try await sync(a)
        try await sync(b)
        try await a.set("senja", ["caption": .string("of A")])
        try await b.set("senja", ["caption": .string("of B"), "rating": .int64(2)])
        try await b.set("new", ["caption": .string("new"), "of": .reference("lofoten")])
        try await b.delete("gone")
        try await a.delete("removed")
        try await sync(a)
        try await sync(b)
        try await sync(a)
        #expect(try a.records() == b.records(), what)
        for device in [a, b] {
            guard case .asset(let id)? = try device.records()["kept"]?["image"], let file = device.store.file(of: id) else {
                Issue.record("\(what.rawValue): a picture is missing")
                continue
            }
            #expect(try Data(contentsOf: file) == LazyDevices.picture(1, bytes: 400), what)
        }
        let page = try await database.zoneChanges(Self.zone, since: nil, limit: nil, desiredKeys: [])
        let records = try a.records()
        #expect(page.changes.count == records.count, what)
        let used = try await database.account().used
        let reserved = try await cloud.usage(of: account).map(\.reserved)
        // One more change, whose number shows how many there were.
        let last = RecordOperation(.create, CloudRecord(CloudRecordID("last", in: Self.zone), type: "Destination"))
        let outcomes = try await database.modify(ModifyRecordsRequest(zone: Self.zone, operations: [last]))
        guard case .saved(let record)? = outcomes.first, let tag = record.changeTag else {
            throw CloudError(.internalError, "the last record was not saved: \(outcomes)")
        }
        let paths = try FileManager.default.subpathsOfDirectory(atPath: scratch["cloud"].path)
        let contents = paths.map { ($0 as NSString).lastPathComponent }.filter { $0.count == 64 }
        return Outcome(
            records: records, changes: database.change(of: tag), used: used, reserved: reserved, contents: contents.sorted())
    }

    @Test(arguments: RequestSequence.Disturbance.allCases)
    func `a synchronisation with any one request disturbed ends like an undisturbed one`(
        _ disturbance: RequestSequence.Disturbance
    ) async throws {
        let undisturbed = RequestSequence()
        let expected = try await run(undisturbed, "undisturbed")
        let requests = undisturbed.requests
        #expect(Set(requests).isSuperset(of: Self.kinds), "\(requests)")
        #expect(expected.records.keys.sorted() == ["kept", "lofoten", "new", "senja"])
        #expect(expected.changes != nil && expected.used ?? 0 > 0 && !expected.contents.isEmpty)
        let place = RequestSequence.Disturbance.allCases.firstIndex(of: disturbance)!
        for (index, name) in requests.enumerated() where DrawnTrials.have(index + place) {
            // Only the answers to changes may differ.
            let changes = ["modify", "modifyZones", "upload"].contains(name)
            guard disturbance != .doubledWithLastAnswer || changes else { continue }
            let what: Comment = "\(disturbance.rawValue), request \(index + 1), \(name)"
            let sequence = RequestSequence(disturbance, at: index + 1)
            #expect(try await run(sequence, what) == expected, what)
            #expect(sequence.requests.count > index, what)
        }
    }
}
