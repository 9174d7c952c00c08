import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

extension Scratch {
    /// Imports a manifest or folder into the scratch container.
    @discardableResult
    public func importing(_ source: URL, _ options: ImportOptions) async throws -> ImportSummary {
        var isDirectory: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: source.path, isDirectory: &isDirectory)
        return try await BulkImport(
            source: isDirectory.boolValue ? .folder(source) : .file(source), into: container, options: options
        ).run()
    }

    /// Imports lines of JSON.
    @discardableResult
    public func importing(lines: [String], _ options: ImportOptions) async throws -> ImportSummary {
        try await importing(try writeLines(lines, to: "manifest.jsonl"), options)
    }

    public func reader() throws -> StoreReader { try StoreReader(container: ContainerDirectory(openingAt: container)) }

    /// All records of a type, as JSON lines, in the order of their names.
    public func records(_ type: String) throws -> [String] {
        let reader = try reader()
        let text = RecordText(schema: try reader.type(named: type))
        var lines: [String] = []
        try reader.forEachRecord(RecordQuery(type: type, sortField: "_name")) { record in
            var line: [UInt8] = []
            try text.appendJSON(record, to: &line)
            lines.append(String(decoding: line, as: UTF8.self))
        }
        return lines
    }

    public func verification() throws -> VerificationReport {
        try StoreVerification(of: ContainerDirectory(openingAt: container)).run()
    }

    /// The rejects file's lines, decoded.
    public func rejects(_ path: String = "rejects.jsonl") throws -> [Reject] {
        try String(contentsOf: self[path], encoding: .utf8).split(separator: "\n").map {
            try JSONDecoder().decode(Reject.self, from: Data($0.utf8))
        }
    }

    public struct Reject: Decodable, Equatable {
        public let line: Int
        public let field: String?
        public let code: String
        public let reason: String
        public let row: String?
        public let rowBase64: String?
        public let rowIsCut: Bool?
    }
}

extension ImportOptions {
    /// Options of most tests: type Destination, names in `id`.
    public static func destination(_ change: (inout ImportOptions) -> Void = { _ in }) -> ImportOptions {
        var options = ImportOptions(type: "Destination", nameField: "id")
        change(&options)
        return options
    }
}
