import Foundation
import GRDB
import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// The result of an examination of a container.
public struct VerificationReport: Hashable, Sendable {
    /// A problem of the container.
    public struct Problem: Hashable, Sendable, Encodable {
        /// The kind of problem. The raw values appear in the JSON output of `tidemark verify`.
        public enum Kind: String, Hashable, Sendable, Encodable {
            /// SQLite's integrity check fails, or the store's own tables contradict each other.
            case database
            /// A row's values do not match its digest, or its key, zone or version is impossible.
            case record
            /// A record has no owner, is not in the share of its owner, or refers by a declared relationship to a missing record.
            case relationship
            /// An index of values, or a full-text index, does not match the records. It can be built again from them.
            case index
            /// The file of an asset that a record or its history names is missing, or does not match its identifier.
            case assetMissing, assetDamaged
            /// A record names an asset that the registry `tide_assets` lacks.
            case assetUnregistered
            /// A file in the folder of assets is named by no record and no history, or is not an asset's file.
            case assetStray
        }

        /// The kind of problem.
        public let kind: Kind
        /// What is wrong and where, in a sentence for people.
        public let message: String
        /// The record type concerned, if there is one.
        public let type: String?
        /// The name of the record concerned, if it is known.
        public let record: String?
        /// The identifier of the asset concerned, if there is one.
        public let asset: String?

        /// Returns the problem with the store's name in its message.
        func found(in scope: StoreScope) -> Problem {
            scope == .private
                ? self : Problem(kind, "the \(scope.name) store: \(message)", type: type, record: record, asset: asset)
        }

        init(_ kind: Kind, _ message: String, type: String? = nil, record: String? = nil, asset: String? = nil) {
            self.kind = kind
            self.message = message
            self.type = type
            self.record = record
            self.asset = asset
        }
    }

    /// The number of records that were compared with their digests.
    public var records = 0
    /// The number of assets that were examined: those that records or their history name.
    public var assets = 0
    /// The number of these assets that are in the cloud alone. They can be downloaded.
    public var notDownloaded = 0
    /// The bytes of the assets that are in the cloud alone.
    public var notDownloadedBytes: Int64 = 0
    /// All problems; empty for a sound container.
    public var problems: [Problem] = []
    /// The records that were repaired before this examination; `nil` when no repair was asked for.
    public var repaired: [RepairReport.Repaired]?
    /// The names of the indexes that were built again before this examination; `nil` when no repair was asked for.
    public var rebuiltIndexes: [String]?
    /// Whether no problem was found.
    public var isOK: Bool { problems.isEmpty }
}

extension VerificationReport: Encodable {
    private enum Key: String, CodingKey {
        case ok, records, assets, notDownloaded, notDownloadedBytes, problems, repaired, rebuiltIndexes
    }

    public func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(isOK, forKey: .ok)
        try object.encode(records, forKey: .records)
        try object.encode(assets, forKey: .assets)
        try object.encode(notDownloaded, forKey: .notDownloaded)
        try object.encode(notDownloadedBytes, forKey: .notDownloadedBytes)
        try object.encode(problems, forKey: .problems)
        try object.encodeIfPresent(repaired, forKey: .repaired)
        try object.encodeIfPresent(rebuiltIndexes, forKey: .rebuiltIndexes)
    }
}

/// Examines a container: the database files of both stores, every record's digest, every asset's presence and content, and files
/// that nothing names.
///
/// The files that an interrupted import has left are removed, if the container can be written, its databases are sound and no
/// import is running.
public struct StoreVerification: Sendable {
    /// The progress of an examination.
    public struct Progress: Sendable {
        /// The number of assets that were examined. The count begins after the examination of the databases.
        public let assets: Int
        /// The number of assets to examine.
        public let total: Int
    }

    private let container: ContainerDirectory

    /// Prepares an examination. Nothing is opened before ``run(progress:)``.
    public init(of container: ContainerDirectory) {
        self.container = container
    }

    /// Examines the container. Problems are returned in the report, not thrown.
    ///
    /// - Parameter progress: Called with the progress, from several threads.
    /// - Throws: ``StoreError`` `notFound` when the container has no store, or has lost it; `io` when a log can't be read; and
    ///   the errors of opening a store.
    /// - Complexity: Reads the whole database up to three times and every asset once.
    public func run(progress: (@Sendable (Progress) -> Void)? = nil) throws(StoreError) -> VerificationReport {
        do {
            var (report, referenced): (VerificationReport, [String: Reference]) = (VerificationReport(), [:])
            // A missing private store is an error. A missing shared store is not.
            for scope in ContainerDirectory.scopes where scope == .private || container.hasStore(scope) {
                if let lost = try LogExamination(of: container.store(scope).path) {
                    report.problems.append(.init(.database, lost.message))
                }
                let reader = try StoreReader(container: container, scope: scope)
                let (examined, named) = try reader.read { db in
                    var report = VerificationReport()
                    let named = try examine(db, scope, seed: try reader.digestSeed(db), report: &report)
                    return (report, named)
                }
                report.records += examined.records
                report.problems += examined.problems.map { $0.found(in: scope) }
                referenced.merge(named) { one, other in one.merged(with: other) }
            }
            report.problems += try LogExamination.copies(in: container.url).map {
                .init(
                    .database,
                    """
                    \(container.url.path)/\($0) is a log that was damaged when the store was opened: what was saved last is lost. Remove it \
                    once that is there again
                    """)
            }
            try examineAssets(referenced, report: &report, progress: progress)
            // If the registry is damaged, files that it lacks may be assets, and none is removed.
            if !report.problems.contains(where: { $0.kind == .database || $0.kind == .assetUnregistered }),
                FileManager.default.isWritableFile(atPath: container.url.path)
            {
                try BlobStore.recover(container)
            }
            try examineStrays(referenced, report: &report)
            return report
        } catch {
            throw StoreError(error, doing: "verify \(container.url.path)")
        }
    }

    /// Examines the database. Returns the assets of the registry and of the records, each with one record that names it.
    private func examine(
        _ db: Database, _ scope: StoreScope, seed: UInt64, report: inout VerificationReport
    ) throws -> [String: Reference] {
        let findings = try IntegrityFindings(db)
        report.problems += findings.others.map { .init(.database, $0) }
        report.problems += findings.indexes.map { .init(.index, Self.indexMessage($0)) }
        var referenced: [String: Reference] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT id, media FROM tide_assets") {
            guard let id = String.fromDatabaseValue(row[0]) else {
                report.problems.append(.init(.database, "the table tide_assets has a row whose id has a wrong form"))
                continue
            }
            let media = Int.fromDatabaseValue(row[1]) ?? 0
            referenced[id] = Reference(mayBeAbsent: media >= StoredMedia.absent)
        }
        // A damaged file may not be readable to its end. SQLite's own findings report that part.
        try reporting(&report) { _ in _ = try StoreCounters(db) }
        try reporting(&report) { try examineHistory(db, report: &$0) }
        let types = try reporting(&report) { _ in try StoredType.fetchAll(db) } ?? []
        for type in types {
            try reporting(&report, type: type) { _ in _ = try StoreCounters.row(db, type: type) }
            try reporting(&report, type: type) { try examineRecords(db, type: type, seed: seed, report: &$0) }
            try reporting(&report, type: type) { try examineBookkeeping(db, type: type, report: &$0) }
            try reporting(&report, type: type) { try examineCompleteness(db, type: type, report: &$0) }
            try reporting(&report, type: type) { report in
                report.problems += try RelationshipScan.broken(db, type: type, among: types, scope: scope).map {
                    .init(.relationship, $0.message, type: $0.record.type, record: $0.record.name)
                }
            }
            try reporting(&report, type: type) { report in
                report.problems += try type.incompleteTextIndexes(db).map {
                    .init(.index, Self.indexMessage($0), type: type.name)
                }
            }
            for field in type.fields where field.type.scalar == .asset {
                try reporting(&report, type: type) { _ in
                    try collectReferences(db, type: type, field: field, into: &referenced)
                }
            }
        }
        return referenced
    }

    private static func indexMessage(_ name: String) -> String {
        "the index \(name) does not have what the records have; 'tidemark verify --repair' builds it again"
    }

    /// Runs a part of the examination. An error `corrupt` becomes a problem of the report, and the examination goes on.
    private func reporting<Result>(
        _ report: inout VerificationReport, type: StoredType? = nil, _ body: (inout VerificationReport) throws -> Result
    ) throws -> Result? {
        do {
            return try body(&report)
        } catch {
            let error = StoreError(error, doing: type.map { "read the records of \($0.name)" } ?? "read the schema")
            guard error.code == .corrupt else { throw error }
            let problem = VerificationReport.Problem(.database, error.message, type: type?.name)
            if !report.problems.contains(problem) { report.problems.append(problem) }
            return nil
        }
    }

    /// An asset and a record that names it. There is no record if only history names the asset, so that the registry has it.
    private struct Reference {
        var type: String?
        var record: String?
        var isRegistered = true
        /// Whether the asset may be in the cloud alone.
        var mayBeAbsent = false

        /// Merges the references of two stores to one asset.
        func merged(with other: Reference) -> Reference {
            var merged = record == nil || (isRegistered && !other.isRegistered) ? other : self
            merged.isRegistered = isRegistered && other.isRegistered
            merged.mayBeAbsent = mayBeAbsent || other.mayBeAbsent
            return merged
        }
    }

    private func examineRecords(_ db: Database, type: StoredType, seed: UInt64, report: inout VerificationReport) throws {
        let (damaged, count) = try DamageScan.rows(db, type: type, seed: seed)
        report.records += count
        for row in damaged {
            let key = try DatabaseValue.fetchOne(db, sql: "SELECT _key FROM \"\(type.table)\" WHERE _id = ?", arguments: [row])
                .flatMap(RecordKey.fromDatabaseValue)
            report.problems.append(
                .init(
                    .record, "the values of \(type.name) \(key?.name ?? "in row \(row)") are not what its digest says",
                    type: type.name,
                    record: key?.name))
        }
    }

    /// Checks the rules for changes on which every reader of the history relies.
    private func examineHistory(_ db: Database, report: inout VerificationReport) throws {
        let sql = """
            SELECT id FROM tide_changes
            WHERE previous >= id OR first_row < 1 OR last_row < first_row OR kind NOT IN (1, 2, 3)
            OR (kind = \(ChangeKind.delete.rawValue)) <> (key IS NOT NULL) LIMIT 20
            """
        report.problems += try Int64.fetchAll(db, sql: sql).map {
            .init(.database, "the change \($0) in tide_changes cannot be: it has a wrong kind, rows or predecessor")
        }
    }

    /// Checks that the rows are those that history explains, and that the type's view is the store's.
    private func examineCompleteness(_ db: Database, type: StoredType, report: inout VerificationReport) throws {
        let table = "\"\(type.table)\""
        let sql = """
            SELECT forgotten_rows + coalesce((
                SELECT sum(CASE kind WHEN 1 THEN last_row - first_row + 1 WHEN 3 THEN -1 ELSE 0 END)
                FROM tide_changes WHERE type_id = tide_types.id
            ), 0) - (SELECT count(*) FROM \(table)) FROM tide_types WHERE id = ?
            """
        let gone = try Int64.fetchOne(db, sql: sql, arguments: [type.id]) ?? 0
        if gone != 0 {
            report.problems.append(
                .init(
                    .database,
                    gone > 0
                        ? "\(gone) records of \(type.name) are gone, and history does not tell of it"
                        : "\(-gone) records of \(type.name) are there, and history does not tell how they came", type: type.name))
        }
        let unexplained = """
            SELECT _key FROM \(table) r WHERE r._version >= \(try HistoryFloor(db).change) AND NOT EXISTS (
                SELECT 1 FROM tide_changes c
                WHERE c.id = r._version AND c.type_id = ? AND r._id BETWEEN c.first_row AND c.last_row
            ) LIMIT 20
            """
        for row in try Row.fetchAll(db, sql: unexplained, arguments: [type.id]) {
            let name = RecordKey.fromDatabaseValue(row[0])?.name
            report.problems.append(
                .init(
                    .record, "history does not tell how \(type.name) \(name ?? "") came to be as it is", type: type.name,
                    record: name))
        }
        let view = try String.fetchOne(
            db, sql: "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?", arguments: [type.viewName])
        if view != type.viewDefinition {
            report.problems.append(
                .init(.database, "the view \(type.viewName) is missing, or another than the store's", type: type.name))
        }
    }

    /// Checks the columns that the digest does not cover.
    private func examineBookkeeping(_ db: Database, type: StoredType, report: inout VerificationReport) throws {
        let sql = """
            SELECT _id, _key FROM "\(type.table)" WHERE \(RecordKey.misshapenSQL)
            OR typeof(_zone) <> 'integer' OR _zone NOT IN (SELECT id FROM tide_zones)
            OR typeof(_version) <> 'integer' OR _version < 1
            """
        let rows = try Row.fetchCursor(db, sql: sql)
        while let row = try rows.next() {
            report.problems.append(
                .init(
                    .record, "the row \(row[0] as DatabaseValue) of \(type.name) has a key, zone or version that cannot be one",
                    type: type.name, record: RecordKey.fromDatabaseValue(row[1])?.name))
        }
    }

    private func collectReferences(
        _ db: Database, type: StoredType, field: StoredType.Field, into referenced: inout [String: Reference]
    ) throws {
        let source =
            field.type.isList
            ? """
            SELECT coalesce(j.value, t."\(field.column)") AS asset, t._key FROM "\(type.table)" t
            LEFT JOIN \(StoredText.elementsSQL(of: "t.\"\(field.column)\"")) j
            WHERE t."\(field.column)" IS NOT NULL AND t."\(field.column)" <> '[]'
            """
            : "SELECT \"\(field.column)\" AS asset, _key FROM \"\(type.table)\" WHERE \"\(field.column)\" IS NOT NULL"
        let rows = try Row.fetchCursor(db, sql: source)
        while let row = try rows.next() {
            // A value that is not a text can't be an identifier. It is reported as a missing asset.
            let value = row[0] as DatabaseValue
            let id = String.fromDatabaseValue(value) ?? value.description
            var reference = referenced[id] ?? Reference(isRegistered: false)
            guard reference.record == nil else { continue }
            reference.type = type.name
            reference.record = RecordKey.fromDatabaseValue(row[1])?.name
            referenced[id] = reference
        }
    }

    private func examineAssets(
        _ referenced: [String: Reference], report: inout VerificationReport, progress: (@Sendable (Progress) -> Void)?
    ) throws {
        report.assets = referenced.count
        let ids = referenced.keys.sorted()
        let found = LockedValue<(problems: [VerificationReport.Problem], done: Int, absent: [String])>(([], 0, []))
        let assets = container.assets
        DispatchQueue.concurrentPerform(iterations: ids.count) { index in
            let id = ids[index]
            let reference = referenced[id]
            let (problem, isAbsent): (VerificationReport.Problem?, Bool) =
                switch AssetFiles.examine(id, in: assets) {
                case .whole: (nil, false)
                case .missing where reference?.mayBeAbsent ?? false: (nil, true)
                case .missing(let reason):
                    (.init(.assetMissing, reason, type: reference?.type, record: reference?.record, asset: id), false)
                case .damaged(let reason):
                    (.init(.assetDamaged, reason, type: reference?.type, record: reference?.record, asset: id), false)
                }
            let done = found.withLock { state in
                if let problem { state.problems.append(problem) }
                if isAbsent { state.absent.append(id) }
                state.done += 1
                return state.done
            }
            if done % 64 == 0 || done == ids.count { progress?(Progress(assets: done, total: ids.count)) }
        }
        let absent = found.withLock(\.absent)
        report.notDownloaded = absent.count
        report.notDownloadedBytes = absent.reduce(0) { $0 + AssetIdentifier.size(of: $1) }
        report.problems += found.withLock { $0.problems.sorted { ($0.asset ?? "") < ($1.asset ?? "") } }
        for (id, reference) in referenced.sorted(by: { $0.key < $1.key }) where !reference.isRegistered {
            report.problems.append(
                .init(
                    .assetUnregistered, "the asset \(id) is in no registry", type: reference.type, record: reference.record,
                    asset: id))
        }
    }

    private func examineStrays(_ referenced: [String: Reference], report: inout VerificationReport) throws {
        let files = try AssetFiles(in: container.assets)
        report.problems += files.others.map {
            .init(.assetStray, "\(container.assets.path)/\($0) is not a file of an asset in its place")
        }
        let unnamed = files.ids.filter { referenced[$0] == nil }
        guard !unnamed.isEmpty, try isAtRest() else { return }
        // They are looked up again, because an import may have named files meanwhile.
        report.problems += try IngestRecovery(container: container).strays(among: unnamed).map {
            .init(.assetStray, "nothing names the file \(container.assets.path)/\($0.prefix(2))/\($0)", asset: $0)
        }
    }

    /// Whether no process ingests files. While one does, files without names may belong to its next batch.
    private func isAtRest() throws(StoreError) -> Bool {
        let file = container.staging.appendingPathComponent("lock")
        // If the lock file can't be written, as on a read-only medium, no process can hold it.
        guard access(file.path, W_OK) == 0 else { return true }
        return try StoreLock(at: file).acquireIfFree()
    }
}
