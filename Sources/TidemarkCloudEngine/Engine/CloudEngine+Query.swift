import Foundation
package import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// Records that a query finds; see `CloudDatabase`.
    package func query(
        _ query: CloudQuery, in id: CloudZoneID, limit: Int?, keys: Set<String>?, continuation: QueryContinuation?,
        _ caller: Caller
    ) async throws(CloudError) -> QueryAnswer {
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        let client = caller.client ?? caller.user
        var next = lanes.lane(for: client)
        while true {
            let lane = next
            let (budget, isLong) = (lanes.budget(in: lane), lane == .long)
            try await lanes.enter(client, lane)
            // A query that fails has used time, too.
            let total = LockedValue(QueryLanes.Cost())
            defer { lanes.leave(client, lane, total.withLock { $0 }) }
            let answer: QueryAnswer? = try await storage.read { rows throws(CloudError) in
                var cost = QueryLanes.Cost()
                defer { total.withLock { $0.add(cost) } }
                return try found(
                    query, in: id, most: most, keys: keys, continuation, within: budget, mayEndEarly: isLong, caller, rows,
                    &cost)
            }
            if let answer { return answer }
            guard lane == .quick else {
                throw CloudError(
                    .limitExceeded,
                    "the query looks at too many records: filter by a field that few records share, or leave the sorting out")
            }
            next = .long
        }
    }

    /// Runs a query within a budget.
    ///
    /// - Parameters:
    ///   - mayEndEarly: Whether a query that exceeds its budget returns the records that it has found.
    ///   - cost: Set to the cost of the query, also where it fails.
    /// - Returns: The answer; `nil` where the query exceeds its budget and may not end early.
    private func found(
        _ query: CloudQuery, in id: CloudZoneID, most: Int, keys: Set<String>?, _ continuation: QueryContinuation?,
        within budget: QueryBudget, mayEndEarly: Bool, _ caller: Caller, _ rows: any CloudTransaction,
        _ cost: inout QueryLanes.Cost
    ) throws(CloudError) -> QueryAnswer? {
        let schema = try rows.schema()
        let zone = try existing(id, caller, rows)
        let known = schema.types[query.recordType]
        // In development, a type that could be saved is a type without records and indexes.
        guard known != nil || environment == .development && CloudSchema.canBeQueried(query.recordType) else {
            throw CloudError(.unknownItem, "there is no record type '\(query.recordType)'")
        }
        // Whether a query is possible depends on the schema alone. A type without saved records has no index yet. A zone in which
        // nothing was saved counts as empty.
        var indexed = try (known ?? CloudSchema.RecordType()).translate(query)
        guard let access = zone else { return QueryAnswer(records: [], continuation: nil) }
        indexed.shares = access.shares
        if let continuation { indexed.after = try IndexQuery.Place(continuation, of: query) }
        let clock = ContinuousClock()
        let began = clock.now
        let found: FoundRecords
        do throws(CloudError) {
            found = try rows.find(indexed, in: access.zone.id, limit: most + 1, within: budget)
        } catch {
            cost.seconds = (clock.now - began) / .seconds(1)
            throw error
        }
        cost = QueryLanes.Cost(steps: found.steps, seconds: found.seconds)
        guard !found.isCut || mayEndEarly && !found.rows.isEmpty else { return nil }
        let zoneID = self.id(of: access.zone, caller)
        var (records, bytes): ([CloudRecord], Int) = ([], 0)
        var failed: [RecordFailure] = []
        for (stored, _) in found.rows.prefix(most) {
            guard records.isEmpty || bytes + stored.fields.count <= limits.bytesPerRequest else { break }
            bytes += stored.fields.count
            do throws(CloudError) {
                records.append(try record(stored, in: zoneID, keys: keys, access, rows))
            } catch {
                guard error.code == .recordDamaged else { throw error }
                failed.append(failure(stored, error, in: zoneID))
            }
        }
        let count = records.count + failed.count
        let hasMore = found.isCut || count < found.rows.count
        let last = found.rows[..<count].last
        let answer = QueryAnswer(
            records: records,
            continuation: hasMore ? last.map { IndexQuery.Place(values: $0.keys, name: $0.record.name).continuation } : nil,
            failed: failed)
        return answer
    }
}

extension CloudQuery {
    /// Values that one filter compares with, and filters and sorts of one query.
    fileprivate static let valuesPerFilter = 250
    fileprivate static let conditions = 20
}

extension CloudSchema.RecordType {
    /// The query in terms of indexes.
    ///
    /// - Throws: `CloudError` `invalidArguments` for what is not queryable, and for a value that can't be compared so.
    func translate(_ query: CloudQuery) throws(CloudError) -> IndexQuery {
        guard isQueryable || !query.filters.isEmpty else {
            throw Self.notMarked("recordName", .queryable)
        }
        guard query.filters.count <= CloudQuery.conditions, query.sorts.count <= CloudQuery.conditions else {
            throw CloudError(.limitExceeded, "a query has \(CloudQuery.conditions) filters and as many sorts at the most")
        }
        var conditions: [IndexQuery.Condition] = []
        for filter in query.filters { conditions += try self.conditions(filter) }
        var order: [IndexQuery.Order] = []
        for sort in query.sorts {
            let key = try key(sort.key, .sortable)
            order.append(.init(key: key, isAscending: sort.isAscending, from: sort.relativeLocation))
        }
        if let first = query.sorts.first, first.relativeLocation == nil, case .field = first.key {
            order[0].bounds = query.filters.filter { $0.key == first.key }.flatMap(Self.bounds)
        }
        return IndexQuery(type: query.recordType, conditions: conditions, order: order, after: nil)
    }

    /// Returns the bounds that a filter sets for the value that is sorted. A sortable field is no list, so the value itself meets
    /// the filter.
    private static func bounds(_ filter: CloudQuery.Filter) -> [IndexQuery.Bound] {
        func bound(_ comparison: IndexQuery.Comparison) -> [IndexQuery.Bound] {
            filter.value.indexValue.map { [IndexQuery.Bound(comparison: comparison, value: $0)] } ?? []
        }
        switch filter.comparator {
        case .equals: return bound(.equal)
        case .lessThan: return bound(.less)
        case .lessThanOrEquals: return bound(.lessOrEqual)
        case .greaterThan: return bound(.greater)
        case .greaterThanOrEquals: return bound(.greaterOrEqual)
        case .beginsWith:
            guard case .string(let text) = filter.value else { return [] }
            let end = IndexQuery.end(of: text).map { IndexQuery.Bound(comparison: .less, value: .text($0)) }
            return bound(.greaterOrEqual) + [end].compactMap(\.self)
        case .isIn:
            guard case .list(let elements, _) = filter.value, let (least, greatest) = ends(elements.compactMap(\.indexValue))
            else { return [] }
            return [
                IndexQuery.Bound(comparison: .greaterOrEqual, value: least),
                IndexQuery.Bound(comparison: .lessOrEqual, value: greatest),
            ]
        default: return []
        }
    }

    /// Returns the least and the greatest of some values; `nil` without any, and where they are not all integers or all texts.
    private static func ends(_ values: [IndexValue]) -> (least: IndexValue, greatest: IndexValue)? {
        var (numbers, texts): ([Int64], [String]) = ([], [])
        for value in values {
            switch value {
            case .integer(let number): numbers.append(number)
            case .text(let text): texts.append(text)
            case .real, .bytes: return nil
            }
        }
        if texts.isEmpty, let least = numbers.min(), let greatest = numbers.max() {
            return (.integer(least), .integer(greatest))
        }
        texts.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        guard numbers.isEmpty, let least = texts.first, let greatest = texts.last else { return nil }
        return (.text(least), .text(greatest))
    }

    private static func notMarked(_ field: String, _ index: CloudSchema.Index) -> CloudError {
        var error = CloudError(.invalidArguments, "Field '\(field)' is not marked \(index.rawValue)")
        error.missingIndex = MissingIndex(field: field, index: index.rawValue)
        return error
    }

    private func key(_ key: CloudQuery.Key, _ index: CloudSchema.Index) throws(CloudError) -> IndexQuery.Key {
        switch key {
        case .recordName:
            guard index != .queryable || isQueryable else { throw Self.notMarked("recordName", .queryable) }
            return .recordName
        case .created: return .created
        case .createdBy: return .createdBy
        case .modified: return .modified
        case .modifiedBy: return .modifiedBy
        case .parent: return .parent
        case .field(let name):
            guard let number = fields[name]?.indexes[index] else {
                throw Self.notMarked(name, index)
            }
            return .index(number)
        }
    }

    private func conditions(_ filter: CloudQuery.Filter) throws(CloudError) -> [IndexQuery.Condition] {
        let isSearch = filter.comparator == .containsAllTokens || filter.comparator == .containsAnyTokens
        let key = try key(filter.key, isSearch ? .searchable : .queryable)
        func check(_ count: Int) throws(CloudError) {
            guard count <= CloudQuery.valuesPerFilter else {
                throw CloudError(
                    .limitExceeded, "\(filter.comparator.rawValue) compares with \(CloudQuery.valuesPerFilter) values at the most"
                )
            }
        }
        func tokens(_ text: String) throws(CloudError) -> [String] {
            let tokens = CloudSchema.tokens(text)
            try check(tokens.count)
            return tokens
        }
        func single() throws(CloudError) -> IndexValue {
            guard let value = filter.value.indexValue else {
                throw CloudError(
                    .invalidArguments, "\(filter.comparator.rawValue) compares with one value, not with a \(filter.value.type)")
            }
            return value
        }
        func several() throws(CloudError) -> [IndexValue] {
            guard case .list(let elements, _) = filter.value else {
                throw CloudError(
                    .invalidArguments, "\(filter.comparator.rawValue) compares with a list, not with a \(filter.value.type)")
            }
            try check(elements.count)
            return elements.compactMap(\.indexValue)
        }
        func text() throws(CloudError) -> String {
            guard case .string(let text) = filter.value else {
                throw CloudError(
                    .invalidArguments, "\(filter.comparator.rawValue) compares with a string, not with a \(filter.value.type)")
            }
            return text
        }
        switch filter.comparator {
        case .equals, .listContains: return [.compare(key, .equal, try single())]
        case .notEquals, .listDoesNotContain: return [.not(.compare(key, .equal, try single()))]
        case .lessThan: return [.compare(key, .less, try single())]
        case .lessThanOrEquals: return [.compare(key, .lessOrEqual, try single())]
        case .greaterThan: return [.compare(key, .greater, try single())]
        case .greaterThanOrEquals: return [.compare(key, .greaterOrEqual, try single())]
        case .isIn, .listContainsAny: return [.isOneOf(key, try several())]
        case .isNotIn, .listContainsNone: return [.not(.isOneOf(key, try several()))]
        case .listContainsAll: return try several().map { .compare(key, .equal, $0) }
        case .listDoesNotContainAll:
            // Lacks one of them.
            let all = try several()
            return [.not(.all(all.map { .compare(key, .equal, $0) }))]
        case .beginsWith, .listMemberBeginsWith: return [.beginsWith(key, try text())]
        case .doesNotBeginWith, .noListMemberBeginsWith: return [.not(.beginsWith(key, try text()))]
        case .containsAllTokens: return try tokens(text()).map { .compare(key, .equal, .text($0)) }
        case .containsAnyTokens: return [.isOneOf(key, try tokens(text()).map { .text($0) })]
        case .near:
            guard case .location(let place) = filter.value, let metres = filter.distance, metres >= 0 else {
                throw CloudError(.invalidArguments, "NEAR compares with a location, within a distance in metres")
            }
            return [.near(key, latitude: place.latitude, longitude: place.longitude, metres: metres)]
        }
    }
}
