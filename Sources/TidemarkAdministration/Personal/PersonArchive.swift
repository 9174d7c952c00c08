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

    /// It writes and waits for the disk, which no thread of the cooperative pool may.
    private nonisolated let executor = StoreExecutor(label: "tidemark.archive")
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let folder: URL
    /// Whether it has to survive a power cut.
    private let isDurable: Bool
    private let cloud: EmbeddedCloud
    private let credentials: CredentialStore
    private let account: StoredAccount
    private var summary = Summary()
    private var files: [String: FileHandle] = [:]
    /// Assets that were found damaged or missing.
    private var missing: Set<String> = []

    private init(
        _ folder: URL, _ cloud: EmbeddedCloud, _ credentials: CredentialStore, _ account: StoredAccount, isDurable: Bool
    ) {
        (self.folder, self.cloud, self.credentials, self.account) = (folder, cloud, credentials, account)
        self.isDurable = isDurable
    }

    /// Writes all of an account to a folder that is there and empty. Damaged items are left out, and named in `problems.jsonl`.
    package static func write(
        all account: StoredAccount, of cloud: EmbeddedCloud, _ credentials: CredentialStore, to folder: URL
    ) async throws -> Summary {
        try await PersonArchive(folder, cloud, credentials, account, isDurable: true).write()
    }

    /// Makes a file of all of an account. It lies in a temporary folder, which goes with it.
    package static func file(
        all account: StoredAccount, of cloud: EmbeddedCloud, _ credentials: CredentialStore
    ) async throws -> (file: ArchiveFile, summary: Summary) {
        await removeLeftovers()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(leftoverPrefix)\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        do {
            let summary = try await PersonArchive(folder, cloud, credentials, account, isDurable: false).write()
            return (try ArchiveFile(of: folder, named: "tidemark-export", at: Timestamp.now() / 1_000_000), summary)
        } catch {
            // The error that is told is the first one.
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
    }

    private static let leftoverPrefix = "tidemark-export-"
    /// Seconds after which nobody makes or reads an archive any more.
    private static let leftoverAge = 86_400.0

    /// Removes temporary folders that programs have left which were killed. Those of others can't be removed, and stay.
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
        let found = try? files.contentsOfDirectory(at: files.temporaryDirectory, includingPropertiesForKeys: keys)
        for folder in found ?? [] where folder.lastPathComponent.hasPrefix(leftoverPrefix) {
            guard let changed = try? folder.resourceValues(forKeys: Set(keys)).contentModificationDate,
                changed.timeIntervalSinceNow < -leftoverAge
            else { continue }
            try? files.removeItem(at: folder)
        }
    }

    private func write() async throws -> Summary {
        try line("account.json") { json in
            json.object {
                $0.member("id", account.id)
                $0.member("email", account.email)
                $0.member("phone", account.phone)
                $0.member("name", account.name?.title)
                $0.member("quota", account.quota)
                $0.member("status", account.status.rawValue)
                $0.member("discoverable", account.isDiscoverable)
            }
        }
        try await cloud.forEachItem(of: account) { place, item in try await self.write(item, place) }
        for session in try await credentials.sessions(of: account.id) {
            try line("sessions.jsonl") { json in
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
            try line("identities.jsonl") { json in
                json.object {
                    $0.member("issuer", identity.key.issuer)
                    $0.member("subject", identity.key.subject)
                    $0.member("label", identity.label)
                    $0.member("added", Timestamp.text(microseconds: identity.added))
                }
            }
        }
        for entry in try await credentials.auditLog(account: account.id, limit: 1_000_000).reversed() {
            try line("audit.jsonl") { json in
                json.object {
                    $0.member("at", Timestamp.text(microseconds: entry.at))
                    $0.member("action", entry.event.action.rawValue)
                    $0.member("address", entry.event.address)
                    $0.member("container", entry.event.container)
                    $0.member("subject", entry.event.subject)
                    $0.member("outcome", entry.event.outcome)
                }
            }
        }
        for problem in summary.problems {
            try line("problems.jsonl") { json in json.object { $0.member("problem", problem) } }
        }
        for file in files.values {
            if isDurable { try file.synchronize() }
            try file.close()
        }
        return summary
    }

    private func write(_ item: EmbeddedCloud.StoredItem, _ place: EmbeddedCloud.StoredPlace) async throws {
        let part = "containers/\(place.container)/\(place.environment.rawValue)"
        let dialect = WireDialect(isExtended: true)
        switch item {
        case .record(let record):
            try line("\(part)/records.jsonl") { json in
                json.object {
                    $0.member("database", place.scope.name)
                    $0.name("record")
                    record.write(&$0, dialect)
                }
            }
            summary.records += 1
            for value in record.fields.values { for asset in value.assets { try await copy(asset, part, place) } }
        case .share(let share):
            try line("\(part)/shares.jsonl") { json in
                json.object {
                    $0.member("database", place.scope.name)
                    $0.name("share")
                    share.write(&$0, dialect)
                }
            }
            summary.shares += 1
        case .damaged(let error):
            summary.problems.append(
                "\(error.reason) (container \(place.container), \(place.environment.rawValue), \(place.scope.name) database, "
                    + "zone '\(place.zone.zoneName)')")
        }
    }

    /// Copies a content, checking that it is whole.
    private func copy(_ asset: CloudAsset, _ part: String, _ place: EmbeddedCloud.StoredPlace) async throws {
        let url = folder.appendingPathComponent("\(part)/assets/\(asset.digest)-\(asset.size)")
        guard !FileManager.default.fileExists(atPath: url.path) else { return }
        let file = try make(url)
        var digest = AssetDigest()
        var offset: Int64 = 0
        while offset < asset.size {
            let piece: Data
            do throws(CloudError) {
                piece = try await cloud.piece(
                    of: asset, at: offset, count: Int(min(1 << 20, asset.size - offset)), for: account, place)
            } catch {
                guard error.code == .assetNotAvailable || error.code == .recordDamaged else { throw error }
                break
            }
            guard !piece.isEmpty else { break }
            digest.update(Array(piece))
            try file.write(contentsOf: piece)
            offset += Int64(piece.count)
        }
        guard digest.finish() == asset else {
            try file.close()
            try FileManager.default.removeItem(at: url)
            if missing.insert("\(part) \(asset.digest)").inserted {
                summary.problems.append("the asset \(asset.digest) of \(place.container) is damaged or missing")
            }
            return
        }
        if isDurable { try file.synchronize() }
        try file.close()
        summary.assets += 1
        summary.bytes += asset.size
    }

    private func line(_ path: String, _ body: (inout JSONWriter) -> Void) throws {
        var json = JSONWriter()
        body(&json)
        let file = try files[path] ?? make(folder.appendingPathComponent(path))
        files[path] = file
        try file.write(contentsOf: json.bytes + [0x0a])
        summary.bytes += Int64(json.bytes.count + 1)
    }

    private func make(_ url: URL) throws -> FileHandle {
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw AdministrationError(.failed, "cannot make \(url.path): \(String(cString: strerror(errno)))")
        }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
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
