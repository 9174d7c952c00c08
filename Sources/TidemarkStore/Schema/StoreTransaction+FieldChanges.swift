import CTideCore
import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Changes of fields: the values are edits of one transaction of history, and then the old field goes from the table.
extension StoreTransaction {
    func renameField(
        _ old: String, of typeName: String, to new: String, _ change: SchemaChange, _ plan: inout SchemaChangePlan
    ) throws -> SchemaChangePlan.Step {
        guard let type = type(named: typeName), old != new else { return .init(change, isDone: true) }
        guard let field = type.fields.first(where: { $0.name == old }) else {
            guard old == type.nameField else { return .init(change, isDone: true) }
            try checkIsFree(new, type)
            try type.setNameField(db, to: new)
            try connection.refreshSchema(db)
            return .init(change)
        }
        let target = RecordTypeSchema.Field(name: new, type: field.type, isBoolean: field.isBoolean)
        return try convert(field, of: type, to: target, ConvertedFiles(), change, &plan)
    }

    func retypeField(
        _ name: String, of typeName: String, to target: RecordTypeSchema.Field, _ files: ConvertedFiles, cloudType: FieldType?,
        cloudValues: [CloudFieldValue], _ change: SchemaChange, _ plan: inout SchemaChangePlan
    ) throws -> SchemaChangePlan.Step {
        guard let type = type(named: typeName), let field = type.fields.first(where: { $0.name == name }) else {
            return .init(change, isDone: true)
        }
        if name == target.name {
            if field.schema.typeName == target.typeName { return .init(change, isDone: true) }
            // Both are int64, also to the cloud.
            if field.type == target.type { return try setBoolean(field, of: type, to: target, change, &plan) }
            // The cloud's type is the one that all devices have to take. What waits in the cloud then comes, and what is here goes.
            if cloudType != target.type {
                let another = "give the field of type \(target.typeName) another name (--name)"
                let remedy = cloudType.map { "'\(name)' is \($0) there: give it that type, or \(another)" }
                try checkIsNotInCloud(type, remedy ?? "A field keeps its type there: \(another)")
            }
        }
        let waiting = cloudValues.filter { $0.type == typeName && $0.field == name && $0.fieldType == target.type }
        return try convert(field, of: type, to: target, files, waiting: waiting, change, &plan)
    }

    func dropField(
        _ name: String, of typeName: String, _ change: SchemaChange, _ plan: inout SchemaChangePlan
    ) throws -> SchemaChangePlan.Step {
        guard let type = type(named: typeName) else { return .init(change, isDone: true) }
        guard let field = type.fields.first(where: { $0.name == name }) else {
            guard name == type.nameField else { return .init(change, isDone: true) }
            try type.setNameField(db, to: nil)
            try connection.refreshSchema(db)
            return .init(change)
        }
        if let key = type.uniqueKeys.first(where: { $0.contains(name) }) {
            let option = "--unique-key \(key.joined(separator: ","))"
            throw StoreError(
                .schema,
                "a unique key of \(typeName) names '\(name)'; drop that first: `tidemark schema drop CONTAINER --type \(typeName) \(option)`"
            )
        }
        for (table, what) in [("relationships", "a relationship"), ("indexes", "an index")] {
            guard try names(field: name, of: type, in: table) else { continue }
            throw StoreError(.schema, "\(what) of \(typeName) names '\(name)'; remove that first, or rename the field")
        }
        let rows = try rows(of: field, type, plan: &plan) { .value($0) }
        guard plan.problemCount == 0 else { return .init(change, records: rows.count, lost: rows.count) }
        try write(rows, type: type) { _ in [(field.schema, nil)] }
        try remove(field, of: type, rows, successor: nil)
        return .init(change, records: rows.count, lost: rows.count)
    }

    private func checkIsFree(_ name: String, _ type: StoredType) throws {
        try StoredType.checkIdentifier(name, what: "a field")
        if let other = (type.fields.map(\.name) + [type.nameField].compactMap(\.self)).first(where: {
            $0.lowercased() == name.lowercased()
        }) {
            throw StoreError(.schema, "\(type.name) has a field '\(other)' already; choose another name")
        }
    }

    private func setBoolean(
        _ field: StoredType.Field, of type: StoredType, to target: RecordTypeSchema.Field, _ change: SchemaChange,
        _ plan: inout SchemaChangePlan
    ) throws -> SchemaChangePlan.Step {
        if target.isBoolean {
            guard let conversion = FieldConversion(from: field.schema, to: target) else { return .init(change) }
            _ = try rows(of: field, type, plan: &plan) { try Outcome(conversion, $0) }
            guard plan.problemCount == 0 else { return .init(change) }
        }
        try db.execute(
            sql: "UPDATE tide_fields SET type = ? WHERE type_id = ? AND ordinal = ?",
            arguments: [target.code.rawValue, type.id, field.ordinal])
        try refreshChangedSchema()
        return .init(change)
    }

    /// Gives a field another name, type, or both.
    ///
    /// - Parameter waiting: The cloud's values of the new type, which deferred records have.
    private func convert(
        _ field: StoredType.Field, of type: StoredType, to target: RecordTypeSchema.Field, _ files: ConvertedFiles,
        waiting: [CloudFieldValue] = [], _ change: SchemaChange, _ plan: inout SchemaChangePlan
    ) throws -> SchemaChangePlan.Step {
        guard let conversion = FieldConversion(from: field.schema, to: target, files: files.files) else {
            throw StoreError(
                .schema, "values of '\(field.name)', which are \(field.schema.typeName), can't become \(target.typeName)")
        }
        if field.type != target.type {
            for (table, what) in [("relationships", "a relationship"), ("indexes", "an index")] {
                guard try names(field: field.name, of: type, in: table) else { continue }
                throw StoreError(
                    .schema, "\(what) of \(type.name) names '\(field.name)'; remove that before the field gets another type")
            }
        }
        let isNew = field.name == target.name || !type.fields.contains { $0.name == target.name }
        if isNew {
            if field.name != target.name { try checkIsFree(target.name, type) }
        } else if type.schema.field(named: target.name)?.typeName != target.typeName {
            throw StoreError(.schema, "\(type.name) has a field '\(target.name)' of another type already; choose another name")
        }
        var rows = try rows(of: field, type, plan: &plan) { try Outcome(conversion, $0) }
        let lost = rows.count { $0.value == nil }
        guard plan.problemCount == 0 else { return .init(change, records: rows.count, lost: lost) }
        try register(files.blobs)
        let first = nextChange
        let successor = field.type == target.type ? target.name : nil
        if field.name == target.name {
            try keepTarget(of: &rows, type, field.name, waiting)
            try write(rows, type: type) { _ in [(field.schema, nil)] }
            try remove(field, of: type, rows, successor: nil, replacement: target)
            let written = rows.filter { $0.value != nil && !$0.keepsTarget }
            try write(written, type: knownType(named: type.name)) { [(target, $0.value)] }
        } else {
            if isNew { try type.addFields(db, [target]) }
            try connection.refreshSchema(db)
            let grown = try knownType(named: type.name)
            if !isNew {
                // The cloud has brought the new field already, with the value of another device. The later edit stays.
                let taken = try Set(
                    Int64.fetchAll(
                        db, sql: "SELECT _id FROM \"\(grown.table)\" WHERE \"\(grown.column(of: target.name))\" IS NOT NULL"))
                for index in rows.indices where taken.contains(rows[index].id) {
                    let times = try editTimes(type: grown, row: rows[index].id, since: 0)
                    guard let old = times[field.name], let new = times[target.name], old > new else {
                        rows[index].keepsTarget = true
                        continue
                    }
                }
            }
            try write(rows, type: grown) { row in
                row.keepsTarget ? [(field.schema, nil)] : [(target, row.value), (field.schema, nil)]
            }
            try remove(
                grown.fields[field.ordinal], of: grown, rows, successor: successor,
                replacement: grown.schema.field(named: target.name))
        }
        try renameInTables(field.name, to: target.name, type)
        try refreshChangedSchema()
        let changed = try knownType(named: type.name)
        if changed.uniqueKeys.contains(where: { $0.contains(target.name) }) {
            try mergeUniqueKeys(of: changed, changes: first..<nextChange, .mergeByPropertyObjectTrump)
        }
        return .init(change, records: rows.count, lost: lost)
    }

    /// Notes the rows that get the cloud's value when their deferred records are applied: all but those with a later edit that was not
    /// sent.
    private func keepTarget(
        of rows: inout [FieldRow], _ type: StoredType, _ field: String, _ waiting: [CloudFieldValue]
    ) throws {
        guard !waiting.isEmpty else { return }
        var values: [Int64: [String: CloudFieldValue]] = [:]
        for value in waiting { values[value.zone, default: [:]][value.record] = value }
        for index in rows.indices {
            let row = rows[index]
            guard let value = values[row.zone]?[row.name] else { continue }
            if row.isPending {
                guard let inCloud = value.edited?.clamped(to: time) else { continue }
                let times = try editTimes(type: type, row: row.id, since: 0)
                if let here = times[field], here > inCloud { continue }
            }
            rows[index].keepsTarget = true
        }
    }

    // The rows

    /// A record with a value in the field that changes.
    private struct FieldRow {
        let id: Int64
        let name: String
        let zone: Int64
        let value: FieldValue?
        /// Whether the cloud does not have the value.
        let isPending: Bool
        var keepsTarget = false
    }

    /// What becomes of a value.
    private enum Outcome {
        case value(FieldValue?)
        case refused(String)

        static func value(_ value: FieldValue) -> Outcome { .value(.some(value)) }

        init(_ conversion: FieldConversion, _ value: FieldValue) throws {
            do throws(FieldConversion.Failure) {
                self = .value(try conversion.convert(value))
            } catch {
                self = .refused(error.reason)
            }
        }
    }

    /// The records that have a value in a field. Those that are damaged, or whose value is refused, are noted in the plan.
    private func rows(
        of field: StoredType.Field, _ type: StoredType, plan: inout SchemaChangePlan, _ convert: (FieldValue) throws -> Outcome
    ) throws -> [FieldRow] {
        var found: [FieldRow] = []
        let zone = try db.cachedStatement(sql: "SELECT _zone FROM \"\(type.table)\" WHERE _id = ?")
        let cursor = try PendingRow.Cursor(db, type: type, "\"\(field.column)\" IS NOT NULL ORDER BY _id")
        while let row = try cursor.next() {
            let record = RecordName(type: type.name, name: row.name)
            guard row.isIntact, let value = row.values[field.ordinal] else {
                plan.note(
                    .init(
                        record: record, field: field.name, value: nil,
                        reason: "the record is damaged; repair it (`tidemark verify --repair`), or delete it"))
                continue
            }
            switch try convert(value) {
            case .value(let converted):
                guard let zone = try Int64.fetchOne(zone, arguments: [row.id]) else { continue }
                let isPending = row.isPending(field.ordinal)
                found.append(FieldRow(id: row.id, name: row.name, zone: zone, value: converted, isPending: isPending))
            case .refused(let reason):
                plan.note(.init(record: record, field: field.name, value: String(value.logText.prefix(100)), reason: reason))
            }
        }
        return found
    }

    private static let batchSize = 10_000

    /// Writes values of records as edits.
    private func write(
        _ rows: [FieldRow], type: StoredType, _ values: (FieldRow) -> [(field: RecordTypeSchema.Field, value: FieldValue?)]
    ) throws {
        for (zone, rows) in Dictionary(grouping: rows, by: \.zone).sorted(by: { $0.key < $1.key }) {
            for start in stride(from: 0, to: rows.count, by: Self.batchSize) {
                let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
                for row in rows[start..<min(start + Self.batchSize, rows.count)] {
                    try batch.add(name: row.name, values: values(row))
                }
                batch.digest(seed: connection.identity.digestSeed)
                try write(batch, type: type, zone: zone, uniquePolicy: nil)
                if let refused = batch.rejections.first {
                    throw StoreError(refused.isOfDamage ? .damaged : .invalid, "\(type.name): \(refused.message)")
                }
            }
        }
    }

    // The table

    /// Removes a field, which no record has a value of any more: its column, its bit in what is to be sent, and its place among the fields.
    ///
    /// - Parameters:
    ///   - rows: The records that had a value.
    ///   - successor: The field that has its values as they were.
    ///   - replacement: The field that takes its place in indexes; it is made if its name is the same.
    private func remove(
        _ field: StoredType.Field, of type: StoredType, _ rows: [FieldRow], successor: String?,
        replacement: RecordTypeSchema.Field? = nil
    ) throws {
        try FormerFields.add(
            .init(
                type: type.id, name: field.name, code: field.schema.code.rawValue, until: nextChange - 1, successor: successor,
                isRetyped: replacement?.name == field.name ? true : nil, records: rows.count { !$0.isPending }), db)
        try shiftPending(behind: field.ordinal, type)
        let declared = try takeIndexes(of: type, naming: field.name)
        let indexes = try type.indexes(db, naming: field.column)
        for index in indexes { try db.execute(sql: "DROP INDEX \"\(index.name)\"") }
        try db.execute(sql: "DROP VIEW IF EXISTS \"\(type.viewName)\"")
        try db.execute(sql: "ALTER TABLE \"\(type.table)\" DROP COLUMN \"\(field.column)\"")
        try db.execute(
            sql: "DELETE FROM tide_fields WHERE type_id = ? AND ordinal = ?", arguments: [type.id, field.ordinal])
        for ordinal in type.fields.indices where ordinal > field.ordinal {
            try db.execute(
                sql: "UPDATE tide_fields SET ordinal = ordinal - 1 WHERE type_id = ? AND ordinal = ?",
                arguments: [type.id, ordinal])
        }
        try StoredType.createView(db, table: type.table, nameField: type.nameField)
        // A unique key that names a field which is not there can't be read.
        if let replacement, replacement.name != field.name { try renameInTables(field.name, to: replacement.name, type) }
        if let replacement, replacement.name == field.name {
            let keys = try takeUniqueKeys(type)
            try refreshChangedSchema()
            try knownType(named: type.name).addFields(db, [replacement])
            try putBack(keys, type)
        }
        try refreshChangedSchema()
        guard let replacement else { return }
        let column = try knownType(named: type.name).column(of: replacement.name)
        for index in indexes { try db.execute(sql: index.definition(naming: column, insteadOf: field.column)) }
        try putBack(declared, of: type.name) { $0 == field.name ? replacement.name : $0 }
    }

    private func takeUniqueKeys(_ type: StoredType) throws -> [Row] {
        let keys = try Row.fetchAll(
            db, sql: "SELECT ordinal, fields FROM tide_unique_keys WHERE type_id = ?", arguments: [type.id])
        try db.execute(sql: "DELETE FROM tide_unique_keys WHERE type_id = ?", arguments: [type.id])
        return keys
    }

    private func putBack(_ keys: [Row], _ type: StoredType) throws {
        for key in keys {
            try db.execute(
                sql: "INSERT INTO tide_unique_keys (type_id, ordinal, fields) VALUES (?, ?, ?)",
                arguments: [
                    type.id, try key.stored("ordinal", of: "tide_unique_keys") as Int64,
                    try key.stored("fields", of: "tide_unique_keys") as String,
                ])
        }
    }

    /// Takes a field out of what rows have to send. A row that has nothing else to send is as the cloud has it.
    private func shiftPending(behind ordinal: Int, _ type: StoredType) throws {
        let select = try db.makeStatement(
            sql: """
                SELECT _id, _pending FROM "\(type.table)" WHERE _id > ? AND typeof(_pending) = 'blob' ORDER BY _id LIMIT 1000
                """)
        let update = try db.makeStatement(sql: "UPDATE \"\(type.table)\" SET _pending = ? WHERE _id = ?")
        let clean = try db.makeStatement(
            sql: """
                UPDATE "\(type.table)" SET _pending = NULL, _base = CASE WHEN _tag IS NULL THEN _base ELSE _version END WHERE _id = ?
                """)
        var last = Int64.min
        while true {
            let rows = try Row.fetchAll(select, arguments: [last])
            guard !rows.isEmpty else { return }
            for row in rows {
                let (id, mask): (Int64, Data) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
                last = id
                let shifted = Self.shift(mask, behind: ordinal)
                if shifted == mask { continue }
                if shifted.isEmpty { try clean.execute(arguments: [id]) } else { try update.execute(arguments: [shifted, id]) }
            }
        }
    }

    /// The set of fields without one, behind which the others move up by one place.
    static func shift(_ mask: Data, behind ordinal: Int) -> Data {
        var shifted = Data()
        for (index, byte) in mask.enumerated() {
            for bit in 0..<8 where byte & (1 << bit) != 0 {
                var place = index * 8 + bit
                if place == ordinal { continue }
                if place > ordinal { place -= 1 }
                while shifted.count <= place / 8 { shifted.append(0) }
                shifted[place / 8] |= 1 << (place % 8)
            }
        }
        return shifted
    }

    // What names fields

    private static let tables = [("unique_keys", "fields"), ("relationships", "field")]

    /// Whether a table has an entry of the type that names a field.
    private func names(field: String, of type: StoredType, in table: String) throws -> Bool {
        let column = table == "relationships" ? "field" : "fields"
        return try String.fetchAll(db, sql: "SELECT \(column) FROM tide_\(table) WHERE type_id = ?", arguments: [type.id])
            .contains { $0.split(separator: " ").contains { $0 == field } }
    }

    /// Has unique keys and relationships name a field by its new name.
    private func renameInTables(_ old: String, to new: String, _ type: StoredType) throws {
        guard old != new else { return }
        for (table, column) in Self.tables {
            for text in try String.fetchAll(
                db, sql: "SELECT \(column) FROM tide_\(table) WHERE type_id = ?", arguments: [type.id])
            {
                let renamed = text.split(separator: " ").map { $0 == old ? new : String($0) }.joined(separator: " ")
                guard renamed != text else { continue }
                if table == "relationships" {
                    try db.execute(
                        sql: "DELETE FROM tide_relationships WHERE type_id = ? AND field = ?", arguments: [type.id, renamed])
                }
                try db.execute(
                    sql: "UPDATE tide_\(table) SET \(column) = ? WHERE type_id = ? AND \(column) = ?",
                    arguments: [renamed, type.id, text])
            }
        }
        try db.execute(
            sql: "UPDATE tide_conflicts SET field = ? WHERE type = ? AND field = ?", arguments: [new, type.name, old])
    }
}

extension StoredType {
    /// The column of a field.
    func column(of name: String) -> String { fields.first { $0.name == name }?.column ?? name }
}
