import CTideCore
package import Foundation
import TidemarkModel
package import TidemarkSQLite

extension ContainerDirectory {
    /// Checks whether a folder is a container that this version can read, as far as that is possible without opening its store.
    ///
    /// It follows no symbolic links in the folder, writes nothing and takes no lock.
    ///
    /// - Throws: ``StoreError`` `notAStore`, `newerFormat`, `notFound` when it has no private store, or `io`.
    package init(examining folder: borrowing Folder, at url: URL) throws(StoreError) {
        let place = ContainerPlace(of: url.appendingPathComponent("container.json"))
        try self.init(at: url, describedBy: Self.description(in: folder), place: place)
        try Self.checkStore(in: folder, name: "\(StoreScope.private.name).sqlite")
    }

    /// The most bytes of a description: more than any has.
    private static let descriptionLimit = 1 << 16

    private static func description(in folder: borrowing Folder) throws(StoreError) -> Data {
        let name = "container.json"
        guard try folder.status(of: name) != nil else {
            throw StoreError(.notAStore, "\(folder.path) is no Tidemark container: it has no \(name)")
        }
        let file = try folder.openFile(name)
        let data: Data
        do {
            data = try file.read(upToCount: descriptionLimit + 1) ?? Data()
        } catch {
            throw StoreError(.io, "cannot read \(folder.path)/\(name): \(error)")
        }
        guard data.count <= descriptionLimit else {
            throw StoreError(.notAStore, "\(folder.path)/\(name) is not the description of a Tidemark container: it is too long")
        }
        return data
    }

    private static func checkStore(in folder: borrowing Folder, name: String) throws(StoreError) {
        let path = "\(folder.path)/\(name)"
        guard let status = try folder.status(of: name), status.st_mode & S_IFMT != S_IFREG || status.st_size > 0 else {
            throw StoreError(.notFound, "\(folder.path) has no private store: \(name) is missing or empty")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw StoreError(.notAStore, "\(path) is not a file") }
        let header = try DatabaseHeader(of: name, in: folder)
        guard header.isDatabase else { throw StoreError(.notAStore, "\(path) is no SQLite database, or it is damaged") }
        guard header.applicationID == StoreFormat.applicationID else {
            throw StoreError(.notAStore, "\(path) is a SQLite database, but no Tidemark store")
        }
        guard header.userVersion <= format else {
            throw StoreError(
                .newerFormat,
                "\(path) has format \(header.userVersion); this version reads up to \(format). Update Tidemark to open it")
        }
    }
}

/// The header of a database file; see "The Database Header" in SQLite's description of its file format.
private struct DatabaseHeader {
    let isDatabase: Bool
    let userVersion: Int32
    let applicationID: Int32

    init(of name: String, in folder: borrowing Folder) throws(StoreError) {
        var bytes = [UInt8](repeating: 0, count: Int(TIDE_HEADER_SIZE))
        let path = folder.fixedPath(to: name)
        do {
            try checked { tide_header_read(path, &bytes, &$0) }
        } catch {
            // The message has the path that people know.
            throw StoreError(error.code, error.message.replacingOccurrences(of: path, with: "\(folder.path)/\(name)"))
        }
        isDatabase = bytes.starts(with: Array("SQLite format 3\0".utf8))
        userVersion = Self.number(bytes[60..<64])
        applicationID = Self.number(bytes[68..<72])
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int32 {
        Int32(bitPattern: bytes.reduce(0) { $0 << 8 | UInt32($1) })
    }
}

extension Folder {
    /// Returns the status of a name in the folder, and of a symbolic link itself; `nil` for a missing name.
    package borrowing func status(of name: String) throws(StoreError) -> stat? {
        var status = stat()
        guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            if errno == ENOENT { return nil }
            throw Self.failure("look at", "\(path)/\(name)")
        }
        return status
    }

    /// The status of the folder itself.
    package var status: stat? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status : nil
    }

    /// Returns a path to a name in this very folder, for functions that take only paths.
    borrowing func fixedPath(to name: String) -> String {
        #if os(Linux)
            "/proc/self/fd/\(descriptor)/\(name)"
        #else
            "\(path)/\(name)"
        #endif
    }
}
