#if canImport(SwiftUI)
    public import SwiftUI
    public import TidemarkModel

    /// Gives a SwiftUI view the records that match a query, like SwiftUI's `FetchRequest`.
    ///
    /// > Important: This wrapper is untested: no test builds it. ``ObservedRecords``, which does all the work, is tested.
    ///
    /// SwiftUI updates the view when the records change. The projected value is the underlying ``ObservedRecords``, which also has
    /// the error.
    @MainActor @propertyWrapper
    public struct FetchedRecords<R: Record>: @preconcurrency DynamicProperty {
        @State private var observed: ObservedRecords<R>

        /// The records in the requested order; empty until the first fetch.
        public var wrappedValue: [R] { observed.records }
        /// The object that observes the records.
        public var projectedValue: ObservedRecords<R> { observed }

        /// Creates a wrapper that starts to observe with the first update of its view.
        ///
        /// - Parameters:
        ///   - container: A ``PersistentContainer`` or a ``ReadOnlyContainer``.
        ///   - predicate: The condition; `nil` for all records.
        ///   - sorts: The order; without one, the order of insertion.
        ///   - limit: The maximum number of records; `nil` for all.
        public init(
            _ container: some RecordObserving, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [],
            limit: Int? = nil
        ) {
            let observation = container.observe(R.self, where: predicate, sortedBy: sorts, limit: limit)
            _observed = State(initialValue: ObservedRecords(notStarted: observation))
        }

        /// Starts the observation.
        public func update() { observed.start() }
    }
#endif
