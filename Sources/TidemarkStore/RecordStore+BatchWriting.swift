import CTideCore
import Foundation
import GRDB
import TidemarkModel

/// How a batch is to be written.
package struct BatchWrite: Sendable {
    package var type: String
    /// The field that holds the record names in the source.
    package var nameField: String?
    package var environment: StoreEnvironment
    package var author: String
    package var origin: String
    /// Further batches will follow: an empty table is loaded without its index until `endLoad`.
    package var moreToCome: Bool
    /// Blobs that the batch's rows name.
    package var blobs: [BlobStore.Blob]
    /// Called in the transaction after the batch's rows are written; what it returns is stored with them if they changed anything:
    /// where an import can go on. The argument says what the batch did.
    package var checkpoint: (@Sendable (ChangeCounts) throws -> ImportCheckpoint?)?

    package init(
        type: String, nameField: String? = nil, environment: StoreEnvironment, author: String, origin: String,
        moreToCome: Bool = false, blobs: [BlobStore.Blob] = [],
        checkpoint: (@Sendable (ChangeCounts) throws -> ImportCheckpoint?)? = nil
    ) {
        self.type = type
        self.nameField = nameField
        self.environment = environment
        self.author = author
        self.origin = origin
        self.moreToCome = moreToCome
        self.blobs = blobs
        self.checkpoint = checkpoint
    }
}

extension RecordStore {
    /// Makes sure that types and their fields are there. A production store that has no type yet gets them: it is being deployed.
    ///
    /// - Throws: ``StoreError`` `schema` when the environment is production and something is missing, or when a field is there with
    ///   another type; then nothing is made.
    package func declare(_ schemas: [RecordTypeSchema], environment: StoreEnvironment) throws(StoreError) {
        guard !schemas.isEmpty else { return }
        try locked("declare \(schemas.map(\.name).joined(separator: ", "))") {
            try queue.inDatabase { db in
                try db.inTransaction(.immediate) {
                    try refreshSchema(db)
                    let isNew = storedTypes.isEmpty
                    for schema in schemas {
                        try declareLocked(db, schema: schema, environment: isNew ? .development : environment)
                    }
                    return .commit
                }
            }
        }
    }

    /// Writes a batch in one transaction, durable when it returns. Refused rows are noted in the batch.
    ///
    /// - Complexity: O(n log n) in the batch's rows.
    package func write(_ batch: RecordBatch, _ write: BatchWrite) throws(StoreError) -> ChangeCounts {
        do {
            return try locked("write to \(container.store(scope).path)") {
                let counts = try queue.inDatabase { db in
                    var counts = ChangeCounts()
                    try db.inTransaction(base == nil ? .immediate : .deferred) {
                        counts = try writeLocked(db, batch: batch, write: write)
                        return .commit
                    }
                    return counts
                }
                try checkpointIfLong()
                return counts
            }
        } catch {
            // The transaction is rolled back: what the core and the cache believed of it is void.
            for writer in writers.values { tide_writer_load_forget(writer.pointer) }
            schemaGeneration = -1
            throw error
        }
    }

    /// Ends an import: builds the index of a type that was loaded, forgets the import's checkpoint, and moves the log into the
    /// database.
    package func endImport(type: String, source: String?) throws(StoreError) {
        try locked("finish the import") {
            try queue.inDatabase { db in
                try db.inTransaction(.immediate) {
                    try refreshSchema(db)
                    for stored in storedTypes where writers[stored.id]?.isLoading == true {
                        let pointer = writers[stored.id]!.pointer
                        try checked { tide_writer_load_end(pointer, &$0) }
                    }
                    if let source, try ImportCheckpoint.fetch(db, source: source) != nil {
                        try ImportCheckpoint.delete(db, source: source)
                    }
                    return .commit
                }
            }
            if base == nil { try checkpointLocked(truncate: true) }
        }
    }

    private func declareLocked(_ db: Database, schema: RecordTypeSchema, environment: StoreEnvironment) throws {
        guard let stored = storedTypes.first(where: { $0.name == schema.name }) else {
            guard environment == .development else {
                throw StoreError(
                    .schema,
                    "the store has no record type '\(schema.name)', and in production the schema is fixed. "
                        + "Types it has: \(storedTypes.map(\.name).joined(separator: ", "))")
            }
            try StoredType.create(db, name: schema.name, nameField: schema.nameField, fields: schema.fields)
            return try refreshSchema(db)
        }
        var missing: [RecordTypeSchema.Field] = []
        for field in schema.fields {
            if let known = stored.fields.first(where: { $0.name == field.name }) {
                guard known.type == field.type else {
                    throw StoreError(
                        .schema, "field '\(field.name)' of \(schema.name) is \(known.type) in the store, not \(field.type)")
                }
            } else {
                missing.append(field)
            }
        }
        guard missing.isEmpty || environment == .development else {
            throw StoreError(
                .schema, "\(schema.name) has no field '\(missing[0].name)', and in production the schema is fixed")
        }
        if !missing.isEmpty {
            try stored.addFields(db, missing)
            try refreshSchema(db)
        }
        if let nameField = schema.nameField, let stored = storedTypes.first(where: { $0.name == schema.name }),
            stored.canHaveNameField(nameField)
        {
            try stored.setNameField(db, to: nameField)
        }
        try refreshSchema(db)
    }

    private func writeLocked(_ db: Database, batch: RecordBatch, write: BatchWrite) throws -> ChangeCounts {
        try refreshSchema(db)
        if write.environment == .development { try growSchema(db, batch: batch, write: write) }
        guard let type = storedTypes.first(where: { $0.name == write.type }) else {
            // Nothing but refused rows: no type came of them.
            if batch.liveCount == 0 {
                _ = try write.checkpoint?(ChangeCounts())
                return ChangeCounts()
            }
            throw StoreError(
                .schema,
                "the store has no record type '\(write.type)', and in production the schema is fixed. "
                    + "Types it has: \(storedTypes.map(\.name).joined(separator: ", "))")
        }
        let writer = try preparedWriter(db, for: type)
        if let base { try base.bring(batch.keys, to: db, types: storedTypes) }
        if base == nil { try checked { tide_writer_load_begin(writer.pointer, &$0) } }

        var counters = tide_counters(next_row: try StoreCounters.row(db, type: type), next_change: try StoreCounters.change(db))
        let transaction = try StoreCounters.transaction(db)
        var written = tide_counts()
        let pointer = batch.pointer
        try checked {
            tide_writer_apply(writer.pointer, pointer, StoreFormat.defaultZone, transaction, &counters, &written, &$0)
        }
        if !write.moreToCome, writer.isLoading { try checked { tide_writer_load_end(writer.pointer, &$0) } }
        let counts = ChangeCounts(
            inserted: Int(written.inserted), updated: Int(written.updated), unchanged: Int(written.unchanged))
        // A row that was refused after its files had been taken in names nothing.
        let named = batch.rejectionCount > 0 && !write.blobs.isEmpty ? Set(batch.assets) : nil
        for blob in write.blobs where named?.contains(blob.id) ?? true {
            try db.cachedStatement(sql: "INSERT OR IGNORE INTO tide_assets (id, size, media) VALUES (?, ?, ?)")
                .execute(arguments: [blob.id, blob.size, blob.media])
        }
        let checkpoint = try write.checkpoint?(counts)
        guard !counts.isUnchanged else { return counts }
        try note(db, type: type, counters: counters, transaction: transaction, counts: counts, write: write)
        try checkpoint?.store(db)
        return counts
    }

    private func note(
        _ db: Database, type: StoredType, counters: tide_counters, transaction: Int64, counts: ChangeCounts, write: BatchWrite
    ) throws {
        try db.execute(
            sql: """
                INSERT INTO tide_transactions (id, time, author, origin, inserted, updated, deleted) VALUES (?, ?, ?, ?, ?, ?, 0)
                """,
            arguments: [
                transaction, Int64(Date().timeIntervalSince1970 * 1e6), write.author, write.origin, counts.inserted,
                counts.updated,
            ])
        try db.execute(sql: "UPDATE tide_counters SET value = ? WHERE name = 'next_transaction'", arguments: [transaction + 1])
        try db.execute(sql: "UPDATE tide_counters SET value = ? WHERE name = 'next_change'", arguments: [counters.next_change])
        try db.execute(sql: "UPDATE tide_types SET next_row = ? WHERE id = ?", arguments: [counters.next_row, type.id])
        try db.notifyChanges(in: Table(type.table))
    }

    private func growSchema(_ db: Database, batch: RecordBatch, write: BatchWrite) throws {
        let type = storedTypes.first { $0.name == write.type }
        guard type != nil || batch.liveCount > 0 else { return }
        let known = Set(type?.fields.map(\.name) ?? [])
        let new = batch.columns.compactMap { column -> RecordTypeSchema.Field? in
            guard !known.contains(column.name), column.isUsed, let type = FieldType(code: column.typeCode) else { return nil }
            return .init(name: column.name, type: type)
        }
        let needsNameField = write.nameField.map { type?.canHaveNameField($0) ?? true } ?? false
        guard type == nil || !new.isEmpty || needsNameField else { return }
        try declareLocked(
            db, schema: RecordTypeSchema(name: write.type, nameField: write.nameField, fields: new), environment: .development)
    }

    private func preparedWriter(_ db: Database, for type: StoredType) throws -> TableWriter {
        let siblings = storedTypes.filter { $0.id != type.id }.map(\.table)
        let writer: TableWriter
        if let existing = writers[type.id] {
            writer = existing
            try writer.update(type: type, siblings: siblings)
        } else {
            writer = try TableWriter(db, seed: digestSeed, type: type, siblings: siblings)
            writers[type.id] = writer
        }
        // Somebody else has written since: what a load remembers of the names is no longer all.
        let version = try Int64.fetchOne(db, sql: "PRAGMA data_version") ?? 0
        if version != dataVersion {
            for writer in writers.values { tide_writer_load_forget(writer.pointer) }
            dataVersion = version
            try completeLoads(db, of: storedTypes.filter { $0.id != type.id })
        }
        return writer
    }

    /// Builds the indexes that an interrupted load of another process has left out: names are looked up in all types.
    private func completeLoads(_ db: Database, of types: [StoredType]) throws {
        let handle = try db.handle
        for type in types {
            try checked { tide_writer_index_build(handle, type.table, type.indexName, &$0) }
        }
    }
}
