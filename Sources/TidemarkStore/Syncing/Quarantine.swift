import Foundation
import GRDB
import TidemarkModel

/// Records that were set aside when their account went, or another one came: a whole container of its own, in the container's folder
/// `quarantine`.
public struct Quarantine: Hashable, Sendable, Codable, Identifiable {
    public let id: UUID
    /// Microseconds since 1970 UTC.
    public let time: Int64
    /// The account's name in the cloud container; `nil` of records that belonged to none.
    public let user: String?
    public let reason: String
    /// Records, and those of them that no cloud has yet, deleted ones among them.
    public let records: Int
    public let pending: Int
    private let store: StoreScope?
    private let refusals: Int?

    /// The store that they were in, and go back to.
    public var scope: StoreScope { store ?? .private }

    /// Saves among it that a cloud has refused.
    public var refused: Int { refusals ?? 0 }

    init(
        id: UUID, time: Int64, user: String?, reason: String, records: Int, pending: Int, refused: Int, scope: StoreScope
    ) {
        (self.id, self.time, self.user, self.reason, self.records, self.pending) = (id, time, user, reason, records, pending)
        store = scope
        refusals = refused
    }

    static let folder = "quarantine"
    static let description = "quarantine.json"

    static let records = "records.tidemark"

    func place(in container: ContainerDirectory) -> URL { place(below: container.url) }

    func place(below url: URL) -> URL {
        url.appendingPathComponent("\(Self.folder)/\(id.uuidString.lowercased())", isDirectory: true)
    }

    /// Makes the folder for it.
    func makePlace(below url: URL) throws(StoreError) -> URL {
        let place = place(below: url)
        try Folder.make(place.deletingLastPathComponent(), mode: 0o700)
        try Folder.make(place, mode: 0o700)
        return place
    }

    /// Where the container with the records is.
    public func url(in container: ContainerDirectory) -> URL {
        place(in: container).appendingPathComponent(Self.records, isDirectory: true)
    }

    /// The container with the records.
    public func container(in container: ContainerDirectory) throws(StoreError) -> ContainerDirectory {
        try ContainerDirectory(openingAt: url(in: container))
    }
}

extension ContainerDirectory {
    /// What was set aside, oldest first.
    public func quarantines() throws(StoreError) -> [Quarantine] {
        let folder = url.appendingPathComponent(Quarantine.folder, isDirectory: true)
        guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
        var found: [Quarantine] = []
        for entry in try Folder(at: folder).entries() where entry.kind == .folder {
            let file = folder.appendingPathComponent("\(entry.name)/\(Quarantine.description)")
            // Without a description it is one that was being made.
            guard let data = try? DurableFile.data(of: file), let it = try? JSONDecoder().decode(Quarantine.self, from: data),
                it.id.uuidString.lowercased() == entry.name
            else { continue }
            found.append(it)
        }
        return found.sorted { ($0.time, $0.id.uuidString) < ($1.time, $1.id.uuidString) }
    }

    /// The one of an identifier, or of its beginning.
    ///
    /// - Throws: ``StoreError`` `notFound`.
    public func quarantine(_ id: String) throws(StoreError) -> Quarantine {
        let found = try quarantines().filter { $0.id.uuidString.lowercased().hasPrefix(id.lowercased()) }
        guard let one = found.first, found.count == 1, !id.isEmpty else {
            throw StoreError(
                .notFound,
                found.isEmpty
                    ? "nothing is set aside under '\(id)'" : "several are set aside under '\(id)'; say more of the identifier")
        }
        return one
    }

    /// Removes what was set aside, for good.
    public func discard(_ quarantine: Quarantine) throws(StoreError) {
        let place = quarantine.place(in: self)
        do {
            try Quarantine.remove(place)
        } catch {
            throw StoreError(error, doing: "remove \(place.path)")
        }
    }
}

extension Quarantine {
    /// Removes the folder of one, also of one that is not whole.
    static func remove(_ place: URL) throws {
        // Without its description it is nothing that could be restored by halves.
        try DurableFile.remove(description, in: place)
        let container = place.appendingPathComponent(records, isDirectory: true)
        if FileManager.default.fileExists(atPath: container.path) {
            try DurableFile.remove(ContainerContents.description, in: container)
            try ContainerContents.remove(from: container)
            try ContainerContents.removeIfEmpty(container)
        }
        try ContainerContents.removeIfEmpty(place)
    }

    /// Removes all of a container's.
    static func removeAll(in url: URL) throws {
        let all = url.appendingPathComponent(folder, isDirectory: true)
        guard let entries = try? Folder(at: all).entries() else { return }
        for entry in entries where entry.kind == .folder && UUID(uuidString: entry.name) != nil {
            try remove(all.appendingPathComponent(entry.name, isDirectory: true))
        }
        try ContainerContents.removeIfEmpty(all)
    }
}

extension RecordStore {
    /// Whether nothing was ever saved here.
    package func isUnused() throws(StoreError) -> Bool {
        try connection.read("look for changes") { db in
            try !(Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM tide_transactions)") ?? false)
        }
    }

    /// Whether there is any record.
    package func hasRecords() throws(StoreError) -> Bool {
        try connection.read("look for records") { db in
            try connection.refreshSchema(db)
            for type in connection.types {
                if try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \"\(type.table)\")") ?? false { return true }
            }
            return false
        }
    }

    /// Sets all records aside, and what was refused, whole and durable, and empties the store.
    ///
    /// - Returns: `nil` when there was nothing.
    @discardableResult
    package func setAside(reason: String) throws(StoreError) -> Quarantine? {
        let quarantine: Quarantine? = try connection.locked("set the records aside") { db in
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            let pending = try OutboxSummary(db, types: connection.types).pending
            let hasRecords = try connection.types.contains { type in
                try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \"\(type.table)\")") ?? false
            }
            guard try hasRecords || pending > 0 || RefusedSaves(db).count > 0 else {
                try empty(db)
                return (nil, .commit)
            }
            let quarantine = try copyAside(db, pending: pending, reason: reason)
            try empty(db)
            return (quarantine, .commit)
        }
        try removeUnnamedAssets()
        return quarantine
    }

    /// Removes assets that no record names any more, and those that were on their way, unless somebody takes files in: then they stay until
    /// the container is verified.
    private func removeUnnamedAssets() throws(StoreError) {
        let downloads = container.url.appendingPathComponent(ContainerContents.downloads, isDirectory: true)
        if let folder = try? Folder(at: downloads) {
            for entry in try folder.entries() where entry.kind == .file { try folder.remove(entry.name) }
        }
        guard FileManager.default.fileExists(atPath: container.staging.path) else { return }
        let lock = try StoreLock(at: container.staging.appendingPathComponent("lock"))
        guard try lock.acquireIfFree() else { return }
        defer { lock.release() }
        do {
            try AssetFiles.remove(IntakeRecovery(container: container).strays(), in: container.assets)
        } catch {
            throw StoreError(error, doing: "remove the assets of records that are gone")
        }
    }

    /// Makes the container of what is set aside. While the lock is held, what is committed stays as it is.
    private func copy(_ quarantine: Quarantine) throws {
        let place = try quarantine.makePlace(below: container.url)
        let copy = try ContainerCopy(of: container, mayLink: true, withSetAside: false)
        let target = place.appendingPathComponent(Quarantine.records, isDirectory: true)
        let folder = try UnfinishedFolder(for: target)
        try folder.fill { folder in
            try copy.run(to: folder, hook: { _ in }, progress: nil)
            try copy.verify(folder, progress: nil)
            var description = container.description
            description.copy = UUID()
            try DurableFile.write(description, to: folder.appendingPathComponent(ContainerContents.description))
        }
        try folder.settle()
        try DurableFile.write(quarantine, to: place.appendingPathComponent(Quarantine.description))
        try Folder(at: place.deletingLastPathComponent()).synchronize()
        try Folder(at: container.url).synchronize()
    }

    /// Deletes all records, their history, and what is known of the cloud. Nobody is told of it but those who observe the store.
    ///
    /// - Parameter change: What is remembered of the cloud from then on.
    package func wipe(_ change: (inout SyncState) -> Void = { _ in }) throws(StoreError) {
        try connection.locked("empty the store") { db in
            try connection.refreshSchema(db)
            try empty(db)
            var state = SyncState()
            change(&state)
            try state.store(db, insteadOf: SyncState(), zone: StoreFormat.defaultZone)
            return ((), .commit)
        }
        try removeUnnamedAssets()
    }

    /// Empties the store; where it has changes that no cloud has, it is set aside before, whole and durable, in the same transaction.
    ///
    /// - Parameter change: What is remembered of the cloud from then on.
    /// - Returns: How many changes were not sent, and where they are.
    package func setAsideUnsent(
        reason: String, then change: (inout SyncState) -> Void
    ) throws(StoreError) -> (quarantine: Quarantine?, pending: Int) {
        let result: (quarantine: Quarantine?, pending: Int) = try connection.locked("set unsent changes aside") { db in
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            let pending = try OutboxSummary(db, types: connection.types).pending
            let quarantine = pending > 0 ? try copyAside(db, pending: pending, reason: reason) : nil
            try empty(db)
            var state = SyncState()
            change(&state)
            try state.store(db, insteadOf: SyncState(), zone: StoreFormat.defaultZone)
            return ((quarantine, pending), .commit)
        }
        try removeUnnamedAssets()
        return result
    }

    /// Copies the store into a quarantine.
    private func copyAside(_ db: Database, pending: Int, reason: String) throws -> Quarantine {
        let records = try connection.types.reduce(0) { sum, type in
            try sum + (Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(type.table)\"") ?? 0)
        }
        let quarantine = Quarantine(
            id: UUID(), time: now(), user: try SyncState(db, zone: StoreFormat.defaultZone).user, reason: reason,
            records: records,
            pending: pending, refused: try RefusedSaves(db).count, scope: scope)
        try copy(quarantine)
        return quarantine
    }

    private func empty(_ db: Database) throws {
        for type in connection.types { try db.execute(sql: "DELETE FROM \"\(type.table)\"") }
        for table in [
            "changes", "transactions", "conflicts", "outbox", "requests", "sync_issues", "deferred", "seen", "sync", "imports",
            "assets",
            "shares", "refused",
        ] {
            try db.execute(sql: "DELETE FROM tide_\(table)")
        }
        try db.execute(
            sql: """
                DELETE FROM tide_zones WHERE id <> \(StoreFormat.defaultZone);
                UPDATE tide_events SET reason = NULL;
                UPDATE tide_types SET forgotten_rows = 0;
                UPDATE tide_meta SET value = 1 WHERE key IN ('first_transaction', 'first_change');
                UPDATE tide_meta SET value = value + 1 WHERE key = 'schema_generation'
                """)
        // Tokens of the history that was there are to expire.
        try db.execute(sql: "UPDATE tide_meta SET value = ? WHERE key = 'history_identity'", arguments: [UUID().uuidString])
        for type in connection.types { try db.notifyChanges(in: Table(type.table)) }
    }
}

extension FieldValue {
    /// The assets that it names; none in a list that is no JSON, which no store of ours has.
    package var assetIDs: [String] {
        switch self {
        case .asset(let id): [id]
        case .list(let text, of: .asset): (try? JSONDecoder().decode([String].self, from: Data(text.utf8))) ?? []
        default: []
        }
    }
}
