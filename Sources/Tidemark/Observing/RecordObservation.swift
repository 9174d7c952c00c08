public import TidemarkSQLite

/// The records that match a query, delivered again after each change: what ``RecordObserving/observe(_:where:sortedBy:limit:in:)`` returns.
///
/// ```swift
/// let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
/// for try await list in journal.observe(Destination.self, sortedBy: newestFirst) {
///     destinations = list.records
/// }
/// ```
///
/// The first list comes at once, also an empty one. After that a list comes when it differs from the one before: a commit that
/// does not change it delivers nothing. No save waits for an observation. There is one fetch at a time, and none while nobody waits for a
/// list; changes that come during a fetch become one more fetch. Between two fetches there is a pause of at most 100 ms. So lists that
/// follow each other quickly may be left out; the newest one always comes.
///
/// A record that can't be decoded is left out: see ``RecordList/unreadable``.
public struct RecordObservation<R: Record>: AsyncSequence, Sendable {
    public typealias Element = RecordList<R>
    /// What iteration throws.
    public typealias Failure = StoreError

    /// What fetches the lists.
    package var base: FetchObservation<RecordList<R>>

    /// Begins an observation of its own, which ends with the iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

    /// Waits for the records, and for each change of them; one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: FetchObservation<RecordList<R>>.AsyncIterator

        /// Returns the list after the next change; `nil` when the task is cancelled.
        ///
        /// - Throws: `StoreError` when a store can't be read any longer, such as `moved` or `newerFormat`; `schema` or `sql` when the query
        ///   can't be answered. After that it returns `nil`.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(StoreError) -> RecordList<R>?
        {
            do {
                return try await base.next(isolation: actor)
            } catch {
                throw StoreError(error, doing: "observe records of the type \(R.recordType)")
            }
        }
    }
}
