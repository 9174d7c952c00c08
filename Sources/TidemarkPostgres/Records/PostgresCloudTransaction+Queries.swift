import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Queries: records are found by their conditions and sorted, or met in the order of an index.
extension PostgresCloudTransaction {
    func find(
        _ query: IndexQuery, in zone: StoredZone.ID, limit: Int, within budget: QueryBudget
    ) throws(CloudError) -> FoundRecords {
        try run {
            let clock = ContinuousClock()
            let began = clock.now
            let end = began + budget.time
            var found: FoundRecords
            if let index = query.walkedIndex, try isWalked(query, zone, upTo: budget.frequent, within: budget.half.time) {
                found = try walk(query, along: index, zone, limit: limit, until: end)
            } else {
                found = try sort(query, zone, limit: limit, within: end - clock.now)
            }
            found.seconds = (clock.now - began) / .seconds(1)
            return found
        }
    }

    /// Returns whether many records may meet the query, so that an index is walked in its order. Where they can't be counted in the time,
    /// there are many.
    private func isWalked(
        _ query: IndexQuery, _ zone: StoredZone.ID, upTo limit: Int, within time: Duration
    ) throws -> Bool {
        var builder = PostgresQueryBuilder(container: container, zone: zone)
        let sql = builder.counts(query, upTo: limit)
        let (rows, isCut) = try db.query(within: time, PostgresCommand(sql, builder.parameters))
        guard !isCut, let row = rows.first else { return true }
        let count = builder.countedColumns
        for column in 0..<count {
            let counted: Int64 = try row.value(column)
            guard counted >= Int64(limit) else { return false }
        }
        return true
    }

    /// Finds the records that meet the conditions, and sorts them.
    private func sort(
        _ query: IndexQuery, _ zone: StoredZone.ID, limit: Int, within time: Duration
    ) throws -> FoundRecords {
        var builder = PostgresQueryBuilder(container: container, zone: zone)
        let sql = builder.sql(query, columns: Self.recordColumns, limit: limit)
        var found = FoundRecords()
        try add(PostgresCommand(sql, builder.parameters), of: query, zone, within: time, &found)
        return found
    }

    /// Walks an index in the order of the query.
    ///
    /// Half of the time is left for ``sort``: the records that meet the conditions may all lie at the end of the walk.
    ///
    /// - Parameter last: The end of the time for both.
    private func walk(
        _ query: IndexQuery, along index: Int64, _ zone: StoredZone.ID, limit: Int, until last: ContinuousClock.Instant
    ) throws -> FoundRecords {
        let mayBeSorted = query.shares != nil || query.conditions.contains { if case .not = $0 { false } else { true } }
        let clock = ContinuousClock()
        let now = clock.now
        let end = mayBeSorted ? now + (last - now) / 2 : last
        var found = FoundRecords()
        for part in query.walkedParts where found.rows.count < limit && !found.isCut {
            var builder = PostgresQueryBuilder(container: container, zone: zone)
            let missing = limit - found.rows.count
            let sql = builder.walk(query, along: index, part, columns: Self.recordColumns, limit: missing)
            try add(PostgresCommand(sql, builder.parameters), of: query, zone, within: end - clock.now, &found)
        }
        guard found.isCut, mayBeSorted else { return found }
        let sorted = try sort(query, zone, limit: limit, within: last - clock.now)
        return sorted.isCut ? found : sorted
    }

    /// Adds the records that a statement finds.
    private func add(
        _ command: PostgresCommand, of query: IndexQuery, _ zone: StoredZone.ID, within time: Duration,
        _ found: inout FoundRecords
    ) throws {
        let (rows, isCut) = try db.query(within: time, command)
        found.isCut = isCut
        for row in rows {
            let keys = try query.order.enumerated().map { place, order in
                try IndexValue(row, PostgresQueryBuilder.recordColumnCount + place, of: order)
            }
            found.rows.append((try StoredCloudRecord(row, zone.owner), keys))
        }
    }
}
