import Foundation
import Observation
import Tidemark

/// All entries of the diary, newest first, in pages: a list that is scrolled without end.
@MainActor @Observable public final class DiaryFeed {
    public private(set) var entries: [DiaryEntry] = []
    public private(set) var isComplete = false

    private let book: TravelBook
    private let pageSize: Int
    /// Where the next page begins. It can be kept: it is `Codable`, and right whatever has changed meanwhile.
    @ObservationIgnored public private(set) var cursor: PageCursor?

    public init(_ book: TravelBook, pageSize: Int = 20) {
        self.book = book
        self.pageSize = pageSize
    }

    /// Fetches the next page; for a view, when its last row appears.
    public func loadMore() async throws {
        guard !isComplete else { return }
        let page = try await book.container.fetchPage(
            DiaryEntry.self, sortedBy: [.descending(\.day), .ascending(\.heading, order: .localized(.reisebuch))],
            after: cursor, limit: pageSize)
        entries += page.records
        cursor = page.next
        isComplete = page.next == nil
    }
}

extension TravelBook {
    /// The diary in chapters, one for each month.
    public func diaryByMonth() async throws -> [(month: String, entries: [DiaryEntry])] {
        let month = Date.FormatStyle(locale: .reisebuch, timeZone: .gmt).month(.wide).year()
        let sections = try await container.sections(
            DiaryEntry.self, by: { $0.day.formatted(month) }, sortedBy: [.ascending(\.day)])
        return sections.map { ($0.key, $0.records) }
    }
}
