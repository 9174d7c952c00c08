public import Observation
public import TidemarkSQLite

/// A list of records for views, which updates itself when the container changes.
///
/// ```swift
/// let good = ObservedRecords(journal, Destination.self, where: \.rating >= 4)
/// ```
///
/// A view that reads ``records`` is updated when they change, in this process or another. The object belongs to the main actor.
/// Fetches run on other threads, and no save waits for them. The observation ends with the object.
@MainActor @Observable
public final class ObservedRecords<R: Record> {
    /// The newest list with its changes; `nil` until the first list is there.
    public private(set) var list: RecordList<R>?
    /// The error that has ended the observation: a store can no longer be read, or the query is not valid. ``records`` keep their
    /// values.
    public private(set) var error: StoreError?

    /// The records in the requested order; empty until the first list is there.
    public var records: [R] { list?.records ?? [] }
    /// Records that match the query and can't be read as this type.
    public var unreadable: [UnreadableRecord] { list?.unreadable ?? [] }
    /// Whether the first list is there.
    public var isLoaded: Bool { list != nil }

    @ObservationIgnored private var observation: RecordObservation<R>
    @ObservationIgnored private var task: Task<Void, Never>?

    /// Observes the records that match, in both stores.
    ///
    /// - Parameters:
    ///   - container: A ``PersistentContainer`` or a ``ReadOnlyContainer``.
    ///   - type: The type of the records.
    ///   - predicate: The condition; `nil` for all records.
    ///   - sorts: The order; without one, the order of insertion.
    ///   - limit: The maximum number of records; `nil` for all.
    public convenience init(
        _ container: some RecordObserving, _ type: R.Type = R.self, where predicate: RecordPredicate<R>? = nil,
        sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil
    ) {
        self.init(container.observe(type, where: predicate, sortedBy: sorts, limit: limit))
    }

    /// Creates a list that follows an observation.
    ///
    /// - Parameter observation: The observation to follow.
    public convenience init(_ observation: RecordObservation<R>) {
        self.init(notStarted: observation)
        start()
    }

    /// Creates a list that follows an observation after ``start()``.
    ///
    /// - Parameter notStarted: The observation to follow.
    init(notStarted observation: RecordObservation<R>) { self.observation = observation }

    deinit { task?.cancel() }

    /// Follows another observation instead, such as one with the predicate of a search. The records stay until its first list is
    /// there.
    ///
    /// - Parameter observation: The observation to follow.
    public func follow(_ observation: RecordObservation<R>) {
        task?.cancel()
        task = nil
        self.observation = observation
        start()
    }

    /// Starts the observation again after an ``error`` or ``stop()``. Does nothing while the observation runs.
    public func start() {
        guard task == nil else { return }
        error = nil
        task = Task { [weak self, observation] in
            do throws(StoreError) {
                var lists = observation.makeAsyncIterator()
                var isFirst = true
                while let list = try await lists.next() {
                    if Task.isCancelled { return }
                    // A new observation knows nothing of what is shown.
                    let shown = isFirst ? self?.list : nil
                    self?.list = shown.map { list.since($0) } ?? list
                    isFirst = false
                }
            } catch {
                if !Task.isCancelled { self?.end(error) }
            }
        }
    }

    /// Stops the observation. ``records`` keep their values.
    public func stop() {
        task?.cancel()
        task = nil
    }

    private func end(_ error: StoreError) {
        self.error = error
        task = nil
    }
}
