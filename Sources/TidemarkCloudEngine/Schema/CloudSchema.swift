import TidemarkCloud
public import TidemarkModel

/// The record types that a container has in one environment.
///
/// In development the schema grows as records are saved. In production it is what was deployed, and fixed.
public struct CloudSchema: Hashable, Codable, Sendable {
    /// The kinds of indexes of a field, as CloudKit's `QUERYABLE`, `SORTABLE` and `SEARCHABLE`.
    public enum Index: String, Codable, CaseIterable, Sendable {
        /// What the index is for: filters by the whole value, sorting, or filters by the words of a string. Fields of bytes and assets
        /// have no index, and lists are not sortable.
        case queryable, sortable, searchable
    }

    /// A field of a record type.
    public struct Field: Hashable, Codable, Sendable {
        /// The field's type, in the text form of `FieldType`.
        public var type: String
        /// The field's indexes with their numbers, by which a storage keeps the values.
        public var indexes: [Index: Int64] = [:]
        /// The user record name of the account that saved the first record with this field; `nil` for a deployed field.
        public var addedBy: String?

        /// The field's type; `nil` where this version does not know ``type``.
        public var fieldType: FieldType? { FieldType(type) }
    }

    /// A record type, with the fields that its records may have.
    public struct RecordType: Hashable, Codable, Sendable {
        /// The fields, by name.
        public var fields: [String: Field] = [:]
        /// Whether a query may ask for the type without a filter, and filter by `recordName`.
        public var isQueryable = false
        /// The user record name of the account that saved the first record of this type; `nil` for a deployed type.
        public var addedBy: String?
    }

    /// The record types, by name.
    public var types: [String: RecordType] = [:]
    /// The number of the next index. No number is used twice.
    public var nextIndex: Int64 = 1
    /// Whether the schema may not grow in development either; `nil` counts as `false`.
    public var isFrozen: Bool?

    /// Makes a schema without types.
    public init() {}

    /// Adds the type and the fields of a record, or checks them.
    ///
    /// - Parameters:
    ///   - isFixed: Whether the schema may not grow, as in production. ``CloudRecord/editedField`` is added to every type all the same.
    ///   - user: The account that saves the record.
    /// - Returns: Whether the schema has changed.
    /// - Throws: `CloudError` `invalidArguments` for a value that has another type or can't be stored, for a field that a fixed schema
    ///   lacks, and for a type or a field that a frozen schema lacks; `unknownItem` for a type that a fixed schema lacks;
    ///   `limitExceeded` for a field too many.
    mutating func admit(
        _ type: String, fields values: [String: CloudValue], limits: CloudLimits, isFixed: Bool, by user: String
    ) throws(CloudError) -> Bool {
        var known = types[type]
        let isFrozen = isFrozen == true && !isFixed
        guard known != nil || !isFrozen else { throw Self.frozen("the type '\(type.prefix(100))'") }
        guard known != nil || !isFixed else {
            throw Self.mismatch(
                "recordName", "", .unknownItem,
                "there is no record type '\(type.prefix(100))' in the production schema. \(Self.deployment("the type"))")
        }
        var hasChanged = known == nil
        if known == nil {
            try Self.checkName(type)
            known = RecordType(addedBy: user)
        }
        for (name, value) in values {
            guard value.isWhollyFinite else {
                throw CloudError(.invalidArguments, "'\(name)' has a number that is infinite or none")
            }
            guard value.isOnEarth else {
                throw CloudError(
                    .invalidArguments,
                    "'\(name)' has a latitude beyond 90 degrees, or a longitude beyond 180. Invalid value, expected type LOCATION"
                )
            }
            let wanted = value.type
            try Self.checkTypeOfDevices(wanted, of: name)
            if let field = known!.fields[name] {
                // An empty list fits a list of any type.
                if case .list(let elements, _) = value, elements.isEmpty, field.fieldType?.isList == true { continue }
                guard field.fieldType == wanted else {
                    throw Self.mismatch(
                        name, wanted.description, .invalidArguments,
                        Self.reason(
                            "Invalid value for '\(name)', expected type \(field.type), got \(wanted).",
                            Self.remedies(ofType: name, of: type, there: field.type, isFixed: isFixed)))
                }
                continue
            }
            // A type that was made by hand lacks the field that devices add to each record.
            let isOfDevices = name == CloudRecord.editedField
            guard !isFrozen || isOfDevices else { throw Self.frozen("'\(name.prefix(100))' of '\(type)'") }
            guard !isFixed || isOfDevices else {
                throw Self.mismatch(
                    name, wanted.description, .invalidArguments,
                    "'\(type)' has no field '\(name.prefix(100))' in the production schema. "
                        + Self.deployment("the field, of type \(wanted)"))
            }
            try Self.checkName(name)
            guard known!.fields.count < limits.fieldsPerType || isOfDevices else {
                throw CloudError(
                    .limitExceeded, "'\(type)' has \(limits.fieldsPerType) fields, and can't have '\(name)' as well")
            }
            known!.fields[name] = Field(type: wanted.description, addedBy: isFixed ? nil : user)
            hasChanged = true
        }
        if hasChanged { types[type] = known }
        return hasChanged
    }

    /// Tells whether a record type of this name can exist.
    static func canBeQueried(_ type: String) -> Bool { isName(type) || type == CloudShare.recordType }

    /// Returns remedies for a value of another type than the field has, the harmless ones first. Each sentence is short, since a
    /// device shows it on a line. The device replaces `<path>` and `<id>`.
    private static func remedies(ofType field: String, of type: String, there: String, isFixed: Bool) -> [String] {
        guard !isFixed else {
            return ["The type of a field in production can't change: save the value in a field of another name"]
        }
        // A shell takes the brackets of a list for files.
        let there = there.contains("<") ? "\"\(there)\"" : there
        return [
            "In development, the first record with a field decides its type.",
            "On the device, give the field that type: `tidemark schema retype <path> --type \(type) \(field) \(there)`.",
            "Or give it another name: `tidemark schema rename <path> --type \(type) \(field) <name>`.",
            "Only while no record has the field, an administrator of the cloud can free its type: "
                + "`tidemark admin schema remove --container <id> --type \(type) --field \(field)`",
        ]
    }

    /// Returns a reason with as many of the sentences as the limit of a reason allows. No sentence is cut: half of a command may
    /// be another command.
    private static func reason(_ reason: String, _ sentences: [String]) -> String {
        var whole = reason
        for sentence in sentences {
            guard whole.utf8.count + 1 + sentence.utf8.count <= 900 else { break }
            whole += " \(sentence)"
        }
        return whole
    }

    /// Returns the remedy for a type or a field that production lacks.
    private static func deployment(_ what: String) -> String {
        "An administrator of the cloud can deploy the development schema, once it has \(what): "
            + "tidemark admin schema deploy --container <id>"
    }

    /// An error of a record that does not fit the schema.
    private static func mismatch(
        _ field: String, _ fieldType: String, _ code: CloudError.Code, _ reason: String
    ) -> CloudError {
        var error = CloudError(code, reason)
        error.schemaMismatch = SchemaMismatch(field: field, fieldType: fieldType)
        return error
    }

    private static func frozen(_ what: String) -> CloudError {
        CloudError(
            .invalidArguments,
            "\(what) is not in the development schema, which is frozen. An administrator of the cloud can let it grow: "
                + "`tidemark admin schema freeze --off --container <id>`")
    }

    /// Checks the type of the field that devices add to each record. With another type, their records would be refused.
    ///
    /// - Throws: `CloudError` `invalidArguments`.
    static func checkTypeOfDevices(_ type: FieldType, of field: String) throws(CloudError) {
        guard field != CloudRecord.editedField || type == .string else {
            throw CloudError(.invalidArguments, "'\(field)' is a field that devices add to records, and a string, not \(type)")
        }
    }

    /// - Throws: `CloudError` `invalidArguments`.
    static func checkName(_ name: String) throws(CloudError) {
        guard isName(name) else {
            throw CloudError(
                .invalidArguments, "'\(name.prefix(100))' can't name a type or a field: letters, digits and _, not first a digit")
        }
    }

    private static func isName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                $0 == 0x5f || (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
            }
            && !(0x30...0x39).contains(name.utf8.first!)
    }
}
