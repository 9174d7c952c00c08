import Foundation
import GRDB

/// A folder of a test's own, which is removed at the end of the test.
public final class Scratch: Sendable {
    public let url: URL

    public init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(
            "tidemark-test-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    public var container: URL { self["Test.tidemark"] }

    public subscript(path: String) -> URL { url.appendingPathComponent(path) }

    /// Writes a file, and makes the folders of its path.
    @discardableResult
    public func write(_ data: Data, to path: String) throws -> URL {
        let file = self[path]
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: file)
        return file
    }

    @discardableResult
    public func write(_ text: String, to path: String) throws -> URL { try write(Data(text.utf8), to: path) }

    @discardableResult
    public func writeLines(_ lines: [String], to path: String) throws -> URL {
        try write(lines.map { $0 + "\n" }.joined(), to: path)
    }
}

extension DatabaseQueue {
    /// Executes SQL in a database by a connection of its own, not through the store.
    public static func execute(_ database: URL, _ sql: String) throws {
        let queue = try DatabaseQueue(path: database.path)
        try queue.inDatabase { db in try db.execute(sql: sql) }
        try queue.close()
    }
}
