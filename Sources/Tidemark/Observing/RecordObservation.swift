public import TidemarkSQLite

/// A sequence of lists of the records that match a query.
///
/// ``RecordObserving/observe(_:where:sortedBy:limit:in:)`` returns it:
///
/// ```swift
/// let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
/// for try await list in journal.observe(Destination.self, sortedBy: newestFirst) {
///     destinations = list.records
/// }
/// ```
///
/// The sequence delivers the first list at once, even if it is empty. After that it delivers a list when it differs from the
/// previous one: a commit that does not change the list delivers nothing. No save waits for an observation. One fetch runs at a
/// time, and none runs while no task waits for a list. Changes that are committed during a fetch lead to one more fetch. Between
/// two fetches there is a pause of at most 100 ms. So lists that follow each other quickly may be skipped; the newest one is always
/// delivered.
///
/// ``RecordList/unreadable`` has the records that can't be decoded.
public struct RecordObservation<R: Record>: AsyncSequence, Sendable {
    public typealias Element = RecordList<R>
    /// The error that iteration throws.
    public typealias Failure = StoreError

    /// The observation that fetches the lists.
    package var base: FetchObservation<RecordList<R>>

    /// Starts a separate observation, which ends with the iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

    /// Waits for the records and for each change of them. Only one task may use it at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: FetchObservation<RecordList<R>>.AsyncIterator

        /// Returns the list after the next change; `nil` when the task is cancelled.
        ///
        /// - Throws: `StoreError` when a store can no longer be read, such as `moved` or `newerFormat`; `invalid`, `schema` or
        ///   `sql` when the query is not valid. After an error, `next` returns `nil`.
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
