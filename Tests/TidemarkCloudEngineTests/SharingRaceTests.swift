import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkTesting

/// Goal: a change of a permission applies to every commit after it and to none before, even while others write.
///
/// Method: an owner changes permissions while participants write and read, in tasks of their own and through two openings of one
/// cloud. The change numbers that the cloud reads from its tags give the order of the commits. Each successful write was
/// permitted by the last change before it, and is stored; each refused write met a state that refuses it, among the states that
/// held while it ran. The seed of the first run is printed, those of the others follow it. `TIDEMARK_SHARING_RUNS` is the number
/// of runs in memory; a tenth as many use two openings. With `TIDEMARK_PROGRESS` the runs go on where an earlier process has
/// stopped.
@Suite(.timeLimit(.minutes(RunProgress.minutes))) struct SharingRaceTests {
    private static let container = "iCloud.org.example.journal"
    private static let runsOfACloud: UInt64 = 50

    private static func number(_ name: String) -> UInt64? { ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } }

    @Test func `permissions that change while others write count for each commit, in memory`() async throws {
        let scratch = try Scratch()
        let runs = Self.number("TIDEMARK_SHARING_RUNS") ?? 200
        try await race("permissions that change while others write", runs: runs) { number in
            [
                try EmbeddedCloud(
                    inMemoryBeside: scratch["cloud\(number)"], now: { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) })
            ]
        }
    }

    @Test func `permissions that change while others write count for each commit, in two openings`() async throws {
        let scratch = try Scratch()
        let runs = max(1, (Self.number("TIDEMARK_SHARING_RUNS") ?? 200) / 10)
        try await race("permissions that change in two openings", runs: runs) { number in
            try (0..<2).map { _ in try EmbeddedCloud(at: scratch["cloud\(number)"]) }
        }
    }

    /// - Parameter open: Makes a cloud and its openings. Some runs have one together.
    private func race(_ purpose: String, runs: UInt64, _ open: (UInt64) throws -> [EmbeddedCloud]) async throws {
        let progress = RunProgress(purpose, runs: runs, interval: Self.runsOfACloud)
        let seed = progress.seed
        var counts = SharingRace.Counts()
        var (owner, others): ([EmbeddedDatabase], [[EmbeddedDatabase]]) = ([], [])
        for run in progress.begin..<runs {
            if run % Self.runsOfACloud == 0 || owner.isEmpty {
                let clouds = try open(run)
                var databases: [[EmbeddedDatabase]] = []
                for (name, scope) in [("anna", DatabaseScope.private), ("ben", .shared), ("cleo", .shared)] {
                    let account = try await clouds[0].addAccount("\(name)@example.org").id
                    databases.append(try clouds.map { try $0.database(scope, of: Self.container, account: account) })
                }
                (owner, others) = (databases[0], Array(databases[1...]))
            }
            var race = try await SharingRace(seed: seed &+ run, number: Int(run), owner: owner, others: others)
            let failures = try await race.run()
            counts.add(race.counts)
            #expect(failures == [], "TIDEMARK_SEED=\(seed &+ run)")
            if !failures.isEmpty { break }
            try progress.note(run + 1)
        }
        print(counts)
        // Some writes must have been permitted and some refused; the rest of an interrupted proof may be too short for that.
        guard progress.begin == 0 else { return }
        #expect(counts.saved > 0 && counts.refused > 0 && counts.mixed > 0)
    }
}

/// One run: a share of its own.
private struct SharingRace {
    /// What a participant may do.
    enum Access: Int, Comparable {
        case out, reads, writes
        static func < (left: Access, right: Access) -> Bool { left.rawValue < right.rawValue }
    }

    struct Counts: CustomStringConvertible {
        var (saved, refused, mixed, changes) = (0, 0, 0, 0)

        mutating func add(_ other: Counts) {
            saved += other.saved
            refused += other.refused
            mixed += other.mixed
            changes += other.changes
        }

        var description: String {
            "\(saved) writes done, \(refused) refused, \(mixed) met a change; \(changes) changes of permissions"
        }
    }

    /// An attempt of a participant, and the changes of permissions during it.
    struct Attempt: Sendable {
        let person: Int
        let name: String
        let value: Int64
        /// How many changes had ended when the attempt began, and how many had begun when it ended.
        let over: Int
        let begun: Int
        /// The number of its commit; `nil` if it was refused.
        let change: Int64?
        let error: CloudError?
        let isRead: Bool
    }

    /// How many changes the owner has begun and ended.
    final class Progress: Sendable {
        private let counts = LockedValue((begun: 0, over: 0))
        func begin() { counts.withLock { $0.begun += 1 } }
        func end() { counts.withLock { $0.over += 1 } }
        var over: Int { counts.withLock(\.over) }
        var begun: Int { counts.withLock(\.begun) }
    }

    private let owner: [EmbeddedDatabase]
    private let others: [[EmbeddedDatabase]]
    private let zone: CloudZoneID
    private let theirs: CloudZoneID
    private let share: CloudShare
    private let link: ShareLink
    private let ids: [String]
    private var random: SeededRandom
    private(set) var counts = Counts()

    init(seed: UInt64, number: Int, owner: [EmbeddedDatabase], others: [[EmbeddedDatabase]]) async throws {
        random = SeededRandom(seed)
        (self.owner, self.others) = (owner, others)
        zone = CloudZoneID("z\(number)")
        theirs = CloudZoneID(zone.zoneName, owner: try await owner[0].account().userRecordName ?? "")
        try await owner[0].modifyZones(saving: [zone], deleting: [])
        var share = try await owner[0].createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
        share = try await owner[0].changeShare(
            share.id,
            ["ben", "cleo"].map { .invite(.emailAddress("\($0)@example.org"), role: .privateUser, permission: .readWrite) })
        link = try await owner[0].makeLink(to: share.id, for: nil)
        for other in others { _ = try await other[0].acceptLink(link.token) }
        ids = share.participants.dropFirst().map(\.id)
        self.share = share
    }

    /// Makes the run; returns the violations.
    mutating func run() async throws -> [String] {
        let progress = Progress()
        let start = try await owner[0].shareAudit(in: zone, after: nil).last?.time
        let (zone, theirs, others, owner, share, ids, link) = (zone, theirs, others, owner, share, ids, link)
        var (steps, seeds): ([(person: Int, kind: Int)], [UInt64]) = ([], [])
        for _ in 0..<Int.random(in: 3...6, using: &random) {
            steps.append((Int.random(in: 0..<2, using: &random), Int.random(in: 0..<4, using: &random)))
        }
        for _ in 0..<(others.count * 2) { seeds.append(random.next()) }
        let plan = steps
        // The access of each participant after that many changes, and the numbers of the changes.
        async let changes = { () async throws -> ([[Access]], [Int64], [ShareAuditEntry.Kind]) in
            var (accesses, numbers, kinds): ([[Access]], [Int64], [ShareAuditEntry.Kind]) = ([[.writes, .writes]], [], [])
            func change(
                _ person: Int, _ access: Access, _ kind: ShareAuditEntry.Kind,
                _ body: () async throws -> CloudShare
            ) async throws {
                progress.begin()
                let changed = try await body()
                var next = accesses.last!
                next[person] = access
                accesses.append(next)
                numbers.append(changed.changeTag.flatMap(owner[0].change) ?? -1)
                kinds.append(kind)
                progress.end()
            }
            for (index, step) in plan.enumerated() {
                let (person, id) = (step.person, ids[step.person])
                let database = owner[index % owner.count]
                let now = accesses.last![person]
                if now == .out {
                    let name = person == 0 ? "ben" : "cleo"
                    try await change(person, .out, .invited) {
                        try await database.changeShare(
                            share.id, [.invite(.emailAddress("\(name)@example.org"), role: .privateUser, permission: .readWrite)])
                    }
                    try await change(person, .writes, .accepted) {
                        try await others[person][index % owner.count].acceptLink(link.token).share
                    }
                } else if step.kind == 0 {
                    try await change(person, .out, .removed) {
                        try await database.changeShare(share.id, [.remove(participant: id)])
                    }
                } else {
                    let next: Access = now == .writes ? .reads : .writes
                    try await change(person, next, .permissionChanged) {
                        try await database.changeShare(
                            share.id, [.setPermission(participant: id, next == .writes ? .readWrite : .readOnly)])
                    }
                }
            }
            return (accesses, numbers, kinds)
        }()
        let attempts = try await withThrowingTaskGroup(of: [Attempt].self) { group in
            for (index, seed) in seeds.enumerated() {
                let person = index % others.count
                let database = others[person][(index / others.count) % owner.count]
                group.addTask {
                    try await Self.attempt(person, "r\(index)", database, theirs, progress, SeededRandom(seed))
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let (accesses, numbers, kinds) = try await changes
        var failures = judge(attempts, accesses, numbers)
        let audit = try await owner[0].shareAudit(in: zone, after: start)
        if audit.map(\.kind) != kinds { failures.append("written down are \(audit.map(\.kind)), done were \(kinds)") }
        if numbers != numbers.sorted() { failures.append("the changes are not in their order: \(numbers)") }
        for name in Set(attempts.map(\.name)) {
            let last = attempts.filter { $0.name == name && !$0.isRead && $0.change != nil }.max { $0.change! < $1.change! }
            let found = try? await owner[0].lookup([name], in: zone, desiredKeys: nil)[0].get().fields["n"]
            if found != last.map({ .int64($0.value) }) {
                failures.append("\(name) is \(String(describing: found)), and \(String(describing: last)) was done last")
            }
        }
        counts.changes = numbers.count
        return failures
    }

    private static func attempt(
        _ person: Int, _ name: String, _ database: EmbeddedDatabase, _ zone: CloudZoneID, _ progress: Progress,
        _ seeded: SeededRandom
    ) async throws -> [Attempt] {
        var (random, attempts) = (seeded, [Attempt]())
        for value in 1...Int64.random(in: 3...8, using: &random) {
            for _ in 0..<Int.random(in: 0..<4, using: &random) { await Task.yield() }
            let (over, isRead) = (progress.over, Int.random(in: 0..<4, using: &random) == 0)
            var (change, error): (Int64?, CloudError?)
            do {
                if isRead {
                    _ = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
                } else {
                    let record = CloudRecord(CloudRecordID(name, in: zone), type: "Counter", fields: ["n": .int64(value)])
                    let outcomes = try await database.modify(
                        ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.forceUpdate, record)]))
                    switch outcomes[0] {
                    case .saved(let saved): change = saved.changeTag.flatMap(database.change) ?? -1
                    case .failed(let failure): error = failure
                    case .deleted: break
                    }
                }
            } catch let failure {
                error = failure
            }
            attempts.append(
                Attempt(
                    person: person, name: name, value: value, over: over, begun: progress.begun, change: change, error: error,
                    isRead: isRead))
        }
        return attempts
    }

    private mutating func judge(_ attempts: [Attempt], _ accesses: [[Access]], _ numbers: [Int64]) -> [String] {
        var failures: [String] = []
        for attempt in attempts {
            let met = Set(accesses[attempt.over...min(attempt.begun, accesses.count - 1)].map { $0[attempt.person] })
            if met.count > 1 { counts.mixed += 1 }
            if let change = attempt.change {
                counts.saved += 1
                let before = numbers.count { $0 < change }
                if accesses[before][attempt.person] != .writes {
                    failures.append("\(attempt) was done at \(change), not permitted behind \(numbers.prefix(before))")
                }
                if before < attempt.over || before > attempt.begun {
                    failures.append("\(attempt) was committed behind \(before) changes")
                }
                continue
            }
            guard let error = attempt.error else {
                if !met.contains(where: { $0 >= .reads }) { failures.append("\(attempt) read what it must not") }
                continue
            }
            counts.refused += 1
            let reason: Access
            switch (error.code, error.denial?.rule) {
            case (.zoneNotFound, _): reason = .out
            case (.permissionFailure, .readOnly?) where !attempt.isRead: reason = .reads
            default:
                failures.append("\(attempt): \(error)")
                continue
            }
            if !met.contains(reason) { failures.append("\(attempt) was refused as \(reason), and met \(met) only") }
        }
        return failures
    }
}
