import CTideCore
import Foundation
import GRDB
import Synchronization
import TidemarkModel

/// What an examination of a container has found.
public struct VerificationReport: Hashable, Sendable {
    public struct Problem: Hashable, Sendable, Encodable {
        public enum Kind: String, Hashable, Sendable, Encodable {
            /// SQLite's own check of the file.
            case database
            /// A row's values are not what its digest says.
            case record
            case assetMissing, assetDamaged
            /// An asset that a record names and the registry lacks.
            case assetUnregistered
            /// A file that no record, and no record's history, names.
            case assetStray
        }

        public let kind: Kind
        public let message: String
        public let type: String?
        public let record: String?
        public let asset: String?

        init(_ kind: Kind, _ message: String, type: String? = nil, record: String? = nil, asset: String? = nil) {
            self.kind = kind
            self.message = message
            self.type = type
            self.record = record
            self.asset = asset
        }
    }

    public var records = 0
    public var assets = 0
    public var problems: [Problem] = []
    public var isOK: Bool { problems.isEmpty }
}

extension VerificationReport: Encodable {
    private enum Key: String, CodingKey { case ok, records, assets, problems }

    public func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(isOK, forKey: .ok)
        try object.encode(records, forKey: .records)
        try object.encode(assets, forKey: .assets)
        try object.encode(problems, forKey: .problems)
    }
}

/// Examines a container: the database file, every record's digest, every asset's presence and content, and that nothing else lies about.
///
/// What an interrupted import has left is cleaned up first, if the container can be written and no import is going on.
public struct StoreVerification: Sendable {
    /// How far it is.
    public struct Progress: Sendable {
        /// Of `total` assets, after the database was examined.
        public let assets: Int
        public let total: Int
    }

    private let container: ContainerDirectory

    public init(of container: ContainerDirectory) {
        self.container = container
    }

    /// - Complexity: Reads the whole database twice and every asset once.
    public func run(progress: (@Sendable (Progress) -> Void)? = nil) throws(StoreError) -> VerificationReport {
        if FileManager.default.isWritableFile(atPath: container.url.path) {
            _ = try RecordStore(container: container)
            let blobs = try BlobStore(container: container)
            blobs.close()
        }
        let reader = try StoreReader(container: container)
        var report = VerificationReport()
        do {
            let referenced = try reader.database.read { db in try examine(db, seed: try reader.digestSeed(db), report: &report) }
            try examineAssets(referenced, report: &report, progress: progress)
        } catch {
            throw StoreError(error, doing: "verify \(container.url.path)")
        }
        return report
    }

    /// Examines the database; returns, for each asset that records name, one of them.
    private func examine(_ db: Database, seed: UInt64, report: inout VerificationReport) throws -> [String: Reference] {
        let findings = try String.fetchAll(db, sql: "PRAGMA integrity_check(20)").filter { $0 != "ok" }
        report.problems += findings.map { .init(.database, $0) }
        var referenced: [String: Reference] = [:]
        for id in try String.fetchAll(db, sql: "SELECT id FROM tide_assets") { referenced[id] = Reference() }
        // A damaged file may not let itself be read to the end; what it does not yield is in SQLite's own findings.
        for type in try StoredType.fetchAll(db) {
            try examineRecords(db, type: type, seed: seed, report: &report)
            for field in type.fields where field.type.scalar == .asset {
                try collectReferences(db, type: type, field: field, into: &referenced)
            }
        }
        return referenced
    }

    /// The record that names an asset; none for assets that only the registry, that is history, still names.
    private struct Reference {
        var type: String?
        var record: String?
        var isRegistered = true
    }

    private func examineRecords(_ db: Database, type: StoredType, seed: UInt64, report: inout VerificationReport) throws {
        var damaged: [Int64] = []
        var rows: UInt64 = 0
        let handle = try db.handle
        do {
            try withUnsafeMutablePointer(to: &damaged) { list in
                try type.withTable(siblings: []) { table in
                    try checked {
                        tide_table_verify(
                            handle, seed, &table, &rows,
                            { context, row in context!.assumingMemoryBound(to: [Int64].self).pointee.append(row) }, list, &$0)
                    }
                }
            }
        } catch let error as StoreError where error.code == .corrupt {
            report.problems.append(.init(.database, error.message, type: type.name))
        }
        report.records += Int(rows)
        for row in damaged {
            let key = try RecordKey.fetchOne(db, sql: "SELECT _key FROM \"\(type.table)\" WHERE _id = ?", arguments: [row])
            report.problems.append(
                .init(
                    .record, "the values of \(type.name) \(key?.name ?? "in row \(row)") are not what its digest says",
                    type: type.name,
                    record: key?.name))
        }
    }

    private func collectReferences(
        _ db: Database, type: StoredType, field: StoredType.Field, into referenced: inout [String: Reference]
    ) throws {
        let source =
            field.type.isList
            ? "SELECT j.value AS asset, t._key FROM \"\(type.table)\" t, json_each(t.\"\(field.column)\") j"
            : "SELECT \"\(field.column)\" AS asset, _key FROM \"\(type.table)\" WHERE \"\(field.column)\" IS NOT NULL"
        let rows = try Row.fetchCursor(db, sql: source)
        while let row = try rows.next() {
            guard let id: String = row[0] else { continue }
            var reference = referenced[id] ?? Reference(isRegistered: false)
            guard reference.record == nil else { continue }
            reference.type = type.name
            reference.record = (row[1] as RecordKey).name
            referenced[id] = reference
        }
    }

    private func examineAssets(
        _ referenced: [String: Reference], report: inout VerificationReport, progress: (@Sendable (Progress) -> Void)?
    ) throws {
        report.assets = referenced.count
        let ids = referenced.keys.sorted()
        let found = Mutex<(problems: [VerificationReport.Problem], done: Int)>(([], 0))
        let assets = container.assets.path
        DispatchQueue.concurrentPerform(iterations: ids.count) { index in
            let id = ids[index]
            var problem: VerificationReport.Problem?
            var error = tide_error()
            if tide_blob_verify(assets, id, &error) != TIDE_OK {
                let reference = referenced[id]
                problem = .init(
                    error.reject == TIDE_REJECT_ASSET_MISSING ? .assetMissing : .assetDamaged, error.text, type: reference?.type,
                    record: reference?.record, asset: id)
            }
            let done = found.withLock { state in
                if let problem { state.problems.append(problem) }
                state.done += 1
                return state.done
            }
            if done % 64 == 0 || done == ids.count { progress?(Progress(assets: done, total: ids.count)) }
        }
        report.problems += found.withLock { $0.problems.sorted { ($0.asset ?? "") < ($1.asset ?? "") } }
        for (id, reference) in referenced.sorted(by: { $0.key < $1.key }) where !reference.isRegistered {
            report.problems.append(
                .init(
                    .assetUnregistered, "the asset \(id) is in no registry", type: reference.type, record: reference.record,
                    asset: id))
        }
        for blob in try IntakeRecovery.blobs(in: container.assets) where referenced[blob.id] == nil {
            report.problems.append(.init(.assetStray, "nothing names the file \(blob.url.path)", asset: blob.id))
        }
    }
}
