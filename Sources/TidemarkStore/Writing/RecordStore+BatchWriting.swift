import Foundation
package import TidemarkModel
package import TidemarkSQLite

/// How a batch is to be written.
package struct BatchWrite: Sendable {
    package var type: String
    /// The field that holds the record names in the source.
    package var nameField: String?
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
        type: String, nameField: String? = nil, environment: StoreEnvironment, author: TransactionAuthor,
        moreToCome: Bool = false, blobs: [BlobStore.Blob] = [],
        position: (@Sendable (ChangeCounts) throws -> ImportPosition?)? = nil
    ) {
        self.type = type
        self.nameField = nameField
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
    package func declare(_ schemas: [RecordTypeSchema], environment: StoreEnvironment) throws(StoreError) {
        guard !schemas.isEmpty else { return }
        let names = schemas.map(\.name).joined(separator: ", ")
        try transact("declare \(names)", author: TransactionAuthor("", origin: .save)) { transaction in
            let isNew = connection.types.isEmpty
            for schema in schemas {
                try transaction.declare(schema, environment: isNew ? .development : environment, indexOrigin: .schema)
            }
        }
    }

    /// Writes a batch in one transaction, durable when it returns. Refused rows are noted in the batch.
    ///
    /// - Complexity: O(n log n) in the batch's rows.
    package func write(_ batch: RecordBatch, _ write: BatchWrite) throws(StoreError) -> ChangeCounts {
        try transact("write to \(container.store(scope).path)", author: write.author) { transaction in
            if scope == .shared, try transaction.hasSeveralZones {
                throw StoreError(.invalid, "records are not imported into what others share; import them into the private store")
            }
            if write.environment == .development {
                try transaction.growSchema(for: batch, type: write.type, nameField: write.nameField)
            }
            // Nothing but refused rows: no type came of them.
            if transaction.type(named: write.type) == nil, batch.liveCount == 0 {
                _ = try write.position?(ChangeCounts())
                return ChangeCounts()
            }
            let counts = try transaction.write(
                batch, type: transaction.knownType(named: write.type), isLoad: connection.base == nil, blobs: write.blobs)
            try transaction.followOwners(in: transaction.firstChange..<transaction.nextChange)
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

    /// Where an interrupted import of `source` goes on.
    package func importPosition(source: String) throws(StoreError) -> ImportPosition? {
        try connection.read("look for an interrupted import") { db in try ImportPosition.fetch(db, source: source) }
    }
}
