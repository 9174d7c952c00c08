import Synchronization

extension RecordReading {
    /// Returns the records that match, and reports the number of records that were read. For large fetches, while a person waits.
    ///
    /// ```swift
    /// let all = try await journal.fetchAll(Destination.self) { count in print("\(count) read") }
    /// ```
    ///
    /// Cancelling the task ends the fetch between two records, as with every fetch.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - predicate: The condition; `nil` for all records.
    ///   - sorts: The order.
    ///   - limit: The maximum number of records; `nil` for all.
    ///   - progress: Called with the number of records that were read so far, after each 500, on the thread that reads. It should
    ///     return quickly.
    /// - Throws: `CancellationError` when the task is cancelled; as `fetchAll(_:where:sortedBy:limit:)`.
    /// - Complexity: O(n) in the records read; those returned are in memory.
    public func fetchAll<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil,
        progress: @escaping @Sendable (Int) -> Void
    ) async throws -> [R] {
        let counter = ReadCounter()
        return try await recordSources.fetchAll(type, where: predicate, sortedBy: sorts, limit: limit) { record, _, _, _ in
            let count = counter.next()
            if count.isMultiple(of: ReadCounter.step) { progress(count) }
            return record
        }
    }
}

/// Counts the records of a fetch, which several threads read one after the other.
private final class ReadCounter: Sendable {
    /// The number of records between two reports.
    static let step = 500
    private let count = Atomic(0)

    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}
