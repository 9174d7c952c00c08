import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Runs queries. Records are found by conditions and sorted, or read along an index in its order.
extension SQLiteCloudTransaction {
    func find(
        _ query: IndexQuery, in zone: StoredZone.ID, limit: Int, within budget: QueryBudget
    ) throws(CloudError) -> FoundRecords {
        try run {
            let place = QueryBuilder.Zone(owner: try number(of: zone.owner), number: zone.number)
            let isFrequent = try isFrequent(query.type, in: zone, upTo: budget.frequent)
            let began = QueryBudget.processorTime()
            var found: FoundRecords
            if isFrequent, let index = query.walkedIndex {
                found = try walk(query, along: index, zone, place, limit: limit, within: budget)
            } else {
                found = try sort(query, QueryBuilder(isFrequent: isFrequent), zone, place, limit: limit, within: budget)
            }
            found.seconds = QueryBudget.processorTime() - began
            return found
        }
    }

    /// Finds the records that meet the conditions, and sorts them.
    private func sort(
        _ query: IndexQuery, _ builder: QueryBuilder, _ zone: StoredZone.ID, _ place: QueryBuilder.Zone, limit: Int,
        within budget: QueryBudget
    ) throws -> FoundRecords {
        var builder = builder
        let sql = builder.sql(query, zone: place, limit: limit)
        context.observe?(sql)
        // Each query has another text, so its statement is not cached: the cache would grow without end.
        let select = try db.makeStatement(sql: sql)
        var found = FoundRecords()
        let isWhole: Bool? = try budget.limit(db) {
            let rows = try Row.fetchCursor(select, arguments: builder.arguments)
            while let row = try rows.next() {
                let keys = query.order.indices.map { IndexValue(row[StoredCloudRecord.columnCount + $0] as DatabaseValue) }
                found.rows.append((StoredCloudRecord(row, of: select, zone.owner), keys))
            }
            return true
        }
        found.isCut = isWhole == nil
        found.steps = QueryBudget.steps(of: select)
        return found
    }

    /// Walks an index in the order of the query. If another index finds few records that meet a condition, those are sorted
    /// instead.
    ///
    /// Half of the budget is kept for sorting, because the matching records may all be at the end of the walk.
    private func walk(
        _ query: IndexQuery, along index: Int64, _ zone: StoredZone.ID, _ place: QueryBuilder.Zone, limit: Int,
        within budget: QueryBudget
    ) throws -> FoundRecords {
        let mayBeSorted = query.shares != nil || query.conditions.contains { if case .not = $0 { false } else { true } }
        var found = FoundRecords()
        var few: Few?
        let clock = ContinuousClock()
        let began = clock.now
        let isWhole: Bool? = try (mayBeSorted ? budget.half : budget).limit(db) {
            few = try findsFew(query, place, limit: budget.frequent, steps: &found.steps)
            guard few == nil else { return true }
            for part in query.walkedParts where found.rows.count < limit {
                try walk(query, along: index, part, zone, place, limit: limit, &found)
            }
            return true
        }
        found.isCut = isWhole == nil
        guard few != nil || found.isCut && mayBeSorted else { return found }
        var builder = QueryBuilder(isFrequent: true)
        builder.isFound = few == .values || few == nil && query.conditions.contains(where: Self.isFoundByValues)
        // The counting has used a part of this budget.
        let left = few == nil ? budget.half : budget.without(steps: found.steps, time: clock.now - began)
        var sorted = try sort(query, builder, zone, place, limit: limit, within: left)
        sorted.steps += found.steps
        guard few == nil, sorted.isCut else { return sorted }
        found.steps = sorted.steps
        return found
    }

    /// Adds the records of a part of an index.
    private func walk(
        _ query: IndexQuery, along index: Int64, _ part: IndexQuery.WalkedPart, _ zone: StoredZone.ID, _ place: QueryBuilder.Zone,
        limit: Int, _ found: inout FoundRecords
    ) throws {
        var builder = QueryBuilder(isFrequent: true)
        let sql = builder.walk(query, along: index, part, zone: place, limit: limit - found.rows.count)
        let one = "SELECT * FROM records WHERE owner = ? AND id = ?"
        context.observe?(sql)
        context.observe?(one)
        let (walked, record) = (try db.makeStatement(sql: sql), try db.makeStatement(sql: one))
        defer { found.steps += QueryBudget.steps(of: walked) + QueryBudget.steps(of: record) }
        let rows = try Row.fetchCursor(walked, arguments: builder.arguments)
        while let row = try rows.next() {
            let id: Int64 = try row.decode(atIndex: 0)
            let keys = query.order.indices.map { IndexValue(row[1 + $0] as DatabaseValue) }
            let stored = try record.withRow([place.owner, id]) { StoredCloudRecord($0, of: record, zone.owner) }
            if let stored { found.rows.append((stored, keys)) }
        }
    }

    /// The index that finds few records which meet the conditions.
    private enum Few { case values, names, shares }

    private static func isFoundByValues(_ condition: IndexQuery.Condition) -> Bool {
        switch condition {
        case .compare(.index, _, _), .isOneOf(.index, _), .beginsWith(.index, _): true
        default: false
        }
    }

    private func findsFew(
        _ query: IndexQuery, _ place: QueryBuilder.Zone, limit: Int, steps: inout Int64
    ) throws -> Few? {
        for condition in query.conditions {
            var builder = QueryBuilder(isFrequent: true)
            guard let sql = builder.count(condition, in: place, upTo: limit) else { continue }
            if try count(sql, builder.arguments, &steps) < limit { return Self.isFoundByValues(condition) ? .values : .names }
        }
        guard let shares = query.shares else { return nil }
        var builder = QueryBuilder(isFrequent: true)
        let sql = builder.count(of: shares, in: place, upTo: limit)
        return try count(sql, builder.arguments, &steps) < limit ? .shares : nil
    }

    private func count(_ sql: String, _ arguments: StatementArguments, _ steps: inout Int64) throws -> Int {
        context.observe?(sql)
        let select = try db.makeStatement(sql: sql)
        defer { steps += QueryBudget.steps(of: select) }
        return try Int.fetchOne(select, arguments: arguments) ?? 0
    }

    /// Returns whether a zone has so many records of a type that walking names or an index is faster than sorting.
    private func isFrequent(_ type: String, in zone: StoredZone.ID, upTo limit: Int) throws -> Bool {
        let sql =
            "SELECT count(*) FROM (SELECT 1 FROM records WHERE owner = ? AND zone = ? AND type = ? AND is_deleted = 0 LIMIT ?)"
        return try Int.fetchOne(statement(sql), arguments: [number(of: zone.owner), zone.number, type, limit]) == limit
    }
}
