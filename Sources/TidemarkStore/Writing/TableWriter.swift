import CTideCore
import GRDB
import TidemarkSQLite

/// Owns the core's writer of one type's table on the store's connection.
final class TableWriter {
    let pointer: OpaquePointer
    private var known: (type: StoredType, siblings: [String])

    init(_ db: Database, seed: UInt64, type: StoredType, siblings: [String]) throws {
        var created: OpaquePointer?
        let handle = try db.handle
        known = (type, siblings)
        try type.withTable(siblings: siblings) { table in
            try checked { tide_writer_create(handle, seed, &table, &created, &$0) }
        }
        pointer = created!
    }

    deinit { tide_writer_destroy(pointer) }

    var isLoading: Bool { tide_writer_is_loading(pointer) }

    /// Updates the writer after fields or types were added.
    func update(type: StoredType, siblings: [String]) throws {
        guard known != (type, siblings) else { return }
        try type.withTable(siblings: siblings) { table in
            try checked { tide_writer_set_table(pointer, &table, &$0) }
        }
        known = (type, siblings)
    }
}
