import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkModel
import TidemarkWire

/// A query as people build it: texts, which a schema gives types.
package struct RecordQuery: Hashable, Sendable {
    /// A condition.
    package struct Filter: Hashable, Sendable {
        /// A field, or `recordName`, `createdTimestamp`, `createdUserRecordName`, `modifiedTimestamp`, `modifiedUserRecordName`, `parent`.
        package var field: String
        package var comparator: CloudQuery.Comparator
        /// The value, as ``FieldText`` reads it. A comparator that takes a list has several values between commas, or a JSON
        /// array. `NEAR` takes latitude, longitude, metres.
        package var value: String

        package init(_ field: String, _ comparator: CloudQuery.Comparator, _ value: String) {
            (self.field, self.comparator, self.value) = (field, comparator, value)
        }
    }

    /// A rule for the order.
    package struct Sort: Hashable, Sendable {
        package var field: String
        package var isAscending: Bool

        package init(_ field: String, isAscending: Bool = true) { (self.field, self.isAscending) = (field, isAscending) }
    }

    package var type: String
    package var filters: [Filter]
    package var sorts: [Sort]

    package init(type: String, filters: [Filter] = [], sorts: [Sort] = []) {
        (self.type, self.filters, self.sorts) = (type, filters, sorts)
    }

    /// The system fields, which each record has beside its own fields.
    package static let systemFields: [(name: String, key: CloudQuery.Key, type: FieldType)] = [
        ("recordName", .recordName, .string), ("createdTimestamp", .created, .timestamp),
        ("createdUserRecordName", .createdBy, .string), ("modifiedTimestamp", .modified, .timestamp),
        ("modifiedUserRecordName", .modifiedBy, .string), ("parent", .parent, .string),
    ]

    private static func key(_ field: String) -> CloudQuery.Key {
        systemFields.first { $0.name == field }?.key ?? .field(field)
    }

    /// The query, with values of the types that the schema has for the fields.
    ///
    /// - Throws: ``AdministrationError`` `invalid` for a value that does not fit.
    package func cloudQuery(_ schema: CloudSchema) throws(AdministrationError) -> CloudQuery {
        var query = CloudQuery(recordType: type)
        for filter in filters { query.filters.append(try condition(filter, schema)) }
        query.sorts = sorts.map { CloudQuery.Sort(Self.key($0.field), isAscending: $0.isAscending) }
        return query
    }

    /// Looks for the type and the fields of the query in a schema.
    ///
    /// Clients get an error about a missing index instead, as from CloudKit: in development a type or a field may come with the
    /// next record.
    ///
    /// - Parameter environment: The environment that has the schema.
    /// - Throws: ``AdministrationError`` `notFound` for a type, `invalid` for a field that the schema lacks; each with what may be meant.
    func check(_ schema: CloudSchema, _ environment: StoreEnvironment) throws(AdministrationError) {
        // Shares are records whose type no schema has.
        guard type != CloudShare.recordType else { return }
        guard let known = schema.types[type] else {
            throw AdministrationError(
                .notFound,
                "there is no record type '\(type.prefix(255))' in the \(environment.rawValue) schema"
                    + Suggestion.question(type, among: schema.types.keys.sorted()))
        }
        let names = known.fields.keys.sorted() + Self.systemFields.map(\.name)
        for field in filters.map(\.field) + sorts.map(\.field) where !names.contains(field) {
            throw AdministrationError(
                .invalid,
                "\(type) has no field '\(field.prefix(255))' in the \(environment.rawValue) schema"
                    + Suggestion.question(field, among: names))
        }
    }

    private func condition(_ filter: Filter, _ schema: CloudSchema) throws(AdministrationError) -> CloudQuery.Filter {
        let known =
            Self.systemFields.first { $0.name == filter.field }?.type ?? schema.types[type]?.fields[filter.field]?.fieldType
        // Administration has looked for the field before; for a mere request its type does not matter.
        let scalar = known?.scalar ?? .string
        let key = Self.key(filter.field)
        switch filter.comparator {
        case .near:
            let parts = filter.value.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            guard parts.count == 3, let metres = Double(parts[2]), metres >= 0 else {
                throw AdministrationError(.invalid, "NEAR takes latitude, longitude, metres")
            }
            let place = try FieldText.value("\(parts[0]), \(parts[1])", as: .location, field: filter.field)
            return CloudQuery.Filter(key, .near, place, distance: metres)
        case .isIn, .isNotIn, .listContainsAny, .listContainsNone, .listContainsAll, .listDoesNotContainAll:
            let text = filter.value.trimmingCharacters(in: .whitespaces)
            if text.hasPrefix("[") {
                return CloudQuery.Filter(
                    key, filter.comparator, try FieldText.value(text, as: .list(of: scalar), field: filter.field))
            }
            var values: [CloudValue] = []
            for part in text.split(separator: ",") {
                values.append(
                    try FieldText.value(part.trimmingCharacters(in: .whitespaces), as: FieldType(scalar), field: filter.field))
            }
            return CloudQuery.Filter(key, filter.comparator, .list(values, of: scalar))
        case .containsAllTokens, .containsAnyTokens, .beginsWith, .doesNotBeginWith, .listMemberBeginsWith,
            .noListMemberBeginsWith:
            return CloudQuery.Filter(key, filter.comparator, .string(filter.value))
        case .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals, .listContains,
            .listDoesNotContain:
            return CloudQuery.Filter(
                key, filter.comparator, try FieldText.value(filter.value, as: FieldType(scalar), field: filter.field))
        }
    }
}

/// A query as a client sends it over HTTP.
package struct RecordRequest: Sendable {
    /// The path of the operation.
    package let path: String
    /// The body: JSON, indented.
    package let body: String

    package init(_ query: CloudQuery, in place: RecordPlace, limit: Int) {
        path = "/database/1/\(place.container)/\(place.environment.rawValue)/\(place.scope.name)/records/query"
        var json = JSONWriter()
        json.object {
            $0.member("zoneID") { place.zoneID.writeMembers(&$0) }
            $0.name("query")
            query.write(&$0, zone: place.zoneID)
            $0.member("resultsLimit", Int64(limit))
        }
        body = Self.indented(json.bytes)
    }

    /// The command that sends it. The API token, and for a private database the session, are the caller's to put in.
    ///
    /// - Parameter baseURL: The server's address: `https://host:port`.
    package func curl(_ baseURL: String) -> String {
        let parameters = path.contains("/public/") ? "ckAPIToken=TOKEN" : "ckAPIToken=TOKEN&ckWebAuthToken=SESSION"
        return """
            curl \(Self.quoted("\(baseURL)\(path)?\(parameters)")) \\
              -H 'Content-Type: application/json' \\
              -d \(Self.quoted(body))
            """
    }

    /// A text as a shell takes it for one word.
    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }

    /// JSON with a line for each member. Strings stay as they are.
    package static func indented(_ bytes: [UInt8]) -> String {
        var (result, depth, isInString, isEscaped) = ([UInt8](), 0, false, false)
        func newLine() { result += [0x0a] + [UInt8](repeating: 0x20, count: 2 * depth) }
        for (index, byte) in bytes.enumerated() {
            if isInString {
                result.append(byte)
                isInString = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: "\""):
                isInString = true
                result.append(byte)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                result.append(byte)
                guard index + 1 < bytes.count, bytes[index + 1] != byte + 2 else { continue }
                depth += 1
                newLine()
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if bytes[index - 1] != byte - 2 {
                    depth -= 1
                    newLine()
                }
                result.append(byte)
            case UInt8(ascii: ","):
                result.append(byte)
                newLine()
            case UInt8(ascii: ":"): result += [byte, 0x20]
            default: result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
