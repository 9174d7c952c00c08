public import Foundation
import GRDB
public import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Examines a cloud's directory: SQLite's own integrity, each record, share and zone against its digest, references from records to assets, and
/// each asset's content. Others may use the cloud meanwhile.
///
/// ```swift
/// let report = try CloudVerification(of: directory).run()
/// for problem in report.problems { print(problem.message) }
/// ```
public struct CloudVerification: Sendable {
    private let directory: CloudDirectory
    private let isOfCopy: Bool

    /// Describes a verification of the cloud in a directory. ``run(progress:)`` does it.
    public init(of directory: URL) { (self.directory, isOfCopy) = (CloudDirectory(url: directory), false) }

    /// Describes a verification of a new copy. It ends with an error where the disk fails or is full: a copy that was not read is
    /// not verified.
    init(ofCopy directory: URL) { (self.directory, isOfCopy) = (CloudDirectory(url: directory), true) }

    /// Something that is not as it was written.
    public struct Problem: Hashable, Codable, Sendable {
        /// What is damaged or missing.
        public enum Kind: String, Codable, Sendable {
            /// SQLite finds a database damaged, or it can't be read.
            case database
            /// A row is not what its digest was made of, or a record's fields can't be read, or its zone is missing.
            case zone, share, participant, record
            /// A record names an asset that its owner does not have.
            case reference
            /// The content of an asset is missing, or another.
            case asset
        }

        /// What is damaged or missing.
        public let kind: Kind
        /// The container with its environment in parentheses, or the database's file.
        public let place: String
        /// What was found, for people. It begins with ``place``.
        public let message: String

        init(kind: Kind, place: String, message: String) { (self.kind, self.place, self.message) = (kind, place, message) }

        package init(_ finding: RowExamination.Finding, place: String) {
            self.init(
                kind: Kind(rawValue: finding.kind.rawValue) ?? .database, place: place, message: "\(place): \(finding.message)")
        }
    }

    /// The result of a verification.
    public struct Report: Hashable, Codable, Sendable {
        /// The number of containers.
        public var containers = 0
        /// The number of environments of all containers: a container has one or two.
        public var environments = 0
        /// The number of records that were examined, tombstones among them.
        public var records = 0
        /// The number of assets that the databases name, missing ones among them.
        public var assets = 0
        /// The bytes of the assets' contents that were read.
        public var bytes: Int64 = 0
        /// The problems, in the order in which they were found.
        public var problems: [Problem] = []
        /// Whether there is no problem.
        public var isOK: Bool { problems.isEmpty }

        /// Makes a report of nothing.
        public init() {}
    }

    /// How far a verification is.
    public struct Progress: Sendable {
        /// The container with its environment in parentheses.
        public let place: String
        /// The number of records that were examined so far, in all containers.
        public let records: Int
        /// The number of assets that were examined so far, in all containers.
        public let assets: Int

        package init(place: String, records: Int, assets: Int) {
            (self.place, self.records, self.assets) = (place, records, assets)
        }
    }

    /// Examines everything once. Blocks the calling thread.
    ///
    /// - Parameter progress: Called on the calling thread, for each thousand records and each asset. A `CancellationError` that it
    ///   throws ends the verification.
    /// - Throws: ``StoreError`` `notFound` where there is no cloud. A damaged cloud is no error.
    /// - Complexity: O(bytes of the cloud).
    public func run(progress: (Progress) throws -> Void = { _ in }) throws -> Report {
        guard EmbeddedCloud.exists(at: directory.url) else {
            throw StoreError(.notFound, "there is no cloud at \(directory.url.path)")
        }
        var report = Report()
        for name in CloudDirectory.databases {
            let url = directory.url.appendingPathComponent(name)
            guard FileManager.default.fileExists(atPath: url.path) else { continue }
            try examining(name, &report) { report in
                try SharedDatabase.watcher(of: url).read { db in try Self.integrity(db, name, &report) }
            }
        }
        let containers = try directory.containers()
        report.containers = Set(containers.map { $0.name }).count
        for container in containers {
            report.environments += 1
            let place = "\(container.name) (\(container.environment.rawValue))"
            try examining(place, &report) { report in try examine(container, place, &report, progress) }
        }
        return report
    }

    /// Runs an examination of a database. An error of reading it is a problem of that database alone.
    private func examining(_ place: String, _ report: inout Report, _ body: (inout Report) throws -> Void) throws {
        do {
            try body(&report)
        } catch let error as CancellationError {
            throw error
        } catch let error where isOfCopy && Self.isOfDisk(error) {
            throw StoreError(error, doing: "examine the copy of \(place)")
        } catch {
            report.problems.append(
                .init(kind: .database, place: place, message: "\(place): the database can't be read: \(error)"))
        }
    }

    /// Returns whether an error says nothing about the database: the disk is full, or fails.
    private static func isOfDisk(_ error: any Error) -> Bool {
        guard error is StoreError || error is DatabaseError else { return false }
        return [.io, .diskFull].contains(StoreError(error, doing: "examine").code)
    }

    private static func integrity(_ db: Database, _ place: String, _ report: inout Report) throws {
        for finding in try String.fetchAll(db, sql: "PRAGMA integrity_check(20)") where finding != "ok" {
            report.problems.append(.init(kind: .database, place: place, message: "\(place): SQLite finds: \(finding)"))
        }
    }

    private func examine(
        _ container: CloudDirectory.Container, _ place: String, _ report: inout Report, _ progress: (Progress) throws -> Void
    ) throws {
        let queue = try SharedDatabase.watcher(of: directory.url.appendingPathComponent(container.database))
        let assetsBefore = report.assets
        let assets = try queue.read { db in
            try SQLiteCloudStorage.check(db, path: container.database)
            try Self.integrity(db, place, &report)
            return try examineRows(db, place, &report) { count in
                try progress(.init(place: place, records: count, assets: assetsBefore))
            }
        }
        let folder = directory.url.appendingPathComponent(container.path, isDirectory: true)
        for (owner, asset) in assets {
            report.assets += 1
            try progress(.init(place: place, records: report.records, assets: report.assets))
            guard CloudDirectory.isOwner(owner), (try? asset.check()) != nil else {
                let name = asset.digest.prefix(100)
                report.problems.append(
                    .init(
                        kind: .asset, place: place, message: "\(place): the table of assets has an invalid entry '\(name)'"))
                continue
            }
            let finding: String
            do {
                let content = try CloudDirectory.content(
                    of: folder.appendingPathComponent(CloudDirectory.asset(asset.digest, owner: owner)))
                report.bytes += content.size
                if content == asset { continue }
                finding = "is damaged"
            } catch {
                finding = (error as? StoreError)?.code == .notFound ? "is missing" : "can't be read: \(error)"
            }
            // The asset may have been removed since the database was read.
            guard try queue.read({ db in try Self.has(asset, owner, db) }) else { continue }
            let path = CloudDirectory.asset(asset.digest, owner: owner)
            report.problems.append(
                .init(kind: .asset, place: place, message: "\(place): the content of \(container.path)/\(path) \(finding)"))
        }
    }

    private static func has(_ asset: CloudAsset, _ owner: String, _ db: Database) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM owners o JOIN assets a ON a.owner = o.number WHERE o.name = ? AND a.digest = ?)"
        return try Bool.fetchOne(db, sql: sql, arguments: [owner, asset.digest]) ?? false
    }

    /// - Returns: The assets that the database has, with their owners.
    private func examineRows(
        _ db: Database, _ place: String, _ report: inout Report, _ progress: (Int) throws -> Void
    ) throws -> [(String, CloudAsset)] {
        var examination = RowExamination()
        try examination.readShares(db)
        try examination.readAssets(db)
        let names = try SQLiteCloudTransaction.ownerNames(db)
        let select = try db.makeStatement(sql: "SELECT * FROM records NOT INDEXED")
        let rows = try Row.fetchCursor(select)
        while let row = try rows.next() {
            examination.examine(StoredCloudRecord(row, of: select, names[StoredCloudRecord.owner(row)] ?? ""))
            report.records += 1
            if report.records % 1_000 == 0 { try progress(report.records) }
        }
        report.problems += examination.findings.map { Problem($0, place: place) }
        return examination.assets
    }
}

/// Reads the rows of one database for the examination.
extension RowExamination {
    mutating func readShares(_ db: Database) throws {
        let select = try db.makeStatement(sql: "SELECT * FROM zones ORDER BY owner, id")
        let names = try SQLiteCloudTransaction.ownerNames(db)
        let rows = try Row.fetchCursor(select)
        while let row = try rows.next() {
            examine(
                StoredZone(row), of: names[StoredCloudRecord.owner(row)] ?? "",
                isWhole: (try? StoredZone(checked: row, of: select)) != nil)
        }
        for row in try Row.fetchAll(db, sql: "SELECT * FROM shares ORDER BY id") {
            guard (try? StoredShare(checked: row, "")) == nil else { continue }
            noteShare(Int64.fromDatabaseValue(row["id"] as DatabaseValue) ?? 0)
        }
        for row in try Row.fetchAll(db, sql: "SELECT * FROM participants ORDER BY ordinal") {
            guard (try? StoredParticipant(checked: row, "")) == nil else { continue }
            noteParticipant(Int64.fromDatabaseValue(row["ordinal"] as DatabaseValue) ?? 0)
        }
    }

    mutating func readAssets(_ db: Database) throws {
        for row in try Row.fetchAll(
            db,
            sql:
                "SELECT o.name, a.digest, a.size FROM assets a LEFT JOIN owners o ON o.number = a.owner ORDER BY o.name, a.digest"
        ) {
            let (digest, size) = (String.fromDatabaseValue(row[1]) ?? "", Int64.fromDatabaseValue(row[2]) ?? -1)
            add(CloudAsset(digest: digest, size: size), of: String.fromDatabaseValue(row[0]) ?? "")
        }
    }
}

extension EmbeddedCloud {
    /// Reports damaged records to all devices, so that a device with an intact copy sends the record again. O(records).
    ///
    /// - Returns: The number of damaged records that had not been reported before.
    public func reportDamage() async throws(CloudError) -> Int {
        var count = 0
        for (name, environment) in try await containers() where (try? Self.check(container: name)) != nil {
            let opened = try await openedContainer(name, environment)
            let damaged = try await opened.engine.storage.read { rows throws(CloudError) in try rows.damagedRecords() }
            let fresh = damaged.filter { $0.damage?.isNoted == false }
            guard await opened.engine.noteDamage(of: fresh) else { continue }
            count += fresh.count
            opened.notifier.post()
        }
        return count
    }
}
