import Foundation
import TidemarkModel
import TidemarkStore

/// Exports the records of a type as a manifest, and their assets as files.
///
/// Importing an export again changes nothing. The file appears under its name when it is complete.
///
/// ```swift
/// let export = BulkExport(from: container, type: "Destination", format: .jsonl, to: .file(URL(fileURLWithPath: "journal.jsonl")))
/// let summary = try export.run()
/// ```
public struct BulkExport: Sendable {
    public enum Format: String, CaseIterable, Sendable {
        case jsonl, csv
    }

    public enum Target: Sendable, Hashable {
        case file(URL)
        case standardOutput
    }

    public struct Summary: Hashable, Sendable, Encodable {
        public var records = 0
        public var assets = 0
        public var bytes = 0
    }

    private let container: ContainerDirectory
    private let type: String
    private let format: Format
    private let target: Target
    private let assets: URL?

    /// - Parameter assets: The folder that gets copies of the assets; `nil`: fields name them as `asset:` and their identifier, which
    ///   only a store that has them understands.
    public init(from container: ContainerDirectory, type: String, format: Format, to target: Target, assets: URL? = nil) {
        self.container = container
        self.type = type
        self.format = format
        self.target = target
        self.assets = assets
    }

    /// Runs the export to its end.
    ///
    /// - Parameter progress: Called now and then with what was done so far, and the number of records in all.
    /// - Throws: ``ImportError`` `output`, `writing` or `store`. The file is not there then.
    public func run(progress: ((Summary, Int) -> Void)? = nil) throws -> Summary {
        do {
            let reader = try StoreReader(container: container)
            let schema = try reader.type(named: type)
            let total = try reader.count(type: type)
            let folder = try assets.map { try AssetFolder($0, target: target, reader: reader) }
            let output = try OutputFile(target)
            let summary = try write(
                reader: reader, schema: schema, folder: folder, output: output, progress: { progress?($0, total) })
            // The copies first: the file names them.
            try folder?.finish()
            try output.finish()
            return summary
        } catch let error as StoreError {
            throw ImportError(error.code == .schema ? .options : .store, error.message, cause: error)
        } catch let error as DecodingError {
            let cause = StoreError(.corrupt, "a list in a record of \(type) is not one: \(error)")
            throw ImportError(.store, cause.message, cause: cause)
        }
    }

    private func write(
        reader: StoreReader, schema: RecordTypeSchema, folder: AssetFolder?, output: OutputFile, progress: (Summary) -> Void
    ) throws -> Summary {
        let text = folder.map { folder in RecordText(schema: schema, assetText: folder.path(of:)) } ?? RecordText(schema: schema)
        var summary = Summary()
        var buffer: [UInt8] = []
        if format == .csv { text.appendCSVHeader(to: &buffer) }
        try reader.forEachRecord(RecordQuery(type: type)) { record in
            switch format {
            case .csv: try text.appendCSV(record, to: &buffer)
            case .jsonl:
                try text.appendJSON(record, to: &buffer)
                buffer.append(0x0a)
            }
            summary.records += 1
            guard buffer.count >= 1 << 20 else { return }
            try output.write(buffer)
            summary.bytes += buffer.count
            summary.assets = folder?.count ?? 0
            buffer.removeAll(keepingCapacity: true)
            progress(summary)
        }
        try output.write(buffer)
        summary.bytes += buffer.count
        summary.assets = folder?.count ?? 0
        return summary
    }
}

/// Copies of assets, each once, and how a manifest names them. A copy gets its name when it is complete and durable.
private final class AssetFolder {
    private let folder: Folder
    private let reader: StoreReader
    /// From the manifest's folder to the copies; empty when the copies are not below it.
    private let prefix: String
    private var paths: [String: String] = [:]

    var count: Int { paths.count }

    init(_ folder: URL, target: BulkExport.Target, reader: StoreReader) throws(ImportError) {
        self.reader = reader
        do {
            try Folder.make(folder, mode: 0o777)
            self.folder = try Folder(at: folder, followsLink: true)
        } catch {
            throw ImportError(.output, error.message, cause: error)
        }
        let root =
            switch target {
            case .file(let url): url.deletingLastPathComponent()
            case .standardOutput: URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
            }
        let (rootPath, path) = (Self.real(root) + "/", Self.real(folder) + "/")
        prefix = path.hasPrefix(rootPath) ? String(path.dropFirst(rootPath.count)) : ""
    }

    func path(of id: String) throws -> String {
        if let path = paths[id] { return path }
        // An identifier, or the reader would not have it: the name leads nowhere else.
        let asset = try reader.asset(id)
        let name = "\(id).\(asset.pathExtension)"
        let source = try reader.open(asset)
        try writing("copy the asset \(id)") {
            if try !isThere(name, like: source) { try copy(source, to: name) }
        }
        paths[id] = prefix + name
        return prefix + name
    }

    /// Makes the copies' names durable.
    func finish() throws(ImportError) {
        try writing("copy the assets") { try folder.synchronize() }
    }

    private func writing(_ what: String, _ body: () throws -> Void) throws(ImportError) {
        do {
            try body()
        } catch {
            let reason = (error as? StoreError)?.message ?? error.localizedDescription
            throw ImportError(.writing, "cannot \(what): \(reason)", cause: error as? StoreError)
        }
    }

    /// Whether a copy of an earlier export is there. One that was broken off, or changed since, has other bytes.
    private func isThere(_ name: String, like source: FileHandle) throws -> Bool {
        // What can't be read as a file is replaced.
        guard let copy = try? folder.openFile(name) else { return false }
        defer { _ = try? source.seek(toOffset: 0) }
        while true {
            let expected = try source.read(upToCount: Self.chunk) ?? Data()
            guard try copy.read(upToCount: Self.chunk) ?? Data() == expected else { return false }
            if expected.isEmpty { break }
        }
        try copy.synchronize()
        return true
    }

    private func copy(_ source: FileHandle, to name: String) throws {
        let temporary = ".\(name).\(UUID().uuidString).tmp"
        do {
            let copy = try folder.makeFile(temporary, mode: 0o644)
            while let bytes = try source.read(upToCount: Self.chunk), !bytes.isEmpty { try copy.write(contentsOf: bytes) }
            try copy.synchronize()
            try copy.close()
            try folder.rename(temporary, to: name)
        } catch {
            try? folder.remove(temporary)
            throw error
        }
    }

    private static let chunk = 1 << 20

    private static func real(_ url: URL) -> String { url.standardizedFileURL.resolvingSymlinksInPath().path }
}

/// A file that gets its name when it is complete; or standard output.
private final class OutputFile {
    private let handle: FileHandle
    private let temporary: URL?
    private let url: URL?
    private var isFinished = false

    init(_ target: BulkExport.Target) throws(ImportError) {
        guard case .file(let url) = target else {
            handle = .standardOutput
            (temporary, self.url) = (nil, nil)
            return
        }
        let temporary = url.deletingLastPathComponent()
            .appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString).tmp")
        let descriptor = open(temporary.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw ImportError(.output, "cannot write \(url.path): \(String(cString: strerror(errno)))")
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        (self.temporary, self.url) = (temporary, url)
    }

    deinit {
        if let temporary, !isFinished { unlink(temporary.path) }
    }

    func write(_ bytes: [UInt8]) throws(ImportError) {
        try handle.write(all: bytes, "write \(url?.path ?? "to standard output")")
    }

    func finish() throws(ImportError) {
        guard let temporary, let url else { return }
        guard fsync(handle.fileDescriptor) == 0, rename(temporary.path, url.path) == 0 else {
            throw ImportError(.writing, "cannot write \(url.path): \(String(cString: strerror(errno)))")
        }
        isFinished = true
        do {
            try Folder(at: url.deletingLastPathComponent(), followsLink: true).synchronize()
        } catch {
            throw ImportError(.writing, error.message, cause: error)
        }
    }
}
