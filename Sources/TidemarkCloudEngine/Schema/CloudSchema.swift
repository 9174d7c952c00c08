import TidemarkCloud
import TidemarkModel

/// The record types that a cloud container has in one environment.
///
/// In development it grows by what is saved; in production it is what was deployed, and fixed.
public struct CloudSchema: Hashable, Codable, Sendable {
    public enum Index: String, Codable, CaseIterable, Sendable { case queryable, sortable, searchable }

    public struct Field: Hashable, Codable, Sendable {
        /// As `FieldType` writes it.
        public var type: String
        /// The indexes that it has, with their numbers.
        public var indexes: [Index: Int64] = [:]
        /// The user record name of the account that has saved the first record with it; of one that was deployed, `nil`.
        public var addedBy: String?

        public var fieldType: FieldType? { FieldType(type) }
    }

    public struct RecordType: Hashable, Codable, Sendable {
        public var fields: [String: Field] = [:]
        /// Whether its records can be queried as such: whether `recordName` is queryable.
        public var isQueryable = false
        /// The user record name of the account that has saved the first record of it; of one that was deployed, `nil`.
        public var addedBy: String?
    }

    public var types: [String: RecordType] = [:]
    public var nextIndex: Int64 = 1
    /// Whether nothing may come to it in development either; `nil` as `false`.
    public var isFrozen: Bool?

    public init() {}

    /// Takes in what a record has, or checks it.
    ///
    /// - Parameters:
    ///   - isFixed: Whether nothing may come to it, as in production.
    ///   - user: The account that saves the record.
    /// - Returns: Whether the schema has changed.
    /// - Throws: `CloudError` `invalidArguments` for a value of another type, and for what a fixed schema lacks; `limitExceeded` for a field
    ///   too many.
    mutating func admit(
        _ type: String, fields values: [String: CloudValue], limits: CloudLimits, isFixed: Bool, by user: String
    ) throws(CloudError) -> Bool {
        var known = types[type]
        let isFrozen = isFrozen == true && !isFixed
        guard known != nil || !isFrozen else { throw Self.frozen("the type '\(type.prefix(100))'") }
        guard known != nil || !isFixed else {
            throw CloudError(
                .unknownItem, "there is no record type '\(type)' in the production schema. Deploy the schema that has it")
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
            if let field = known!.fields[name] {
                // A list without elements may be of any.
                if case .list(let elements, _) = value, elements.isEmpty, field.fieldType?.isList == true { continue }
                guard field.fieldType == wanted else {
                    let remedy =
                        isFixed
                        ? ""
                        : ". In development, the first record with a field decides its type; an administrator of the cloud can "
                            + "free it: tidemark admin schema remove --type \(type) --field \(name)"
                    throw CloudError(
                        .invalidArguments, "Invalid value for '\(name)', expected type \(field.type), got \(wanted)\(remedy)")
                }
                continue
            }
            guard !isFrozen else { throw Self.frozen("'\(name.prefix(100))' of '\(type)'") }
            guard !isFixed else {
                throw CloudError(
                    .invalidArguments, "'\(type)' has no field '\(name)' in the production schema. Deploy the schema that has it")
            }
            try Self.checkName(name)
            guard known!.fields.count < limits.fieldsPerType else {
                throw CloudError(
                    .limitExceeded, "'\(type)' has \(limits.fieldsPerType) fields, and can't have '\(name)' as well")
            }
            known!.fields[name] = Field(type: wanted.description, addedBy: user)
            hasChanged = true
        }
        if hasChanged { types[type] = known }
        return hasChanged
    }

    /// Tells whether a record type of this name can exist.
    static func canBeQueried(_ type: String) -> Bool { isName(type) || type == CloudShare.recordType }

    private static func frozen(_ what: String) -> CloudError {
        CloudError(
            .invalidArguments,
            "\(what) is not in the development schema, which is frozen. An administrator of the cloud can let it grow: "
                + "tidemark admin schema freeze --off")
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
