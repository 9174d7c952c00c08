import Foundation
package import GRDB
import TidemarkModel

/// Traces the SQL statements of stores with their time. As `-com.apple.CoreData.SQLDebug`.
///
/// ```swift
/// SQLTrace.start { print($0.database, $0.duration, $0.sql) }
/// let journal = try PersistentContainer(named: "Journal")
/// ```
///
/// With `TIDEMARK_LOG=sql` in the environment, a program traces to standard error from its start, without this call. Connections
/// that are opened while the trace is off have no trace callback, and no cost.
public enum SQLTrace {
    /// A statement that has run.
    public struct Statement: Hashable, Sendable {
        /// The statement, with values in place of the parameters. Long values are shortened, and their lengths follow them.
        public let sql: String
        /// The time from the first step of the statement to its end. It includes the time that a program takes to read the rows.
        public let duration: Duration
        /// The name of the database file, such as `private.sqlite`.
        public let database: String
    }

    private static let handler = LockedValue<(@Sendable (Statement) -> Void)?>(
        isRequested(ProcessInfo.processInfo.environment["TIDEMARK_LOG"]) ? writeToStandardError : nil)

    /// Traces the statements of connections that are opened from now on.
    ///
    /// - Parameter handler: Called with each statement, on the thread that ran it. It should return quickly. By default the
    ///   statement is written to standard error.
    public static func start(_ handler: @escaping @Sendable (Statement) -> Void = writeToStandardError) {
        self.handler.withLock { $0 = handler }
    }

    /// Ends the trace, also that of connections that are open.
    public static func stop() { handler.withLock { $0 = nil } }

    /// Writes a statement to standard error: its time in milliseconds, the database and the SQL.
    @Sendable public static func writeToStandardError(_ statement: Statement) {
        FileHandle.standardError.write(Data((line(statement) + "\n").utf8))
    }

    /// Whether a value of `TIDEMARK_LOG`, which may be a list with commas, asks for a trace.
    package static func isRequested(_ value: String?) -> Bool {
        value?.split(separator: ",").contains { $0.trimmingCharacters(in: .whitespaces) == "sql" } ?? false
    }

    static func line(_ statement: Statement) -> String {
        let microseconds = statement.duration / .microseconds(1)
        return "sql \(String(format: "%.3f", microseconds / 1000)) ms \(statement.database): \(statement.sql)"
    }

    /// Traces a connection, if the trace is on. The C core's statements run on the same connection, and are traced with it.
    package static func install(on db: Database) {
        guard handler.withLock({ $0 != nil }) else { return }
        // A statement is also traced if the name of its database can't be read.
        let file = try? String.fetchOne(db, sql: "SELECT file FROM pragma_database_list WHERE name = 'main'")
        let name = (file ?? nil).map { URL(fileURLWithPath: $0).lastPathComponent } ?? ""
        // Measured here, because SQLite measures whole milliseconds.
        var starts: [String: ContinuousClock.Instant] = [:]
        db.trace(options: [.statement, .profile]) { event in
            switch event {
            case .statement(let statement): starts[statement.sql] = .now
            case .profile(let statement, _):
                guard let start = starts.removeValue(forKey: statement.sql), let handler = handler.withLock(\.self) else {
                    return
                }
                handler(Statement(sql: shortened(statement.expandedSQL), duration: .now - start, database: name))
            }
        }
    }

    /// The number of characters that a value of a statement keeps.
    static let valueLimit = 40

    /// Returns SQL on one line, in which long texts and blobs are shortened.
    static func shortened(_ sql: String) -> String {
        var text = ""
        var rest = Substring(sql)
        while let first = rest.first {
            if first == "'" {
                let literal = rest.prefix(literal: "'")
                rest = rest.dropFirst(literal.count)
                let content = literal.dropFirst().dropLast()
                let isBlob = text.last == "x" || text.last == "X"
                let size = isBlob ? "\(content.utf8.count / 2) bytes" : "\(content.count) characters"
                text += content.count > valueLimit ? "'\(content.prefix(valueLimit))…' (\(size))" : String(literal)
            } else if first == "\"" {
                let name = rest.prefix(literal: "\"")
                rest = rest.dropFirst(name.count)
                text += name
            } else if first.isWhitespace {
                rest = rest.drop(while: \.isWhitespace)
                if !text.isEmpty, !rest.isEmpty { text += " " }
            } else {
                let plain = rest.prefix { $0 != "'" && $0 != "\"" && !$0.isWhitespace }
                rest = rest.dropFirst(plain.count)
                text += plain
            }
        }
        return text
    }
}

extension Substring {
    /// The quoted text at the beginning, with its quotes; a doubled quote stands for one.
    fileprivate func prefix(literal quote: Character) -> Substring {
        var index = self.index(after: startIndex)
        while index < endIndex {
            let next = self.index(after: index)
            if self[index] == quote {
                guard next < endIndex, self[next] == quote else { return self[..<next] }
                index = self.index(after: next)
            } else {
                index = next
            }
        }
        return self
    }
}
