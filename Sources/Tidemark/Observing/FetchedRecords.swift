#if canImport(SwiftUI)
    public import SwiftUI
    public import TidemarkModel

    /// The records that match a query, in a view of SwiftUI. As `FetchRequest`.
    ///
    /// > Important: This wrapper is untested: no test builds it. ``ObservedRecords``, which does all the work, is tested.
    ///
    /// The view is updated when the records have changed. The projected value is the ``ObservedRecords`` behind it, with its errors.
    @MainActor @propertyWrapper
    public struct FetchedRecords<R: Record>: @preconcurrency DynamicProperty {
        @State private var observed: ObservedRecords<R>

        /// The records, in the order that was asked for; none until the first fetch.
        public var wrappedValue: [R] { observed.records }
        /// The observation behind the records.
        public var projectedValue: ObservedRecords<R> { observed }

        /// Makes a wrapper that begins to observe with the first update of its view.
        ///
        /// - Parameters:
        ///   - container: A ``PersistentContainer`` or a ``ReadOnlyContainer``.
        ///   - predicate: Which records are wanted; `nil` for all.
        ///   - sorts: Their order; without one, as they came.
        ///   - limit: The most that are wanted.
        public init(
            _ container: some RecordObserving, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [],
            limit: Int? = nil
        ) {
            let observation = container.observe(R.self, where: predicate, sortedBy: sorts, limit: limit)
            _observed = State(initialValue: ObservedRecords(notStarted: observation))
        }

        /// Begins to observe.
        public func update() { observed.start() }
    }
#endif
