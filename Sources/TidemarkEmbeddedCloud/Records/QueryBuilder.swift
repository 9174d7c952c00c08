import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Makes the SQL of a query.
struct QueryBuilder {
    /// Whether the zone has many records of the type.
    let isFrequent: Bool
    /// Whether an index of values is known to find few records that meet the conditions.
    var isFound = false
    /// Whether the SQL counts the rows that meet one condition.
    private var isCounting = false
    /// Whether the query is limited to some shares, which are a named parameter because it may be used twice.
    private var isLimited = false
    private static let shares = "(SELECT value FROM json_each(:shares))"
    var arguments = StatementArguments()

    /// A zone by the numbers that its rows have.
    struct Zone {
        let owner: Int64
        let number: Int64
    }

    init(isFrequent: Bool) { self.isFrequent = isFrequent }

    private mutating func bind(_ value: DatabaseValue) -> String {
        arguments += [value]
        return "?"
    }

    mutating func sql(_ query: IndexQuery, zone: Zone, limit: Int) -> String {
        // Parameters are bound in the order in which they are in the text.
        bindShares(query.shares)
        let keys = query.order.map { expression($0, zone.owner) }
        let columns = keys.enumerated().map { ", \($1) AS k\($0)" }.joined()
        // Without an order, records come in the order of their names. Conditions that are negations leave out few records.
        // Both together are found fastest by walking the index of names, which needs no sorting.
        let isWide = query.order.isEmpty && query.conditions.allSatisfy { if case .not = $0 { true } else { false } }
        let index = isFrequent && isWide ? " INDEXED BY records_by_name" : ""
        // Without statistics, SQLite would walk all names of the zone. The plus signs prevent that.
        let plus = isFound || query.conditions.contains(where: Self.isNarrow) ? "+" : ""
        var inner = "SELECT r.*\(columns) FROM records r\(index) WHERE \(plus)r.owner = \(bind(zone.owner.databaseValue))"
        inner += " AND \(plus)r.zone = \(bind(zone.number.databaseValue))"
        inner += " AND r.type = \(bind(query.type.databaseValue)) AND r.is_deleted = 0"
        if isLimited {
            inner +=
                " AND r.name IN (SELECT c.name FROM covered c WHERE c.owner = \(zone.owner) AND c.share IN \(Self.shares) AND c.is_gone = 0)"
        }
        for condition in query.conditions { inner += " AND \(sql(condition, in: zone, zone.owner))" }
        var outer = "SELECT * FROM (\(inner))"
        if let after = query.after { outer += " WHERE \(behind(after.values, after.name, query.order))" }
        let order = query.order.enumerated().map { "k\($0) \($1.isAscending ? "ASC" : "DESC")" } + ["name ASC"]
        return "\(outer) ORDER BY \(order.joined(separator: ", ")) LIMIT \(bind(Int64(limit).databaseValue))"
    }

    private mutating func bindShares(_ shares: [StoredShare.ID]?) {
        guard let shares else { return }
        isLimited = true
        arguments += ["shares": "[\(shares.map { String($0.number) }.joined(separator: ", "))]"]
    }

    /// Makes SQL that walks a part of an index in the order of the query. The result has the numbers of records with the values
    /// that they are ordered by. SQLite sorts only records with equal first values, which are few.
    mutating func walk(
        _ query: IndexQuery, along index: Int64, _ part: IndexQuery.WalkedPart, zone: Zone, limit: Int
    ) -> String {
        bindShares(query.shares)
        guard let first = query.order.first else { return "" }
        let after = query.place(in: part)
        var keys = [part == .values ? "f.value" : "NULL"]
        for order in query.order.dropFirst() { keys.append(expression(order, zone.owner)) }
        let columns = keys.enumerated().map { ", \($1) AS k\($0)" }.joined()
        let number = part == .values ? index : -index
        // In the rows of records without a value, the value is the record's name.
        let name = part == .values ? "r.name" : "f.value"
        var inner = "SELECT r.id AS id, \(name) AS name\(columns) FROM found f CROSS JOIN records r ON r.id = f.record"
        inner += " WHERE f.owner = \(zone.owner) AND f.zone = \(zone.number) AND f.idx = \(number)"
        switch part {
        case .values:
            if let value = after?.values.first.flatMap({ $0 }) {
                inner += " AND f.value \(first.isAscending ? ">=" : "<=") \(bind(value.databaseValue))"
            }
            for bound in first.bounds { inner += " AND f.value \(bound.comparison.rawValue) \(bind(bound.value.databaseValue))" }
            // Of several values of a record only the least counts.
            inner += """
                 AND NOT EXISTS (SELECT 1 FROM found g WHERE g.owner = \(zone.owner) AND g.record = f.record AND g.idx = \(number) \
                AND (g.value < f.value OR g.value = f.value AND g.ordinal < f.ordinal))
                """
        case .withoutValue:
            if let after, query.order.count == 1 { inner += " AND f.value > \(bind(after.name.databaseValue))" }
        }
        inner += " AND r.owner = \(zone.owner) AND r.zone = \(zone.number)"
        inner += " AND r.type = \(bind(query.type.databaseValue)) AND r.is_deleted = 0"
        if isLimited {
            inner += """
                 AND EXISTS (SELECT 1 FROM covered c WHERE c.owner = \(zone.owner) AND c.zone = \(zone.number) AND c.name = r.name \
                AND c.is_gone = 0 AND c.share IN \(Self.shares))
                """
        }
        for condition in query.conditions { inner += " AND \(sql(condition, in: nil, zone.owner))" }
        var outer = "SELECT id\(keys.indices.map { ", k\($0)" }.joined()) FROM (\(inner))"
        if let after { outer += " WHERE \(behind(after.values, after.name, query.order))" }
        // Records without a value are equal in the first order. Ordering by it would sort all of them.
        var order = query.order.enumerated().map { "k\($0) \($1.isAscending ? "ASC" : "DESC")" }
        if part == .withoutValue { order.removeFirst() }
        order.append("name ASC")
        return "\(outer) ORDER BY \(order.joined(separator: ", ")) LIMIT \(bind(Int64(limit).databaseValue))"
    }

    /// Makes SQL that counts the rows of an index for a condition, up to a limit; `nil` for a condition without an index.
    mutating func count(_ condition: IndexQuery.Condition, in zone: Zone, upTo limit: Int) -> String? {
        let rows: String
        switch condition {
        case .compare(.index, _, _), .isOneOf(.index, _), .beginsWith(.index, _):
            isCounting = true
            rows = sql(condition, in: zone, zone.owner)
            isCounting = false
        case .compare(.recordName, _, _), .isOneOf(.recordName, _), .beginsWith(.recordName, _), .compare(.parent, .equal, _),
            .isOneOf(.parent, _):
            let numbers = "r.owner = \(zone.owner) AND r.zone = \(zone.number)"
            rows = "SELECT 1 FROM records r WHERE \(numbers) AND \(sql(condition, in: zone, zone.owner))"
        default: return nil
        }
        return "SELECT count(*) FROM (\(rows) LIMIT \(bind(Int64(limit).databaseValue)))"
    }

    /// Makes SQL that counts the records that shares cover, up to a limit.
    mutating func count(of shares: [StoredShare.ID], in zone: Zone, upTo limit: Int) -> String {
        bindShares(shares)
        let rows = "SELECT 1 FROM covered c WHERE c.owner = \(zone.owner) AND c.share IN \(Self.shares) AND c.is_gone = 0"
        return "SELECT count(*) FROM (\(rows) LIMIT \(bind(Int64(limit).databaseValue)))"
    }

    private mutating func expression(_ order: IndexQuery.Order, _ owner: Int64) -> String {
        let value =
            column(order.key, owner)
            ?? "(SELECT min(f.value) FROM found f WHERE f.owner = \(owner) AND f.record = r.id AND f.idx = \(index(order.key)))"
        guard let from = order.from else { return value }
        return "cloud_distance(\(value), \(bind(from.latitude.databaseValue)), \(bind(from.longitude.databaseValue)))"
    }

    private func column(_ key: IndexQuery.Key, _ owner: Int64) -> String? {
        switch key {
        case .index: nil
        case .recordName: "r.name"
        case .created: "r.created"
        case .createdBy: "r.created_by"
        case .modified: "r.modified"
        case .modifiedBy: "r.modified_by"
        case .parent:
            // The parent of a root is not shared.
            isLimited
                ? "iif(r.name IN (SELECT s.root FROM shares s WHERE s.owner = \(owner) AND s.id IN \(Self.shares)), NULL, r.parent)"
                : "r.parent"
        }
    }

    private func index(_ key: IndexQuery.Key) -> Int64 {
        if case .index(let number) = key { return number }
        return 0
    }

    /// Returns whether the index of values finds a few records that meet a condition.
    private static func isNarrow(_ condition: IndexQuery.Condition) -> Bool {
        switch condition {
        case .compare(.index, let comparison, _): comparison == .equal
        case .isOneOf(.index, _), .beginsWith(.index, _): true
        case .all(let conditions): conditions.contains(where: isNarrow)
        default: false
        }
    }

    /// - Parameter zone: `nil` within a negation, which no walk along existing values can find. SQL then reads each record's own
    ///   values, and ends when it has enough records.
    private mutating func sql(_ condition: IndexQuery.Condition, in zone: Zone?, _ owner: Int64) -> String {
        switch condition {
        case .not(let inner): return "NOT \(sql(inner, in: nil, owner))"
        case .all(let conditions):
            return "(\((conditions.map { sql($0, in: zone, owner) } + ["1"]).joined(separator: " AND ")))"
        case .compare(let key, let comparison, let value):
            return any(key, zone, owner) { builder, column in
                "\(column) \(comparison.rawValue) \(builder.bind(value.databaseValue))"
            }
        case .isOneOf(let key, let values):
            return any(key, zone, owner) { builder, column in
                "\(column) IN (\(values.map { builder.bind($0.databaseValue) }.joined(separator: ", ")))"
            }
        case .beginsWith(let key, let text):
            return any(key, zone, owner) { builder, column in
                let lower = builder.bind(text.databaseValue)
                // All values of bytes come after all texts.
                let upper = IndexQuery.end(of: text).map { builder.bind($0.databaseValue) } ?? "x''"
                return "\(column) >= \(lower) AND \(column) < \(upper)"
            }
        case .near(let key, let latitude, let longitude, let metres):
            return any(key, zone, owner) { builder, column in
                "cloud_distance(\(column), \(builder.bind(latitude.databaseValue)), \(builder.bind(longitude.databaseValue))) <= "
                    + builder.bind(metres.databaseValue)
            }
        }
    }

    /// Makes SQL that is true if one of a record's values under a key meets a test.
    private mutating func any(
        _ key: IndexQuery.Key, _ zone: Zone?, _ owner: Int64, _ test: (inout QueryBuilder, String) -> String
    ) -> String {
        if let column = column(key, owner) {
            // Only the parent may be NULL.
            return key == .parent && zone == nil ? "coalesce(\(test(&self, column)), 0)" : "(\(test(&self, column)))"
        }
        guard let zone else {
            return
                "EXISTS (SELECT 1 FROM found f WHERE f.owner = \(owner) AND f.record = r.id AND f.idx = \(index(key)) AND \(test(&self, "f.value")))"
        }
        let rows = "f.owner = \(owner) AND f.zone = \(zone.number) AND f.idx = \(index(key)) AND \(test(&self, "f.value"))"
        return isCounting ? "SELECT 1 FROM found f WHERE \(rows)" : "r.id IN (SELECT f.record FROM found f WHERE \(rows))"
    }

    /// Makes SQL that is true for rows that follow one with these keys.
    private mutating func behind(_ values: [IndexValue?], _ name: String, _ order: [IndexQuery.Order]) -> String {
        var alternatives: [String] = []
        for length in 0...order.count {
            var terms: [String] = []
            for place in 0..<min(length, order.count) {
                terms.append("k\(place) IS \(bind(values[place]?.databaseValue ?? .null))")
            }
            if length == order.count {
                terms.append("name > \(bind(name.databaseValue))")
            } else {
                // NULL comes first in ascending order, and last in descending order.
                switch (values[length], order[length].isAscending) {
                case (nil, true): terms.append("k\(length) IS NOT NULL")
                case (nil, false): terms.append("0")
                case (let value?, true): terms.append("k\(length) > \(bind(value.databaseValue))")
                case (let value?, false):
                    terms.append("(k\(length) < \(bind(value.databaseValue)) OR k\(length) IS NULL)")
                }
            }
            alternatives.append("(\(terms.joined(separator: " AND ")))")
        }
        return "(\(alternatives.joined(separator: " OR ")))"
    }
}
