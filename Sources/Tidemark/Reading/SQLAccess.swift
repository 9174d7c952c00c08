// The only place where GRDB is part of the API: programs that want SQL import GRDB beside Tidemark.
public import GRDB
public import TidemarkModel
import TidemarkStore

extension PersistentContainer {
    /// Returns GRDB's reader of a store, for any SQL and for `ValueObservation`. It reads committed data, and can't write: writes
    /// that bypass the container would have no history, no lock and no digest.
    ///
    /// GRDB's observations that use the reader follow the writes of this process. After ``PersistentContainer/followOthers()``,
    /// they follow the writes of other processes, too. A save waits for these observations; to observe records, use
    /// ``RecordObserving/observe(_:where:sortedBy:limit:in:)``.
    ///
    /// ```swift
    /// let captions = try await journal.reader().read { db in
    ///     try String.fetchAll(db, sql: "SELECT caption FROM Destination ORDER BY createdAt DESC LIMIT 10")
    /// }
    /// ```
    ///
    /// - Parameter scope: The store.
    public nonisolated func reader(_ scope: StoreScope = .private) -> any DatabaseReader { stores[scope].reader }
}

extension ReadOnlyContainer {
    /// Returns GRDB's reader of a store, for any SQL.
    ///
    /// - Parameter scope: The store.
    /// - Returns: `nil` if the container has no such store.
    public func reader(_ scope: StoreScope = .private) -> (any DatabaseReader)? {
        readers.first { $0.scope == scope }?.database
    }
}

extension ContainerSnapshot {
    /// Returns GRDB's reader of a store in the pinned state, for any SQL.
    ///
    /// - Parameter scope: The store.
    public func reader(_ scope: StoreScope = .private) -> any DatabaseReader { databases[scope] }
}

extension RecordPredicate {
    /// Makes a predicate from an SQL expression over the columns of the type's table, `_name` and the system columns.
    ///
    /// Some comparisons have the same answer for all records. A query with such a comparison throws `StoreError` `sql`, with the
    /// correct form. Examples are a number with a text (`rating = 'five'`), a time with anything but microseconds since 1970
    /// (`createdAt > '2020'`, or a `Date` as an argument, which GRDB stores as a text), a list with an element, and `NULL` with
    /// another operator than `IS`.
    ///
    /// - Parameters:
    ///   - expression: The expression, with `?` for each argument.
    ///   - arguments: Values for the question marks, in their order.
    public static func sql(_ expression: String, _ arguments: (any DatabaseValueConvertible & Sendable)?...) -> RecordPredicate {
        RecordPredicate(.sql(expression, arguments.map { $0?.databaseValue ?? .null }))
    }
}
