import Foundation
import GRDB
import Logging
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// A device of a run: a container, a program that edits, and an engine. It can be killed and started again.
final class SimulatedDevice {
    let number: Int
    private let folder: URL
    private let time: VirtualTime
    /// Microseconds by which its clock is ahead.
    let lead: Int64
    private let random: RandomSource
    private let manner: Manner
    private let faults: FaultPlan
    private let connect: Connect
    private var incarnation = 0
    let account: SimulatedAccount
    /// The account of its store's records, as far as the simulation has seen; `nil` if they belong to none yet.
    var owner: Int?

    /// The way in which its engine works.
    struct Manner {
        let policy: MergePolicy
        /// When the next page and batch are prepared; `nil` for no preparation ahead.
        var ahead: SyncEnvironment.AheadOrder?
        /// The store: the account's own, or that of records that others share.
        var scope = StoreScope.private
    }

    typealias Connect = (KillSwitch, FaultPlan, SimulatedAccount) -> (database: any CloudDatabase, faulty: FaultyDatabase)

    private(set) var container: ContainerDirectory
    private(set) var kill: KillSwitch
    private(set) var store: RecordStore
    private(set) var engine: SyncEngine
    private(set) var faulty: FaultyDatabase
    /// Whether the engine is in the middle of a step.
    var isBusy = false

    init(
        _ number: Int, in folder: URL, template: ContainerTemplate, time: VirtualTime, lead: Int64, seed: UInt64,
        manner: Manner, connect: @escaping Connect
    ) throws {
        (self.number, self.folder, self.time, self.lead, self.manner, self.connect) = (
            number, folder, time, lead, manner, connect
        )
        random = RandomSource(seed)
        faults = FaultPlan(seed: seed &+ 1)
        account = SimulatedAccount()
        let url = folder.appendingPathComponent("\(number)-0")
        try template.make(number, at: url)
        (container, kill, store, engine, faulty) = try Self.open(
            url, time: time, lead: lead, random: random, manner: manner, account: account
        ) { [account] in connect($0, FaultPlan(seed: seed &+ 1, delayMax: .seconds(2)), account) }
    }

    private static func open(
        _ url: URL, time: VirtualTime, lead: Int64, random: RandomSource, manner: Manner, account: SimulatedAccount,
        connect: (KillSwitch) -> (database: any CloudDatabase, faulty: FaultyDatabase)
    ) throws -> (ContainerDirectory, KillSwitch, RecordStore, SyncEngine, FaultyDatabase) {
        let container = try ContainerDirectory(openingAt: url)
        let kill = KillSwitch(url) { url in
            let image = url.appendingPathExtension("image")
            try ContainerTemplate.copy(url, to: image)
            return image
        }
        let (database, faulty) = connect(kill)
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in manner.policy }
        configuration.accountState = { account.switches }
        // The engine's process may be killed whenever it reads the clock: before, between and within its transactions.
        var environment = SyncEnvironment(
            now: {
                kill.tick()
                return time.now + lead
            },
            sleep: { time.advance(by: Int64($0 / .microseconds(1))) }, random: { random.unit() },
            identifier: { random.identifier() }, looksAhead: manner.ahead != nil)
        environment.aheadOrder = manner.ahead ?? .beside
        let store = try RecordStore(container: container, scope: manner.scope, notifier: nil, now: { time.now + lead })
        let engine = try SyncEngine(
            container: container, scope: manner.scope, database: database, configuration: configuration, environment: environment,
            log: Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() })
        return (container, kill, store, engine, faulty)
    }

    /// Starts again with the files from the moment of the kill, or with the present ones.
    func restart() throws {
        kill.strike()
        guard let image = try kill.image() else { return }
        try restart(with: image)
    }

    /// Starts again with another container. What the old process does from now on has no effect.
    func restart(with image: URL) throws {
        kill.strike()
        incarnation += 1
        let rates = faultRates
        (container, kill, store, engine, faulty) = try Self.open(
            image, time: time, lead: lead, random: random, manner: manner, account: account
        ) { connect($0, FaultPlan(seed: faults.seed &+ UInt64(incarnation) &* 1000, delayMax: .seconds(2)), account) }
        faultRates = rates
    }

    /// The share of requests that suffer each fault.
    var faultRates: [CloudFault: Double] = [:] { didSet { faulty.change(faultRates) } }

    // The content of its store

    /// A record's row.
    struct StoredRow: Equatable {
        let name: String
        let type: String
        let version: Int64
        let tag: String?
        let base: Int64?
        /// The times of its fields' edits.
        let edited: String?
        let isPending: Bool
        /// The zone's number in the store.
        let zone: Int64
        let values: [String: String]
    }

    /// Returns all rows, sorted by name.
    ///
    /// - Parameter picture: Returns the word for an asset.
    func rows(_ picture: (String) -> String) throws -> [StoredRow] {
        try store.reader.unsafeReentrantRead { db in
            let types = try db.cachedStatement(sql: "SELECT id, name, table_name FROM tide_types ORDER BY id")
            return try Row.fetchAll(types).flatMap { type in
                let fields = try Row.fetchAll(
                    db.cachedStatement(sql: "SELECT name, column_name FROM tide_fields WHERE type_id = ? ORDER BY ordinal"),
                    arguments: [type[0]])
                let table: String = type[2]
                // This statement is not cached, because columns may have been added.
                return try Row.fetchAll(db, sql: "SELECT * FROM \"\(table)\"").map { row in
                    var values: [String: String] = [:]
                    for field in fields {
                        let value: DatabaseValue = row[field[1] as String]
                        guard !value.isNull else { continue }
                        let text = String.fromDatabaseValue(value) ?? "\(value)"
                        values[field[0]] = field[0] == "image" ? picture(text) : text
                    }
                    return StoredRow(
                        name: row["_key"], type: type[1], version: row["_version"], tag: row["_tag"], base: row["_base"],
                        edited: row["_edited"], isPending: !(row["_pending"] as DatabaseValue).isNull, zone: row["_zone"],
                        values: values)
                }
            }.sorted { $0.name < $1.name }
        }
    }

    /// Returns the change token up to which it has applied the cloud's changes.
    func token() throws -> String? {
        try store.reader.unsafeReentrantRead { db in
            try String.fetchOne(db.cachedStatement(sql: "SELECT value FROM tide_sync WHERE key = 'token'"))
        }
    }

    /// Returns the records that it has heard of and not imported. They are looked up once the outcome of their own requests is
    /// known, or they wait for a person.
    func deferUntilReply() throws -> Set<String> {
        try store.reader.unsafeReentrantRead { db in
            let reasons = "'sent', 'conflict', 'deletion', 'name'"
            let statement = try db.cachedStatement(sql: "SELECT name FROM tide_deferred WHERE reason IN (\(reasons))")
            return try Set(String.fetchAll(statement))
        }
    }

    /// Returns the name in the cloud of the account whose records it has.
    func user() throws -> String? {
        try store.reader.unsafeReentrantRead { db in
            try String.fetchOne(db.cachedStatement(sql: "SELECT value FROM tide_sync WHERE key = 'user'"))
        }
    }

    /// Returns the sync issues of records.
    func refused() throws -> [String: SyncIssue] {
        let entries = try StoreReader(container: container).syncIssues(limit: .max).filter { $0.code != nil }
        return entries.reduce(into: [:]) { $0[$1.record] = $1 }
    }

    /// Returns the records that it could not fully apply, by name.
    func deferred() throws -> [String: DeferredRecord.Reason] {
        try StoreReader(container: container).deferredRecords().reduce(into: [:]) { $0[$1.name] = $1.reason }
    }

    func transactionTime(_ id: Int64) throws -> Int64 {
        try store.reader.unsafeReentrantRead { db in
            try Int64.fetchOne(
                db.cachedStatement(sql: "SELECT time FROM tide_transactions WHERE id = ?"), arguments: [id]) ?? 0
        }
    }

    /// Returns the work that is left, in words.
    func work() throws -> [String] {
        try store.reader.unsafeReentrantRead { db in
            try ["tide_outbox", "tide_requests", "tide_sync_issues", "tide_deferred"].flatMap { table in
                try Row.fetchAll(db, sql: "SELECT * FROM \(table)").map { "\(table) \($0)" }
            }
        }
    }

    /// Returns the numbers of rows in some tables of the synchronisation.
    func counts(of tables: [String]) throws -> [String: Int] {
        try store.reader.unsafeReentrantRead { db in
            try tables.reduce(into: [:]) { $0[$1] = try Int.fetchOne(db, sql: "SELECT count(*) FROM \($1)") ?? 0 }
        }
    }
}
