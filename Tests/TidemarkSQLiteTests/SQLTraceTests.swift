import Testing

@testable import TidemarkSQLite

/// Goal: a traced statement fits on a line, whatever its values are. Method: statements with their texts.
@Suite(.timeLimit(.minutes(30))) struct SQLTraceTests {
    @Test func `long texts and blobs are shortened, names and short values are not`() {
        let long = String(repeating: "a", count: 60)
        #expect(SQLTrace.shortened("SELECT  1,\n   2 ") == "SELECT 1, 2")
        #expect(SQLTrace.shortened("VALUES ('it''s', x'00ff', \"a  b\")") == "VALUES ('it''s', x'00ff', \"a  b\")")
        #expect(SQLTrace.shortened("VALUES ('\(long)', 1)") == "VALUES ('\(long.prefix(40))…' (60 characters), 1)")
        #expect(SQLTrace.shortened("VALUES (x'\(long)')") == "VALUES (x'\(long.prefix(40))…' (30 bytes))")
        #expect(SQLTrace.shortened("VALUES ('open") == "VALUES ('open")
        #expect(SQLTrace.shortened("") == "")
    }

    @Test func `TIDEMARK_LOG may name the trace among others`() {
        #expect(SQLTrace.isRequested("sql") && SQLTrace.isRequested("debug, sql") && !SQLTrace.isRequested("debug"))
        #expect(!SQLTrace.isRequested(nil) && !SQLTrace.isRequested(""))
        let statement = SQLTrace.Statement(sql: "SELECT 1", duration: .microseconds(1234), database: "private.sqlite")
        #expect(SQLTrace.line(statement) == "sql 1.234 ms private.sqlite: SELECT 1")
    }
}
