import Foundation
import GRDB
import TidemarkCloud
import TidemarkModel

/// Makes SQL of a query.
struct QueryBuilder {
    /// Whether there are many records of the type.
    let isFrequent: Bool
    /// Whether it keeps to some shares: a parameter by name, since it may come twice.
    private var isLimited = false
    private static let shares = "(SELECT value FROM json_each(:shares))"
    var arguments = StatementArguments()

    init(isFrequent: Bool) { self.isFrequent = isFrequent }

    private mutating func bind(_ value: DatabaseValue) -> String {
        arguments += [value]
        return "?"
    }

    mutating func sql(_ query: IndexQuery, zone: Int64, limit: Int) -> String {
        // In the order in which their arguments stand in the text.
        if let shares = query.shares {
            isLimited = true
            arguments += ["shares": "[\(shares.map(String.init).joined(separator: ", "))]"]
        }
        let keys = query.order.map { expression($0) }
        let columns = keys.enumerated().map { ", \($1) AS k\($0)" }.joined()
        // What is found in the order of the names needs no sorting.
        let index = isFrequent && query.order.isEmpty && query.conditions.isEmpty ? " INDEXED BY records_by_name" : ""
        var inner = "SELECT r.*\(columns) FROM records r\(index) WHERE r.zone = \(bind(zone.databaseValue))"
        inner += " AND r.type = \(bind(query.type.databaseValue)) AND r.is_deleted = 0"
        if isLimited {
            inner += " AND r.name IN (SELECT c.name FROM covered c WHERE c.share IN \(Self.shares) AND c.is_gone = 0)"
        }
        for condition in query.conditions { inner += " AND \(sql(condition))" }
        var outer = "SELECT * FROM (\(inner))"
        if let after = query.after { outer += " WHERE \(behind(after.values, after.name, query.order))" }
        let order = query.order.enumerated().map { "k\($0) \($1.isAscending ? "ASC" : "DESC")" } + ["name ASC"]
        return "\(outer) ORDER BY \(order.joined(separator: ", ")) LIMIT \(bind(Int64(limit).databaseValue))"
    }

    private mutating func expression(_ order: IndexQuery.Order) -> String {
        let value =
            column(order.key) ?? "(SELECT min(f.value) FROM found f WHERE f.record = r.id AND f.idx = \(index(order.key)))"
        guard let from = order.from else { return value }
        return "cloud_distance(\(value), \(bind(from.latitude.databaseValue)), \(bind(from.longitude.databaseValue)))"
    }

    private func column(_ key: IndexQuery.Key) -> String? {
        switch key {
        case .index: nil
        case .recordName: "r.name"
        case .created: "r.created"
        case .createdBy: "r.created_by"
        case .modified: "r.modified"
        case .modifiedBy: "r.modified_by"
        case .parent:
            // What a root hangs below is nothing that is shared.
            isLimited ? "iif(r.name IN (SELECT s.root FROM shares s WHERE s.id IN \(Self.shares)), NULL, r.parent)" : "r.parent"
        }
    }

    private func index(_ key: IndexQuery.Key) -> Int64 {
        if case .index(let number) = key { return number }
        return 0
    }

    private mutating func sql(_ condition: IndexQuery.Condition) -> String {
        switch condition {
        case .not(let inner): return "NOT \(sql(inner))"
        case .all(let conditions): return "(\((conditions.map { sql($0) } + ["1"]).joined(separator: " AND ")))"
        case .compare(let key, let comparison, let value):
            return any(key) { builder, column in "\(column) \(comparison.rawValue) \(builder.bind(value.databaseValue))" }
        case .isOneOf(let key, let values):
            return any(key) { builder, column in
                "\(column) IN (\(values.map { builder.bind($0.databaseValue) }.joined(separator: ", ")))"
            }
        case .beginsWith(let key, let text):
            return any(key) { builder, column in
                // The first half is what an index can be searched with.
                "\(column) >= \(builder.bind(text.databaseValue)) AND substr(\(column), 1, \(text.unicodeScalars.count)) = "
                    + builder.bind(text.databaseValue)
            }
        case .near(let key, let latitude, let longitude, let metres):
            return any(key) { builder, column in
                "cloud_distance(\(column), \(builder.bind(latitude.databaseValue)), \(builder.bind(longitude.databaseValue))) <= "
                    + builder.bind(metres.databaseValue)
            }
        }
    }

    /// That one of a record's values under a key is so.
    private mutating func any(_ key: IndexQuery.Key, _ test: (inout QueryBuilder, String) -> String) -> String {
        if let column = column(key) { return "coalesce(\(test(&self, column)), 0)" }
        return "r.id IN (SELECT f.record FROM found f WHERE f.idx = \(index(key)) AND \(test(&self, "f.value")))"
    }

    /// That a row comes behind one with these keys.
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
                // NULL comes first when it goes up, and last when it goes down.
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
