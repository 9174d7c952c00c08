import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The stored records that a save replaces, for its hooks. An instance is for one transaction, before its first write.
final class StoredRecords {
    private let db: Database
    private let source: RecordSource
    private var known: [ObjectIdentifier: AnyObject] = [:]

    /// The statement and the decoder for the records of a type.
    private final class TypedRecords<R: Record> {
        let statement: Statement
        let decoder: RecordDecoder<R>

        init(_ statement: Statement, _ decoder: RecordDecoder<R>) {
            self.statement = statement
            self.decoder = decoder
        }
    }

    init(_ db: Database, _ source: RecordSource) {
        self.db = db
        self.source = source
    }

    /// Returns the record of a name; `nil` when the store does not have it.
    ///
    /// - Throws: `DecodingError`, ``StoreError``.
    func record<R: Record>(_ type: R.Type, named name: String) throws -> R? {
        guard let records = try records(type) else { return nil }
        let keys = QueriedType.keys(name)
        return try records.statement.withRow([keys[0], keys[keys.count - 1]]) { try records.decoder.decode($0) }
    }

    private func records<R: Record>(_ type: R.Type) throws -> TypedRecords<R>? {
        if let known = known[ObjectIdentifier(type)] { return known as? TypedRecords<R> }
        guard let queried = try source.type(db, named: R.recordType) else { return nil }
        let records = TypedRecords(
            try db.cachedStatement(sql: queried.selectionByName), source.decoder(queried, type))
        known[ObjectIdentifier(type)] = records
        return records
    }

    /// Calls the hooks of a record that is to be saved.
    func validate<R: Record>(_ record: R, _ match: StoredMatch) throws {
        switch match {
        case .missing: try record.validateForInsert()
        // The stored values are the same, so they need not be read.
        case .equal: try record.validateForUpdate(from: record)
        case .different:
            if let previous = try self.record(R.self, named: record.recordName) {
                try record.validateForUpdate(from: previous)
            } else {
                try record.validateForInsert()
            }
        }
    }
}
