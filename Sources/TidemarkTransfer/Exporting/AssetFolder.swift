import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Copies assets into a folder, each once, and returns the paths by which a manifest names them. A copy gets its name when it is
/// complete and durable.
final class AssetFolder {
    private let folder: Folder
    private let reader: StoreReader
    /// The path from the manifest's folder to the copies; empty when the copies are not below it.
    private let prefix: String
    private var paths: [String: String] = [:]
    /// The names of copies for people; `nil` if identifiers name the copies.
    private var names: AssetNames?
    private var label = ""

    var count: Int { paths.count - problems.count }
    /// The reasons why assets could not be copied, in the order in which records name them.
    private(set) var problems: [String] = []

    init(
        _ folder: URL, target: BulkExport.Target, reader: StoreReader, names: AssetNames? = nil
    ) throws(ImportError) {
        self.reader = reader
        self.names = names
        do {
            try Folder.make(folder, mode: 0o777)
            let opened = try Folder(at: folder, followsLink: true)
            // Temporary files of killed exports into the same folder.
            try opened.removeTemporaryFiles { Self.isCopy($0) || names != nil && Self.isNamedCopy($0) }
            self.folder = opened
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

    /// Sets the record whose assets come next.
    func begin(_ record: StoredRecord) { if let names { label = names.label(record) } }

    func path(of id: String) throws -> String {
        if let path = paths[id] { return path }
        // The reader only has assets with valid identifiers, so the file name can't lead out of the folder.
        let asset = try reader.asset(id)
        let source: FileHandle
        do {
            source = try reader.open(asset)
        } catch {
            // A missing asset must not stop the export of the others.
            return leaveOut(id, error.message)
        }
        // The reader has only checked the size of the file.
        if case .damaged(let reason) = AssetFiles.examine(id, in: reader.container.assets) { return leaveOut(id, reason) }
        var name = "\(id).\(asset.pathExtension)"
        try writing("copy the asset \(id)") {
            var isCopied = false
            if names == nil {
                isCopied = try isThere(name, like: source)
            } else {
                // An existing file with other contents may be the user's, and stays.
                name =
                    try names?.name(label, asset.pathExtension) { name in
                        isCopied = try isThere(name, like: source)
                        return isCopied || !folder.has(name)
                    } ?? name
            }
            if !isCopied { try copy(source, to: name) }
        }
        paths[id] = prefix + name
        return prefix + name
    }

    private func leaveOut(_ id: String, _ reason: String) -> String {
        problems.append(reason)
        let claim = RecordText.assetClaim(id)
        paths[id] = claim
        return claim
    }

    /// Makes the copies' names durable.
    func finish() throws(ImportError) {
        try writing("copy the assets") { try folder.synchronize() }
    }

    private func writing(_ what: String, _ body: () throws -> Void) throws(ImportError) {
        do {
            try body()
        } catch {
            throw ImportError(.writing, "cannot \(what): \(Self.reason(error))", cause: error as? StoreError)
        }
    }

    /// The text of an error, with the system's reason if Foundation's text lacks it.
    private static func reason(_ error: any Error) -> String {
        if let error = error as? StoreError { return error.message }
        let error = error as NSError
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
        return cause.domain == NSPOSIXErrorDomain ? String(cString: strerror(Int32(cause.code))) : error.localizedDescription
    }

    /// Whether the folder has a complete copy from an earlier export. It compares all bytes.
    private func isThere(_ name: String, like source: FileHandle) throws -> Bool {
        // An item that can't be read as a file is replaced.
        guard let copy = try? folder.openFile(name) else { return false }
        try source.seek(toOffset: 0)
        while true {
            let expected = try source.read(upToCount: Self.chunk) ?? Data()
            guard try copy.read(upToCount: Self.chunk) ?? Data() == expected else { return false }
            if expected.isEmpty { break }
        }
        // The export that made the copy may have been interrupted before it was durable.
        try DurableFile.synchronize(copy, path: "\(folder.path)/\(name)")
        return true
    }

    private func copy(_ source: FileHandle, to name: String) throws {
        let (temporary, descriptor) = try folder.makeTemporaryFile(for: name, mode: 0o644)
        let copy = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            // A comparison may have moved the position in the file.
            try source.seek(toOffset: 0)
            while let bytes = try source.read(upToCount: Self.chunk), !bytes.isEmpty { try copy.write(contentsOf: bytes) }
            try DurableFile.synchronize(copy, path: "\(folder.path)/\(name)")
            try folder.rename(temporary, to: name)
        } catch {
            // The caller gets the first error. A temporary file that stays is in nobody's way.
            try? folder.remove(temporary)
            throw error
        }
        // The open file holds the lock until it has its name.
        withExtendedLifetime(copy) {}
    }

    private static let chunk = 1 << 20

    /// Whether a file name is that of a copy of an asset: an identifier (a digest of 32 digits, a size and perhaps a number),
    /// then an extension.
    private static func isCopy(_ name: String) -> Bool {
        let parts = name.prefix { $0 != "." }.split(separator: "-", omittingEmptySubsequences: false)
        return (parts.count == 2 || parts.count == 3) && Hexadecimal.isText(parts[0], ofBytes: 16)
            && parts.dropFirst().allSatisfy { !$0.isEmpty && $0.allSatisfy(\.isWholeNumber) }
    }

    /// Whether a temporary file may become a copy with a name for people: its final name has an extension that copies get.
    private static func isNamedCopy(_ name: String) -> Bool {
        ["bin", "gif", "heic", "jpg", "png", "tif", "webp"].contains(name.split(separator: ".").last.map(String.init))
    }

    private static func real(_ url: URL) -> String { url.standardizedFileURL.resolvingSymlinksInPath().path }
}
