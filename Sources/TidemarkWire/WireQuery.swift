package import TidemarkCloud
package import TidemarkModel

extension CloudQuery {
    /// Reads a query.
    ///
    /// - Parameter schema: Returns the known types of the fields of a record type.
    package init(
        _ node: JSONNode, zone: CloudZoneID, schema: (String) -> [String: FieldType]
    ) throws(CloudError) {
        let query = try node.required("query")
        let type = try query.required("recordType").asString()
        self.init(recordType: type)
        for node in try query.oneOrMore("filterBy") { filters.append(try Filter(node, zone) { schema(type) }) }
        for node in try query.oneOrMore("sortBy") { sorts.append(try Sort(node)) }
    }

    package func write(_ json: inout JSONWriter, zone: CloudZoneID) {
        let dialect = WireDialect(isExtended: true)
        json.object {
            $0.member("recordType", recordType)
            $0.list("filterBy") { json in
                for filter in filters {
                    json.object {
                        filter.key.write(&$0)
                        $0.member("comparator", filter.comparator.rawValue)
                        $0.name("fieldValue")
                        filter.value.write(&$0, zone: zone, dialect) { _ in nil }
                        $0.member("distance", number: filter.distance)
                    }
                }
            }
            $0.list("sortBy") { json in
                for sort in sorts {
                    json.object {
                        sort.key.write(&$0)
                        $0.member("ascending", sort.isAscending)
                        if let place = sort.relativeLocation {
                            $0.name("relativeLocation")
                            place.write(&$0)
                        }
                    }
                }
            }
        }
    }
}

extension JSONNode {
    /// Returns the elements of an array; or a single object, which some clients send.
    fileprivate func oneOrMore(_ name: StaticString) throws(CloudError) -> [JSONNode] {
        guard let member = self[name] else { return [] }
        return member.isObject ? [member] : try member.asArray(most: 20)
    }
}

extension CloudQuery.Key {
    /// The system fields, each with its plain name and its name with underscores.
    private static let system: [(plain: String, underscored: String, key: CloudQuery.Key)] = [
        ("recordName", "___recordID", .recordName), ("createdTimestamp", "___createTime", .created),
        ("createdUserRecordName", "___createdBy", .createdBy), ("modifiedTimestamp", "___modTime", .modified),
        ("modifiedUserRecordName", "___modifiedBy", .modifiedBy), ("parent", "___parent", .parent),
    ]

    fileprivate init(_ node: JSONNode) throws(CloudError) {
        if let name = try node.string("systemFieldName") {
            guard let known = Self.system.first(where: { $0.plain == name || $0.underscored == name }) else {
                throw node.refusal("has a systemFieldName that no record has: '\(name.prefix(40))'")
            }
            self = known.key
            return
        }
        guard let name = try node.string("fieldName") else { throw node.refusal("lacks the member 'fieldName'") }
        self = Self.system.first { $0.underscored == name }?.key ?? .field(name)
    }

    fileprivate func write(_ json: inout JSONWriter) {
        if case .field(let name) = self {
            json.member("fieldName", name)
        } else {
            json.member("systemFieldName", Self.system.first { $0.key == self }?.plain)
        }
    }

    /// The type of the key's values; `nil` for a field of unknown type.
    fileprivate func type(_ known: () -> [String: FieldType]) -> FieldType? {
        switch self {
        case .field(let name): known()[name]
        case .created, .modified: .timestamp
        case .recordName, .createdBy, .modifiedBy, .parent: .string
        }
    }

    fileprivate var isName: Bool {
        switch self {
        case .recordName, .createdBy, .modifiedBy, .parent: true
        default: false
        }
    }
}

extension CloudQuery.Filter {
    fileprivate init(_ node: JSONNode, _ zone: CloudZoneID, _ known: () -> [String: FieldType]) throws(CloudError) {
        let named = try node.required("comparator")
        guard let comparator = CloudQuery.Comparator(rawValue: try named.asString()) else {
            throw named.refusal("is no comparator that is known")
        }
        let key = try CloudQuery.Key(node)
        let given = try node.required("fieldValue")
        guard given.isObject, let value = given["value"] else { throw given.refusal("lacks the member 'value'") }
        let reader = WireValueReader(zone: zone) { _, node throws(CloudError) in
            throw node.refusal("is an asset, which can't be compared")
        }
        let wantsList = comparator.comparesWithList
        if let type = try given.string("type"), wantsList, !type.hasSuffix("_LIST") {
            throw given.refusal(
                "BadRequestException: Unexpected input: \(comparator.rawValue) compares with a list, not with a \(type.prefix(40))"
            )
        }
        let read: CloudValue
        if key.isName {
            // The value is a reference or a record's name, or a list of these.
            func name(_ node: JSONNode) throws(CloudError) -> CloudValue {
                .string(try (node["recordName"] ?? node).asString())
            }
            if value.isArray {
                var names: [CloudValue] = []
                for element in value.elements { names.append(try name(element)) }
                read = .list(names, of: .string)
            } else {
                read = try name(value)
            }
        } else {
            // A value without a type has the field's scalar type; for comparators that take a list, it is a list of this type.
            switch try reader.field(
                given,
                known: { key.type(known).map { wantsList ? .list(of: $0.scalar) : FieldType($0.scalar) } })
            {
            case .value(let value): read = value
            case .cleared: throw given.refusal("lacks the member 'value'")
            case .emptyList: read = .list([], of: .string)
            }
        }
        self.init(key, comparator, read, distance: try node.number("distance"))
    }
}

extension CloudQuery.Comparator {
    fileprivate var comparesWithList: Bool {
        switch self {
        case .isIn, .isNotIn, .listContainsAny, .listContainsNone, .listContainsAll, .listDoesNotContainAll: true
        default: false
        }
    }
}

extension CloudQuery.Sort {
    fileprivate init(_ node: JSONNode) throws(CloudError) {
        var place: Location?
        if let given = node["relativeLocation"] {
            // The location is written as such, or as the value of a field.
            place = try Location(given["value"] ?? given)
        }
        self.init(try CloudQuery.Key(node), isAscending: try node.bool("ascending") ?? true, relativeLocation: place)
    }
}
