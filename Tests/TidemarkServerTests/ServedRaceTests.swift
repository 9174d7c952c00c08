import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkModel

/// Goal: over HTTP, too, a change of a permission applies to every commit after it and to none before.
///
/// Method: an owner changes what a participant may do while two devices of the participant write, each with a session and
/// connections of its own. The change numbers that the cloud reads from its tags give the order of the commits. Each successful
/// write was permitted by the last change before it, and is stored unless a later one replaced it; each refused write met a state
/// that refuses it, among the states that held while it ran.
@Suite(.timeLimit(.minutes(30))) struct ServedRaceTests {
    private enum Access { case out, reads, writes }

    /// An attempt, and the changes of permissions during it.
    private struct Attempt: Sendable {
        let name: String
        let value: Int64
        /// How many changes had ended when the attempt began, and how many had begun when it ended.
        let over: Int
        let begun: Int
        /// The number of its commit; `nil` if it was refused.
        let change: Int64?
        let error: CloudError?
    }

    /// The progress of the owner.
    private final class Progress: Sendable {
        private let counts = LockedValue((begun: 0, over: 0, isDone: false))
        func begin() { counts.withLock { $0.begun += 1 } }
        func end() { counts.withLock { $0.over += 1 } }
        func finish() { counts.withLock { $0.isDone = true } }
        var begun: Int { counts.withLock(\.begun) }
        var over: Int { counts.withLock(\.over) }
        var isDone: Bool { counts.withLock(\.isDone) }
    }

    /// A share of a zone, and its participants.
    private struct Place: Sendable {
        let owner, participant: any SharingDatabase
        let zone, theirs: CloudZoneID
        let share: CloudRecordID
        let link: String
        let id: String

        static func made(_ number: Int, _ owner: any SharingDatabase, _ participant: any SharingDatabase) async throws -> Place {
            let zone = CloudZoneID("z\(number)")
            try await owner.modifyZones(saving: [zone], deleting: [])
            let made = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let share = try await owner.changeShare(made.id, [invitation])
            let link = try await owner.makeLink(to: share.id, for: nil).token
            _ = try await participant.acceptLink(link)
            let theirs = CloudZoneID(zone.zoneName, owner: try #require(try await owner.account().userRecordName))
            return Place(
                owner: owner, participant: participant, zone: zone, theirs: theirs, share: share.id, link: link,
                id: try #require(share.participants.last).id)
        }

        static let invitation = ShareChange.invite(.emailAddress("ben@example.org"), role: .privateUser, permission: .readWrite)
    }

    @Test func `permissions that change while others write through a server count for each commit`() async throws {
        var random = Randomness("permissions that change over HTTP")
        let served = try await ServedCloudSubject.started()
        let embedded = try served.fixture.cloud.database(.private, of: FaultyCloudFixture.container, account: nil)
        let number: @Sendable (String) -> Int64? = { embedded.change(of: $0) }
        let owner = try await served.cloud("anna@example.org").database(.private)
        var devices: [HTTPDatabase] = []
        for _ in 0..<2 { devices.append(try await served.cloud("ben@example.org").database(.shared)) }
        var (done, refused, changes) = (0, 0, 0)
        for round in 0..<8 {
            let place = try await Place.made(round, owner, devices[0])
            let progress = Progress()
            let steps = (0..<6).map { _ in Int.random(in: 0..<3, using: &random) }
            async let history = Self.change(place, steps, progress, number)
            let attempts = try await withThrowingTaskGroup(of: [Attempt].self) { group in
                for (device, database) in devices.enumerated() {
                    group.addTask { try await Self.write("r\(device)", database, place.theirs, progress, number) }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            let (accesses, numbers) = try await history
            #expect(numbers == numbers.sorted())
            for attempt in attempts { Self.judge(attempt, accesses, numbers) }
            for name in Set(attempts.map(\.name)) {
                let last = attempts.filter { $0.name == name && $0.change != nil }.max { $0.change! < $1.change! }
                let found = try? await place.owner.lookup([name], in: place.zone, desiredKeys: nil)[0].get().fields["n"]
                let wanted: CloudValue? = last.map { .int64($0.value) }
                #expect(found == wanted, "\(name) in round \(round)")
            }
            done += attempts.count { $0.change != nil }
            refused += attempts.count { $0.change == nil }
            changes += numbers.count
        }
        print("\(done) writes done, \(refused) refused; \(changes) changes of permissions")
        // Some writes must have succeeded and some must have been refused, or the test would show nothing.
        #expect(done > 0 && refused > 0)
    }

    /// What the participant may do after each change, beginning before the first; and the numbers of the changes.
    private static func change(
        _ place: Place, _ steps: [Int], _ progress: Progress, _ number: @escaping @Sendable (String) -> Int64?
    ) async throws -> ([Access], [Int64]) {
        // The writers stop even if this throws.
        defer { progress.finish() }
        var (accesses, numbers): ([Access], [Int64]) = ([.writes], [])
        func change(_ access: Access, _ body: () async throws -> CloudShare) async throws {
            progress.begin()
            let change = try await body().changeTag.flatMap(number)
            accesses.append(access)
            numbers.append(try #require(change))
            progress.end()
        }
        for step in steps {
            let now = accesses[accesses.count - 1]
            if now == .out {
                try await change(.out) { try await place.owner.changeShare(place.share, [Place.invitation]) }
                try await change(.writes) { try await place.participant.acceptLink(place.link).share }
            } else if step == 0 {
                try await change(.out) { try await place.owner.changeShare(place.share, [.remove(participant: place.id)]) }
            } else {
                let next: Access = now == .writes ? .reads : .writes
                try await change(next) {
                    try await place.owner.changeShare(
                        place.share, [.setPermission(participant: place.id, next == .writes ? .readWrite : .readOnly)])
                }
            }
        }
        return (accesses, numbers)
    }

    /// Writes until the owner is done; the number of writes is limited.
    private static func write(
        _ name: String, _ database: HTTPDatabase, _ zone: CloudZoneID, _ progress: Progress,
        _ number: @escaping @Sendable (String) -> Int64?
    ) async throws -> [Attempt] {
        var attempts: [Attempt] = []
        for value in 1...Int64(200) where !progress.isDone {
            let over = progress.over
            let record = CloudRecord(CloudRecordID(name, in: zone), type: "Counter", fields: ["n": .int64(value)])
            let request = ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.forceUpdate, record)])
            let outcome: RecordOutcome
            do throws(CloudError) { outcome = try await database.modify(request)[0] } catch { outcome = .failed(error) }
            let begun = progress.begun
            switch outcome {
            case .saved(let saved):
                let found = saved.changeTag.flatMap(number)
                let change = try #require(found)
                attempts.append(Attempt(name: name, value: value, over: over, begun: begun, change: change, error: nil))
            case .failed(let error):
                attempts.append(Attempt(name: name, value: value, over: over, begun: begun, change: nil, error: error))
            case .deleted(let id): Issue.record("\(id) was deleted")
            }
        }
        return attempts
    }

    private static func judge(_ attempt: Attempt, _ accesses: [Access], _ numbers: [Int64]) {
        if let change = attempt.change {
            let before = numbers.count { $0 < change }
            #expect(accesses[before] == .writes, "\(attempt) was done behind \(numbers.prefix(before))")
            #expect((attempt.over...attempt.begun).contains(before), "\(attempt) was committed behind \(before) changes")
            return
        }
        let met = accesses[attempt.over...min(attempt.begun, accesses.count - 1)]
        switch (attempt.error?.code, attempt.error?.denial?.rule) {
        case (.zoneNotFound, _): #expect(met.contains(.out), "\(attempt)")
        case (.permissionFailure, .readOnly?): #expect(met.contains(.reads), "\(attempt)")
        default: Issue.record("\(attempt)")
        }
    }
}
