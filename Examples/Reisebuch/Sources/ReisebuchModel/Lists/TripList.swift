import Foundation
import Observation
import Tidemark

/// The list of trips, for a view: newest first, with badges, and with the buttons that the person may use.
///
/// A SwiftUI view reads ``rows`` and needs nothing else:
///
/// ```swift
/// List(list.rows) { row in TripRowView(row) }
/// ```
@MainActor @Observable public final class TripList {
    /// Which trips are listed.
    public enum Filter: Sendable {
        case all
        /// With stops in a country.
        case visiting(country: String)
        /// Without any stop.
        case empty

        var condition: RecordPredicate<Trip>? {
            switch self {
            case .all: nil
            case .visiting(let country): .isReferenced(by: \Stop.trip, where: \.country == country)
            case .empty: !.isReferenced(by: \Stop.trip)
            }
        }
    }

    public private(set) var content = TripListContent()
    public private(set) var isLoaded = false
    /// Why the list stands still, for the person.
    public private(set) var problem: String?
    public var filter: Filter { didSet { follow() } }

    public var rows: [TripRow] { content.rows }

    private let book: TravelBook
    @ObservationIgnored private var task: Task<Void, Never>?

    public init(_ book: TravelBook, filter: Filter = .all) {
        self.book = book
        self.filter = filter
        follow()
    }

    deinit { task?.cancel() }

    private func follow() {
        task?.cancel()
        let (container, condition) = (book.container, filter.condition)
        task = Task { [weak self] in
            do {
                // What others share is no record of ours: permissions have changes of their own.
                async let records: Void = Self.each(
                    container.observe(changesOf: [Trip.self, Stop.self, Photo.self]) {
                        try await TripListContent(of: container.snapshot(), where: condition)
                    }
                ) { self?.show($0) }
                async let permissions: Void = Self.each(try await container.permissions.changes()) { change in
                    guard !change.zones.isEmpty else { return }
                    self?.show(try await TripListContent(of: container.snapshot(), where: condition))
                }
                _ = try await (records, permissions)
            } catch {
                if !Task.isCancelled { self?.problem = error.localizedDescription }
            }
        }
    }

    private static func each<Values: AsyncSequence>(
        _ values: Values, _ use: @MainActor (Values.Element) async throws -> Void
    ) async throws where Values.Element: Sendable {
        for try await value in values { try await use(value) }
    }

    /// Waits for the first list; for tests, and for programs without a run loop.
    public func loaded() async throws { try await changed { $0.isLoaded || $0.problem != nil } }

    /// Waits until the list is as it is wanted.
    public func changed(until isWanted: (TripList) -> Bool) async throws {
        while !isWanted(self) {
            try Task.checkCancellation()
            await withCheckedContinuation { continuation in
                withObservationTracking {
                    _ = (content, isLoaded, problem)
                } onChange: {
                    Task { continuation.resume() }
                }
            }
        }
    }

    private func show(_ content: TripListContent) {
        self.content = content
        isLoaded = true
    }
}
