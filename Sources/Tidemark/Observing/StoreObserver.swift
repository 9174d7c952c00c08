import GRDB
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The query of an observation: a fetch from each store, and a function that combines the results.
struct ObservedQuery<Part: Sendable, Value: Sendable>: Sendable {
    /// The name of the record type.
    let type: String
    /// Fetches the part of a store, and the numbers of the types that the part depends on. The last argument names fields that
    /// count as fields without a value when the store lacks them.
    let fetch: @Sendable (Database, RecordSource, Set<String>) throws -> (part: Part, types: Set<Int64>)
    /// Combines the parts, in the order of the stores. Returns `nil` when the result is the same as the previous value.
    let combine: @Sendable ([Part], Value?) -> Value?
}

/// Fetches a query from the stores that have changed since the last fetch.
actor StoreObserver<Part: Sendable, Value: Sendable> {
    private struct State: Sendable {
        let mark: ChangeMark
        let types: Set<Int64>
        let part: Part
    }

    private let query: ObservedQuery<Part, Value>
    private let environment: ObservationEnvironment
    private var stores: ObservedStores
    private var states: [StoreScope: State] = [:]
    private var value: Value?

    init(_ query: ObservedQuery<Part, Value>, in stores: ObservedStores, environment: ObservationEnvironment) {
        self.query = query
        self.stores = stores
        self.environment = environment
    }

    /// Returns the value the first time, and when it has changed; otherwise `nil`.
    func refresh() async throws -> Value? {
        let sources = try stores.all()
        var (next, fetched, altered) = (states, Set<StoreScope>(), Set<StoreScope>())
        for source in sources.all {
            let before = states[source.scope]
            let (state, isNew) = try await read(source, of: sources, since: before)
            next[source.scope] = state
            if isNew { fetched.insert(source.scope) }
            if state.mark.schema != before?.mark.schema { altered.insert(source.scope) }
        }
        guard !fetched.isEmpty || value == nil else {
            states = next
            return nil
        }
        // The query may name a field that only one store has just got, so the other stores are fetched again.
        for source in sources.all where !altered.isEmpty && !fetched.contains(source.scope) {
            next[source.scope] = try await read(source, of: sources, since: nil).state
        }
        states = next
        guard let combined = query.combine(sources.all.compactMap { next[$0.scope]?.part }, value) else { return nil }
        value = combined
        return combined
    }

    /// Reads the end of history and, if the store has changed, fetches from it, in one transaction.
    private func read(
        _ source: RecordSource, of sources: RecordSources, since before: State?
    ) async throws -> (state: State, isNew: Bool) {
        try await source.read { [query, environment] db in
            let mark = try source.changeMark(db)
            if let before, try !source.hasChanged(db, types: before.types, from: before.mark, to: mark) {
                return (State(mark: mark, types: before.types, part: before.part), false)
            }
            environment.willFetch(source.scope)
            let (part, types) = try sources.withKnownFields(of: query.type) { try query.fetch(db, source, $0) }
            return (State(mark: mark, types: types, part: part), true)
        }
    }
}

/// Calls the program's fetch when records of some types have changed.
actor FetchObserver<Value: Sendable> {
    private let types: Set<String>
    private let fetch: @Sendable () async throws -> Value
    private let isSame: @Sendable (Value, Value) -> Bool
    private let environment: ObservationEnvironment
    private var stores: ObservedStores
    private var marks: [StoreScope: ChangeMark] = [:]
    private var value: Value?

    init(
        of types: Set<String>, in stores: ObservedStores, environment: ObservationEnvironment,
        fetch: @escaping @Sendable () async throws -> Value, isSame: @escaping @Sendable (Value, Value) -> Bool
    ) {
        self.types = types
        self.stores = stores
        self.environment = environment
        self.fetch = fetch
        self.isSame = isSame
    }

    /// Returns the value the first time, and when it has changed; otherwise `nil`.
    func refresh() async throws -> Value? {
        var changed: Set<StoreScope> = []
        for source in try stores.all().all {
            let before = marks[source.scope]
            let (mark, hasChanged) = try await source.read { [types] db in
                let mark = try source.changeMark(db)
                guard let before else { return (mark, true) }
                return (mark, try source.hasChanged(db, types: source.types(db, named: types), from: before, to: mark))
            }
            marks[source.scope] = mark
            if hasChanged { changed.insert(source.scope) }
        }
        guard !changed.isEmpty || value == nil else { return nil }
        for scope in changed { environment.willFetch(scope) }
        let next = try await fetch()
        if let value, isSame(value, next) { return nil }
        value = next
        return next
    }
}

/// The stores that an observation reads.
struct ObservedStores: Sendable {
    private var sources: RecordSources
    /// The container in which a shared store may appear later; `nil` when all stores are there.
    private let container: ContainerDirectory?
    private let scope: StoreScope?

    /// Finds the stores to read.
    ///
    /// - Parameters:
    ///   - container: The container that is observed.
    ///   - scope: The store to observe; `nil` for all.
    init(_ container: some RecordObserving, in scope: StoreScope?) {
        let all = container.recordSources.all
        sources = RecordSources(all: all.filter { scope == nil || $0.scope == scope })
        let missing = ContainerDirectory.scopes.contains { it in (scope == nil || scope == it) && !all.contains { $0.scope == it }
        }
        self.container = missing ? container.directory : nil
        self.scope = scope
    }

    /// Returns the stores that are there now, and opens new ones.
    mutating func all() throws(StoreError) -> RecordSources {
        guard let container else { return sources }
        for it in ContainerDirectory.scopes
        where (scope == nil || scope == it) && !sources.all.contains(where: { $0.scope == it }) {
            if let source = try Self.open(it, of: container) { sources = RecordSources(all: sources.all + [source]) }
        }
        return sources
    }

    private static func open(_ scope: StoreScope, of container: ContainerDirectory) throws(StoreError) -> RecordSource? {
        guard container.hasStore(scope) else { return nil }
        do {
            return RecordSource(try StoreReader(container: container, scope: scope))
        } catch {
            // Another process is creating the store, and posts a notification when it has written to it.
            guard error.code == .notFound else { throw error }
            return nil
        }
    }
}
