import GRDB
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// A container whose records can be observed: a ``PersistentContainer`` or a ``ReadOnlyContainer``.
public protocol RecordObserving: RecordReading {
    /// The container's directory.
    var directory: ContainerDirectory { get }
    /// The signals of commits. Programs do not need them.
    var commitSignals: CommitSignals { get }
}

/// Signals to the observers of a container that this process or another one may have committed something.
public struct CommitSignals: Sendable {
    /// Returns the signals from now on. Signals that no task has waited for become one.
    let listen: @Sendable () throws(StoreError) -> AsyncStream<Void>
}

extension PersistentContainer: RecordObserving {
    /// The signals of commits. Programs do not need them.
    public nonisolated var commitSignals: CommitSignals {
        CommitSignals { [self] () throws(StoreError) in try notifications(withOwn: true) }
    }
}

extension ReadOnlyContainer: RecordObserving {
    /// The signals of commits. Programs do not need them.
    public var commitSignals: CommitSignals {
        let directory = directory
        return CommitSignals { () throws(StoreError) in try StoreChangeListener.notifications(at: directory) }
    }
}

extension RecordObserving {
    /// Observes the records that match in both stores. The sequence delivers them at once, and again after each change in this
    /// process or another.
    ///
    /// ```swift
    /// for try await list in journal.observe(Destination.self, where: \.rating >= 4, limit: 10) {
    ///     show(list.records)
    /// }
    /// ```
    ///
    /// If an SQL predicate names other types in a subquery, the observation follows their changes, too. The type need not exist
    /// yet. The stores are read on other threads, each in one transaction. A store that has not changed is not read again.
    ///
    /// - Parameters:
    ///   - type: The type of the records.
    ///   - predicate: The condition; `nil` for all records.
    ///   - sorts: The order; without one, the order of insertion, with the private store's records first.
    ///   - limit: The maximum number of records; `nil` for all.
    ///   - scope: The store to observe; `nil` for both.
    /// - Returns: A sequence of lists. Each iterator observes separately, and its `next` throws `StoreError`.
    /// - Complexity: After a commit that has not changed the types that the query reads, O(*n*) in the changes of the commit.
    ///   After any other commit, the complexity of the fetch, and O(*n*) for the comparison with the previous list, which is kept.
    public func observe<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil,
        in scope: StoreScope? = nil
    ) -> RecordObservation<R> {
        let claims = recordSources.claims
        return list(in: scope, sortedBy: sorts, limit: limit) { db, source, known in
            try claims.check(type)
            return try source.entries(db, type, where: predicate, sortedBy: sorts, limit: limit, known: known)
        }
    }

    /// Observes the record of a name. Each list has this record, or is empty while no store has it.
    ///
    /// ```swift
    /// for try await list in journal.observe(Destination.self, named: "senja") {
    ///     senja = list.first
    /// }
    /// ```
    ///
    /// If both stores have the name, the private store's record is observed, as with ``RecordReading/fetch(_:named:)``.
    ///
    /// - Parameters:
    ///   - type: The type of the record.
    ///   - name: Its name.
    /// - Returns: A sequence of lists. Each iterator observes separately, and its `next` throws `StoreError`.
    /// - Complexity: One look-up after each commit that has changed records of the type.
    public func observe<R: Record>(_ type: R.Type, named name: String) -> RecordObservation<R> {
        let claims = recordSources.claims
        return list(in: nil, sortedBy: [], limit: 1) { db, source, _ in
            try claims.check(type)
            return try source.entry(db, type, named: name)
        }
    }

    /// Observes the number of records that match in both stores.
    ///
    /// ```swift
    /// for try await count in journal.observeCount(Destination.self, where: \.rating >= 4) {
    ///     badge = count
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the records.
    ///   - predicate: The condition; `nil` for all records.
    ///   - scope: The store to observe; `nil` for both.
    /// - Returns: A sequence of counts, each different from the previous one. Its `next` throws `StoreError`.
    /// - Complexity: O(*n*) in the records of the type, after each commit that has changed one of them.
    public func observeCount<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, in scope: StoreScope? = nil
    ) -> FetchObservation<Int> {
        let claims = recordSources.claims
        return observation(
            ObservedQuery<Int, Int>(
                type: R.recordType,
                fetch: { db, source, known in
                    try claims.check(type)
                    let count = try source.count(db, type, where: predicate, known: known)
                    return (count, try source.typesRead(db, by: type, where: predicate, known: known))
                },
                combine: { parts, before in
                    let sum = parts.reduce(0, +)
                    return sum == before ? nil : sum
                }), in: scope)
    }

    /// Observes a value that the program fetches from records of some types, such as a list that joins several types.
    ///
    /// ```swift
    /// let visited = journal.observe(changesOf: [Destination.self, Visit.self]) {
    ///     let visited = Set(try await journal.fetchAll(Visit.self).map(\.destination))
    ///     return try await journal.fetchAll(Destination.self).filter { visited.contains(Reference($0)) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - types: The types whose changes are followed, in both stores.
    ///   - fetch: Fetches the value: at the start, and after each commit that has changed records of these types. Calls do not
    ///     overlap.
    /// - Returns: A sequence of values. Its `next` throws `StoreError` and the errors of `fetch`.
    public func observe<Value: Sendable>(
        changesOf types: [any Record.Type], fetch: @escaping @Sendable () async throws -> Value
    ) -> FetchObservation<Value> {
        observation(changesOf: types, fetch: fetch) { _, _ in false }
    }

    /// Observes a value that the program fetches from records of some types, and skips values that equal the previous one.
    ///
    /// - Parameters:
    ///   - types: The types whose changes are followed, in both stores.
    ///   - fetch: Fetches the value: at the start, and after each commit that has changed records of these types. Calls do not
    ///     overlap.
    /// - Returns: A sequence of values. Its `next` throws `StoreError` and the errors of `fetch`.
    public func observe<Value: Sendable & Equatable>(
        changesOf types: [any Record.Type], fetch: @escaping @Sendable () async throws -> Value
    ) -> FetchObservation<Value> {
        observation(changesOf: types, fetch: fetch, isSame: ==)
    }

    private func list<R: Record>(
        in scope: StoreScope?, sortedBy sorts: [RecordSort<R>], limit: Int?,
        _ fetch: @escaping @Sendable (Database, RecordSource, Set<String>) throws -> (OrderedPart<RecordListEntry<R>>, Set<Int64>)
    ) -> RecordObservation<R> {
        let query = ObservedQuery<OrderedPart<RecordListEntry<R>>, RecordList<R>>(
            type: R.recordType, fetch: fetch,
            combine: { parts, previous in
                let found = parts.filter { !$0.elements.isEmpty }
                let merged =
                    found.count > 1
                    ? RecordOrder(sorts).merge(found, limit: limit, counting: \.isReadable) : found.first?.elements ?? []
                return RecordList(merged, after: previous)
            })
        return RecordObservation(base: observation(query, in: scope))
    }

    private func observation<Part, Value>(
        _ query: ObservedQuery<Part, Value>, in scope: StoreScope?
    ) -> FetchObservation<Value> {
        let stores = ObservedStores(self, in: scope)
        return FetchObservation(commitSignals) { environment in
            let observer = StoreObserver(query, in: stores, environment: environment)
            return { try await observer.refresh() }
        }
    }

    private func observation<Value: Sendable>(
        changesOf types: [any Record.Type], fetch: @escaping @Sendable () async throws -> Value,
        isSame: @escaping @Sendable (Value, Value) -> Bool
    ) -> FetchObservation<Value> {
        let stores = ObservedStores(self, in: nil)
        let names = Set(types.map { $0.recordType })
        return FetchObservation(commitSignals) { environment in
            let observer = FetchObserver(of: names, in: stores, environment: environment, fetch: fetch, isSame: isSame)
            return { try await observer.refresh() }
        }
    }
}

extension RecordSource {
    /// Returns the records that match, readable or not, and the types that the query reads.
    fileprivate func entries<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>], limit: Int?,
        known: Set<String>
    ) throws -> (OrderedPart<RecordListEntry<R>>, Set<Int64>) {
        var part = OrderedPart<RecordListEntry<R>>()
        try checkLimit(limit)
        guard let queried = try self.type(db, queriedAs: R.self) else { return (part, []) }
        let decoder = decoder(queried, type)
        let keys = queried.sortColumns(sorts.count)
        var types: Set<Int64> = []
        try readRows(db, queried, where: predicate, sortedBy: sorts, limit: limit, known: known) { query, rows in
            part = OrderedPart(areTexts: query.areTexts)
            types = try self.types(db, readIn: rows.databaseRegion)
        } _: { row in
            let entry = entry(row, decoder)
            part.elements.append(entry)
            if !keys.isEmpty { part.keys.append(keys.map { row[$0] as DatabaseValue }) }
            return entry.isReadable
        }
        return (part, types)
    }

    fileprivate func entry<R: Record>(
        _ db: Database, _ type: R.Type, named name: String
    ) throws -> (OrderedPart<RecordListEntry<R>>, Set<Int64>) {
        var part = OrderedPart<RecordListEntry<R>>()
        guard let queried = try self.type(db, queriedAs: R.self) else { return (part, []) }
        let keys = QueriedType.keys(name)
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: queried.selectionByName), arguments: [keys[0], keys[keys.count - 1]])
        part.elements = rows.map { entry($0, decoder(queried, type)) }
        return (part, try types(db, named: [R.recordType]))
    }

    private func entry<R: Record>(_ row: Row, _ decoder: RecordDecoder<R>) -> RecordListEntry<R> {
        let result = Result { try decoder.decode(row) }
        let name =
            switch result {
            case .success(let record): record.recordName
            case .failure: StoreReader.recordName(key: row[QueriedType.keyColumn] as DatabaseValue) ?? "?"
            }
        let version = Int64.fromDatabaseValue(row[QueriedType.versionColumn]) ?? 0
        return RecordListEntry(key: RecordListKey(name: name, scope: scope.rawValue, version: version), result: result)
    }

    /// Returns the types that a count of the matching records reads.
    fileprivate func typesRead<R: Record>(
        _ db: Database, by type: R.Type, where predicate: RecordPredicate<R>?, known: Set<String>
    ) throws -> Set<Int64> {
        guard let queried = try self.type(db, queriedAs: R.self) else { return [] }
        let query = try TypedQuery<R>(queried, predicate?.node, [], limit: nil, known: known)
        return try types(db, readIn: query.rows(db).databaseRegion)
    }
}
