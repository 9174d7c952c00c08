import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// What a container's stores tell of their synchronisation: one's own records, and what others share.
struct SyncReading {
    private let own: StoreReader
    /// `nil` where nothing was ever shared.
    private let others: StoreReader?
    private var readers: [StoreReader] { [own] + (others.map { [$0] } ?? []) }

    init(_ directory: ContainerDirectory) throws {
        own = try StoreReader(container: directory)
        others = directory.hasStore(.shared) ? try StoreReader(container: directory, scope: .shared) : nil
    }

    /// The fields of the types of both stores.
    func knownFields() throws -> KnownFields { try KnownFields(readers) }

    /// What is kept with the private store alone.
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

    /// What others share.
    func sharesOfOthers() throws -> [Share] { try others?.shares() ?? [] }

    /// The fields of which the cloud has values that the container lacks, with the number of records of each.
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
                // A record whose fields can't be read is counted among the others that could not be applied.
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
    /// The records of the cloud that could not be applied, or not whole, with the reason of each. One whose fields can't be read has the
    /// general reason.
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

    /// The fields whose values the cloud keeps for itself: they were renamed, dropped or given another type here.
    func ignoredFields() throws -> [IgnoredField] {
        let all = try readers.flatMap { try $0.ignoredFields() }
        let fields = Dictionary(grouping: all) { "\($0.type).\($0.field)" }.values.map { fields in
            // Of both stores, as far as it is known.
            let counts = fields.compactMap { $0.records }
            return IgnoredField(
                type: fields[0].type, field: fields[0].field, records: counts.isEmpty ? nil : counts.reduce(0, +))
        }
        return fields.sorted { $0.name < $1.name }
    }

    func refused() throws -> [RefusedSave] { try readers.flatMap { try $0.refused() } }
    func conflictCount() throws -> Int { try readers.reduce(0) { try $0 + $1.conflictCount() } }
    /// Newest first; those of one's own records before those of others'.
    func conflicts(limit: Int) throws -> [LoggedConflict] {
        try Array(readers.flatMap { try $0.conflicts(limit: limit) }.prefix(limit))
    }

    /// The last so many, oldest first. Both stores are set up alike: of what others share, that is told only where it has failed.
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
