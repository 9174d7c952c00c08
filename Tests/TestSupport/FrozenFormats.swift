import Foundation
import GRDB

/// The archives of frozen formats in Tests/Fixtures/Formats; `Tests/Fixtures/make-formats` makes them and says what they hold.
public struct FrozenFormats: Sendable, CustomStringConvertible {
    public let archive: URL
    /// The formats of the databases in it.
    public let formats: [String: Int]
    public var description: String { archive.lastPathComponent }

    public static let all: [FrozenFormats] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Fixtures/Formats")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".tar.gz") }.sorted().map { name in
            let words = name.dropLast(".tar.gz".count).split(separator: "_").map { $0.split(separator: "-") }
            let formats = words.compactMap { word in word.count == 2 ? Int(word[1]).map { (String(word[0]), $0) } : nil }
            return FrozenFormats(archive: folder.appendingPathComponent(name), formats: Dictionary(uniqueKeysWithValues: formats))
        }
    }()

    /// The newest frozen format of a kind of database.
    public static func newest(_ kind: String) -> Int? { all.compactMap { $0.formats[kind] }.max() }

    /// Unpacks a copy.
    public func unpack(into scratch: Scratch) throws {
        let status = try ChildProcess.run("/usr/bin/tar", ["-xzf", archive.path, "-C", scratch.url.path])
        guard status == 0 else { throw CocoaError(.fileReadCorruptFile) }
    }

    /// The format of a database: its `PRAGMA user_version`.
    public static func format(of database: URL) throws -> Int {
        let queue = try DatabaseQueue(path: database.path)
        defer { try? queue.close() }
        return try queue.read { db in try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0 }
    }
}
