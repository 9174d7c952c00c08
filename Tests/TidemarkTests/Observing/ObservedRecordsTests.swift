import Foundation
import Observation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a list for views follows the container, reports its changes to Observation, and ends with its object.
/// Method: lists on the main actor, whose changes are awaited by observation tracking, without views.
@MainActor @Suite(.timeLimit(.minutes(30))) struct ObservedRecordsTests {
    typealias Place = ObservationTests.Place

    private let scratch: Scratch
    private let journal: PersistentContainer

    init() throws {
        scratch = try Scratch()
        journal = try scratch.journal()
    }

    @Test func `the records follow the container, with the changes of the newest list`() async throws {
        try await journal.save(Place(id: "a", caption: "a"))
        let observed = ObservedRecords(journal, Place.self, sortedBy: [.ascending("caption")])
        #expect(!observed.isLoaded && observed.records.isEmpty)
        #expect(try await eventually(observed) { $0.isLoaded })
        #expect(observed.records.map(\.id) == ["a"])
        try await journal.save(Place(id: "b", caption: "b"))
        #expect(try await eventually(observed) { $0.records.map(\.id) == ["a", "b"] })
        #expect(observed.list?.changes.inserted.map(\.recordName) == ["b"] && observed.error == nil)
        observed.follow(journal.observe(Place.self, where: .field("caption") == "b"))
        #expect(try await eventually(observed) { $0.records.map(\.id) == ["b"] })
        // The changes are those of what was shown.
        #expect(observed.list?.changes.deleted.map(\.recordName) == ["a"] && observed.list?.changes.inserted.isEmpty == true)
    }

    @Test func `a view that has read the records is notified when they change`() async throws {
        let observed = ObservedRecords(journal, Place.self)
        #expect(try await eventually(observed) { $0.isLoaded })
        let journal = journal
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            withObservationTracking {
                _ = observed.records
            } onChange: {
                continuation.resume()
            }
            Task { try await journal.save(Place(id: "a")) }
        }
        #expect(try await eventually(observed) { $0.records.map(\.id) == ["a"] })
    }

    @Test func `an error is kept beside the records, and the list can start again`() async throws {
        try await journal.save(Place(id: "a"))
        let observed = ObservedRecords(journal, Place.self)
        #expect(try await eventually(observed) { $0.records.count == 1 })
        try FileManager.default.moveItem(at: scratch.container, to: scratch["Elsewhere.tidemark"])
        #expect(try await eventually(observed) { $0.error?.code == .moved })
        #expect(observed.records.count == 1 && observed.isLoaded)
        try FileManager.default.moveItem(at: scratch["Elsewhere.tidemark"], to: scratch.container)
        observed.start()
        #expect(observed.error == nil)
        try await journal.save(Place(id: "b"))
        #expect(try await eventually(observed) { $0.records.count == 2 })
    }

    @Test func `a list that is stopped or released no longer observes`() async throws {
        weak var gone: ObservedRecords<Place>?
        do {
            let observed = ObservedRecords(journal, Place.self)
            gone = observed
            #expect(try await eventually(observed) { $0.isLoaded })
            observed.stop()
            let other = ObservedRecords(journal, Place.self)
            try await journal.save(Place(id: "a"))
            #expect(try await eventually(other) { $0.records.count == 1 })
            #expect(observed.records.isEmpty)
            observed.start()
            #expect(try await eventually(observed) { $0.records.count == 1 })
        }
        #expect(gone == nil)
    }

    /// Returns whether a condition becomes true within a minute.
    private func eventually(
        _ observed: ObservedRecords<Place>, _ holds: (ObservedRecords<Place>) -> Bool
    ) async throws -> Bool {
        for _ in 0..<3000 {
            if holds(observed) { return true }
            try await Task.sleep(for: .milliseconds(20))
        }
        return holds(observed)
    }
}
