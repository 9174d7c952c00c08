import Foundation
import GRDB
import TidemarkModel

extension RecordStore {
    /// Takes in changes from the cloud, and notes how far it has got, in one transaction.
    ///
    /// A record that nobody edited here becomes what it is there. One that was, is merged, and what the cloud does not have of the result is
    /// to be sent. What the store can't hold is kept until it can.
    ///
    /// - Parameters:
    ///   - schemas: Types and fields that the records need.
    ///   - canGrow: Whether the store may make them.
    ///   - occasion: How they have come.
    ///   - policy: The merge policy of a type.
    ///   - state: What is remembered with it.
    /// - Complexity: O(n log n) in the changes.
    package func take(
        _ changes: [RemoteChange], schemas: [RecordTypeSchema] = [], canGrow: Bool = true, occasion: ImportOccasion = .answer,
        author: String, policy: @escaping @Sendable (String) -> MergePolicy, state change: (inout SyncState) -> Void = { _ in }
    ) throws -> ImportOutcome {
        let latest = changes.latestEdit
        return try transact(
            "take in changes from the cloud", author: TransactionAuthor(author, origin: .cloud), notBefore: latest
        ) { transaction in
            let db = transaction.db
            try Outbox(db).takeIn()
            if canGrow {
                for schema in schemas { try transaction.grow(schema) }
            }
            var taking = try RemoteTaking(
                transaction: transaction, policy: policy, occasion: occasion)
            try taking.run(changes)
            let old = try SyncState(db)
            var state = old
            change(&state)
            if old.isRefetching, !state.isRefetching { try taking.deleteUnseen() }
            try state.store(db, insteadOf: old)
            return ImportOutcome(
                counts: transaction.counts, conflicts: transaction.conflicts, kept: taking.kept,
                leavesExports: taking.leavesExports, state: state)
        }
    }

    /// Records that could not be taken in.
    package func kept(_ reasons: Set<KeptRecord.Reason>) throws(StoreError) -> [KeptRecord] {
        try connection.read("look for records that could not be taken in") { db in
            try KeptRecord.fetchAll(db).filter { reasons.contains($0.reason) }
        }
    }

    /// Records of which something came before it was known what had become of the request that sent them, and of that it is known now.
    package func putOff() throws(StoreError) -> [String] {
        try connection.read("look for records that were put off") { db in
            let sent = try SentRequest.names(db)
            let sql = "SELECT name FROM tide_kept WHERE reason = '\(KeptRows.putOffReason)' ORDER BY name"
            return try String.fetchAll(db.cachedStatement(sql: sql)).filter { !sent.contains($0) }
        }
    }

    /// The number of the schema; rises when types or fields come.
    package func schemaGeneration() throws(StoreError) -> Int64 {
        try connection.read("read the schema") { db in
            try Int64.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'schema_generation'") ?? 0
        }
    }

    /// Begins to fetch everything anew: what the cloud is known to have had and does not come was deleted meanwhile.
    package func beginRefetch() throws(StoreError) {
        try connection.locked("begin to fetch everything anew") { db in
            try connection.refreshSchema(db)
            try SeenRows.forget(db)
            let old = try SyncState(db)
            var state = old
            state.token = nil
            state.isRefetching = try SeenRows.areNeeded(db, types: connection.types)
            try state.store(db, insteadOf: old)
            return ((), .commit)
        }
    }

    /// Forgets what the cloud has: everything is to be sent, and fetched, anew.
    ///
    /// - Parameter user: Whose cloud it is from now on.
    package func forgetCloud(user: String?) throws(StoreError) {
        try connection.locked("forget what the cloud has") { db in
            try connection.refreshSchema(db)
            try db.execute(
                sql: "DELETE FROM tide_outbox; DELETE FROM tide_requests; DELETE FROM tide_ledger; DELETE FROM tide_seen")
            for type in connection.types {
                try db.execute(sql: "UPDATE \"\(type.table)\" SET _tag = NULL, _base = NULL, _pending = -1")
                try Outbox(db).addAll(of: type)
            }
            try Outbox(db).note(Int64.fetchOne(db, sql: "SELECT max(id) FROM tide_changes") ?? 0)
            try db.execute(sql: "DELETE FROM tide_kept")
            let old = try SyncState(db)
            var state = SyncState()
            state.user = user
            state.initialImportIsComplete = old.initialImportIsComplete && old.user == user
            try state.store(db, insteadOf: old)
            return ((), .commit)
        }
    }
}

extension StoreReader {
    /// Records from the cloud that could not be taken in, or not whole.
    public func kept() throws(StoreError) -> [KeptRecord] {
        try read("look for records that could not be taken in") { try KeptRecord.fetchAll($0) }
    }
}

extension KeptRecord {
    /// Whether there are any, without those that are to be looked up.
    static func hasAny(_ db: Database) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_kept WHERE reason <> '\(KeptRows.putOffReason)')"
        return try Bool.fetchOne(db.cachedStatement(sql: sql)) ?? false
    }

    static func fetchAll(_ db: Database) throws -> [KeptRecord] {
        try Row.fetchAll(db, sql: "SELECT name, type, tag, reason, fields FROM tide_kept ORDER BY name").compactMap { row in
            Reason(rawValue: row[3]).map { KeptRecord(name: row[0], type: row[1], tag: row[2], reason: $0, whole: row[4]) }
        }
    }
}

extension StoreTransaction {
    /// Makes what a schema has and the store lacks, as far as it can be: names that are none, and fields that are there with another
    /// type, are left out.
    fileprivate func grow(_ schema: RecordTypeSchema) throws {
        guard StoredType.isIdentifier(schema.name) else { return }
        let known = type(named: schema.name)
        // What there is no room for is kept, as what has another type here.
        let new = schema.fields.filter { field in
            StoredType.isIdentifier(field.name) && known?.fields.contains { $0.name == field.name } != true
        }.prefix(max(0, StoredType.fieldLimit - (known?.fields.count ?? 0)))
        guard known == nil || !new.isEmpty else { return }
        try declare(RecordTypeSchema(name: schema.name, fields: Array(new)), environment: .development)
    }
}
