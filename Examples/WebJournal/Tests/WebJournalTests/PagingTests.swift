import Foundation
import NIOHTTP1
import Testing
import Tidemark

@testable import webjournal

/// Goal: the list shows each place once, newest first, however many there are and whatever is added and deleted meanwhile. Method: more places than a page has,
/// some of them equal in the order, and a browser without scripts that follows the links.
@Suite(.timeLimit(.minutes(30))) struct PagingTests {
    /// Adds places that are some days apart, three of each day, two of which have one caption.
    private func fill(_ journal: webjournal.Journal, _ count: Int) async throws -> [Destination] {
        let places = (0..<count).map { number in
            Destination(
                createdAt: Date(timeIntervalSince1970: 1_700_000_000 - Double(number / 3) * 86_400),
                caption: "Place \(number / 3)\(number % 3 == 0 ? "a" : "b")", image: Asset(data: Data("picture".utf8)))
        }
        try await journal.container.save(places)
        return places
    }

    private func names(_ page: Answer) -> [String] {
        page.text.components(separatedBy: "<li id=\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
    }

    private func next(_ page: Answer) -> String? { page.between("rel=\"next\" href=\"", "\"") }

    /// Follows the links to older places from a page on.
    private func follow(
        _ start: String, in browser: TestBrowser, after: ([String]) async throws -> Void = { _ in }
    ) async throws -> [[String]] {
        var (pages, path): ([[String]], String?) = ([], start)
        while let here = path {
            let page = try await browser.get(here)
            #expect(page.status == .ok)
            pages.append(names(page))
            try await after(names(page))
            path = next(page)
        }
        return pages
    }

    @Test func `all places are on some page, once, and the newest first`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let places = try await fill(site.journal(of: "ada@example.org"), Journal.pageSize * 2 + 14)
            let pages = try await follow("/", in: ada)
            #expect(pages.map(\.count) == [Journal.pageSize, Journal.pageSize, 14])
            let order = pages.joined().map { name in places.first { $0.recordName == name } }
            #expect(order.count == places.count && Set(pages.joined()).count == places.count)
            for (one, other) in zip(order, order.dropFirst()) {
                let (one, other) = (try #require(one), try #require(other))
                #expect((other.createdAt, one.caption) <= (one.createdAt, other.caption))
            }
            let first = try await ada.get("/")
            #expect(!first.text.contains("Newest places"))
            let second = try await ada.get(try #require(next(first)))
            #expect(second.text.contains("href=\"/\">Newest places</a>"))
        }
    }

    @Test func `a list that fits a page has no links`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            _ = try await fill(site.journal(of: "ada@example.org"), Journal.pageSize)
            let page = try await ada.get("/")
            #expect(names(page).count == Journal.pageSize && next(page) == nil && !page.text.contains("Newest places"))
        }
    }

    @Test func `what is added and deleted between two pages moves no place to another one`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let journal = try await site.journal(of: "ada@example.org")
            let places = try await fill(journal, Journal.pageSize * 3)
            var (gone, shown): (Set<String>, Int) = ([], 0)
            let pages = try await follow("/", in: ada) { names in
                shown += names.count
                guard shown + 5 < places.count else { return }
                // A newer place, the last of this page, which the link names, and one of the next page.
                try await journal.add(
                    Destination(createdAt: Date(), caption: "New \(shown)", image: Asset(data: Data("picture".utf8))))
                try await journal.delete(try #require(names.last.flatMap { UUID(uuidString: $0) }))
                try await journal.delete(places[shown + 5].id)
                gone.insert(places[shown + 5].recordName)
            }
            #expect(pages.joined().count == Set(pages.joined()).count)
            #expect(Set(pages.joined()) == Set(places.map(\.recordName)).subtracting(gone))
        }
    }

    @Test func `an address that is cut, or of another list, is refused in words`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let journal = try await site.journal(of: "ada@example.org")
            _ = try await fill(journal, Journal.pageSize + 1)
            let path = try #require(next(try await ada.get("/")))
            let other = try await journal.container.fetchPage(
                Destination.self, sortedBy: [.ascending(\.caption)], limit: 1
            ).next
            for path in [String(path.dropLast(3)), "/?after=", "/?after=%22%3E%3Cscript%3E", "/?after=\(try #require(other))"] {
                let page = try await ada.get(path)
                #expect(page.status == .badRequest, "\(path)")
                #expect(page.text.contains("No such page") && !page.text.contains("\"><script>"))
            }
            // Behind the last place there is nothing.
            for place in try await journal.gallery(after: nil).cards { try await journal.delete(place.destination.id) }
            let rest = try #require(names(try await ada.get(path)).first)
            let id = try #require(UUID(uuidString: rest))
            try await journal.delete(id)
            #expect(try await ada.get(path).text.contains("There are no older places any more."))
        }
    }
}
