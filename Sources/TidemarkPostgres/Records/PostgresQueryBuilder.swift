package import Foundation
import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkModel

/// Makes SQL of a query.
struct PostgresQueryBuilder {
    /// How many bytes of a value are in the index of values.
    static let indexedBytes = 500
    /// The number of a record's columns. The columns of the order come after them.
    static let recordColumnCount = 14

    private(set) var parameters: [any PostgresParameter]
    /// The parameter with the numbers of the shares to which the query is limited.
    private var shares: String?
    /// Whether each condition is tested for each record of a walk, by a subquery that is not planned with the walk.
    private var isWalking = false
    /// Whether the query counts the rows that meet one condition.
    private var isCounting = false
    /// How many numbers ``counts(_:upTo:)`` has asked for.
    private(set) var countedColumns = 0

    init(container: Int64, zone: StoredZone.ID) { parameters = [container, zone.owner.key, zone.number] }

    private mutating func bind(_ value: some PostgresParameter) -> String {
        parameters.append(value)
        return "$\(parameters.count)"
    }

    /// Limits a table to the zone, or, without zones, to its owner.
    private static func inZone(_ table: String) -> String {
        "\(inOwner(table)) AND \(table).zone = $3"
    }
    private static func inOwner(_ table: String) -> String { "\(table).container = $1 AND \(table).owner = $2" }

    mutating func sql(_ query: IndexQuery, columns: String, limit: Int) -> String {
        shares = query.shares.map { bind($0.map(\.number)) }
        let keys = query.order.map { expression($0) }.enumerated().map { ", \($1) AS k\($0)" }.joined()
        var inner = "SELECT \(columns)\(keys) FROM tidemark_records r"
        inner += " WHERE \(Self.inZone("r")) AND r.type = \(bind(query.type.key)) AND NOT r.is_deleted"
        if let shares {
            inner += """
                 AND r.name IN (SELECT c.name FROM tidemark_covered c
                WHERE \(Self.inOwner("c")) AND c.share = ANY(\(shares)) AND NOT c.is_gone)
                """
        }
        for condition in query.conditions { inner += " AND \(sql(condition, isNegated: false))" }
        var outer = "SELECT * FROM (\(inner)) q"
        if let after = query.after { outer += " WHERE \(behind(after.values, after.name, query.order))" }
        // Records without a value come first in ascending order, and last in descending order.
        let order =
            query.order.enumerated().map { "q.k\($0) \($1.isAscending ? "ASC NULLS FIRST" : "DESC NULLS LAST")" } + ["q.name ASC"]
        return "\(outer) ORDER BY \(order.joined(separator: ", ")) LIMIT \(bind(Int64(limit)))"
    }

    /// SQL that walks a part of an index in the order of the query. Only records that are equal in the first bytes of a value are
    /// sorted, so each sort is small.
    mutating func walk(
        _ query: IndexQuery, along index: Int64, _ part: IndexQuery.WalkedPart, columns: String, limit: Int
    ) -> String {
        guard let first = query.order.first else { return "" }
        isWalking = true
        shares = query.shares.map { bind($0.map(\.number)) }
        let after = query.place(in: part)
        var keys = [part == .values ? "f.value" : "NULL::bytea"]
        for order in query.order.dropFirst() { keys.append(expression(order)) }
        var inner = "SELECT f.name AS name, \(Self.head) AS head\(keys.enumerated().map { ", \($1) AS k\($0)" }.joined())"
        inner += """
             FROM tidemark_found f CROSS JOIN LATERAL (SELECT r.name, r.created, r.created_by, r.modified, r.modified_by, r.parent,
            r.type, r.is_deleted FROM tidemark_records r WHERE \(Self.inZone("r")) AND r.name = f.name OFFSET 0) r
            WHERE \(Self.inZone("f")) AND r.type = \(bind(query.type.key)) AND NOT r.is_deleted
            """
        switch part {
        case .values:
            inner += " AND f.idx = \(index) AND f.\(PostgresCloudTables.hasIndex)"
            if let value = after?.values.first.flatMap({ $0 }) {
                inner += " AND \(compareFound(first.isAscending ? .greaterOrEqual : .lessOrEqual, value))"
            }
            for bound in first.bounds { inner += " AND \(compareFound(bound.comparison, bound.value))" }
            // Of several values of a record the least one counts, once.
            inner += """
                 AND NOT EXISTS (SELECT FROM tidemark_found g WHERE \(Self.inZone("g")) AND g.name = f.name
                AND \(Self.ofRecord("g", index)) AND (g.value, g.ordinal) < (f.value, f.ordinal) OFFSET 0)
                """
        case .withoutValue:
            inner += " AND f.idx = \(-index) AND f.\(PostgresCloudTables.hasNoValue)"
            if let after, query.order.count == 1 { inner += " AND f.name > \(bind(after.name.key))" }
        }
        if let shares {
            inner += """
                 AND EXISTS (SELECT FROM tidemark_covered c WHERE \(Self.inZone("c")) AND c.name = r.name
                AND c.share = ANY(\(shares)) AND NOT c.is_gone OFFSET 0)
                """
        }
        for condition in query.conditions { inner += " AND \(sql(condition, isNegated: true))" }
        var walked = "SELECT * FROM (\(inner)) q"
        if let after { walked += " WHERE \(behind(after.values, after.name, query.order))" }
        let direction = first.isAscending ? "ASC" : "DESC"
        var order = part == .values ? ["head \(direction)", "k0 \(direction)"] : []
        for (place, other) in query.order.enumerated().dropFirst() {
            order.append("k\(place) \(other.isAscending ? "ASC NULLS FIRST" : "DESC NULLS LAST")")
        }
        order.append("name ASC")
        walked += " ORDER BY \(order.map { "q.\($0)" }.joined(separator: ", ")) LIMIT \(bind(Int64(limit)))"
        return """
            SELECT \(columns)\(keys.indices.map { ", w.k\($0)" }.joined()) FROM (\(walked)) w
            CROSS JOIN LATERAL (SELECT * FROM tidemark_records r WHERE \(Self.inZone("r")) AND r.name = w.name OFFSET 0) r
            ORDER BY \(order.map { "w.\($0)" }.joined(separator: ", "))
            """
    }

    /// SQL that counts, up to a limit, the records of the query's type, the index's entries for each condition, and the records
    /// that the shares cover. A count below the limit tells that few records meet the query.
    mutating func counts(_ query: IndexQuery, upTo limit: Int) -> String {
        let most = bind(Int64(limit))
        var rows = ["tidemark_records r WHERE \(Self.inZone("r")) AND r.type = \(bind(query.type.key)) AND NOT r.is_deleted"]
        for condition in query.conditions {
            switch condition {
            case .compare(.index, _, _), .isOneOf(.index, _), .beginsWith(.index, _):
                isCounting = true
                rows.append(sql(condition, isNegated: false))
                isCounting = false
            case .compare(.recordName, _, _), .isOneOf(.recordName, _), .compare(.parent, .equal, _), .isOneOf(.parent, _):
                rows.append("tidemark_records r WHERE \(Self.inZone("r")) AND \(sql(condition, isNegated: false))")
            default: break
            }
        }
        if let shares = query.shares {
            let numbers = bind(shares.map(\.number))
            rows.append("tidemark_covered c WHERE \(Self.inOwner("c")) AND c.share = ANY(\(numbers)) AND NOT c.is_gone")
        }
        countedColumns = rows.count
        let counts = rows.map { "(SELECT count(*) FROM (SELECT FROM \($0) LIMIT \(most)) x)" }
        return "SELECT \(counts.joined(separator: ", "))"
    }

    // Keys

    /// A column of a record, and what values it has.
    private struct Column {
        let sql: String
        let isNumber: Bool
    }

    private func column(_ key: IndexQuery.Key) -> Column? {
        switch key {
        case .index: nil
        case .recordName: Column(sql: "r.name", isNumber: false)
        case .created: Column(sql: "r.created", isNumber: true)
        case .createdBy: Column(sql: "r.created_by", isNumber: false)
        case .modified: Column(sql: "r.modified", isNumber: true)
        case .modifiedBy: Column(sql: "r.modified_by", isNumber: false)
        case .parent: Column(sql: parent, isNumber: false)
        }
    }

    private var parent: String {
        guard let shares else { return "r.parent" }
        // The parent of a share's root is not shared.
        return """
            CASE WHEN r.name IN (SELECT s.root FROM tidemark_shares s WHERE \(Self.inOwner("s")) AND s.number = ANY(\(shares)))
            THEN NULL ELSE r.parent END
            """
    }

    private static func index(_ key: IndexQuery.Key) -> Int64 {
        if case .index(let number) = key { return number }
        return 0
    }

    private mutating func expression(_ order: IndexQuery.Order) -> String {
        if let column = column(order.key) {
            // Only a location has a distance.
            return order.from == nil ? column.sql : "NULL::float8"
        }
        let value = order.from.map { distance(latitude: $0.latitude, longitude: $0.longitude) } ?? "f.value"
        return """
            (SELECT \(value) FROM tidemark_found f
            WHERE \(Self.inZone("f")) AND f.name = r.name AND \(Self.ofRecord("f", Self.index(order.key))) ORDER BY f.value LIMIT 1)
            """
    }

    /// Metres between a location and a place, on a sphere.
    private mutating func distance(latitude: Double, longitude: Double) -> String {
        let (north, east) = (bind(latitude), bind(longitude))
        return """
            2 * 6371008.8 * asin(least(1, sqrt(power(sin(radians(\(north) - f.latitude) / 2), 2)
            + cos(radians(f.latitude)) * cos(radians(\(north))) * power(sin(radians(\(east) - f.longitude) / 2), 2))))
            """
    }

    // Conditions

    /// - Parameter isNegated: Whether the condition is within a negation. Each record's own values are tested then, since a
    ///   record without a value has no row among the values.
    private mutating func sql(_ condition: IndexQuery.Condition, isNegated: Bool) -> String {
        switch condition {
        case .not(let inner): return "NOT \(sql(inner, isNegated: true))"
        case .all(let conditions):
            return "(\((conditions.map { sql($0, isNegated: isNegated) } + ["true"]).joined(separator: " AND ")))"
        case .compare(let key, let comparison, let value):
            if let column = column(key) { return known(compare(column, comparison, value), isNegated) }
            return found(key, isNegated, compareFound(comparison, value))
        case .isOneOf(let key, let values):
            if let column = column(key) {
                let tests = values.map { compare(column, .equal, $0) } + ["false"]
                return known("(\(tests.joined(separator: " OR ")))", isNegated)
            }
            let bytes = values.map(\.sortableBytes)
            let heads = bind(bytes.map { $0.prefix(Self.indexedBytes) })
            return found(key, isNegated, "\(Self.head) = ANY(\(heads)) AND f.value = ANY(\(bind(bytes)))")
        case .beginsWith(let key, let text):
            if let column = column(key) {
                guard !column.isNumber else { return "false" }
                let prefix = bind(text.key)
                return known("substring(\(column.sql), 1, \(text.utf8.count)) = \(prefix)", isNegated)
            }
            let lower = IndexValue.text(text).sortableBytes
            // No byte of UTF-8 is 255, so the last byte can be raised.
            var upper = lower
            upper[upper.endIndex - 1] += 1
            return found(
                key, isNegated, "\(compareFound(.greaterOrEqual, bytes: lower)) AND \(compareFound(.less, bytes: upper))")
        case .near(let key, let latitude, let longitude, let metres):
            guard column(key) == nil else { return "false" }
            return found(
                key, isNegated,
                "coalesce(\(distance(latitude: latitude, longitude: longitude)) <= \(bind(metres)), false)")
        }
    }

    /// A comparison with NULL is not met, so its negation has to be. Outside a negation nothing is added, so that an index may be
    /// used.
    private func known(_ test: String, _ isNegated: Bool) -> String { isNegated ? "coalesce(\(test), false)" : "(\(test))" }

    /// SQL that tells whether one of a record's values under a key passes a test.
    private func found(_ key: IndexQuery.Key, _ isNegated: Bool, _ test: String) -> String {
        if isWalking {
            return """
                EXISTS (SELECT FROM tidemark_found f WHERE \(Self.inZone("f")) AND f.name = r.name
                AND \(Self.ofRecord("f", Self.index(key))) AND \(test) OFFSET 0)
                """
        }
        let rows = "tidemark_found f WHERE \(Self.inZone("f")) AND f.idx = \(Self.index(key))"
        if isNegated { return "EXISTS (SELECT FROM \(rows) AND f.name = r.name AND \(test))" }
        let found = "\(rows) AND f.\(PostgresCloudTables.hasIndex) AND \(test)"
        return isCounting ? found : "r.name IN (SELECT f.name FROM \(found))"
    }

    /// SQL that tells whether a row of a record, which another condition names, is of an index. The subquery keeps PostgreSQL
    /// from the index of values: without statistics, as after a restoration, it may take that index to have few rows, and read
    /// all of them for each record.
    private static func ofRecord(_ table: String, _ index: Int64) -> String { "\(table).idx = (SELECT \(index)::int8)" }

    /// The first bytes of a value, as the index of values has them.
    private static let head = "substring(f.value, 1, \(indexedBytes))"

    private mutating func compareFound(_ comparison: IndexQuery.Comparison, _ value: IndexValue) -> String {
        compareFound(comparison, bytes: value.sortableBytes)
    }

    /// Compares the first bytes, by the index, and then the value. Values that differ may be equal in their first bytes.
    private mutating func compareFound(_ comparison: IndexQuery.Comparison, bytes: Data) -> String {
        let weak: IndexQuery.Comparison =
            switch comparison {
            case .less: .lessOrEqual
            case .greater: .greaterOrEqual
            default: comparison
            }
        let head = bind(Data(bytes.prefix(Self.indexedBytes)))
        return "\(Self.head) \(weak.rawValue) \(head) AND f.value \(comparison.rawValue) \(bind(bytes))"
    }

    /// Compares a column: numbers come before texts, and texts before bytes.
    private mutating func compare(_ column: Column, _ comparison: IndexQuery.Comparison, _ value: IndexValue) -> String {
        let isLess = comparison == .less || comparison == .lessOrEqual
        let isGreater = comparison == .greater || comparison == .greaterOrEqual
        switch (column.isNumber, value) {
        case (true, .integer(let number)): return "\(column.sql) \(comparison.rawValue) \(bind(number))"
        case (true, .real(let number)):
            return "\(column.sql)::numeric \(comparison.rawValue) \(bind(number))::numeric"
        case (false, .text(let text)): return "\(column.sql) \(comparison.rawValue) \(bind(text.key))"
        // Every value of the column is less, or every value is greater. A missing parent is neither.
        case (true, _), (false, .bytes): return isLess ? "\(column.sql) IS NOT NULL" : "false"
        case (false, _): return isGreater ? "\(column.sql) IS NOT NULL" : "false"
        }
    }

    // Places

    /// SQL that tells whether a row comes after one with these keys.
    private mutating func behind(_ values: [IndexValue?], _ name: String, _ order: [IndexQuery.Order]) -> String {
        var alternatives: [String] = []
        for length in 0...order.count {
            var terms = (0..<length).map { place in
                values[place].map { "q.k\(place) = \(bind($0, as: order[place]))" } ?? "q.k\(place) IS NULL"
            }
            if length == order.count {
                terms.append("q.name > \(bind(name.key))")
            } else {
                switch (values[length], order[length].isAscending) {
                case (nil, true): terms.append("q.k\(length) IS NOT NULL")
                case (nil, false): terms.append("false")
                case (let value?, true): terms.append("q.k\(length) > \(bind(value, as: order[length]))")
                case (let value?, false):
                    terms.append("(q.k\(length) < \(bind(value, as: order[length])) OR q.k\(length) IS NULL)")
                }
            }
            alternatives.append("(\(terms.joined(separator: " AND ")))")
        }
        return "(\(alternatives.joined(separator: " OR ")))"
    }

    /// Binds a value by which a record was ordered, in the type of the order's column. It comes from a client's continuation, so
    /// it may be of any kind.
    private mutating func bind(_ value: IndexValue, as order: IndexQuery.Order) -> String {
        if order.from != nil {
            switch value {
            case .integer(let number): return bind(Double(number))
            case .real(let number): return bind(number)
            case .text, .bytes: return bind(Double.infinity)
            }
        }
        guard let column = column(order.key) else { return bind(value.sortableBytes) }
        switch (column.isNumber, value) {
        case (true, .integer(let number)): return bind(number)
        case (true, .real(let number)): return "\(bind(number))::numeric"
        case (true, _): return bind(Int64.max)
        case (false, .text(let text)): return bind(text.key)
        case (false, .bytes(let bytes)): return bind(bytes)
        case (false, _): return bind(Data())
        }
    }
}

extension IndexValue {
    /// Bytes whose order is that of the values; equal for equal values.
    ///
    /// The first byte is 1 for a number, 2 for a text, 3 for bytes. Texts and bytes follow as they are. A number has the greatest
    /// double that is not above it, with its bits changed so that they sort. After it come two bytes with an integer's distance
    /// from that double.
    package var sortableBytes: Data {
        switch self {
        case .integer(let number):
            var floor = Double(number)
            // The double may have been rounded up, even to 2^63, which is greater than all integers.
            if floor >= 0x1p63 || Int64(floor) > number { floor = floor.nextDown }
            return Self.sortable(floor, rest: UInt16(truncatingIfNeeded: number - Int64(floor)))
        case .real(let number): return Self.sortable(number, rest: 0)
        case .text(let text):
            var bytes = Data([2])
            bytes.append(contentsOf: text.utf8)
            return bytes
        case .bytes(let content): return Data([3]) + content
        }
    }

    private static func sortable(_ number: Double, rest: UInt16) -> Data {
        let bits = (number == 0 ? 0 : number).bitPattern
        let sortable = bits >> 63 == 1 ? ~bits : bits | 1 << 63
        var bytes = Data([1])
        for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: sortable >> UInt64(shift))) }
        bytes.append(contentsOf: [UInt8(rest >> 8), UInt8(rest & 0xff)])
        return bytes
    }

    /// Reads ``sortableBytes``. A whole number becomes an integer, if it is one that an `Int64` can be.
    package init?(sortable bytes: Data) {
        let bytes = Data(bytes)
        switch bytes.first {
        case 1 where bytes.count == 11:
            let sortable = bytes[1..<9].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            let number = Double(bitPattern: sortable >> 63 == 1 ? sortable & ~(1 << 63) : ~sortable)
            let rest = Int64(bytes[9]) << 8 | Int64(bytes[10])
            self = Int64(exactly: number).map { .integer($0 + rest) } ?? .real(number)
        case 2: self = .text(String(decoding: bytes.dropFirst(), as: UTF8.self))
        case 3: self = .bytes(bytes.dropFirst())
        default: return nil
        }
    }

    /// Reads the column of an order; `nil` where a record has no value.
    init?(_ row: PostgresRow, _ column: Int, of order: IndexQuery.Order) throws {
        if order.from != nil {
            guard let metres: Double = try row.value(column, as: Double?.self) else { return nil }
            self = .real(metres)
            return
        }
        switch order.key {
        case .index:
            guard let bytes = try row.value(column, as: Data?.self), let value = IndexValue(sortable: bytes) else { return nil }
            self = value
        case .created, .modified: self = .integer(try row.value(column))
        case .recordName, .createdBy, .modifiedBy, .parent:
            guard let text = try row.optionalText(column) else { return nil }
            self = .text(text)
        }
    }

    /// The location of a text that is one, `latitude longitude`.
    package var place: (latitude: Double, longitude: Double)? {
        // Other texts mostly are longer, or have no digit.
        guard case .text(let text) = self, text.utf8.count <= 60, text.utf8.last.map({ (0x30...0x39).contains($0) }) ?? false
        else {
            return nil
        }
        let parts = text.split(separator: " ").compactMap { Double($0) }
        guard parts.count == 2, parts.allSatisfy(\.isFinite) else { return nil }
        return (parts[0], parts[1])
    }
}
