package import Foundation
import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel
import TidemarkSQLite
import TidemarkWire

/// Writes all that a cloud has of a person: the command and the person's own page call it.
package actor PersonArchive {
    /// What an archive has.
    package struct Summary: Encodable, Sendable {
        package var records = 0
        package var shares = 0
        package var assets = 0
        package var bytes: Int64 = 0
        /// Damaged items, which the archive does not have.
        package var problems: [String] = []
    }

    /// Writing waits for the disk, which no thread of the cooperative pool may.
    private nonisolated let executor = StoreExecutor(label: "tidemark.archive")
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let folder: URL
    /// Whether it has to survive a power cut.
    private let isDurable: Bool
    private var files: ArchiveFolder
    private let cloud: EmbeddedCloud
    private let credentials: CredentialStore
    private let account: StoredAccount
    private var summary = Summary()
    /// The containers and environments that had something, the present one last.
    private var parts: [ArchiveReadme.Part] = []
    /// The tables of the present one, by the types of their records.
    private var tables: [String: ArchiveTable] = [:]
    /// The names of these tables' files, in lower case: not every file system tells `City` from `city`.
    private var tableNames: Set<String> = []
    /// The files of the present one's assets; `nil` for those that were found damaged or missing.
    private var copies: [CloudAsset: String?] = [:]
    /// The addresses of accounts that have done something, by their identifiers.
    private var actors: [String: String] = [:]

    private init(
        _ folder: URL, _ cloud: EmbeddedCloud, _ credentials: CredentialStore, _ account: StoredAccount, isDurable: Bool
    ) {
        (self.folder, self.cloud, self.credentials, self.account) = (folder, cloud, credentials, account)
        self.isDurable = isDurable
        files = ArchiveFolder(folder, isDurable: isDurable)
    }

    /// The name of an archive, with the account's address and the day. All its characters are allowed in the name of a file and
    /// in a header.
    package static func name(of account: StoredAccount, at time: Int64) -> String {
        let day = Timestamp.text(microseconds: time, decimals: 0).prefix(10)
        return "tidemark-export-\(safe(account.email, more: "@+", most: 100))-\(day)"
    }

    /// A text as a part of the name of a file: ASCII letters, digits, `-`, `_`, `.` and those of `more` stay, and `_` replaces
    /// all others.
    static func safe(_ text: String, more: String = "", most: Int = 60) -> String {
        let kept = text.unicodeScalars.prefix(most).map { scalar in
            let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
            return isPlain || "-_.\(more)".unicodeScalars.contains(scalar) ? Character(scalar) : "_"
        }
        // A dot at the beginning hides a file.
        return kept.first == "." ? "_" + String(kept.dropFirst()) : String(kept)
    }

    /// Writes all of an account to a folder that is there and empty. Damaged items are left out, and named in `problems.jsonl`.
    package static func write(
        all account: StoredAccount, of cloud: EmbeddedCloud, _ credentials: CredentialStore, to folder: URL
    ) async throws -> Summary {
        try await PersonArchive(folder, cloud, credentials, account, isDurable: true).write()
    }

    /// Makes a file of all of an account. It is in a temporary folder, which is removed with it.
    package static func file(
        all account: StoredAccount, of cloud: EmbeddedCloud, _ credentials: CredentialStore
    ) async throws -> (file: ArchiveFile, summary: Summary) {
        await removeLeftovers()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(leftoverPrefix)\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        do {
            let summary = try await PersonArchive(folder, cloud, credentials, account, isDurable: false).write()
            let time = credentials.time
            return (try ArchiveFile(of: folder, named: name(of: account, at: time), at: time / 1_000_000), summary)
        } catch {
            // The first error is thrown.
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
    }

    private static let leftoverPrefix = "tidemark-export-"
    /// After so many seconds nobody makes or reads an archive any more.
    private static let leftoverAge = 86_400.0

    /// Removes the temporary folders that killed programs have left. Those of other users can't be removed, and stay.
    package static func removeLeftovers() async {
        await withCheckedContinuation { continuation in
            // A large folder takes long, which no thread of the cooperative pool waits for.
            DispatchQueue.global(qos: .utility).async {
                removeLeftoversNow()
                continuation.resume()
            }
        }
    }

    private static func removeLeftoversNow() {
        let (files, keys) = (FileManager.default, [URLResourceKey.contentModificationDateKey])
        // A folder that can't be listed or removed now is tried again by the next archive, and each hour by a server.
        let found = try? files.contentsOfDirectory(at: files.temporaryDirectory, includingPropertiesForKeys: keys)
        for folder in found ?? [] where folder.lastPathComponent.hasPrefix(leftoverPrefix) {
            guard let changed = try? folder.resourceValues(forKeys: Set(keys)).contentModificationDate,
                changed.timeIntervalSinceNow < -leftoverAge
            else { continue }
            try? files.removeItem(at: folder)
        }
    }

    private func write() async throws -> Summary {
        let factor = try await credentials.secondFactor(of: account.id)
        try files.line("account.json") { json in
            json.object {
                $0.member("id", account.id)
                $0.member("email", account.email)
                $0.member("phone", account.phone)
                $0.member("name", account.name?.title)
                $0.member("quota", account.quota)
                $0.member("status", account.status.rawValue)
                $0.member("discoverable", account.isDiscoverable)
                $0.member("hasSecondFactor", factor != nil)
                $0.member("recoveryCodes", factor.map { Int64($0.recoveryCodes) })
                $0.member("exported", Timestamp.text(microseconds: credentials.time))
            }
        }
        try await cloud.forEachItem(of: account) { place, item in try await self.write(item, place) }
        for session in try await credentials.sessions(of: account.id) {
            try files.line("sessions.jsonl") { json in
                json.object {
                    $0.member("id", session.id)
                    $0.member("container", session.container)
                    $0.member("environment", session.environment.rawValue)
                    $0.member("device", session.device)
                    $0.member("system", session.system)
                    $0.member("address", session.address)
                    $0.member("began", Timestamp.text(microseconds: session.began))
                    $0.member("used", session.used == 0 ? nil : Timestamp.text(microseconds: session.used))
                    $0.member("usedWithin", session.used == 0 ? nil : Int64(session.lastUse.seconds))
                }
            }
        }
        for identity in try await credentials.identities(of: account.id) {
            try files.line("identities.jsonl") { json in
                json.object {
                    $0.member("issuer", identity.key.issuer)
                    $0.member("subject", identity.key.subject)
                    $0.member("label", identity.label)
                    $0.member("added", Timestamp.text(microseconds: identity.added))
                }
            }
        }
        let failures = try await credentials.syncFailures(
            SyncFailureFilter(account: account.id), limit: SyncFailureLimits.ofAccountsInAll)
        for failure in failures.reversed() {
            let isServed = try credentials.hasContainer(failure.container)
            try files.line("sync-errors.jsonl") { json in
                json.object {
                    $0.member("firstAt", Timestamp.text(microseconds: failure.firstAt))
                    $0.member("at", Timestamp.text(microseconds: failure.at))
                    $0.member("count", Int64(failure.count))
                    $0.member("container", failure.container)
                    $0.member("environment", failure.environment)
                    $0.member("operation", failure.operation)
                    $0.member("database", failure.scope?.name)
                    $0.member("zone", failure.zone)
                    $0.member("recordType", failure.recordType)
                    $0.member("record", failure.record)
                    $0.member("code", failure.code)
                    $0.member("reason", failure.reason(isOfServedContainer: isServed))
                }
            }
        }
        try await writeAuditLog()
        try finishPart()
        for problem in summary.problems {
            try files.line("problems.jsonl") { json in json.object { $0.member("problem", problem) } }
        }
        try files.finish { $0 != ArchiveFolder.sums }
        let readme = ArchiveReadme(
            address: account.email, time: credentials.time, parts: parts, files: files.finished.union([ArchiveFolder.sums]))
        try files.write(Array(readme.text.utf8), to: "README.txt")
        try files.finish { $0 != ArchiveFolder.sums }
        try files.writeSums()
        try files.finish { _ in true }
        summary.bytes += files.bytes
        return summary
    }

    private func writeAuditLog() async throws {
        var before: Int64?
        while true {
            let entries = try await credentials.auditLog(account: account.id, before: before, limit: 1_000)
            for entry in entries {
                let by = try await name(of: entry.event.actor)
                try files.line("audit.jsonl") { json in
                    json.object {
                        $0.member("at", Timestamp.text(microseconds: entry.at))
                        $0.member("action", entry.event.action.rawValue)
                        $0.member("by", by)
                        $0.member("address", entry.event.address)
                        $0.member("container", entry.event.container)
                        $0.member("subject", entry.event.subject)
                        $0.member("outcome", entry.event.outcome)
                    }
                }
            }
            guard let last = entries.last, entries.count == 1_000 else { return }
            before = last.id
        }
    }

    /// The name of an actor: the address of an account, or else the text in the audit log.
    private func name(of actor: String) async throws -> String {
        if let known = actors[actor] { return known }
        let name = UUID(uuidString: actor) == nil ? actor : try await cloud.account(id: actor)?.email ?? actor
        actors[actor] = name
        return name
    }

    private func write(_ item: EmbeddedCloud.StoredItem, _ place: EmbeddedCloud.StoredPlace) async throws {
        let part = "containers/\(place.container)/\(place.environment.rawValue)"
        let dialect = WireDialect(isExtended: true)
        switch item {
        case .record(let record):
            let index = try begin(part)
            try files.line("\(part)/records.jsonl") { json in
                json.object {
                    $0.member("database", place.scope.name)
                    $0.name("record")
                    record.write(&$0, dialect)
                }
            }
            summary.records += 1
            parts[index].records += 1
            for (field, value) in record.fields.sorted(by: { $0.key < $1.key }) {
                for asset in value.assets { try await copy(asset, of: record, field, part, place) }
            }
            try appendRow(record, part, place)
        case .share(let share):
            let index = try begin(part)
            try files.line("\(part)/shares.jsonl") { json in
                json.object {
                    $0.member("database", place.scope.name)
                    $0.name("share")
                    share.write(&$0, dialect)
                }
            }
            summary.shares += 1
            parts[index].shares += 1
        case .damaged(let error):
            summary.problems.append(
                "\(error.reason) (container \(place.container), \(place.environment.rawValue), \(place.scope.name) database, "
                    + "zone '\(place.zone.zoneName)')")
        }
    }

    // Containers

    /// Begins a container and environment, and finishes the one before; does nothing for the present one.
    ///
    /// - Returns: Its index in ``parts``.
    private func begin(_ part: String) throws -> Int {
        if parts.last?.path != part {
            try finishPart()
            parts.append(ArchiveReadme.Part(path: part))
        }
        return parts.count - 1
    }

    private func finishPart() throws {
        guard let part = parts.last?.path else { return }
        for type in tables.keys { summary.bytes += try tables[type]?.finish(isDurable: isDurable) ?? 0 }
        tables.removeAll()
        tableNames.removeAll()
        copies.removeAll()
        try files.finish { $0.hasPrefix(part + "/") }
    }

    /// Adds a record to the table of its type.
    private func appendRow(_ record: CloudRecord, _ part: String, _ place: EmbeddedCloud.StoredPlace) throws {
        if tables[record.type] == nil {
            var name = Self.safe(record.type)
            while !tableNames.insert(name.lowercased()).inserted { name += "-2" }
            let url = folder.appendingPathComponent("\(part)/records/\(name).csv")
            try ArchiveFolder.makeFolder(of: url)
            tables[record.type] = ArchiveTable(
                at: url,
                columns: ["recordName", "database", "zone", "createdTimestamp", "modifiedTimestamp", "parent"])
        }
        func time(_ stamp: CloudRecord.Stamp?) -> ArchiveTable.Cell {
            .plain(stamp.map { Timestamp.text(microseconds: $0.time) } ?? "")
        }
        var fields = record.fields.mapValues(cell)
        // Only devices use this field.
        fields[CloudRecord.editedField] = nil
        try tables[record.type]?.append(
            [
                .text(record.id.recordName), .plain(place.scope.name), .text(place.zone.zoneName), time(record.created),
                time(record.modified), record.parent.map { .text($0) } ?? .plain(""),
            ], fields)
    }

    private func cell(_ value: CloudValue) -> ArchiveTable.Cell {
        switch value {
        case .int64, .double, .timestamp: .plain(FieldText.text(value))
        case .asset(let asset): .plain(copies[asset].flatMap(\.self) ?? "")
        case .list(let elements, of: .asset):
            .plain(elements.flatMap(\.assets).map { copies[$0].flatMap(\.self) ?? "" }.joined(separator: "\n"))
        case .string, .bytes, .location, .reference, .list: .text(FieldText.text(value))
        }
    }

    // Assets

    /// Copies a content, unless it was copied for another field, and adds a row to `assets.csv`.
    private func copy(
        _ asset: CloudAsset, of record: CloudRecord, _ field: String, _ part: String, _ place: EmbeddedCloud.StoredPlace
    ) async throws {
        if copies[asset] == nil {
            let begin = Self.safe(record.id.recordName) + "-" + Self.safe(field, most: 40)
            copies[asset] = .some(try await copy(asset, "assets/\(Self.safe(record.type))/\(begin)", part, place))
        }
        let file = copies[asset].flatMap(\.self)
        if !files.isOpen("\(part)/assets.csv") {
            let columns = ["database", "zone", "type", "record", "field", "file", "bytes", "sha256"]
            try files.write(ArchiveTable.head(columns), to: "\(part)/assets.csv")
        }
        let line = ArchiveTable.line([
            .plain(place.scope.name), .text(place.zone.zoneName), .text(record.type), .text(record.id.recordName), .text(field),
            .plain(file ?? ""), .plain(String(asset.size)), .plain(asset.digest),
        ])
        try files.write(line, to: "\(part)/assets.csv")
    }

    /// Copies a content, checking that it is whole.
    ///
    /// - Parameter name: What its path begins with, below the part.
    /// - Returns: Its path below the part; `nil` where it is damaged or missing.
    private func copy(
        _ asset: CloudAsset, _ name: String, _ part: String, _ place: EmbeddedCloud.StoredPlace
    ) async throws -> String? {
        var digest = AssetDigest()
        var (offset, path) = (0 as Int64, "")
        var file: FileHandle?
        repeat {
            var piece = Data()
            do throws(CloudError) {
                if asset.size > 0 {
                    piece = try await cloud.piece(
                        of: asset, at: offset, count: Int(min(1 << 20, asset.size - offset)), for: account, place)
                }
            } catch {
                guard error.code == .assetNotAvailable || error.code == .recordDamaged else { throw error }
                break
            }
            if file == nil {
                path = unused(name, asset, FileEnding.of(piece), part)
                file = try ArchiveFolder.make(folder.appendingPathComponent("\(part)/\(path)"))
            }
            digest.update(Array(piece))
            try file?.write(contentsOf: piece)
            offset += Int64(piece.count)
            if piece.isEmpty { break }
        } while offset < asset.size
        guard let file, digest.finish() == asset else {
            try file?.close()
            if !path.isEmpty { try FileManager.default.removeItem(at: folder.appendingPathComponent("\(part)/\(path)")) }
            let place = "container \(place.container), \(place.environment.rawValue)"
            summary.problems.append("the asset \(asset.digest) is damaged or missing (\(place))")
            return nil
        }
        if isDurable { try DurableFile.synchronize(file, path: folder.appendingPathComponent("\(part)/\(path)").path) }
        try file.close()
        try files.addSum(asset.digest, of: "\(part)/\(path)")
        summary.assets += 1
        summary.bytes += asset.size
        parts[parts.count - 1].assets += 1
        return path
    }

    /// A path that no other asset has. The digest tells names apart that a file system takes for the same.
    private func unused(_ name: String, _ asset: CloudAsset, _ ending: String, _ part: String) -> String {
        let path = "\(name)-\(asset.digest.prefix(8)).\(ending)"
        let isTaken = FileManager.default.fileExists(atPath: folder.appendingPathComponent("\(part)/\(path)").path)
        return isTaken ? "\(name)-\(asset.digest)-\(asset.size).\(ending)" : path
    }
}

extension CloudValue {
    /// The assets that a value names.
    fileprivate var assets: [CloudAsset] {
        switch self {
        case .asset(let asset): [asset]
        case .list(let values, of: .asset): values.flatMap(\.assets)
        case .string, .int64, .double, .timestamp, .bytes, .location, .reference, .list: []
        }
    }
}
