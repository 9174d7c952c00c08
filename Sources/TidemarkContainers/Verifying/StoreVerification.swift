import Foundation
import GRDB
import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// What an examination of a container has found.
public struct VerificationReport: Hashable, Sendable {
    /// One thing that is wrong with the container.
    public struct Problem: Hashable, Sendable, Encodable {
        /// What is wrong. The raw values appear in the JSON output of `tidemark verify`.
        public enum Kind: String, Hashable, Sendable, Encodable {
            /// SQLite's integrity check fails, or the store's own tables contradict each other.
            case database
            /// A row's values are not what its digest says, or its bookkeeping can't be right.
            case record
            /// A record has no owner, is not in the share of its owner, or refers by a declared relationship to a record that is not there.
            case relationship
            /// An index of values, or a full-text index, does not have what the records have. It can be built again from them.
            case index
            /// The file of an asset that a record or its history names is not there, or its content is not what its identifier says.
            case assetMissing, assetDamaged
            /// An asset that a record names and the registry lacks.
            case assetUnregistered
            /// A file that no record, and no record's history, names; or what is no asset's file at all.
            case assetStray
        }

        /// What is wrong.
        public let kind: Kind
        /// What is wrong and where, in a sentence for people.
        public let message: String
        /// The record type concerned, if there is one.
        public let type: String?
        /// The name of the record concerned, if it is known.
        public let record: String?
        /// The identifier of the asset concerned, if there is one.
        public let asset: String?

        /// As it was found in a store.
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

    /// How many records were compared with their digests.
    public var records = 0
    /// How many assets were looked for: those that records or their history name.
    public var assets = 0
    /// Of these, how many are not here: the cloud has them, and they come when they are asked for.
    public var notDownloaded = 0
    /// The bytes of the assets that are not here.
    public var notDownloadedBytes: Int64 = 0
    /// Everything that is wrong; empty for a sound container.
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

/// Examines a container: the database files of both stores, every record's digest, every asset's presence and content, and that nothing else lies about.
///
/// What an interrupted import has left is cleaned up, if the container can be written, its database is sound and no import is going
/// on.
public struct StoreVerification: Sendable {
    /// How far an examination has got.
    public struct Progress: Sendable {
        /// How many assets were examined. The count begins when the databases have been examined.
        public let assets: Int
        /// How many assets there are to examine.
        public let total: Int
    }

    private let container: ContainerDirectory

    /// Prepares an examination. Nothing is opened before ``run(progress:)``.
    public init(of container: ContainerDirectory) {
        self.container = container
    }

    /// Examines the container. Problems are returned in the report, not thrown.
    ///
    /// - Throws: ``StoreError`` `notFound` when the container has no store, or has lost it; and those of opening one.
    /// - Complexity: Reads the whole database up to three times and every asset once.
    public func run(progress: (@Sendable (Progress) -> Void)? = nil) throws(StoreError) -> VerificationReport {
        do {
            var (report, referenced): (VerificationReport, [String: Reference]) = (VerificationReport(), [:])
            // That there is none in a private store's place is an error, not nothing.
            for scope in ContainerDirectory.scopes where scope == .private || container.hasStore(scope) {
                if let lost = LogExamination(of: container.store(scope).path) {
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
            // Nothing is removed because a damaged registry lacks it.
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

    /// Examines the database; returns, for each asset that records name, one of them.
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
        // A damaged file may not let itself be read to the end; what it does not yield is in SQLite's own findings.
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

    /// Runs a part of the examination; that it finds the store corrupt is a problem, and the rest goes on.
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

    /// The record that names an asset; none for assets that only the registry, that is history, still names.
    private struct Reference {
        var type: String?
        var record: String?
        var isRegistered = true
        /// Whether the store has it in the cloud alone.
        var mayBeAbsent = false

        /// Of an asset that another store names, too.
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

    /// What every walk through the history relies on.
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

    /// Whether the rows are those that history tells of, and the view shows them.
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

    /// What the digest does not stand for.
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
            // What is no text is no identifier either, and is missing as such.
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
        // Looked up again: what an import has ingested meanwhile has names by now.
        report.problems += try IngestRecovery(container: container).strays(among: unnamed).map {
            .init(.assetStray, "nothing names the file \(container.assets.path)/\($0.prefix(2))/\($0)", asset: $0)
        }
    }

    /// Whether nobody ingests files: files that lie there to be named by the next batch are no strays.
    private func isAtRest() throws(StoreError) -> Bool {
        let file = container.staging.appendingPathComponent("lock")
        // Where that file can't be written, as on a medium for reading only, nobody can have it.
        guard access(file.path, W_OK) == 0 else { return true }
        return try StoreLock(at: file).acquireIfFree()
    }
}
