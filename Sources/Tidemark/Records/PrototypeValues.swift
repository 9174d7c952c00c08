import Logging
import TidemarkModel

/// The values of a type's prototype, for properties that must have one.
///
/// `@unchecked Sendable`: the values are those of a record's properties, which are `Sendable`, and never change.
final class PrototypeValues: @unchecked Sendable {
    /// The values of the properties, by coding key.
    let properties: [String: Any]
    /// The values of the fields, by name.
    let fields: [String: FieldValue]

    /// Reads the values of a type's prototype; `nil` for a type without a prototype.
    init?<R: Record>(of type: R.Type) {
        guard let prototype = R.prototype else { return nil }
        let output: RecordEncoder.Fields
        do {
            output = try RecordEncoder().encode(prototype, keepsRequired: true)
        } catch {
            Logger(label: "tidemark.records").error("the prototype of \(R.self) can't be stored, and is not used: \(error)")
            return nil
        }
        properties = output.required
        var fields: [String: FieldValue] = [:]
        for field in output.fields where properties[field.name] != nil {
            // A predicate compares no assets, so that an asset of the prototype is left out.
            fields[field.name] = try? field.content?.value { _ in throw FieldError("an asset that is not saved") }
        }
        self.fields = fields
    }
}
