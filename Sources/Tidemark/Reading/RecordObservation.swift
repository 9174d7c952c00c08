import GRDB

/// The records that match a query, delivered again after each change: what ``PersistentContainer/observe(_:where:sortedBy:limit:in:)``
/// returns.
///
/// ```swift
/// let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
/// for try await destinations in journal.observe(Destination.self, sortedBy: newestFirst) {
///     self.destinations = destinations
/// }
/// ```
///
/// The first value comes at once. Values that follow each other quickly may be left out; the newest one always comes. Iteration throws a
/// `StoreError` when the store can't be read any longer, and ends when its task is cancelled.
public struct RecordObservation<R: Record>: AsyncSequence, Sendable {
    public typealias Element = [R]

    let base: AsyncValueObservation<[R]>

    /// Begins an observation of its own, which ends with the iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }

    /// Waits for the records, and for each change of them.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: AsyncValueObservation<[R]>.Iterator

        /// Returns the records after the next change; `nil` when the task is cancelled.
        public mutating func next() async throws -> [R]? { try await base.next() }
    }
}
