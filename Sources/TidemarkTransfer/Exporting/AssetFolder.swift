import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Copies of assets, each once, and how a manifest names them. A copy gets its name when it is complete and durable.
final class AssetFolder {
    private let folder: Folder
    private let reader: StoreReader
    /// From the manifest's folder to the copies; empty when the copies are not below it.
    private let prefix: String
    private var paths: [String: String] = [:]
    /// Names for people; `nil`: copies are called by their identifiers.
    private var names: AssetNames?
    private var label = ""

    var count: Int { paths.count - problems.count }
    /// Why assets could not be copied, in the order in which records name them.
    private(set) var problems: [String] = []

    init(
        _ folder: URL, target: BulkExport.Target, reader: StoreReader, names: AssetNames? = nil
    ) throws(ImportError) {
        self.reader = reader
        self.names = names
        do {
            try Folder.make(folder, mode: 0o777)
            let opened = try Folder(at: folder, followsLink: true)
            // What exports into the same folder have left that were killed.
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

    /// Notes the record whose assets come next.
    func begin(_ record: StoredRecord) { if let names { label = names.label(record) } }

    func path(of id: String) throws -> String {
        if let path = paths[id] { return path }
        // An identifier, or the reader would not have it: the name leads nowhere else.
        let asset = try reader.asset(id)
        let source: FileHandle
        do {
            source = try reader.open(asset)
        } catch {
            // One picture that is lost must not keep the others from being rescued.
            return leaveOut(id, error.message)
        }
        // Its size is right, its bytes need not be.
        if case .damaged(let reason) = AssetFiles.examine(id, in: reader.container.assets) { return leaveOut(id, reason) }
        var name = "\(id).\(asset.pathExtension)"
        try writing("copy the asset \(id)") {
            var isCopied = false
            if names == nil {
                isCopied = try isThere(name, like: source)
            } else {
                // A file that is there, and is not this asset, may be anybody's: it stays.
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

    /// What an error says, with the system's reason where Foundation's text leaves it out.
    private static func reason(_ error: any Error) -> String {
        if let error = error as? StoreError { return error.message }
        let error = error as NSError
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
        return cause.domain == NSPOSIXErrorDomain ? String(cString: strerror(Int32(cause.code))) : error.localizedDescription
    }

    /// Whether a copy of an earlier export is there. One that was broken off, or changed since, has other bytes.
    private func isThere(_ name: String, like source: FileHandle) throws -> Bool {
        // What can't be read as a file is replaced.
        guard let copy = try? folder.openFile(name) else { return false }
        try source.seek(toOffset: 0)
        while true {
            let expected = try source.read(upToCount: Self.chunk) ?? Data()
            guard try copy.read(upToCount: Self.chunk) ?? Data() == expected else { return false }
            if expected.isEmpty { break }
        }
        try copy.synchronize()
        return true
    }

    private func copy(_ source: FileHandle, to name: String) throws {
        let (temporary, descriptor) = try folder.makeTemporaryFile(for: name, mode: 0o644)
        let copy = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            // A comparison may have read it.
            try source.seek(toOffset: 0)
            while let bytes = try source.read(upToCount: Self.chunk), !bytes.isEmpty { try copy.write(contentsOf: bytes) }
            try copy.synchronize()
            try folder.rename(temporary, to: name)
        } catch {
            // What went wrong first is what is told; a temporary file that stays has a name of its own.
            try? folder.remove(temporary)
            throw error
        }
        // Locked until it has its name.
        withExtendedLifetime(copy) {}
    }

    private static let chunk = 1 << 20

    /// Tells by its name whether a file is a copy of an asset: a digest of 32 digits, a size, and what kind it is.
    private static func isCopy(_ name: String) -> Bool {
        let parts = name.prefix { $0 != "." }.split(separator: "-", omittingEmptySubsequences: false)
        return (parts.count == 2 || parts.count == 3) && Hexadecimal.isText(parts[0], ofBytes: 16)
            && parts.dropFirst().allSatisfy { !$0.isEmpty && $0.allSatisfy(\.isWholeNumber) }
    }

    /// Tells whether a file, whose name while it was written was an export's, may be a copy with a name for people: its extension is one of those
    /// that copies get.
    private static func isNamedCopy(_ name: String) -> Bool {
        ["bin", "gif", "heic", "jpg", "png", "tif", "webp"].contains(name.split(separator: ".").last.map(String.init))
    }

    private static func real(_ url: URL) -> String { url.standardizedFileURL.resolvingSymlinksInPath().path }
}
