import Foundation
import GRDB
import TestSupport
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// A container to be moved, with two stores, pictures, history and pending changes; and the state of containers as text.
struct MovableContainer {
    let scratch: Scratch
    let source: URL
    let target: URL
    /// The state of the container; see `state(of:)`.
    let state: String

    init(records: Int = 120, pictures: Int = 6) async throws {
        scratch = try Scratch()
        // The path without links, as in messages and journals.
        let root = URL(fileURLWithPath: String(cString: realpath(scratch.url.path, nil)))
        (source, target) = (root.appendingPathComponent("Test.tidemark"), root.appendingPathComponent("Shared/New.tidemark"))
        for number in 0..<pictures { try scratch.write(Picture.png(number), to: "\(number).png") }
        let lines = (0..<records).map { number in
            #"{"id": "r\#(number)", "caption": "\#(String(repeating: "c\(number)", count: 30))", "image": "\#(number % pictures).png"}"#
        }
        let options = ImportOptions.destination { $0.assetFields = ["image"] }
        try await scratch.importing(lines: lines, options)
        try await scratch.importing(lines: [#"{"id": "r1", "caption": "edited", "image": "1.png"}"#], options)
        let container = try ContainerDirectory(openingAt: source)
        let shared = try RecordStore(container: container, scope: .shared)
        try await shared.declare(
            [RecordTypeSchema(name: "Invitation", fields: [.init(name: "caption", type: .string)])], environment: .development)
        try DatabaseQueue.execute(
            container.store(.shared),
            "INSERT OR REPLACE INTO tide_meta (key, value) VALUES ('history_identity', '11111111-1111-1111-1111-111111111111')")
        state = try Self.state(of: source)
    }

    /// The whole state of a container as text: its identity, all rows of all tables, definitions, assets with their bytes.
    ///
    /// - Throws: What opening the container throws.
    static func state(of url: URL) throws -> String {
        let container = try ContainerDirectory(openingAt: url)
        var lines = ["\(container.description.identity)"]
        for scope in ContainerDirectory.scopes where FileManager.default.fileExists(atPath: container.store(scope).path) {
            let reader = try StoreReader(container: container, scope: scope)
            lines += try reader.database.read { db in
                let tables = try String.fetchAll(
                    db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                let definitions = try Row.fetchAll(db, sql: "SELECT name, sql FROM sqlite_master ORDER BY name")
                return try [scope.name] + definitions.map(\.description)
                    + tables.flatMap { table in
                        [table] + (try Row.fetchAll(db, sql: "SELECT * FROM \"\(table)\" ORDER BY 1, 2").map(\.description))
                    }
            }
        }
        let assets = container.assets
        for path in try FileManager.default.subpathsOfDirectory(atPath: assets.path).sorted() where path.count > 2 {
            lines.append("\(path) \(try Data(contentsOf: assets.appendingPathComponent(path)).base64EncodedString())")
        }
        return lines.joined(separator: "\n")
    }

    /// The places, of the two, where a whole container can be opened and read.
    func open() throws -> [URL] {
        var open: [URL] = []
        for url in [source, target] {
            let codes: [StoreError.Code] = [.notFound, .notAStore, .moved, .incompleteCopy]
            if let error = try storeError({ _ = try ContainerDirectory(openingAt: url) }) {
                guard codes.contains(error.code) else { throw error }
            } else if try Self.state(of: url) == state {
                open.append(url)
            }
        }
        return open
    }

    /// All paths below a folder, with the contents of files, except the files that SQLite's readers share.
    static func listing(_ url: URL) throws -> [String: Data] {
        guard let paths = FileManager.default.subpaths(atPath: url.path) else { return [:] }
        return paths.filter { !$0.hasSuffix("-shm") }.reduce(into: [:]) {
            $0[$1] = (try? Data(contentsOf: url.appendingPathComponent($1))) ?? Data()
        }
    }

    static func verification(of url: URL) throws -> VerificationReport {
        try StoreVerification(of: ContainerDirectory(openingAt: url)).run()
    }
}

/// Runs something, and returns the error that it throws, if it is one of ours.
func storeError(_ body: () throws -> Void) throws -> StoreError? {
    do {
        try body()
        return nil
    } catch let error as StoreError {
        return error
    }
}
