import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Reads the state of synchronisation from a container's private and shared store.
struct SyncReading {
    private let own: StoreReader
    /// The shared store; `nil` if nothing was ever shared with the account.
    private let others: StoreReader?
    private var readers: [StoreReader] { [own] + (others.map { [$0] } ?? []) }

    init(_ directory: ContainerDirectory) throws {
        own = try StoreReader(container: directory)
        others = directory.hasStore(.shared) ? try StoreReader(container: directory, scope: .shared) : nil
    }

    /// The fields of the types of both stores.
    func knownFields() throws -> KnownFields { try KnownFields(readers) }

    /// The account's settings, which only the private store has.
    func accountSettings() throws -> AccountSettings { try own.accountSettings() }
    func initialImportIsComplete() throws -> Bool { try own.syncState().initialImportIsComplete }

    func hasRecord(named name: String) throws -> Bool { try readers.contains { try $0.record(named: name) != nil } }

    func outbox() throws -> (pending: Int, blocked: Int) {
        try readers.reduce((0, 0)) { sum, reader in
            let outbox = try reader.outbox()
            return (sum.0 + outbox.pending, sum.1 + outbox.blocked)
        }
    }

    func syncIssues(isRefused: Bool) throws -> [SyncIssue] { try readers.flatMap { try $0.syncIssues(isRefused: isRefused) } }

    func syncIssues(record: String? = nil, limit: Int) throws -> [SyncIssue] {
        try readers.reduce(into: []) { $0 += try $1.syncIssues(record: record, limit: limit - $0.count) }
    }

    /// The shares of others.
    func sharesOfOthers() throws -> [Share] { try others?.shares() ?? [] }

    /// The fields whose values in the cloud the container lacks, with the number of records of each.
    func leftFields() throws -> [LeftField] {
        struct Key: Hashable {
            let type, field: String
            let here: String?
            let cloud: String
        }
        var counts: [Key: Int] = [:]
        for reader in readers {
            let types = try reader.types()
            let ignored = Set(try reader.ignoredFields().map { "\($0.type).\($0.field)" })
            for record in try reader.deferredRecords() where record.reason == .schema {
                // A record whose fields can't be read counts only as a deferred record.
                let missing = (try? record.missingFields(in: types)) ?? []
                for field in missing where field.here != nil || !ignored.contains("\(record.type).\(field.field)") {
                    let key = Key(type: record.type, field: field.field, here: field.here, cloud: "\(field.cloud)")
                    counts[key, default: 0] += 1
                }
            }
        }
        let fields = counts.map { key, count in
            LeftField(type: key.type, field: key.field, here: key.here, cloud: key.cloud, records: count)
        }
        return fields.sorted { ($0.type, $0.field, $0.cloud) < ($1.type, $1.field, $1.cloud) }
    }

    func deferredRecords() throws -> [DeferredRecord] { try readers.flatMap { try $0.deferredRecords() } }
    /// The deferred records, each with its reason. A record whose fields can't be read has the general reason.
    func deferredLines() throws -> [(record: DeferredRecord, line: DeferredLine)] {
        try readers.flatMap { reader in
            let deferred = try reader.deferredRecords()
            let types = deferred.isEmpty ? [] : try reader.types()
            return deferred.map {
                (
                    $0,
                    DeferredLine(
                        $0, try? $0.nameCollision(in: types), (try? $0.fieldTypeConflicts(in: types)) ?? [],
                        (try? $0.missingContents()) ?? [])
                )
            }
        }
    }

    /// The fields whose values in the cloud are ignored: they were renamed, dropped or given another type here.
    func ignoredFields() throws -> [IgnoredField] {
        let all = try readers.flatMap { try $0.ignoredFields() }
        let fields = Dictionary(grouping: all) { "\($0.type).\($0.field)" }.values.map { fields in
            // The sum of both stores, as far as it is known.
            let counts = fields.compactMap { $0.records }
            return IgnoredField(
                type: fields[0].type, field: fields[0].field, records: counts.isEmpty ? nil : counts.reduce(0, +))
        }
        return fields.sorted { $0.name < $1.name }
    }

    func refused() throws -> [RefusedSave] { try readers.flatMap { try $0.refused() } }
    func conflictCount() throws -> Int { try readers.reduce(0) { try $0 + $1.conflictCount() } }
    /// The conflicts, newest first; those of the private store before those of the shared one.
    func conflicts(limit: Int) throws -> [LoggedConflict] {
        try Array(readers.flatMap { try $0.conflicts(limit: limit) }.prefix(limit))
    }

    /// The last events, oldest first. A set-up of the shared store is left out unless it has failed, because it is like the
    /// private store's.
    func events(limit: Int) throws -> [ContainerEvent] {
        let all = try readers.flatMap { reader in
            try reader.events(limit: limit).map(\.event)
                .filter { reader.scope == .private || $0.kind != .setup || $0.failure != nil }
        }
        return all.sorted { $0.start < $1.start }.suffix(limit)
    }

    func lastFailure() throws -> ContainerEvent? {
        try readers.compactMap { try $0.lastFailure() }.max { $0.start < $1.start }
    }
}
