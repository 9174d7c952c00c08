import GRDB
import TidemarkModel
import TidemarkSQLite

/// A relationship as a store has it.
package struct StoredRelationship: Equatable {
    /// The reference field.
    let field: StoredType.Field
    /// The name of the record type that it refers to. The store need not have that type yet.
    let target: String
    let isOwning: Bool
    let rule: DeleteRule

    var schema: RelationshipSchema {
        RelationshipSchema(field: field.name, target: target, isOwning: isOwning, deleteRule: rule)
    }

    /// The rows of `tide_relationships`, by the numbers of the types. A store of a format without the table has none.
    static func fetchAll(_ db: Database) throws -> [Int64: [Row]] {
        let there = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tide_relationships')"
        guard try Bool.fetchOne(db, sql: there) ?? false else { return [:] }
        let sql = "SELECT type_id, field, target, owning, delete_rule FROM tide_relationships"
        return try Dictionary(grouping: Row.fetchAll(db, sql: sql)) { try $0.stored("type_id", of: "tide_relationships") }
    }

    /// - Throws: ``StoreError`` `corrupt` for a row that names no reference field of the type, or a rule that there is not.
    static func read(_ rows: [Row], fields: [StoredType.Field]) throws -> [StoredRelationship] {
        let table = "tide_relationships"
        let found = try rows.map { row in
            let name: String = try row.stored("field", of: table)
            guard let field = fields.first(where: { $0.name == name }), field.type.scalar == .reference else {
                throw StoreError(.corrupt, "\(table) names '\(name.prefix(100))', which is no reference field of the type")
            }
            let text: String = try row.stored("delete_rule", of: table)
            guard let rule = DeleteRule(rawValue: text) else {
                throw StoreError(.corrupt, "\(table) has the delete rule '\(text.prefix(100))', which there is not")
            }
            let target: String = try row.stored("target", of: table)
            guard StoredType.isIdentifier(target) else {
                throw StoreError(.corrupt, "\(table) has the target '\(target.prefix(100))', which cannot be a record type")
            }
            let owning: Int64 = try row.stored("owning", of: table)
            guard !field.type.isList || owning == 0 && rule != .cascade else {
                throw StoreError(.corrupt, "\(table) has a list, '\(name)', that owns or cascades, which a list can't")
            }
            return StoredRelationship(field: field, target: target, isOwning: owning != 0, rule: rule)
        }
        guard found.count(where: \.isOwning) <= 1 else {
            throw StoreError(.corrupt, "\(table) has two owning relationships of one type")
        }
        return found.sorted { $0.field.ordinal < $1.field.ordinal }
    }
}

extension StoredType {
    /// The relationship to the record that owns a record; `nil` where records of the type have no owner.
    var owner: StoredRelationship? { relationships.first(where: \.isOwning) }

    /// Declares relationships. They belong to the store and not to the cloud's schema, so they can be declared in production,
    /// too.
    ///
    /// - Parameter declared: By field; `nil` for a field that has none. Fields that the type lacks are passed over.
    /// - Throws: ``StoreError`` `schema` for a field that is no reference, a list that owns, and a second owner.
    /// - Returns: Whether anything has changed.
    func declare(_ db: Database, relationships declared: [String: RelationshipSchema?]) throws -> Bool {
        guard !relationships.isEmpty || declared.contains(where: { $0.value != nil }) else { return false }
        var known = Dictionary(relationships.map { ($0.field.name, $0.schema) }) { first, _ in first }
        let before = known
        for (name, relationship) in declared {
            guard let field = fields.first(where: { $0.name == name }) else { continue }
            guard let relationship else {
                known[name] = nil
                continue
            }
            guard field.type.scalar == .reference else {
                throw StoreError(
                    .schema, "the relationship '\(name)' of \(self.name) needs a reference, and the field is \(field.type)")
            }
            guard !field.type.isList || !relationship.isOwning && relationship.deleteRule != .cascade else {
                throw StoreError(
                    .schema,
                    "the field '\(name)' of \(self.name) is a list: its records own nothing, and its delete rule is nullify or deny"
                )
            }
            try Self.checkIdentifier(relationship.target, what: "the target of a relationship")
            known[name] = relationship
        }
        // A field that the program no longer declares, such as a former name, is no owner beside the present one.
        if declared.values.contains(where: { $0?.isOwning == true }) {
            for (name, it) in known where it.isOwning && declared[name] == nil {
                known[name] = RelationshipSchema(field: name, target: it.target, isOwning: false, deleteRule: it.deleteRule)
            }
        }
        guard known != before else { return false }
        let owners = known.values.filter(\.isOwning).map(\.field).sorted()
        guard owners.count <= 1 else {
            throw StoreError(
                .schema,
                "\(name) has two owning relationships, \(owners.map { "'\($0)'" }.joined(separator: " and ")): a record has one owner at the most"
            )
        }
        let hadRules = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM tide_relationships)") ?? false
        for (name, it) in before where known[name] != it {
            try db.execute(sql: "DELETE FROM tide_relationships WHERE type_id = ? AND field = ?", arguments: [id, name])
        }
        for (name, it) in known where before[name] != it {
            try db.execute(
                sql: "INSERT INTO tide_relationships (type_id, field, target, owning, delete_rule) VALUES (?, ?, ?, ?, ?)",
                arguments: [id, name, it.target, it.isOwning, it.deleteRule.rawValue])
        }
        try Self.raiseGeneration(db)
        // Deletions by others from before the first rule stay as they are.
        let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM tide_changes") ?? 0
        for zone in try StoreZone.fetchAll(db) {
            let old = try SyncState(db, zone: zone.id)
            guard old.resolvedChange == nil || !hadRules else { continue }
            var state = old
            state.resolvedChange = last
            try state.store(db, insteadOf: old, zone: zone.id)
        }
        return true
    }
}

extension FieldValue {
    /// The names of the records that the value refers to, in their order.
    var referenceNames: [String] {
        switch self {
        case .reference(let name): [name]
        case .list(let elements, of: .reference):
            elements.compactMap { if case .reference(let name) = $0 { name } else { nil } }
        case .string, .int64, .double, .timestamp, .bytes, .location, .asset, .list: []
        }
    }

    /// Returns the value with other references; `nil` for a reference that is removed.
    ///
    /// - Parameter change: Returns the name that replaces a name; `nil` to remove it. A list does not name a record twice because
    ///   of it.
    func replacingReferences(_ change: (String) -> String?) -> FieldValue? {
        switch self {
        case .reference(let name): return change(name).map { .reference($0) }
        case .list(let elements, of: .reference):
            var added: Set<String> = []
            return .list(
                elements.compactMap { element in
                    guard case .reference(let name) = element else { return element }
                    guard let other = change(name) else { return nil }
                    if other != name, elements.contains(.reference(other)) || !added.insert(other).inserted { return nil }
                    return .reference(other)
                }, of: .reference)
        case .string, .int64, .double, .timestamp, .bytes, .location, .asset, .list: return self
        }
    }
}
