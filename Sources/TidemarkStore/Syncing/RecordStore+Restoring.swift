import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

extension RecordStore {
    /// Brings back records that were set aside: edits that no cloud has, merged with the present records, and refused saves.
    ///
    /// An edit in a zone of others that is missing here, or that is not permitted there, is added to the refused saves.
    ///
    /// - Parameter all: Whether records that the cloud had come back, too. They come as new records if they are missing.
    package func restore(
        _ quarantine: Quarantine, all: Bool, author: String, role: WriterRole = .program,
        policy: @Sendable (String) -> MergePolicy,
        checkUser: @escaping @Sendable (String?) throws -> Void = { _ in }
    ) throws -> SaveOutcome {
        let source = try quarantine.container(in: container)
        let reader = try StoreReader(container: source, scope: scope)
        let setAside = try reader.setAside(all: all)
        guard setAside.damaged.isEmpty else {
            throw StoreError.damaged(setAside.damaged, doing: "and nothing is restored from \(source.url.path)")
        }
        var named = Set(setAside.edits.flatMap { ($0.edit.values ?? [:]).values.flatMap(\.assetIDs) })
        for save in try reader.refused() {
            named.formUnion((Array(save.before.values) + Array(save.after.values)).flatMap { $0?.assetIDs ?? [] })
        }
        let blobs = try reader.blobs(named)
        let assets = try BlobStore(container: container)
        // A content that was only in the cloud is fetched from there when it is needed.
        let present = blobs.filter { $0.media < StoredMedia.absent || AssetFiles.isHere($0.id, in: source.assets) }
        let restored = try RestoredAssets(
            present.map(\.id), from: source.assets, into: container.assets, ingestingBy: assets)
        let here = present.filter { restored.names[$0.id] == nil }
        let edits = restored.names.isEmpty ? setAside.edits : setAside.edits.map { $0.naming(restored) }
        let refused = RefusedSaves.naming(setAside.refused, restored, setAside.schemas)
        try AssetCopying(from: source.assets, to: container.assets, mayLink: true)
            .copy(here.map(\.id)) { _ in }
        if !here.isEmpty { try AssetCopying(from: source.assets, to: container.assets, mayLink: true).synchronize() }
        let outcome = try transactOrRefuse(
            "restore what was set aside", author: TransactionAuthor(author, origin: .save, role: role)
        ) { transaction in
            try checkUser(SyncState(transaction.db, zone: StoreFormat.defaultZone).user)
            for schema in setAside.schemas {
                try transaction.declare(schema, environment: container.description.environment)
            }
            try RefusedSaves(transaction.db).add(copies: refused)
            let copied = Set(here.map(\.id))
            return try transaction.restore(
                edits,
                blobs: restored.ingested
                    + blobs.filter { restored.names[$0.id] == nil }.map { blob in
                        BlobStore.Blob(
                            id: blob.id, size: blob.size,
                            media: copied.contains(blob.id) ? StoredMedia.kind(blob.media) : blob.media,
                            isNew: false, sha256: blob.sha256)
                    }, policy: policy)
        }
        assets.close()
        return outcome
    }
}

/// The changes in a quarantine that no cloud has.
private struct SetAside {
    var edits: [SetAsideEdit] = []
    /// Rows of `tide_refused`.
    var refused: [[DatabaseValue]] = []
    var schemas: [RecordTypeSchema] = []
    /// Records that are damaged, and do not come back.
    var damaged: [DamagedRecord] = []
}

/// An edit in a store that was set aside.
private struct SetAsideEdit {
    var edit: RecordEdit
    /// The zone in which the record was.
    let zone: ZoneName
    /// The kind of the ``RefusedSave``, if the edit can't be made again.
    let kind: ChangeKind
    private(set) var before: [String: FieldValue?]
    private(set) var after: [String: FieldValue?]

    /// An insert, or an update of the cloud's record.
    init(
        _ edit: RecordEdit, values: [String: FieldValue], zone: ZoneName, isNew: Bool, was: [String: FieldValue]?,
        pending: [String]
    ) {
        (self.edit, self.zone) = (edit, zone)
        kind = isNew ? .insert : .update
        let fields = pending.filter { was == nil || !was![$0].isSame(as: values[$0]) }
        func picked(_ state: [String: FieldValue]) -> [String: FieldValue?] {
            isNew ? state.mapValues { $0 } : fields.reduce(into: [:]) { $0[$1] = .some(state[$1]) }
        }
        before = isNew ? [:] : was.map(picked) ?? [:]
        after = picked(values)
    }

    /// A deletion.
    init(_ edit: RecordEdit, zone: ZoneName, was: [String: FieldValue]) {
        (self.edit, self.zone) = (edit, zone)
        (kind, before, after) = (.delete, was.mapValues { $0 }, [:])
    }

    /// Returns the edit with the identifiers that its contents have here.
    func naming(_ assets: RestoredAssets) -> SetAsideEdit {
        var named = self
        if let values = edit.values { named.edit.values = assets.values(values) }
        if case .loaded(let version, let values) = edit.base {
            named.edit.base = .loaded(version: version, values: assets.values(values))
        }
        named.before = before.mapValues { $0.map { assets.value($0) } }
        named.after = after.mapValues { $0.map { assets.value($0) } }
        return named
    }
}

extension StoreTransaction {
    /// Makes edits that were set aside, and adds those that can't be made to the refused saves.
    fileprivate func restore(
        _ all: [SetAsideEdit], blobs: [BlobStore.Blob], policy: (String) -> MergePolicy
    ) throws -> SaveOutcome {
        var (placed, refused): ([SetAsideEdit], Int) = ([], 0)
        func refuse(_ it: SetAsideEdit, code: String, reason: String) throws {
            try RefusedSaves(db).add(
                it.kind, type: try knownType(named: it.edit.record.type), name: it.edit.record.name, zone: it.zone,
                before: it.before, after: it.after, code: code, reason: "it was set aside, and \(reason)", at: time)
            refused += 1
        }
        for it in all {
            guard try findHome(of: it) else {
                try refuse(it, code: "zoneNotFound", reason: "what it belongs to is not shared with this account here")
                continue
            }
            var mine = it
            // In a private store one record has the name, whatever its zone is by now.
            mine.edit.zone = connection.scope == .shared ? try zones.get().first { $0.name == it.zone }?.id : nil
            placed.append(mine)
        }
        // The rules were applied when these edits were made. Later changes are resolved when they meet the edits in the cloud.
        leavesRelationships = true
        // A record that was deleted and made again is deleted first, so that the new one has only its own values.
        var outcome = SaveOutcome()
        for part in [placed.filter(\.edit.isDeletion), placed.filter { !$0.edit.isDeletion }] where !part.isEmpty {
            let saved = try save(part.map(\.edit), blobs: blobs, policy: policy) { index, denied in
                let remedy = denied.decision.remedy.map { "; \($0.text)" } ?? ""
                try refuse(part[index], code: "permissionFailure", reason: denied.decision.reason + remedy)
            }
            outcome = saved
        }
        outcome.refused = refused
        return outcome
    }

    /// Returns whether an edit has a zone here. In a shared store, a new record needs a zone of an owner.
    private func findHome(of it: SetAsideEdit) throws -> Bool {
        guard connection.scope == .shared else { return true }
        guard let zone = try zones.get().first(where: { $0.name == it.zone }) else { return false }
        guard zone.id == StoreFormat.defaultZone, try hasSeveralZones, !it.edit.isDeletion else { return true }
        guard let type = type(named: it.edit.record.type) else { return false }
        return try find(it.edit.record.name, type: type, zone: zone.id) != nil
    }
}

extension StoreReader {
    fileprivate func blobs(_ ids: Set<String>) throws(StoreError) -> [BlobStore.Blob] {
        try read("look for assets") { db in
            try ids.sorted().compactMap { try BlobStore.Blob(listed: $0, in: db) }
        }
    }

    /// Returns the changes that a quarantined store would have sent, as edits of the cloud's records, and its refused saves.
    fileprivate func setAside(all: Bool) throws(StoreError) -> SetAside {
        try read("read what was set aside") { db in
            let types = try StoredType.fetchAll(db)
            let zones = try Dictionary(uniqueKeysWithValues: StoreZone.fetchAll(db).map { ($0.id, $0.name) })
            func zone(_ id: Int64) throws -> ZoneName {
                guard let name = zones[id] else {
                    throw StoreError(.corrupt, "what was set aside has records in the zone \(id), and no such zone")
                }
                return name
            }
            let device = try StoreIdentity(db, path: container.store(scope).path).device.uuidString
            var found = SetAside(refused: try RefusedSaves(db).copies(), schemas: types.map(\.schema))
            for type in types {
                let fields = Set(type.fields.map(\.name))
                let place = try db.makeStatement(sql: "SELECT _zone FROM \"\(type.table)\" WHERE _id = ?")
                let rows = try PendingRow.Cursor(db, type: type, all ? "1" : "_pending IS NOT NULL")
                while let mine = try rows.next() {
                    // A damaged record comes back once it is repaired in the quarantine.
                    guard mine.isIntact else {
                        found.damaged.append(
                            DamagedRecord(
                                record: RecordName(type: type.name, name: mine.name), scope: scope, isPending: mine.isPending))
                        continue
                    }
                    let values = mine.state(type)
                    let chain = RecordChain(db, row: mine.version)
                    let ancestor =
                        mine.isPending ? try mine.base.flatMap { try chain.values(at: $0, from: values, type: type) } : values
                    let times = try chain.editTimes(
                        since: mine.base ?? 0, known: mine.edited.map { EditTimes($0) }, device: device, until: 0)
                    // With `all`, records that the cloud had and that are missing here are made again.
                    let base: RecordEdit.Base =
                        mine.isPending && !all ? ancestor.map { .loaded(version: 0, values: $0) } ?? .none : .none
                    let edit = RecordEdit(
                        record: RecordName(type: type.name, name: mine.name), base: base, values: values, fields: fields,
                        times: times.times(of: fields))
                    found.edits.append(
                        SetAsideEdit(
                            edit, values: values, zone: try zone(Int64.fetchOne(place, arguments: [mine.id]) ?? 0),
                            isNew: mine.tag == nil || !mine.isPending, was: ancestor,
                            pending: type.fields(ofPending: mine.pending?.databaseValue ?? Int64(-1).databaseValue)))
                }
                // A record that was moved is deleted in its old zone only.
                let sql = """
                    SELECT c.id, c.key, c.base, coalesce(c.zone, \(StoreFormat.defaultZone)) AS place FROM tide_changes c
                    WHERE c.type_id = ? AND \(Outbox.isWaitingDeletion) AND (\(scope == .shared) OR NOT EXISTS (
                        SELECT 1 FROM "\(type.table)" r WHERE r._key = c.key AND r._zone <> coalesce(c.zone, \(StoreFormat.defaultZone))))
                    """
                for row in try Row.fetchAll(db, sql: sql, arguments: [type.id]) {
                    let (id, base): (Int64, Int64?) = (try row.decode(atIndex: 0), try row.decode(atIndex: 2))
                    guard let name = RecordKey.fromDatabaseValue(row[1])?.name, let base,
                        let ancestor = try RecordChain(db, row: id).values(at: base, from: [:], type: type)
                    else { continue }
                    let edit = RecordEdit(
                        record: RecordName(type: type.name, name: name), base: .loaded(version: 0, values: ancestor), values: nil,
                        fields: [])
                    found.edits.append(SetAsideEdit(edit, zone: try zone(row.decode(atIndex: 3)), was: ancestor))
                }
            }
            return found
        }
    }
}
