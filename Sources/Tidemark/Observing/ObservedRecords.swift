public import Observation
public import TidemarkSQLite

/// A list of records for views, which follows the container by itself.
///
/// ```swift
/// let good = ObservedRecords(journal, Destination.self, where: \.rating >= 4)
/// ```
///
/// A view that reads ``records`` is updated when they have changed, here or in another process. It belongs to the main actor; fetches run
/// on other threads, and no save waits for them. The observation ends with the object.
@MainActor @Observable
public final class ObservedRecords<R: Record> {
    /// The newest list with its changes; `nil` until the first one has come.
    public private(set) var list: RecordList<R>?
    /// Why the observation has ended: a store can't be read any longer, or the query can't be answered. ``records`` stay as they were.
    public private(set) var error: StoreError?

    /// The records, in the order that was asked for; none until the first list has come.
    public var records: [R] { list?.records ?? [] }
    /// Records that match and can't be read as this type.
    public var unreadable: [UnreadableRecord] { list?.unreadable ?? [] }
    /// Whether the first list has come.
    public var isLoaded: Bool { list != nil }

    @ObservationIgnored private var observation: RecordObservation<R>
    @ObservationIgnored private var task: Task<Void, Never>?

    /// Observes the records that match, in both stores.
    ///
    /// - Parameters:
    ///   - container: A ``PersistentContainer`` or a ``ReadOnlyContainer``.
    ///   - type: The type of the records.
    ///   - predicate: Which are wanted; `nil` for all.
    ///   - sorts: Their order; without one, as they came.
    ///   - limit: The most that are wanted.
    public convenience init(
        _ container: some RecordObserving, _ type: R.Type = R.self, where predicate: RecordPredicate<R>? = nil,
        sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil
    ) {
        self.init(container.observe(type, where: predicate, sortedBy: sorts, limit: limit))
    }

    /// Follows an observation from now on.
    public convenience init(_ observation: RecordObservation<R>) {
        self.init(notStarted: observation)
        start()
    }

    /// - Parameter notStarted: Is followed from ``start()`` on.
    init(notStarted observation: RecordObservation<R>) { self.observation = observation }

    deinit { task?.cancel() }

    /// Follows another observation in place of this one, such as with the predicate of a search. The records stay until its first list comes.
    ///
    /// - Parameter observation: What is to be followed.
    public func follow(_ observation: RecordObservation<R>) {
        task?.cancel()
        task = nil
        self.observation = observation
        start()
    }

    /// Begins again where the observation has ended with an ``error``, or was stopped; does nothing while it goes on.
    public func start() {
        guard task == nil else { return }
        error = nil
        task = Task { [weak self, observation] in
            do throws(StoreError) {
                var lists = observation.makeAsyncIterator()
                while let list = try await lists.next() {
                    if Task.isCancelled { return }
                    self?.list = list
                }
            } catch {
                if !Task.isCancelled { self?.end(error) }
            }
        }
    }

    /// Stops following; ``records`` stay as they are.
    public func stop() {
        task?.cancel()
        task = nil
    }

    private func end(_ error: StoreError) {
        self.error = error
        task = nil
    }
}
