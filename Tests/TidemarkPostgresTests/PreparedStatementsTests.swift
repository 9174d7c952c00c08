import Testing

@testable import TidemarkPostgres

/// Goal: a connection prepares each statement once, and never more than it may keep. Method: the value alone, without a server.
@Suite(.timeLimit(.minutes(30))) struct PreparedStatementsTests {
    private func statement(_ sql: String, _ parameters: any PostgresParameter...) -> PreparedStatements.Statement {
        PreparedStatements.Statement(PostgresCommand(sql, parameters))
    }

    @Test func `a statement is prepared once, and again under another name when it was forgotten`() {
        var statements = PreparedStatements(capacity: 10)
        let one = statement("SELECT $1", Int64(1))
        #expect(!statements.contains(one))
        let first = statements.use(one)
        #expect(first == .init(name: "t1", isNew: true, evicted: nil))
        let again = statements.use(statement("SELECT $1", Int64(2)))
        #expect(again == .init(name: "t1", isNew: false, evicted: nil))
        statements.forget(one)
        #expect(!statements.contains(one))
        let second = statements.use(one)
        #expect(second == .init(name: "t2", isNew: true, evicted: nil))
    }

    @Test func `a text whose parameters have other types is another statement`() {
        var statements = PreparedStatements(capacity: 10)
        _ = statements.use(statement("SELECT $1", Int64(1)))
        let other = statements.use(statement("SELECT $1", "1"))
        #expect(other == .init(name: "t2", isNew: true, evicted: nil))
    }

    @Test func `the least recently used statement makes room`() {
        var statements = PreparedStatements(capacity: 2)
        for sql in ["SELECT 1", "SELECT 2", "SELECT 1"] { _ = statements.use(statement(sql)) }
        let third = statements.use(statement("SELECT 3"))
        #expect(third == .init(name: "t3", isNew: true, evicted: "t2"))
        #expect(statements.contains(statement("SELECT 1")))
        #expect(!statements.contains(statement("SELECT 2")))
    }
}
