import Foundation
import GRDB
package import TidemarkModel
package import TidemarkSQLite

/// How a batch is to be written.
package struct BatchWrite: Sendable {
    package var type: String
    /// The field that holds the record names in the source.
    package var nameField: String?
    /// Types that are made if the batch writes anything.
    package var schemas: [RecordTypeSchema]
    package var environment: StoreEnvironment
    package var author: TransactionAuthor
    /// Further batches will follow: an empty table is loaded without its index until `endImport`.
    package var moreToCome: Bool
    /// Blobs that the batch's rows name.
    package var blobs: [BlobStore.Blob]
    /// Called in the transaction after the batch's rows are written; what it returns is stored with them if they changed anything:
    /// where an import can go on. The argument says what the batch did.
    package var position: (@Sendable (ChangeCounts) throws -> ImportPosition?)?

    package init(
        type: String, nameField: String? = nil, schemas: [RecordTypeSchema] = [], environment: StoreEnvironment,
        author: TransactionAuthor,
        moreToCome: Bool = false, blobs: [BlobStore.Blob] = [],
        position: (@Sendable (ChangeCounts) throws -> ImportPosition?)? = nil
    ) {
        self.type = type
        self.nameField = nameField
        self.schemas = schemas
        self.environment = environment
        self.author = author
        self.moreToCome = moreToCome
        self.blobs = blobs
        self.position = position
    }
}

extension RecordStore {
    /// Makes sure that types and their fields are there. A production store that has no type yet gets them: it is being deployed.
    ///
    /// - Throws: ``StoreError`` `schema` when the environment is production and something is missing, or when a field is there with
    ///   another type; then nothing is made.
    ///
    /// - Parameter isDryRun: Whether it is only found out whether they can be made.
    package func declare(
        _ schemas: [RecordTypeSchema], environment: StoreEnvironment, isDryRun: Bool = false
    ) throws(StoreError) {
        guard !schemas.isEmpty else { return }
        let names = schemas.map(\.name).joined(separator: ", ")
        try transact("declare \(names)", author: TransactionAuthor("", origin: .save)) { transaction in
            try transaction.declare(schemas, environment: environment)
            transaction.isAbandoned = isDryRun
        }
    }

    /// Writes a batch in one transaction, durable when it returns. Refused rows are noted in the batch. Types and fields that the batch
    /// needs are made, unless all of its rows are refused.
    ///
    /// - Complexity: O(n log n) in the batch's rows.
    package func write(_ batch: RecordBatch, _ write: BatchWrite) throws(StoreError) -> ChangeCounts {
        try transact("write to \(container.store(scope).path)", author: write.author) { transaction in
            if scope == .shared, try transaction.hasSeveralZones {
                throw StoreError(.invalid, "records are not imported into what others share; import them into the private store")
            }
            let (counts, isWritten) = try transaction.writeOrForget(batch, write)
            // Nothing but refused rows: no type came of them.
            if !isWritten {
                _ = try write.position?(counts)
                return counts
            }
            try transaction.followOwners(in: transaction.firstChange..<transaction.nextChange)
            try transaction.redirectReferences()
            if !write.moreToCome { try connection.endLoads() }
            let position = try write.position?(counts)
            if !counts.isUnchanged { try position?.store(transaction.db) }
            return counts
        }
    }

    /// Ends an import: builds the index of a type that was loaded, forgets where the import was, and moves the WAL into the
    /// database.
    package func endImport(type: String, source: String?) throws(StoreError) {
        try transact("finish the import", author: TransactionAuthor("", origin: .import)) { transaction in
            try connection.endLoads()
            if let source, try ImportPosition.fetch(transaction.db, source: source) != nil {
                try ImportPosition.delete(transaction.db, source: source)
            }
        }
        if connection.base == nil { try connection.checkpoint() }
    }

    /// Returns the position at which an interrupted import of `source` continues.
    package func importPosition(source: String) throws(StoreError) -> ImportPosition? {
        try connection.read("look for an interrupted import") { db in try ImportPosition.fetch(db, source: source) }
    }
}

extension StoreTransaction {
    /// Makes sure that types and their fields are there. A production store that has no type yet gets them: it is being deployed.
    fileprivate func declare(_ schemas: [RecordTypeSchema], environment: StoreEnvironment) throws {
        let isNew = connection.types.isEmpty
        for schema in schemas {
            try declare(schema, environment: isNew ? .development : environment, indexOrigin: .schema)
        }
    }

    /// Makes the types and fields of a batch, and writes it. Where all of its rows are refused, these types and fields are not made.
    ///
    /// - Returns: What was written, and whether the type is there.
    fileprivate func writeOrForget(_ batch: RecordBatch, _ write: BatchWrite) throws -> (counts: ChangeCounts, isWritten: Bool) {
        let before = connection.types
        var counts = ChangeCounts()
        var isWritten = false
        try db.inSavepoint {
            if batch.liveCount > 0 { try declare(write.schemas, environment: write.environment) }
            if write.environment == .development {
                try growSchema(for: batch, type: write.type, nameField: write.nameField)
            }
            if type(named: write.type) == nil, batch.liveCount == 0 { return .commit }
            let type = try knownType(named: write.type)
            // What follows its owner into another zone is looked up by its name.
            let isLoad = try connection.base == nil && (type.owner == nil || !hasSeveralZones)
            counts = try self.write(batch, type: type, isLoad: isLoad, blobs: write.blobs)
            isWritten = true
            guard connection.types != before, counts.isUnchanged, counts.unchanged == 0, counts.repaired == 0 else {
                return .commit
            }
            let isNew = !before.contains { $0.id == type.id }
            connection.forgetWriter(of: type.id, isNew: isNew)
            isWritten = !isNew
            return .rollback
        }
        try connection.refreshSchema(db)
        return (counts, isWritten)
    }
}
