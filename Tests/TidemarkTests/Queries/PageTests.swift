import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: pages return each record once, in the order of the list, with any writes between them. Method: the pages of lists with
/// equal and missing values, in several orders, are put together and compared with the whole list.
@Suite(.timeLimit(.minutes(30))) struct PageTests {
    struct Stop: Tidemark.Record, Equatable {
        static var indexes: [RecordIndex<Stop>] { [.on(\.rating)] }
        var id: String
        var title = ""
        var rating: Int?
        var height: Double?
        var price: Decimal?
        var day: Date?
        var recordName: String { id }
    }

    private let scratch: Scratch
    private let journal: PersistentContainer

    init() async throws {
        scratch = try Scratch()
        journal = try scratch.journal()
        let titles = ["Senja", "Å", "bergen", "Oslo", "oslo", "Bergen 10", "Bergen 9"]
        try await journal.save(
            (0..<60).map { number in
                Stop(
                    id: "stop \(number * 37 % 60)", title: titles[number % 7], rating: number % 5 == 0 ? nil : number % 4,
                    height: number % 3 == 0 ? nil : Double(number % 6) / 3,
                    price: number % 4 == 0 ? nil : Decimal(number % 11) / 2,
                    day: Date(timeIntervalSince1970: Double(number % 9)))
            })
    }

    /// All pages, one after the other; each cursor goes through its text.
    private func pages(
        _ sorts: [RecordSort<Stop>], where predicate: RecordPredicate<Stop>? = nil, limit: Int,
        between: (Int) async throws -> Void = { _ in }
    ) async throws -> [[Stop]] {
        var pages: [[Stop]] = []
        var cursor: PageCursor?
        repeat {
            let page = try await journal.fetchPage(Stop.self, where: predicate, sortedBy: sorts, after: cursor, limit: limit)
            #expect(page.records.count == limit || page.next == nil)
            pages.append(page.records)
            cursor = try page.next.map { next in
                try JSONDecoder().decode(PageCursor.self, from: try JSONEncoder().encode(next))
            }
            #expect(cursor == page.next)
            try await between(pages.count)
        } while cursor != nil
        return pages
    }

    static let orders: [[RecordSort<Stop>]] = [
        [], [.ascending(\.rating)], [.descending(\.rating)], [.descending(\.rating), .ascending(\.height)],
        [.ascending(\.height), .descending(\.day)], [.descending(\.price)], [.ascending(\.title, order: .caseInsensitive)],
        [.descending(\.title, order: .localized(Locale(identifier: "nb_NO"))), .descending(\.rating)], [.ascending("_name")],
    ]

    @Test(arguments: orders.indices)
    func `pages put together are the whole list`(order: Int) async throws {
        let sorts = Self.orders[order]
        let byName = sorts.isEmpty ? [] : [RecordSort<Stop>.ascending("_name")]
        let rated: RecordPredicate<Stop> = \.rating >= 1
        for predicate in [nil, rated] {
            let all = try await journal.fetchAll(Stop.self, where: predicate, sortedBy: sorts + byName)
            for limit in [1, 7, 60, 100] {
                #expect(try await pages(sorts, where: predicate, limit: limit).flatMap { $0 } == all, "\(order) \(limit)")
            }
        }
    }

    @Test func `writes between two pages neither repeat nor hide other records`() async throws {
        let before = try await journal.fetchAll(Stop.self, sortedBy: [.descending(\.rating), .ascending("_name")])
        let last = before[9]
        let found = try await pages([.descending(\.rating)], limit: 10) { number in
            guard number == 1 else { return }
            // The record of the cursor, one before it, and one behind it.
            try await journal.delete(last)
            try await journal.delete(before[2])
            try await journal.save(Stop(id: "first", rating: 9))
            try await journal.save(Stop(id: "last", rating: -1))
        }
        let names = found.flatMap { $0.map(\.id) }
        var expected = before.map(\.id)
        expected.insert("last", at: expected.firstIndex { id in before.first { $0.id == id }?.rating == nil } ?? expected.count)
        #expect(names == expected)
    }

    @Test func `a cursor of another order is refused, and so is an invalid text`() async throws {
        let page = try await journal.fetchPage(Stop.self, sortedBy: [.ascending(\.rating)], limit: 5)
        let next = try #require(page.next)
        #expect(PageCursor(next.description) == next)
        await #expect(throws: StoreError(.invalid, "")) {
            try await journal.fetchPage(Stop.self, sortedBy: [.descending(\.rating)], after: next, limit: 5)
        }
        await #expect(throws: StoreError(.invalid, "")) { try await journal.fetchPage(Stop.self, after: next, limit: 5) }
        await #expect(throws: StoreError(.invalid, "")) { try await journal.fetchPage(Stop.self, limit: 0) }
        for text in ["", "x", "!!!!", String(repeating: "A", count: 2 << 20), String(next.description.dropFirst(3))] {
            #expect(PageCursor(text) == nil)
        }
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(PageCursor.self, from: Data(#"["e30"]"#.utf8)) }
    }
}
