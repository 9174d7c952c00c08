import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkModel

/// Goal: a condition in SQL that compares a field with an impossible value is refused with the remedy, and other conditions are
/// not. Method: a record that has a value of each type, and a list of conditions.
@Suite(.timeLimit(.minutes(30))) struct SQLConditionTests {
    struct Stay: Tidemark.Record {
        var id: String
        var recordName: String { id }
        var title = "Stay"
        var rating = 5
        var height = 2.5
        var isOpen = true
        var createdAt = Date(timeIntervalSince1970: 1_700_000_000)
        var token = Data([1, 2])
        var tags = ["ice"]
        var place: Location? = Location(latitude: 1, longitude: 2)
    }

    private func journal() async throws -> (Scratch, PersistentContainer) {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Stay(id: "a")])
        return (scratch, journal)
    }

    private func refusal(_ journal: PersistentContainer, _ predicate: Tidemark.RecordPredicate<Stay>) async -> String? {
        do {
            _ = try await journal.fetchAll(Stay.self, where: predicate)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test(arguments: [
        ("rating = 'five'", "rating is of type int64; write a number"),
        ("'five' = rating", "write a number"),
        ("title = 'a' OR (rating >= 'many')", "write a number"),
        ("NOT rating IN (1, 'two')", "write a number"),
        ("rating NOT IN ('two')", "write a number"),
        ("rating BETWEEN 1 AND 'ten'", "write a number"),
        ("rating IS 'five'", "write a number"),
        ("rating IS NOT DISTINCT FROM 'five'", "write a number"),
        ("rating = \"five\"", "write a number"),
        ("\"rating\" == /* as text */ 'it''s' -- five", "write a number"),
        ("[RATING] <> 'five' COLLATE NOCASE", "write a number"),
        ("height < 'low'", "height is of type double; write a number"),
        ("height > x'00'", "write a number"),
        ("isOpen = 'true'", "isOpen is true or false; write TRUE or FALSE"),
        ("createdAt > '2020'", "write unixepoch('2020-01-01') * 1000000"),
        ("createdAt > '2020-05'", "write unixepoch('2020-05-01') * 1000000"),
        ("createdAt > '2020-05-01 10:00'", "write unixepoch('2020-05-01 10:00') * 1000000"),
        ("createdAt > '2020-02-30'", "write it as unixepoch('2026-01-01') * 1000000"),
        ("createdAt > '2020-05-01 10:00 Uhr'", "write it as unixepoch("),
        ("createdAt = '2023-11-14T22:13:20.123Z'", "write 1700000000123000"),
        ("createdAt > '2020-01-01 10:00'' OR ''1'", "write it as unixepoch('2026-01-01') * 1000000"),
        ("createdAt > date('now', '-1 day')", "write unixepoch(date('now', '-1 day')) * 1000000"),
        ("datetime('now') > createdAt", "write unixepoch(datetime('now')) * 1000000"),
        ("createdAt > CURRENT_TIMESTAMP", "write unixepoch(CURRENT_TIMESTAMP) * 1000000"),
        ("createdAt < 'now'", "write unixepoch('now') * 1000000"),
        ("createdAt > unixepoch('now')", "no number of seconds; multiply it by 1000000"),
        ("strftime('%s', 'now') < createdAt", "no number of seconds"),
        ("createdAt <= julianday('now') AND rating = 5", "no number of days"),
        ("token = 'abc'", "token is of type bytes; write x'…' with hexadecimal digits"),
        ("title = x'61'", "write a text in single quotes"),
        ("tags = 5", "stored as JSON"),
        ("place = -1.5", "stored as JSON"),
        ("tags = 'ice'", "write 'ice' IN (SELECT value FROM json_each(tags))"),
        ("rating > '0x5'", "write a number"),
        ("\"rating\" = NULL", "write \"rating\" IS NULL"),
        ("_name = 5", "_name is the name of a record; write a text in single quotes"),
        ("rating = NULL", "write rating IS NULL"),
        ("title <> NULL", "write title IS NULL"),
    ])
    func `a comparison that can't match is refused with its correction`(condition: String, remedy: String) async throws {
        let (_scratch, journal) = try await journal()
        defer { withExtendedLifetime(_scratch) {} }
        let refusal = await refusal(journal, .sql(condition))
        #expect(refusal?.contains(remedy) ?? false, "\(refusal ?? "not refused")")
    }

    @Test(arguments: [
        "rating = 5", "rating = '5'", "rating = ' 5.0'", "5 = rating", "rating = 5e0", "rating = 0x5", "rating IN (5, '6')",
        "rating = +5",
        "rating || '' = '5'", "'five' || rating = 'five5'", "rating LIKE '5%'", "rating + '1' = 6", "length(rating) = 1",
        "isOpen", "isOpen = TRUE", "isOpen IS TRUE", "isOpen = 1", "isOpen > 0", "height = 2.5", "height > -1",
        "height BETWEEN 2 AND 3.0",
        "createdAt > 0", "createdAt > unixepoch('2020-01-01') * 1000000", "createdAt / 1000000 > unixepoch('2020-01-01')",
        "datetime(createdAt / 1000000, 'unixepoch') > '2020'", "createdAt > strftime('%s', '2020-01-01') * 1000000",
        "token = x'0102'", "title = 'Stay'", "title >= 5", "title IS NOT NULL", "title IN ('Stay')",
        "tags = '[\"ice\"]'", "'ice' IN (SELECT value FROM json_each(tags))", "place LIKE '%latitude%'",
        "EXISTS (SELECT 1 FROM (SELECT 'five' AS rating) WHERE rating = 'five')", "_name = 'a'",
        "CASE WHEN rating = 5 THEN title = 'Stay' END", "iif(rating = 5, title, '') = 'Stay'", "(rating) = 5 -- 'five'",
        "rating = strftime('%Y', '0005-01-01') + 0", "rating = strftime('%m', '2020-05-01')", "rating = '5 '", "rating = '\n5'",
        "rating IN (5, NULL)", "isOpen = '1'", "isOpen = 1.0", "isOpen = 0x1", "isOpen IN ('0', '1')", "isOpen <> 2",
        "createdAt < 9e999", "createdAt = '1700000000000000'", "height < '1e999'", "height BETWEEN 2 AND 3 = isOpen",
        "height NOT BETWEEN 3 AND 4 = isOpen", "createdAt >= strftime('%s000000', '2020-01-01')",
        "rating = (SELECT 5)", "max(rating, 4) = 5",
    ])
    func `a condition that can match is answered`(condition: String) async throws {
        let (_scratch, journal) = try await journal()
        defer { withExtendedLifetime(_scratch) {} }
        let found = try await journal.fetchAll(Stay.self, where: .sql(condition)).map(\.id)
        #expect(found == ["a"])
    }

    @Test func `an argument for a question mark is compared as it is`() async throws {
        let (_scratch, journal) = try await journal()
        defer { withExtendedLifetime(_scratch) {} }
        let refused: [(Tidemark.RecordPredicate<Stay>, String)] = [
            (.sql("rating = ?", "five"), "the condition compares rating with 'five', which has one answer for all records"),
            (.sql("title = ? AND rating IN (?, ?)", "?", 5, "six"), "write a number"),
            // GRDB stores a date as text.
            (.sql("createdAt > ?", Date(timeIntervalSince1970: 0)), "write unixepoch('1970-01-01 00:00:00') * 1000000"),
            (.sql("token = ?", "abc"), "token is of type bytes"),
        ]
        for (predicate, reason) in refused {
            let refusal = await refusal(journal, predicate)
            #expect(refusal?.contains(reason) ?? false, "\(refusal ?? "not refused")")
        }
        let answered: [Tidemark.RecordPredicate<Stay>] = [
            .sql("rating = ?", 5), .sql("rating = ?", "5"), .sql("title = ?", "Stay"), .sql("token = ?", Data([1, 2])),
            .sql("title IS NOT ?", nil), .sql("(? IS NULL OR rating >= ?)", nil, nil), .sql("rating IN (?, ?)", 5, nil),
            .sql("title = ?1 AND rating = ?", "Stay", 5), .sql("isOpen = ?", true), .sql("isOpen = ?", 1.0),
            .sql("rating = ?1", 5), .sql("length(title) > ?", 3),
            .sql("'?' <> title AND rating = ?", 5),
        ]
        for predicate in answered { #expect(await refusal(journal, predicate) == nil) }
    }

    @Test func `a condition of 200,000 characters that SQLite refuses is refused at once`() async throws {
        let (_scratch, journal) = try await journal()
        defer { withExtendedLifetime(_scratch) {} }
        for piece in ["createdAt > date( and ", "(", ")", "rating = ", "'a", "?"] {
            let refusal = await refusal(journal, .sql(String(repeating: piece, count: 200_000 / piece.count)))
            #expect(refusal != nil)
        }
    }
}
