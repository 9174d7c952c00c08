import GRDB
import TidemarkModel
import TidemarkSQLite

/// Finds the assets that a store's records and history name.
struct NamedAssets {
    let db: Database
    let types: [StoredType]

    /// What the store knows about a content in the cloud.
    struct Standing {
        /// The zones in which the cloud has a record that names it, as far as the store knows.
        var zones: Set<Int64> = []
        /// Whether a change that the cloud lacks or has refused names it.
        var isHeld = false
    }

    /// Removes the assets that records name now from a set.
    ///
    /// - Complexity: O(n) in the records of types with assets.
    func removeNamedByRecords(from ids: inout Set<String>) throws {
        for type in types {
            let columns = type.fields.filter { $0.type.scalar == .asset }.map { "\"\($0.column)\"" }
            guard !columns.isEmpty else { continue }
            let given = columns.map { "\($0) IS NOT NULL" }.joined(separator: " OR ")
            let sql = "SELECT \(columns.joined(separator: ", ")) FROM \"\(type.table)\" WHERE \(given)"
            let rows = try Row.fetchCursor(db, sql: sql)
            while let row = try rows.next() {
                for column in columns.indices { Self.remove(namedIn: row[column] as DatabaseValue, from: &ids) }
                if ids.isEmpty { return }
            }
        }
    }

    /// Removes the assets that history names from a set, with those of conflicts and refused saves.
    ///
    /// - Parameter change: Only later changes are read.
    /// - Complexity: O(n) in the changes of history.
    func removeNamedByHistory(after change: Int64 = 0, from ids: inout Set<String>) throws {
        let sources = [
            "SELECT before FROM tide_changes WHERE id > \(change) AND before IS NOT NULL",
            "SELECT ancestor FROM tide_conflicts WHERE ancestor IS NOT NULL",
            "SELECT local FROM tide_conflicts WHERE local IS NOT NULL",
            "SELECT store FROM tide_conflicts WHERE store IS NOT NULL",
            "SELECT before FROM tide_refused WHERE before IS NOT NULL",
            "SELECT after FROM tide_refused WHERE after IS NOT NULL",
        ]
        for source in sources {
            if ids.isEmpty { return }
            let rows = try Row.fetchCursor(db, sql: source)
            while let row = try rows.next() { Self.remove(namedIn: row[0] as DatabaseValue, from: &ids) }
        }
    }

    /// The standing of the assets that records name.
    ///
    /// - Complexity: O(n) in the records of types with assets, and in the refused saves.
    func standings() throws -> [String: Standing] {
        var standings: [String: Standing] = [:]
        for type in types {
            let fields = type.fields.filter { $0.type.scalar == .asset }
            guard !fields.isEmpty else { continue }
            let columns = fields.map { "\"\($0.column)\"" }
            let given = columns.map { "\($0) IS NOT NULL" }.joined(separator: " OR ")
            let sql =
                "SELECT _zone, _tag IS NULL, _pending, \(columns.joined(separator: ", ")) FROM \"\(type.table)\" WHERE \(given)"
            let rows = try Row.fetchCursor(db, sql: sql)
            while let row = try rows.next() {
                let zone: Int64 = try row.decode(atIndex: 0)
                // A record with edits is sent as a whole if the cloud has lost it.
                let isHeld = try row.decode(Bool.self, atIndex: 1) || !(row[2] as DatabaseValue).isNull
                for index in fields.indices {
                    Self.forEach(namedIn: row[index + 3] as DatabaseValue) { id in
                        if isHeld {
                            standings[id, default: Standing()].isHeld = true
                        } else {
                            standings[id, default: Standing()].zones.insert(zone)
                        }
                    }
                }
            }
        }
        for source in ["SELECT before FROM tide_refused", "SELECT after FROM tide_refused"] {
            let rows = try Row.fetchCursor(db, sql: source)
            while let row = try rows.next() {
                Self.forEach(namedIn: row[0] as DatabaseValue) { standings[$0, default: Standing()].isHeld = true }
            }
        }
        return standings
    }

    private static func remove(namedIn value: DatabaseValue, from ids: inout Set<String>) {
        forEach(namedIn: value) { ids.remove($0) }
    }

    /// Calls `body` with everything in a text that has the form of an identifier: in a field, a list, or the JSON of history.
    ///
    /// A text of another kind of field may look like an identifier. Keeping a content too long does no harm.
    static func forEach(namedIn value: DatabaseValue, _ body: (String) -> Void) {
        guard case .string(var text) = value.storage else { return }
        text.withUTF8 { bytes in
            var (index, run) = (0, 0)
            while index < bytes.count {
                let byte = bytes[index]
                index += 1
                if isDigit(byte) || byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "f") {
                    run += 1
                    continue
                }
                defer { run = 0 }
                guard byte == UInt8(ascii: "-"), run >= 32 else { continue }
                let start = index - 33
                var end = index
                while end < bytes.count, isDigit(bytes[end]) { end += 1 }
                guard end > index else { continue }
                body(String(decoding: bytes[start..<end], as: UTF8.self))
                guard end + 1 < bytes.count, bytes[end] == UInt8(ascii: "-"), isDigit(bytes[end + 1]) else { continue }
                end += 1
                while end < bytes.count, isDigit(bytes[end]) { end += 1 }
                body(String(decoding: bytes[start..<end], as: UTF8.self))
            }
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
