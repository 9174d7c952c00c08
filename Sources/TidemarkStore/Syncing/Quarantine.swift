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
    private let store: DatabaseScope?

    /// The store that they were in, and go back to.
    public var scope: DatabaseScope { store ?? .private }

    init(id: UUID, time: Int64, user: String?, reason: String, records: Int, pending: Int, scope: DatabaseScope) {
        (self.id, self.time, self.user, self.reason, self.records, self.pending) = (id, time, user, reason, records, pending)
        store = scope
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
            guard let data = try? Data(contentsOf: file), let it = try? JSONDecoder().decode(Quarantine.self, from: data),
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

    /// Sets all records aside, whole and durable, and empties the store.
    ///
    /// - Returns: `nil` when there was nothing.
    @discardableResult
    package func setAside(reason: String) throws(StoreError) -> Quarantine? {
        let quarantine: Quarantine? = try connection.locked("set the records aside") { db in
            try connection.refreshSchema(db)
            try Outbox(db).takeIn()
            let summary = try OutboxSummary(db, types: connection.types)
            let records = try connection.types.reduce(0) { sum, type in
                try sum + (Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(type.table)\"") ?? 0)
            }
            guard records > 0 || summary.pending > 0 else {
                try empty(db)
                return (nil, .commit)
            }
            let quarantine = Quarantine(
                id: UUID(), time: now(), user: try SyncState(db, zone: StoreFormat.defaultZone).user, reason: reason,
                records: records, pending: summary.pending, scope: scope)
            try copy(quarantine)
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

    private func empty(_ db: Database) throws {
        for type in connection.types { try db.execute(sql: "DELETE FROM \"\(type.table)\"") }
        for table in [
            "changes", "transactions", "conflicts", "outbox", "requests", "ledger", "kept", "seen", "sync", "imports", "assets",
            "shares",
            "refused",
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

    /// Brings back what was set aside: edits that no cloud had, merged with what is there by now.
    ///
    /// - Parameter all: Also the records that the cloud had. They come as new ones where they are not there.
    package func restore(
        _ quarantine: Quarantine, all: Bool, author: String, policy: @Sendable (String) -> MergePolicy,
        checkUser: @escaping @Sendable (String?) throws -> Void = { _ in }
    ) throws -> SaveOutcome {
        let source = try quarantine.container(in: container)
        // In a shared store each goes to the zone that it was in, if that is here by then.
        let homes = scope == .shared ? try zones() : []
        let (edits, schemas) = try StoreReader(container: source, scope: scope).setAsideEdits(all: all, homes: homes)
        let named = Set(edits.flatMap { ($0.values ?? [:]).values.flatMap(\.assetIDs) })
        let reader = try StoreReader(container: source, scope: scope)
        let blobs = try reader.blobs(named)
        let assets = try BlobStore(container: container)
        try AssetCopying(from: source.assets, to: container.assets, mayLink: true).copy(blobs.map(\.id)) { _ in }
        if !blobs.isEmpty { try AssetCopying(from: source.assets, to: container.assets, mayLink: true).synchronize() }
        let outcome = try save(
            edits, schemas: schemas, blobs: blobs, author: TransactionAuthor(author, origin: .save), policy: policy,
            check: { db in try checkUser(SyncState(db, zone: StoreFormat.defaultZone).user) })
        assets.close()
        return outcome
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

extension StoreReader {
    fileprivate func blobs(_ ids: Set<String>) throws(StoreError) -> [BlobStore.Blob] {
        try read("look for assets") { db in
            try ids.sorted().compactMap { id in
                let statement = try db.cachedStatement(sql: "SELECT size, media FROM tide_assets WHERE id = ?")
                return try Row.fetchOne(statement, arguments: [id]).map {
                    BlobStore.Blob(id: id, size: $0[0], media: $0[1], isNew: false)
                }
            }
        }
    }

    /// What a store that was set aside would have sent, as edits of what the cloud had.
    ///
    /// - Parameter homes: Zones in which the edits are to be.
    fileprivate func setAsideEdits(
        all: Bool, homes: [StoreZone]
    ) throws(StoreError) -> ([RecordEdit], [RecordTypeSchema]) {
        try read("read what was set aside") { db in
            let types = try StoredType.fetchAll(db)
            let zones = try StoreZone.fetchAll(db).reduce(into: [Int64: Int64]()) { zones, zone in
                zones[zone.id] = homes.first { $0.name == zone.name }?.id
            }
            let device = try StoreIdentity(db, path: container.store(scope).path).device.uuidString
            var edits: [RecordEdit] = []
            for type in types {
                let fields = Set(type.fields.map(\.name))
                let rows = try Row.fetchCursor(PendingRow.statement(db, type: type, all ? "1" : "_pending IS NOT NULL"))
                while let row = try rows.next() {
                    let mine = try PendingRow(row, type: type)
                    let place = try Int64.fetchOne(
                        db.cachedStatement(sql: "SELECT _zone FROM \"\(type.table)\" WHERE _id = ?"), arguments: [mine.id])
                    let values = mine.state(type)
                    let chain = RecordChain(db, row: mine.version)
                    let ancestor =
                        mine.isPending ? try mine.base.flatMap { try chain.values(at: $0, from: values, type: type) } : values
                    let times = try chain.editTimes(
                        since: mine.base ?? 0, known: mine.edited.map { EditTimes($0) }, device: device, until: 0)
                    // What the cloud had and is not there is to come again, with `all`.
                    let base: RecordEdit.Base =
                        mine.isPending && !all ? ancestor.map { .loaded(version: 0, values: $0) } ?? .none : .none
                    edits.append(
                        RecordEdit(
                            record: RecordName(type: type.name, name: mine.name), base: base, values: values, fields: fields,
                            times: times.times(of: fields), zone: place.flatMap { zones[$0] }))
                }
                // What was moved is deleted where it was, and nowhere else.
                let sql = """
                    SELECT c.id, c.key, c.base, coalesce(c.zone, \(StoreFormat.defaultZone)) AS place FROM tide_changes c
                    WHERE c.type_id = ? AND \(Outbox.isWaitingDeletion) AND (\(scope == .shared) OR NOT EXISTS (
                        SELECT 1 FROM "\(type.table)" r WHERE r._key = c.key AND r._zone <> coalesce(c.zone, \(StoreFormat.defaultZone))))
                    """
                for row in try Row.fetchAll(db, sql: sql, arguments: [type.id]) {
                    guard let name = RecordKey.fromDatabaseValue(row[1])?.name, let base: Int64 = row[2],
                        let ancestor = try RecordChain(db, row: row[0]).values(at: base, from: [:], type: type)
                    else { continue }
                    edits.append(
                        RecordEdit(
                            record: RecordName(type: type.name, name: name), base: .loaded(version: 0, values: ancestor),
                            values: nil, fields: [], zone: zones[row[3]]))
                }
            }
            return (edits, types.map(\.schema))
        }
    }
}
