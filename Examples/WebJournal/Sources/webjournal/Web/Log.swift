import Foundation
import Logging

/// The program's log, on standard error.
enum Log {
    private static let logger = Logger(label: "webjournal") { StreamLogHandler.standardError(label: $0) }

    static func error(_ text: String) { logger.error("\(text)") }

    /// Does something whose failure nobody can be told, and logs it.
    static func failure(of what: String, _ body: @Sendable () async throws -> Void) async {
        do { try await body() } catch { Self.error("\(what): \(error)") }
    }
}
