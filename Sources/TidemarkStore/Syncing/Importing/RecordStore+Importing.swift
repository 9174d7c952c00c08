import Foundation
import GRDB
package import TidemarkModel
public import TidemarkSQLite

extension RecordStore {
    /// Applies changes from the cloud, and stores the token that they reach, in one transaction.
    ///
    /// A record without local edits becomes what it is in the cloud. A record with edits is merged, and the edits that the cloud does not
    /// have are sent. Records that the store can't hold are deferred until it can. Changes for a zone that was removed are ignored.
    ///
    /// - Parameters:
    ///   - schemas: Types and fields that the records need. They are made, in production, too: the cloud's schema decides there.
    ///   - occasion: How the changes have come.
    ///   - planner: Decides the outcome of each change.
    ///   - state: Changes the state of the zone in the same transaction.
    ///   - zone: The zone of the changes.
    /// - Complexity: O(n log n) in the changes.
    package func apply(
        _ changes: [RemoteChange], schemas: [RecordTypeSchema] = [], occasion: ImportOccasion = .answer,
        author: String, planner: any RemoteChangePlanning, state change: (inout SyncState) -> Void = { _ in },
        zone: Int64 = StoreFormat.defaultZone
    ) throws -> ImportOutcome {
        let latest = changes.latestEdit
        let outcome: ImportOutcome = try transact(
            "apply changes from the cloud", author: TransactionAuthor(author, origin: .cloud, role: .sync), notBefore: latest
        ) { transaction in
            let db = transaction.db
            guard try StoreZone.isThere(db, id: zone) else { return ImportOutcome() }
            try Outbox(db).ingestHistory()
            for schema in schemas { try transaction.grow(schema, for: changes) }
            var applier = try RemoteChangeApplier(
                transaction: transaction, zone: zone, planner: planner, occasion: occasion)
            try applier.run(changes)
            let old = try SyncState(db, zone: zone)
            var state = old
            change(&state)
            if old.isRefetching, !state.isRefetching {
                if old.isComparing { try applier.sendUnseen() } else { try applier.deleteUnseen() }
            }
            try state.store(db, insteadOf: old, zone: zone)
            return ImportOutcome(
                counts: transaction.counts, conflicts: transaction.conflicts, leavesExports: applier.leavesExports,
                awaitedMoves: applier.awaited, state: state)
        }
        importRound.note(outcome, deleting: occasion == .awaitedDeletion ? [] : changes.deletedNames, of: occasion, zone: zone)
        return outcome
    }

    /// The deferred records with these reasons.
    package func deferredRecords(
        _ reasons: Set<DeferredRecord.Reason>, zone: Int64 = StoreFormat.defaultZone
    ) throws(StoreError) -> [DeferredRecord] {
        try connection.read("look for deferred records") { db in
            try DeferredRecord.fetchAll(db, zone: zone).filter { reasons.contains($0.reason) }
        }
    }

    /// The names of records whose changes came before the reply to their own request, and whose request has a reply now.
    package func deferUntilReply(zone: Int64 = StoreFormat.defaultZone) throws(StoreError) -> [String] {
        try connection.read("look for records that were put off") { db in
            let sent = try SentRequest.names(db, zone: zone)
            let sql = "SELECT name FROM tide_deferred WHERE zone = ? AND reason = '\(DeferredRows.deferralReason)' ORDER BY name"
            return try String.fetchAll(db.cachedStatement(sql: sql), arguments: [zone]).filter { !sent.contains($0) }
        }
    }

    /// The number of the schema. It rises when types or fields are added.
    package func schemaGeneration() throws(StoreError) -> Int64 {
        try connection.read("read the schema") { db in
            try Int64.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'schema_generation'") ?? 0
        }
    }

    /// Begins to fetch everything again. Records that the cloud is known to have had and that do not come were deleted meanwhile.
    package func beginRefetch(zone: Int64 = StoreFormat.defaultZone) throws(StoreError) {
        try connection.locked("begin to fetch everything again") { db in
            guard try StoreZone.isThere(db, id: zone) else { return ((), .commit) }
            try connection.refreshSchema(db)
            try beginRefetch(db, zone: zone)
            return ((), .commit)
        }
    }

    /// - Parameter isReported: Whether the zone is fetched also where the cloud reports no changes of it.
    private func beginRefetch(_ db: Database, zone: Int64, isReported: Bool = false) throws {
        try SeenRows.forget(db, types: connection.types, zone: zone)
        let old = try SyncState(db, zone: zone)
        var state = old
        state.token = nil
        state.isRefetching = try old.isComparing || SeenRows.areNeeded(db, types: connection.types, zone: zone)
        if isReported { state.hasNewChanges = true }
        try state.store(db, insteadOf: old, zone: zone)
    }

    /// Begins to fetch everything again, in all zones, if a field was made again whose values in the cloud were ignored
    /// meanwhile.
    ///
    /// - Returns: Whether it has begun.
    package func beginRefetchOfRemadeFields() throws(StoreError) -> Bool {
        let areNew = try connection.read("look for fields that are there again") { db in
            try connection.refreshSchema(db)
            return try !RemadeFields(db, types: connection.types).new.isEmpty
        }
        guard areNew else { return false }
        return try connection.locked("begin to fetch everything again") { db in
            try connection.refreshSchema(db)
            let remade = try RemadeFields(db, types: connection.types)
            let begins = try remade.awaitsFetch(db)
            if begins {
                for zone in try StoreZone.fetchAll(db) { try beginRefetch(db, zone: zone.id, isReported: true) }
                // The cloud names all zones again, and not only those that have changed.
                try db.execute(sql: "DELETE FROM tide_sync WHERE key = 'database_token'")
            }
            try remade.note(db)
            return (begins, .commit)
        }
    }

    /// Forgets the cloud's state: everything is sent and fetched again. Shared records are in the default zone again, because another
    /// account does not have their shares.
    ///
    /// Records that others share can't be sent again: a shared store is emptied, and its pending changes are kept as refused saves.
    ///
    /// - Parameter user: The account whose cloud it is from now on.
    package func forgetCloud(user: String?) throws(StoreError) {
        guard scope != .shared else { return try forgetShared(user: user) }
        try connection.locked("forget what the cloud has") { db in
            try connection.refreshSchema(db)
            try db.execute(
                sql: """
                    DELETE FROM tide_outbox; DELETE FROM tide_requests; DELETE FROM tide_sync_issues; DELETE FROM tide_seen;
                    DELETE FROM tide_shares; DELETE FROM tide_deferred
                    """)
            for zone in try StoreZone.fetchAll(db) where zone.id != StoreFormat.defaultZone {
                try SyncState.forget(db, zone: zone.id)
                for type in connection.types {
                    try db.execute(
                        sql: "UPDATE \"\(type.table)\" SET _zone = \(StoreFormat.defaultZone) WHERE _zone = ?",
                        arguments: [zone.id])
                }
                try db.execute(sql: "DELETE FROM tide_zones WHERE id = ?", arguments: [zone.id])
            }
            for type in connection.types {
                try db.execute(sql: "UPDATE \"\(type.table)\" SET _tag = NULL, _base = NULL, _pending = -1")
                try Outbox(db).addAll(of: type)
            }
            try Outbox(db).note(Int64.fetchOne(db, sql: "SELECT max(id) FROM tide_changes") ?? 0)
            try db.execute(sql: "DELETE FROM tide_sync WHERE key = 'database_token'")
            let old = try SyncState(db, zone: StoreFormat.defaultZone)
            var state = SyncState()
            state.user = user
            state.initialImportIsComplete = old.initialImportIsComplete && old.user == user
            // With delete rules, another cloud's deletions are not applied again. Without rules, looking at changes begins when
            // rules are declared.
            if connection.types.contains(where: { !$0.relationships.isEmpty }) {
                state.resolvedChange = try Int64.fetchOne(db, sql: "SELECT max(id) FROM tide_changes")
            }
            try state.store(db, insteadOf: old, zone: StoreFormat.defaultZone)
            return ((), .commit)
        }
    }

    /// Forgets the cloud's state of a zone that the cloud has lost with its shares. The zone is created again, and everything in it is sent
    /// and fetched again. Waiting deletions in it are dropped; other zones stay as they are.
    package func forgetZone(_ zone: Int64) throws(StoreError) {
        try connection.locked("forget what the cloud has in a zone") { db in
            guard try StoreZone.isThere(db, id: zone) else { return ((), .commit) }
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            let old = try SyncState(db, zone: zone)
            try ZoneRemoval.forgetSync(db, types: connection.types, zone: zone)
            try StoredShares(db).forget(zone: zone)
            let forgotten = try SyncState(db, zone: zone)
            var state = forgotten
            state.initialImportIsComplete = old.initialImportIsComplete
            state.resolvedChange = old.resolvedChange
            try state.store(db, insteadOf: forgotten, zone: zone)
            for type in connection.types {
                try db.execute(
                    sql: "UPDATE \"\(type.table)\" SET _tag = NULL, _base = NULL, _pending = -1 WHERE _zone = ?",
                    arguments: [zone])
                try Outbox(db, zone: zone).addAll(of: type)
            }
            return ((), .commit)
        }
    }

    private func forgetShared(user: String?) throws(StoreError) {
        for zone in try zones() where zone.id != StoreFormat.defaultZone {
            try removeZone(zone, reason: "another account has signed in", code: "notAuthenticated", author: "cloud")
        }
        try connection.locked("forget what the cloud has") { db in
            try db.execute(sql: "DELETE FROM tide_sync WHERE key <> 'outbox_change'")
            var state = SyncState()
            state.user = user
            try state.store(db, insteadOf: SyncState(), zone: StoreFormat.defaultZone)
            return ((), .commit)
        }
    }
}

extension StoreReader {
    /// The records from the cloud that could not be applied, or not fully.
    public func deferredRecords() throws(StoreError) -> [DeferredRecord] {
        try read("look for deferred records") { try DeferredRecord.fetchAll($0) }
    }
}

extension [RemoteChange] {
    fileprivate var deletedNames: [String] {
        compactMap { change in
            if case .deleted(let name) = change { name } else { nil }
        }
    }
}

extension DeferredRecord {
    /// Whether a zone has deferred records, apart from those that have to be looked up.
    static func hasAny(_ db: Database, zone: Int64) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_deferred WHERE zone = ? AND reason <> '\(DeferredRows.deferralReason)')"
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [zone]) ?? false
    }

    /// - Parameter zone: The zone; `nil` for all zones.
    static func fetchAll(_ db: Database, zone: Int64? = nil) throws -> [DeferredRecord] {
        let sql = """
            SELECT name, type, tag, reason, fields, zone FROM tide_deferred WHERE ?1 IS NULL OR zone = ?1 ORDER BY zone, name
            """
        return try Row.fetchAll(db, sql: sql, arguments: [zone]).compactMap { row in
            let table = "tide_deferred"
            guard let reason = Reason(rawValue: try row.stored("reason", of: table)) else { return nil }
            return try DeferredRecord(
                name: row.stored("name", of: table), type: row.stored("type", of: table), zone: row.stored("zone", of: table),
                tag: row.stored("tag", of: table), reason: reason, whole: row.stored("fields", of: table))
        }
    }
}

extension StoreTransaction {
    /// Makes the types and fields of a schema that the store lacks, as far as it can have them. Names that are no identifiers, names that
    /// differ from others by the case of letters only, and fields that are there with another type are left out: their records are deferred.
    /// Fields that were renamed or dropped here do not come back, unless they have another type in the cloud. Lists without elements do not
    /// tell that: they may be of any type.
    fileprivate func grow(_ schema: RecordTypeSchema, for changes: [RemoteChange]) throws {
        guard StoredType.isIdentifier(schema.name),
            !connection.types.contains(where: { NameCollision.collide($0.name, schema.name) })
        else { return }
        let known = type(named: schema.name)
        var spellings = Set((known?.fields ?? []).map { $0.name.lowercased() })
        // A field that does not fit in the store is deferred, like a field that has another type here.
        let new = schema.fields.filter { field in
            guard StoredType.isIdentifier(field.name), known?.ignores(field.name, field.type) != true else { return false }
            if field.type.isList, known?.ignores(field.name) == true, !changes.haveElements(field.name, of: schema.name) {
                return false
            }
            return spellings.insert(field.name.lowercased()).inserted
        }.prefix(max(0, RecordTypeSchema.fieldLimit - (known?.fields.count ?? 0)))
        guard known == nil || !new.isEmpty else { return }
        try declare(RecordTypeSchema(name: schema.name, fields: Array(new)), environment: .development)
    }
}

extension [RemoteChange] {
    /// Whether a record has a list with elements in a field.
    fileprivate func haveElements(_ field: String, of type: String) -> Bool {
        contains { change in
            guard case .saved(let record) = change, record.type == type,
                case .list(let elements, _)? = record.values[field]
            else { return false }
            return !elements.isEmpty
        }
    }
}
