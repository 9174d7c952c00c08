import Foundation
import TestSupport
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkTesting

@testable import TidemarkEmbeddedCloud

/// A history of requests to two clouds. They have the same accounts, clock and random numbers, and different storages.
final class StorageHistory {
    static let container = "iCloud.org.example.journal"
    static let accounts = ["anna", "ben", "cleo", "dora"]
    private static let zones = ["Journal", "Other", CloudZoneID.default.zoneName]

    /// A cloud, and what its devices know of it.
    final class Side {
        let cloud: EmbeddedCloud
        var accounts: [String: String] = [:]
        var users: [String: String] = [:]
        var tags: [String: String] = [:]
        var tokens: [String: CloudToken] = [:]
        var shares: [CloudRecordID] = []
        var links: [(id: String, token: String, share: CloudRecordID)] = []

        init(_ cloud: EmbeddedCloud) { self.cloud = cloud }

        func database(_ account: String, _ scope: DatabaseScope) throws -> EmbeddedDatabase {
            try cloud.database(scope, of: StorageHistory.container, account: accounts[account])
        }
    }

    let seed: UInt64
    private var random: Randomness
    private let scratch: Scratch
    private let sides: [Side]
    private let time = TestTime()
    /// Requests that were answered, and not refused, by their kind.
    private(set) var answered: [String: Int] = [:]
    private var names = (0..<10).map { "n\($0)" } + ["A\u{30a}", "\u{c5}"]

    /// - Parameter storage: Makes the storage of the second cloud, with a container of its own.
    init(seed: UInt64, _ storage: () async throws -> any CloudStorage) async throws {
        self.seed = seed
        random = Randomness(seed: seed)
        scratch = try Scratch()
        let clock: @Sendable () -> Int64 = { [time] in time.now }
        // The same accounts: their identifiers are random.
        let accounts = try await Self.makeAccounts(in: scratch["first"])
        try FileManager.default.copyItem(at: scratch["first"], to: scratch["second"])
        let storage = try await storage()
        // One cloud sorts what the other walks along an index.
        var (one, other) = (QueryLimits(), QueryLimits())
        if seed % 2 == 0 { one.frequent = 1 } else { other.frequent = 1 }
        let first = try EmbeddedCloud(
            at: scratch["first"], queries: one, removesByItself: false, now: clock, random: Self.bytes(seed))
        let second = try EmbeddedCloud(
            at: scratch["second"], queries: other, removesByItself: false, now: clock, random: Self.bytes(seed),
            storage: { _, _ in storage })
        sides = [Side(first), Side(second)]
        for side in sides {
            side.accounts = accounts
            for (name, id) in accounts { side.users[name] = EmbeddedCloud.userRecordName(id, in: Self.container) }
        }
    }

    private static func makeAccounts(in folder: URL) async throws -> [String: String] {
        let cloud = try EmbeddedCloud(at: folder)
        var accounts: [String: String] = [:]
        for name in Self.accounts { accounts[name] = try await cloud.addAccount("\(name)@example.org").id }
        return accounts
    }

    /// Random bytes, the same for both sides.
    private static func bytes(_ seed: UInt64) -> @Sendable (Int) -> [UInt8] {
        let random = LockedValue(SeededRandom(seed))
        return { count in
            random.withLock { random in (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) } }
        }
    }

    /// Does a number of steps, and compares the answers of the two clouds.
    ///
    /// - Returns: What differs, in words; `nil` where nothing does.
    func run(steps: Int) async throws -> String? {
        for side in sides {
            for account in ["anna", "ben"] {
                try await side.database(account, .private).modifyZones(saving: [CloudZoneID("Journal")], deleting: [])
            }
        }
        try await prepare()
        for step in 0..<steps {
            if let difference = try await perform(action()) { return "step \(step), \(difference)" }
        }
        for action in lastActions() {
            if let difference = try await perform(action) { return "at the end, \(difference)" }
        }
        return nil
    }

    private func perform(_ action: Action) async throws -> String? {
        time.advance()
        var answers: [String] = []
        for side in sides {
            do {
                let answer = try await action.perform(side)
                answers.append(answer)
                if side === sides[0], !answer.isEmpty { answered[action.kind, default: 0] += 1 }
            } catch let error as CloudError {
                answers.append("refused: \(error.code.rawValue) \(error.denial.map { "\($0.rule.rawValue)" } ?? "")")
            }
        }
        guard answers[0] != answers[1] else { return nil }
        return "\(action.name):\n    SQLite:     \(answers[0])\n    PostgreSQL: \(answers[1])"
    }

    /// Most histories begin with a schema in which every field can be queried.
    private func prepare() async throws {
        guard seed % 4 != 0 else { return }
        var record = CloudRecord(CloudRecordID("n0", in: CloudZoneID("Journal")), type: "Destination")
        for field in Self.fields where field != "r" { record.fields[field] = value(field) }
        record.fields["r"] = .reference(CloudReference("n1", action: .none))
        for side in sides {
            let request = ModifyRecordsRequest(zone: record.id.zone, operations: [RecordOperation(.create, record)])
            _ = try await side.database("anna", .private).modify(request)
            for field in Self.fields {
                var indexes: Set<CloudSchema.Index> = [.queryable]
                if field != "t" { indexes.insert(.sortable) }
                if field == "s" { indexes.insert(.searchable) }
                try await side.cloud.setIndexes(indexes, of: field, in: "Destination", container: Self.container)
            }
            try await side.cloud.setIndexes([.queryable], of: "recordName", in: "Destination", container: Self.container)
            let database = try side.database("anna", .private)
            let share = try await database.createShare(
                in: record.id.zone, coverage: .zone, title: "t", publicPermission: .readWrite)
            let link = try await database.makeLink(to: share.id, for: nil)
            _ = try await side.database("ben", .shared).acceptLink(link.token)
            side.shares.append(share.id)
            side.links.append((link.id, link.token, share.id))
        }
    }

    // What is done

    struct Action {
        let kind: String
        let name: String
        let perform: (Side) async throws -> String
    }

    func pick<Element>(_ elements: [Element]) -> Element { elements.randomElement(using: &random)! }
    func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

    private func action() -> Action {
        switch number(0..<48) {
        case 0..<10: return modify(pick(["anna", "ben"]), .private, CloudZoneID(pick(Self.zones)))
        case 10..<13: return modify(pick(Self.accounts), .public, .default)
        case 13..<17: return sharedModify()
        case 17..<22: return changes(limit: number(1..<12), isFresh: number(0..<6) == 0)
        case 22..<26: return query()
        case 26..<28: return zones()
        case 28..<30: return share()
        case 30..<32: return link()
        case 32..<36: return changeShare()
        case 36: return shares(pick(Self.accounts))
        case 37: return audit(pick(["anna", "ben"]))
        case 38: return revokeLink()
        case 39: return index()
        case 40: return databaseChanges(pick(Self.accounts), pick([.private, .shared]))
        case 41: return lookup()
        case 42: return endShare()
        case 43: return leave()
        case 44..<46: return upload()
        case 46: return goOnRemoving()
        default: return usage()
        }
    }

    private func value(_ field: String) -> CloudValue {
        switch field {
        case "n": .int64(pick([0, -1, 5, .max, .min, 1 << 53, 1 << 53 + 1, Int64(number(0..<20))]))
        case "d": .double(pick([0, -0.5, 1e300, -1e-300, 5, Double(number(0..<9)) / 4]))
        case "s":
            .string(
                // No text has U+0000, at which SQLite's index of values cuts it off.
                pick([
                    "", "a", "ab", "Å", "Zebra \u{1F993}", String(repeating: "x", count: 1_200) + "\(number(0..<3))", "a b c",
                    "\u{ffff}",
                ]))
        case "l": .location(Location(latitude: Double(number(-90..<91)), longitude: Double(number(-180..<181))))
        case "t": .list((0..<number(0..<4)).map { _ in .string(pick(["red", "green", "blue"])) }, of: .string)
        case "r": .reference(CloudReference(pick(names), action: pick([.none, .deleteSelf, .validate])))
        default: .timestamp(Int64(number(0..<100)))
        }
    }

    private static let fields = ["n", "d", "s", "l", "t", "r", "w"]
    static let contents = (0..<4).map { Data(repeating: UInt8($0), count: 100 + $0 * 40) }

    private func operations(_ zone: CloudZoneID, isTheirs: Bool = false) -> [RecordOperation] {
        var (used, operations): (Set<String>, [RecordOperation]) = ([], [])
        for _ in 0..<number(1..<6) {
            var name = pick(names)
            if isTheirs, number(0..<2) == 0 {
                name = "00000000-0000-4000-8000-" + String(format: "%012x", number(0..<1 << 40))
                names.append(name)
            }
            guard used.insert(name).inserted else { continue }
            var record = CloudRecord(CloudRecordID(name, in: zone), type: "Destination")
            let kind: RecordOperation.Kind = pick([
                .create, .update, .forceUpdate, .forceUpdate, .replace, .forceReplace, .delete, .forceDelete,
            ])
            if kind != .delete, kind != .forceDelete {
                for field in Self.fields where number(0..<2) == 0 { record.fields[field] = value(field) }
                if number(0..<4) == 0 { record.fields["a"] = .asset(AssetDigest.asset(of: pick(Self.contents))) }
                if number(0..<3) == 0 { record.parent = pick(names) }
            }
            operations.append(RecordOperation(kind, record))
        }
        return operations
    }

    private func modify(_ account: String, _ scope: DatabaseScope, _ zone: CloudZoneID) -> Action {
        let operations = operations(zone)
        let isAtomic = scope == .private && !zone.isDefault && number(0..<4) == 0
        let token = number(0..<3) == 0 ? "token \(number(0..<5))" : nil
        return Action(kind: "changes \(scope)", name: "\(account) changes \(scope) \(zone.zoneName)") { side in
            try await self.send(operations, zone, isAtomic, token, try side.database(account, scope), "\(account) \(scope)", side)
        }
    }

    private func sharedModify() -> Action {
        let (owner, zoneName) = (pick(["anna", "anna", "ben"]), pick(["Journal", "Journal", "Other"]))
        let operations = operations(CloudZoneID(zoneName), isTheirs: true)
        let account = owner == "anna" && number(0..<3) > 0 ? pick(["ben", "cleo"]) : pick(Self.accounts.filter { $0 != owner })
        return Action(kind: "changes theirs", name: "\(account) changes \(zoneName) of \(owner)") { side in
            let zone = CloudZoneID(zoneName, owner: side.users[owner]!)
            let theirs = operations.map { operation in
                var record = CloudRecord(CloudRecordID(operation.record.id.recordName, in: zone), type: operation.record.type)
                (record.fields, record.parent) = (operation.record.fields, operation.record.parent)
                return RecordOperation(operation.kind, record)
            }
            // The tags are those that the owner knows.
            return try await self.send(
                theirs, zone, false, nil, try side.database(account, .shared), "\(owner) \(DatabaseScope.private)", side)
        }
    }

    private func send(
        _ operations: [RecordOperation], _ zone: CloudZoneID, _ isAtomic: Bool, _ token: String?, _ database: EmbeddedDatabase,
        _ place: String, _ side: Side
    ) async throws -> String {
        let prefix = "\(place) \(zone.zoneName) "
        let tagged = operations.map { operation in
            var record = operation.record
            record.changeTag =
                [.update, .replace, .delete].contains(operation.kind) ? side.tags[prefix + record.id.recordName] : nil
            return RecordOperation(operation.kind, record)
        }
        let outcomes = try await database.modify(
            ModifyRecordsRequest(zone: zone, operations: tagged, isAtomic: isAtomic, clientToken: token))
        return outcomes.map { outcome in
            switch outcome {
            case .saved(let record):
                side.tags[prefix + record.id.recordName] = record.changeTag
                return describe(record, database)
            case .deleted(let id): return "deleted \(id.recordName)"
            case .failed(let error):
                return
                    "\(error.code.rawValue) \(error.denial?.rule.rawValue ?? "") \(error.serverRecord.map { describe($0, database) } ?? "")"
            }
        }.joined(separator: "; ")
    }

    private func changes(limit: Int, isFresh: Bool) -> Action {
        let (owner, zoneName) = (pick(["anna", "ben"]), pick(["Journal", "Other"]))
        return changes(number(0..<2) == 0 ? owner : pick(Self.accounts), zoneName, of: owner, limit: limit, isFresh: isFresh)
    }

    func changes(_ account: String, _ zoneName: String, of owner: String, limit: Int, isFresh: Bool) -> Action {
        Action(kind: "fetches", name: "\(account) fetches \(zoneName) of \(owner), \(limit) at a time") { side in
            let zone = account == owner ? CloudZoneID(zoneName) : CloudZoneID(zoneName, owner: side.users[owner]!)
            let database = try side.database(account, account == owner ? .private : .shared)
            let key = "\(account) \(owner) \(zoneName)"
            if isFresh { side.tokens[key] = nil }
            var told = ["\(isFresh)"]
            while true {
                let page: ZoneChanges
                do {
                    page = try await database.zoneChanges(zone, since: side.tokens[key], limit: limit, desiredKeys: nil)
                } catch {
                    side.tokens[key] = nil
                    throw error
                }
                for change in page.changes {
                    switch change {
                    case .saved(let record): told.append(self.describe(record, database))
                    case .deleted(let deletion): told.append("deleted \(deletion.id.recordName) \(deletion.type)")
                    }
                }
                told.append("|")
                side.tokens[key] = page.token
                if !page.moreComing { return told.joined(separator: "; ") }
            }
        }
    }

    private func query() -> Action {
        let field = pick(Self.fields)
        let comparator: CloudQuery.Comparator = pick(CloudQuery.Comparator.allCases)
        var (filters, sorts): ([CloudQuery.Filter], [CloudQuery.Sort]) = ([], [])
        if number(0..<5) > 0 {
            var wanted = value(field)
            switch comparator {
            case .isIn, .isNotIn, .listContainsAny, .listContainsNone, .listContainsAll, .listDoesNotContainAll:
                if field == "t" { break }
                wanted = .list([wanted, value(field)], of: wanted.type.scalar)
            default: if field == "t" { wanted = .string(pick(["red", "green", "r", ""])) }
            }
            filters.append(
                CloudQuery.Filter(
                    .field(field), comparator, wanted, distance: comparator == .near ? Double(number(0..<9_000_000)) : nil))
        }
        let (account, scope) = (pick(["anna", "ben"]), pick([DatabaseScope.private, .public, .shared]))
        if number(0..<3) > 0 {
            let key: CloudQuery.Key = pick([.field(pick(Self.fields)), .recordName, .created, .modified])
            let origin = key == .field("l") && number(0..<2) == 0 ? Location(latitude: 10, longitude: 20) : nil
            sorts.append(CloudQuery.Sort(key, isAscending: number(0..<2) == 0, relativeLocation: origin))
        }
        let query = CloudQuery(recordType: "Destination", filters: filters, sorts: sorts)
        let limit = number(1..<8)
        return Action(kind: "asks", name: "\(account) asks \(scope) for \(query), \(limit) at a time") { side in
            let owner = account == "anna" ? "ben" : "anna"
            let zone =
                scope == .public
                ? CloudZoneID.default
                : scope == .private ? CloudZoneID("Journal") : CloudZoneID("Journal", owner: side.users[owner]!)
            let database = try side.database(account, scope)
            var (told, continuation): ([String], QueryContinuation?) = ([], nil)
            repeat {
                let page = try await database.query(query, in: zone, limit: limit, desiredKeys: nil, continuation: continuation)
                told += page.records.map { self.describe($0, database) }
                continuation = page.continuation
            } while continuation != nil && told.count < 500
            return told.joined(separator: "; ")
        }
    }

    private func zones() -> Action {
        let account = pick(["anna", "ben"])
        let (saving, deleting): ([CloudZoneID], [CloudZoneID]) =
            number(0..<6) == 0
            ? ([], [CloudZoneID(pick(["Journal", "Other"]))]) : ([CloudZoneID("Journal"), CloudZoneID("Other")], [])
        let purges = number(0..<3) == 0
        return Action(kind: "zones", name: "\(account) makes \(saving), deletes \(deleting)") { side in
            let database = try side.database(account, .private)
            if purges, let zone = deleting.first {
                try await database.purgeZone(zone)
            } else {
                try await database.modifyZones(saving: saving, deleting: deleting)
            }
            return try await database.zones().map(\.zoneName).joined(separator: ", ")
        }
    }

    private func index() -> Action {
        let field = pick(Self.fields + ["recordName"])
        let indexes: Set<CloudSchema.Index> = Set(
            pick([
                [CloudSchema.Index.queryable], [.queryable, .sortable], [.queryable, .sortable],
                [.queryable, .sortable, .searchable],
                [.queryable, .sortable, .searchable], [.sortable],
            ]))
        return Action(kind: "indexes", name: "an administrator indexes \(field)") { side in
            try await side.cloud.setIndexes(indexes, of: field, in: "Destination", container: Self.container)
            return "indexed"
        }
    }

    func databaseChanges(_ account: String, _ scope: DatabaseScope) -> Action {
        Action(kind: "database changes", name: "\(account) fetches the changes of \(scope)") { side in
            let database = try side.database(account, scope)
            let key = "\(account) \(scope)"
            var told: [String] = []
            while true {
                let page = try await database.databaseChanges(since: side.tokens[key], limit: 2)
                told += page.changed.map { "\($0)" } + page.deleted.map { "deleted \($0)" } + page.purged.map { "purged \($0)" }
                side.tokens[key] = page.token
                if !page.moreComing { return told.joined(separator: "; ") }
            }
        }
    }

    private func lookup() -> Action {
        let account = pick(Self.accounts)
        let owner = number(0..<2) == 0 ? account : pick(["anna", "ben"])
        return lookUp(account, owner == account ? .private : .shared, "what \(owner) has") { side in
            owner == account ? CloudZoneID("Journal") : CloudZoneID("Journal", owner: side.users[owner]!)
        }
    }

    func lookUp(_ account: String, _ scope: DatabaseScope, _ what: String, in zone: @escaping (Side) -> CloudZoneID) -> Action {
        let wanted = names + ["a\u{0}b", "A\u{30a}", "\u{c5}"]
        return Action(kind: "looks up", name: "\(account) looks up \(what)") { side in
            let database = try side.database(account, scope)
            return try await database.lookup(wanted, in: zone(side), desiredKeys: nil).map { result in
                switch result {
                case .success(let record): self.describe(record, database)
                case .failure(let error): error.code.rawValue
                }
            }.joined(separator: "; ")
        }
    }

    func describe(_ record: CloudRecord, _ database: EmbeddedDatabase) -> String {
        let fields = record.fields.sorted { $0.key < $1.key }.map { "\($0.key)=\(String("\($0.value)".prefix(80)))" }
        let change = record.changeTag.flatMap { database.change(of: $0) } ?? -1
        return
            "\(record.id.recordName) \(record.type) ^\(record.parent ?? "") #\(change) \(record.created?.userRecordName ?? "") \(record.modified?.time ?? 0) \(fields)"
    }
}

/// A clock that a test sets.
private final class TestTime: Sendable {
    private let time = LockedValue<Int64>(1_700_000_000_000_000)

    var now: Int64 { time.withLock { $0 } }
    func advance() { time.withLock { $0 += 1_000_000 } }
}
