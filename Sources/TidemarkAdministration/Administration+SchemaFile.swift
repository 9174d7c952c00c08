import TidemarkCloud
import TidemarkCloudEngine
package import TidemarkModel
import TidemarkWire

/// Schemas as files: see `Documentation/Formats/schema.md`.
extension Administration {
    /// Returns the schema as a file in the form that `tidemark import --schema` and `tidemark schema apply` read. Fields whose
    /// names stores reserve are left out: no container can have them, and a cloud gets them again with the first record of a
    /// device.
    ///
    /// - Parameter isCompact: Whether all is on one line.
    package func schemaFile(
        of container: String, environment: StoreEnvironment, isCompact: Bool = false
    ) async throws(AdministrationError) -> String {
        let schema = try await schema(of: container, environment: environment)
        var json = JSONWriter()
        json.object {
            $0.list("types") { json in
                for (name, type) in schema.types.sorted(by: { $0.key < $1.key }) {
                    json.object {
                        $0.member("name", name)
                        $0.list("fields") { json in
                            for (field, known) in type.fields.sorted(by: { $0.key < $1.key })
                            where !CloudRecord.isReserved(field) {
                                json.object {
                                    $0.member("name", field)
                                    $0.member("type", known.type)
                                }
                            }
                        }
                    }
                }
            }
        }
        return (isCompact ? String(decoding: json.bytes, as: UTF8.self) : RecordRequest.indented(json.bytes)) + "\n"
    }

    /// Adds the types and fields of a file to the development schema. ``schemaFile(of:environment:isCompact:)`` returns such a
    /// file, and `tidemark schema show` prints one.
    ///
    /// - Returns: The types and fields that are new in the schema, in their order.
    /// - Throws: ``AdministrationError`` `invalid` with the place of what can't be read, and of each field that has another type; nothing is
    ///   added then.
    @discardableResult
    package func importSchema(
        _ text: String, into container: String
    ) async throws(AdministrationError) -> [CloudSchemaDifference] {
        let file: SchemaFileContents
        do throws(CloudError) {
            file = try JSONText.read(Array(text.utf8)) { node throws(CloudError) in try SchemaFileContents(node) }
        } catch {
            let what = error.reason
            throw AdministrationError(
                .invalid, what.hasPrefix("the body") ? "the file" + what.dropFirst("the body".count) : "the file: \(what)")
        }
        let known = try await schema(of: container, environment: .development)
        let conflicts = SchemaTypeConflict.all(file.types, known)
        if let first = conflicts.first {
            let texts = conflicts.prefix(5).map { conflict in
                "\(file.places[conflict.name] ?? "the file"): \(conflict.name) is \(conflict.wanted) in the file, and \(conflict.known) in "
                    + "the development schema"
            }
            let more = conflicts.count > texts.count ? "; and \(conflicts.count - texts.count) more" : ""
            throw AdministrationError(
                .invalid,
                "nothing is added. \(texts.joined(separator: "; "))\(more). \(first.remedy(in: container, placeOptions))")
        }
        return try await addToSchema(file.types, of: container)
    }
}

/// The contents of a schema file.
private struct SchemaFileContents {
    /// For the name of each type, the types of its fields by their names.
    private(set) var types: [String: [String: FieldType]] = [:]
    /// Where the file names a type or a field, by `Type.field`.
    private(set) var places: [String: String] = [:]

    init(_ node: JSONNode) throws(CloudError) {
        for type in try node.required("types").asArray() {
            let typeName = try type.required("name").asString()
            var fields = types[typeName] ?? [:]
            for field in try type.required("fields").asArray() {
                let (name, kind) = (try field.required("name").asString(), try field.required("type"))
                let text = try kind.asString()
                // Stores have booleans, which are whole numbers in a cloud.
                guard let known = text == "boolean" ? FieldType.int64 : FieldType(text) else {
                    throw kind.refusal("is no type of a field: '\(text.prefix(40))'")
                }
                guard fields[name] == nil || fields[name] == known else {
                    throw field.refusal("names '\(name.prefix(100))' of '\(typeName.prefix(100))' again, with another type")
                }
                fields[name] = known
                places["\(typeName).\(name)"] = field.place
            }
            types[typeName] = fields
        }
    }
}

/// A field that is to be added to a schema, and is there with another type.
struct SchemaTypeConflict {
    let type, field: String
    let known: String
    let wanted: FieldType

    var name: String { "\(type).\(field)" }

    /// Returns what to do about the conflict, the harmless way first.
    ///
    /// - Parameter place: The ``Administration/placeOptions``.
    func remedy(in container: String, _ place: String) -> String {
        "Give the field another name; or free the type of \(name), if no device needs it: "
            + "tidemark admin schema remove --container \(container) --type \(type) --field \(field)\(place)"
    }

    /// The conflicts of types with a schema, in the order of types and fields.
    static func all(_ types: [String: [String: FieldType]], _ schema: CloudSchema) -> [SchemaTypeConflict] {
        types.sorted { $0.key < $1.key }.flatMap { name, fields in
            fields.sorted { $0.key < $1.key }.compactMap { field, wanted -> SchemaTypeConflict? in
                guard let known = schema.types[name]?.fields[field], known.fieldType != wanted else { return nil }
                return SchemaTypeConflict(type: name, field: field, known: known.type, wanted: wanted)
            }
        }
    }
}
