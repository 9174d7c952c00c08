import Foundation
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// The fields and values that a command line gives a record, as `field[:type]=value`.
struct GivenValues {
    /// The record type before the command.
    let known: RecordTypeSchema
    /// Fields that the record type does not have yet, in the order of the command line.
    let newFields: [RecordTypeSchema.Field]
    private let values: [String: FieldEdit.Value?]

    /// Reads the assignments, as an import reads the cells of a CSV file.
    ///
    /// - Parameter found: The record, if it exists.
    /// - Throws: ``StoreError`` `invalid` or `schema`, with the field and a remedy.
    init(_ assignments: [String], of known: RecordTypeSchema, _ found: FoundRecord?) throws {
        let entries = try assignments.map { try Self.entry($0, known) }
        try Self.check(entries, known)
        let readings = try FieldTexts.read(entries)
        self.known = known
        newFields = readings.map(\.field).filter { known.field(named: $0.name) == nil }
        var values: [String: FieldEdit.Value?] = [:]
        for reading in readings {
            values.updateValue(
                try reading.value.map { try Self.value($0, of: reading.field.name, found) }, forKey: reading.field.name)
        }
        self.values = values
    }

    func edit(of record: RecordName) -> FieldEdit {
        var schema = RecordTypeSchema(name: known.name, nameField: known.nameField, fields: known.fields)
        schema.fields += newFields
        return FieldEdit(record: record, schema: schema, values: values)
    }

    // Reading an assignment

    private static func entry(_ text: String, _ known: RecordTypeSchema) throws -> FieldTexts.Entry {
        let assignment = try Assignment(text)
        let (name, given) = (assignment.name, assignment.given)
        try RecordStore.checkIdentifier(name, what: "a field")
        if name == known.nameField {
            throw StoreError(
                .schema, "'\(name)' holds the names of the records of \(known.name); 'tidemark records rename' changes a name")
        }
        let existing = known.field(named: name)
        if let existing, let given, existing.type != given.type || existing.isBoolean != given.isBoolean && given.isBoolean {
            throw assignment.refusal(existing.typeName, of: known.name)
        }
        let field = existing ?? given
        if assignment.value == nil, field == nil {
            let fields = known.fields.map(\.name)
            let remedy = Suggestion.question(name, among: fields)
            throw StoreError(
                .schema,
                "\(known.name) has no field '\(name)' that could be cleared; it has \(fields.joined(separator: ", "))\(remedy)")
        }
        return FieldTexts.Entry(name: name, text: assignment.value, known: field)
    }

    /// - Throws: ``StoreError`` `invalid` if a field is set twice, `schema` if two fields differ only in the case of letters.
    private static func check(_ entries: [FieldTexts.Entry], _ known: RecordTypeSchema) throws {
        var names: Set<String> = []
        for entry in entries where !names.insert(entry.name).inserted {
            throw StoreError(.invalid, "the field '\(entry.name)' is set twice; give it one value")
        }
        var given = RecordTypeSchema(name: known.name, nameField: known.nameField)
        given.fields = entries.map { .init(name: $0.name, type: .string) }
        if let collision = given.nameCollision(with: known.fields) { throw StoreError(.schema, collision.description) }
    }

    // Assets

    private static func value(_ value: FieldTexts.Value, of field: String, _ found: FoundRecord?) throws -> FieldEdit.Value {
        switch value {
        case .value(let value): return .value(value)
        case .file(let path): return .asset(try asset(path, field))
        case .files(let paths): return .assets(try paths.map { try asset($0, field) })
        case .held(let value):
            let held = Set((found?.record.values ?? []).flatMap { $0?.assetIDs ?? [] })
            if let missing = value.assetIDs.first(where: { !held.contains($0) }) {
                throw StoreError(.invalid, "\(field): the record does not hold the asset \(missing); write the path of a file")
            }
            return .value(value)
        }
    }

    /// Makes an asset of any file that the user can read. Symbolic links are followed.
    private static func asset(_ path: String, _ field: String) throws -> Asset {
        let file = try fileURL(path, "the file for '\(field)'").resolvingSymlinksInPath()
        guard access(file.path, R_OK) == 0 else {
            throw StoreError(.invalid, "\(field): cannot read \(file.path): \(String(cString: strerror(errno)))")
        }
        return Asset(fileURL: file)
    }
}
