import GRDB
import TidemarkModel
package import TidemarkSQLite

extension StoreReader {
    /// Whether the type stands in the names of a type's records that are no UUIDs: yes, unless the store has plain ones and no others.
    ///
    /// - Complexity: Two look-ups in the index of names.
    package func namesHaveType(of name: String) throws(StoreError) -> Bool {
        try read("look at the names of records") { db in
            guard let type = try StoredType.fetchAll(db).first(where: { $0.name == name }) else { return true }
            // Texts come before BLOBs, and ';' after ':'.
            let sql = """
                SELECT EXISTS (SELECT 1 FROM "\(type.table)" WHERE _key >= ?1 AND _key < ?2) OR NOT (
                    EXISTS (SELECT 1 FROM "\(type.table)" WHERE _key >= '' AND _key < ?1)
                    OR EXISTS (SELECT 1 FROM "\(type.table)" WHERE _key >= ?2 AND _key < x''))
                """
            return try Bool.fetchOne(db, sql: sql, arguments: ["\(name):", "\(name);"]) ?? true
        }
    }

    /// The types that the references of a type refer to by names with the type in them, by their fields: as the first value of each tells.
    package func referenceTargets(of name: String) throws(StoreError) -> [String: String] {
        try read("look at the references of records") { db in
            var targets: [String: String] = [:]
            guard let type = try StoredType.fetchAll(db).first(where: { $0.name == name }) else { return targets }
            for field in type.fields where field.type.scalar == .reference {
                let first = field.type.isList ? "json_extract(\"\(field.column)\", '$[0]')" : "\"\(field.column)\""
                let sql = "SELECT \(first) FROM \"\(type.table)\" WHERE \(first) IS NOT NULL LIMIT 1"
                guard let value = try String.fetchOne(db, sql: sql), let colon = value.firstIndex(of: ":") else { continue }
                let target = String(value[..<colon])
                if StoredType.isIdentifier(target) { targets[field.name] = target }
            }
            return targets
        }
    }
}
