import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel

/// Goal: a program can see the statements of its stores, those of the C core included, with their times and shortened values.
/// Method: a record with a unique text, because other tests of the process are traced as well.
@Suite(.timeLimit(.minutes(30)), .serialized) struct SQLTraceTests {
    @Test func `statements are traced with time, database and shortened values, until the trace is stopped`() async throws {
        let mark = "mark-\(UUID().uuidString.prefix(13))"
        let seen = LockedValue<[SQLTrace.Statement]>([])
        SQLTrace.start { statement in
            if statement.sql.contains(mark) { seen.withLock { $0.append(statement) } }
        }
        defer { SQLTrace.stop() }
        let journal = try PersistentContainer.temporary()
        try await journal.save(Destination("a", caption: mark, details: String(repeating: "long ", count: 100)))
        let statements = seen.withLock(\.self)
        let insert = try #require(statements.first { $0.sql.hasPrefix("INSERT") })
        #expect(insert.database == "private.sqlite")
        #expect(insert.duration > .zero)
        #expect(insert.sql.contains("'long long long long long long long long …' (500 characters)"), "\(insert.sql)")
        #expect(!insert.sql.contains("\n"))
        _ = try await journal.fetchAll(Destination.self, where: \.caption == mark)
        #expect(seen.withLock { $0.last?.sql.hasPrefix("SELECT") } == true)
        SQLTrace.stop()
        let count = seen.withLock(\.count)
        try await journal.save(Destination("b", caption: mark))
        #expect(seen.withLock(\.count) == count)
    }
}
