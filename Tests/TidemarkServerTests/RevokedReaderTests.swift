import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// Goal: no record that is made after the removal of a participant reaches that participant, whatever requests are under way.
///
/// Method: an owner removes a participant and invites them again, over and over. While the participant is removed, the owner
/// saves odd numbers, with contents of their own; before the next invitation an even one. The participant's devices never stop:
/// they look up, query, fetch changes with the tokens that they have, download the contents whose digests they know, and wait for
/// notifications. No device ever gets an odd number.
@Suite(.timeLimit(.minutes(30))) struct RevokedReaderTests {
    private enum Way: CaseIterable, Sendable { case lookUp, query, changes, download }

    /// What a device has got.
    private struct Found: Sendable {
        let way: Way
        var numbers: Set<Int64> = []
        var refusals = 0
        var strange: [String] = []
    }

    /// The progress of the owner.
    private final class Progress: Sendable {
        private let state = LockedValue((newest: Int64(2), isDone: false))
        func begin(_ number: Int64) { state.withLock { $0.newest = number } }
        func finish() { state.withLock { $0.isDone = true } }
        var newest: Int64 { state.withLock(\.newest) }
        var isDone: Bool { state.withLock(\.isDone) }
    }

    /// A zone that is shared, and its participant.
    private struct Place: Sendable {
        let owner: HTTPDatabase
        let zone, theirs: CloudZoneID
        let share: CloudRecordID
        let link: String

        init(_ served: ServedCloudSubject, _ name: String) async throws {
            owner = try await served.cloud("anna@example.org").database(.private)
            zone = CloudZoneID(name)
            try await owner.modifyZones(saving: [zone], deleting: [])
            share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none).id
            link = try await owner.makeLink(to: share, for: nil).token
            let user = try await owner.account().userRecordName
            theirs = CloudZoneID(zone.zoneName, owner: try #require(user))
        }

        func letIn(_ participant: HTTPDatabase) async throws -> String {
            let invitation = ShareChange.invite(.emailAddress("ben@example.org"), role: .privateUser, permission: .readWrite)
            let changed = try await owner.changeShare(share, [invitation])
            _ = try await participant.acceptLink(link)
            return try #require(changed.participants.last).id
        }

        func save(_ name: String, _ number: Int64, _ content: Data? = nil) async throws {
            var record = CloudRecord(CloudRecordID(name, in: zone), type: "Counter", fields: ["n": .int64(number)])
            if let content {
                let asset = AssetDigest.asset(of: content)
                _ = try await owner.upload(content, of: asset, at: 0, in: zone)
                record.fields["image"] = .asset(asset)
            }
            let outcomes = try await owner.modify(
                ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.forceUpdate, record)]))
            guard case .saved = outcomes[0] else { throw CloudError(.internalError, "\(outcomes)") }
        }
    }

    private static func content(_ number: Int64) -> Data { Data(String(repeating: "content \(number) ", count: 500).utf8) }

    @Test func `a removed participant gets no record that is made after the removal`() async throws {
        let served = try await ServedCloudSubject.started()
        let place = try await Place(served, "Journal")
        var devices: [HTTPDatabase] = []
        for _ in Way.allCases { devices.append(try await served.cloud("ben@example.org").database(.shared)) }
        try await place.save("r", 2, Self.content(2))
        try await served.fixture.index("n", of: "Counter")
        let progress = Progress()
        let first = devices[0]
        async let changing: Void = Self.change(place, first, progress)
        let all = await withTaskGroup(of: Found.self, returning: [Found].self) { group in
            for (way, database) in zip(Way.allCases, devices) {
                group.addTask { await Self.read(way, database, place.theirs, progress) }
            }
            var all: [Found] = []
            for await found in group { all.append(found) }
            return all
        }
        try await changing
        for found in all {
            #expect(found.numbers.allSatisfy { $0 % 2 == 0 }, "\(found)")
            #expect(found.strange == [], "\(found)")
            // A device that never gets a record, or always gets one, shows nothing.
            #expect(!found.numbers.isEmpty && found.refusals > 0, "\(found)")
        }
    }

    /// Lets the participant in and removes them, and saves records that they may see and records that they may not.
    private static func change(_ place: Place, _ participant: HTTPDatabase, _ progress: Progress) async throws {
        // The readers stop even if this throws.
        defer { progress.finish() }
        var random = Randomness("removing who reads")
        for round in 0..<Int64(12) {
            let id = try await place.letIn(participant)
            try await Task.sleep(for: .milliseconds(Int.random(in: 10...60, using: &random)))
            _ = try await place.owner.changeShare(place.share, [.remove(participant: id)])
            for number in [4 * round + 3, 4 * round + 5, 4 * round + 6] {
                progress.begin(number)
                try await place.save("r", number, content(number))
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...10, using: &random)))
            }
        }
    }

    private static func read(_ way: Way, _ database: HTTPDatabase, _ zone: CloudZoneID, _ progress: Progress) async -> Found {
        var found = Found(way: way)
        var token: CloudToken?
        while !progress.isDone {
            do throws(CloudError) {
                found.numbers.formUnion(try await numbers(way, database, zone, &token, newest: progress.newest))
            } catch {
                found.refusals += 1
                switch error.code {
                case .zoneNotFound, .unknownItem, .assetNotAvailable: break
                case .changeTokenExpired: token = nil
                case .requestRateLimited: try? await Task.sleep(for: .milliseconds(50))
                default: found.strange.append("\(error)")
                }
            }
            try? await Task.sleep(for: .milliseconds(1))
        }
        return found
    }

    /// Makes one request. The token of changes stays that of the last answer, even after a refusal.
    private static func numbers(
        _ way: Way, _ database: HTTPDatabase, _ zone: CloudZoneID, _ token: inout CloudToken?, newest: Int64
    ) async throws(CloudError) -> Set<Int64> {
        switch way {
        case .lookUp:
            let answers = try await database.lookup(["r"], in: zone, desiredKeys: nil)
            return numbers(of: answers.compactMap { try? $0.get() })
        case .query:
            let query = CloudQuery(recordType: "Counter", filters: [.init(.field("n"), .greaterThan, .int64(0))])
            let answer = try await database.query(query, in: zone, limit: nil, desiredKeys: nil, continuation: nil)
            return numbers(of: answer.records)
        case .changes:
            let page = try await database.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
            token = page.token
            var records: [CloudRecord] = []
            for case .saved(let record) in page.changes { records.append(record) }
            return numbers(of: records)
        case .download:
            let content = content(newest)
            let data = try await database.download(AssetDigest.asset(of: content), in: zone, from: 0, count: content.count)
            return data.isEmpty ? [] : [newest]
        }
    }

    private static func numbers(of records: [CloudRecord]) -> Set<Int64> {
        var numbers: Set<Int64> = []
        for record in records {
            if case .int64(let number)? = record.fields["n"] { numbers.insert(number) }
        }
        return numbers
    }

    // Waiting for notifications

    /// The names of the records that a device is notified of, until it is notified of `done`.
    private final class Told: Sendable {
        private let names = LockedValue<[String]>([])
        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    private static func wait(at mailbox: String, _ client: ProtocolClient, _ told: Told) async throws {
        while true {
            let answer = try await client.send(.GET, url: mailbox)
            guard answer.status == 200 else { throw CloudError(.internalError, "\(answer)") }
            guard let name = answer.object.text("ck", "qry", "rid") else { continue }
            told.add(name)
            if name == "done" { return }
        }
    }

    @Test func `a removed participant who waits for notifications is not told of later records`() async throws {
        let served = try await ServedCloudSubject.started()
        let ben = try await ProtocolClient(served, account: "ben@example.org")
        let device = try await served.cloud("ben@example.org").database(.shared)
        let own = try await served.cloud("ben@example.org").database(.private)
        let home = CloudZoneID("Own")
        try await own.modifyZones(saving: [home], deleting: [])
        func subscribe(_ client: ProtocolClient, _ id: String, _ zone: String) async throws {
            let subscription =
                #"{"subscriptionID":"\#(id)","subscriptionType":"query","zoneID":\#(zone),"#
                + #""query":{"recordType":"Counter","filterBy":[]},"firesOn":["create"]}"#
            let made = try await client.post(
                "subscriptions/modify", #"{"operations":[{"operationType":"create","subscription":\#(subscription)}]}"#)
            #expect(made.status == 200)
        }
        try await subscribe(ben, "own", #"{"zoneName":"Own"}"#)
        let made = try await ben.post(
            "/database/1/\(FaultyCloudFixture.container)/development/tokens/create", #"{"apnsEnvironment":"development"}"#)
        let mailbox = try #require(made.object.text("webcourierURL"))
        let told = Told()
        let waiting = Task { try await Self.wait(at: mailbox, ben, told) }
        for round in 0..<6 {
            // Each round has a zone of its own: the participant never returns, so no late notification can be legitimate.
            let place = try await Place(served, "z\(round)")
            let id = try await place.letIn(device)
            try await subscribe(
                ben.of("shared"), "s\(round)", #"{"zoneName":"z\#(round)","ownerRecordName":"\#(place.theirs.ownerName)"}"#)
            try await place.save("in-\(round)", 2)
            // First the device must be notified at all; then it is removed right after a record is made.
            let isTold = try await eventually { told.all.contains("in-\(round)") }
            #expect(isTold)
            try await place.save("last-\(round)", 2)
            _ = try await place.owner.changeShare(place.share, [.remove(participant: id)])
            for number in 0..<5 { try await place.save("out-\(round)-\(number)", 3) }
        }
        let last = CloudRecord(CloudRecordID("done", in: home), type: "Counter", fields: ["n": .int64(2)])
        _ = try await own.modify(ModifyRecordsRequest(zone: home, operations: [RecordOperation(.create, last)]))
        try await waiting.value
        #expect(told.all.filter { $0.hasPrefix("out-") } == [])
    }
}
