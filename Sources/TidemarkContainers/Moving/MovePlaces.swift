import Foundation
import TidemarkSQLite
import TidemarkStore

/// The source and the target of a move, with all symbolic links resolved.
struct MovePlaces {
    let source: URL
    let target: URL

    /// - Throws: ``StoreError`` `notFound` when the source does not exist; `cannotMove` when the two are the same place, or one
    ///   is inside the other.
    init(from source: URL, to target: URL) throws(StoreError) {
        self.source = try Self.resolved(source)
        guard FileStamp(self.source) != nil else { throw StoreError(.notFound, "there is no container at \(source.path)") }
        self.target = try Self.resolved(target)
        if Self.isSame(self.source, self.target) {
            throw StoreError(.cannotMove, "\(source.path) and \(target.path) are the same place")
        }
        if Self.isInside(self.target, of: self.source) {
            throw StoreError(.cannotMove, "\(target.path) lies in \(source.path); name a place outside of the container")
        }
        if Self.isInside(self.source, of: self.target) {
            throw StoreError(.cannotMove, "\(source.path) lies in \(target.path); name a folder that holds nothing")
        }
    }

    /// Returns the path without symbolic links. The last parts of the path need not exist.
    static func resolved(_ url: URL) throws(StoreError) -> URL {
        var existing = url.path.split(separator: "/").map(String.init)
        var missing: [String] = []
        while true {
            let path = "/" + existing.joined(separator: "/")
            if let real = realpath(path, nil) {
                defer { free(real) }
                return missing.reversed().reduce(URL(fileURLWithPath: String(cString: real), isDirectory: true)) {
                    $0.appendingPathComponent($1, isDirectory: true)
                }
            }
            guard errno == ENOENT, let name = existing.popLast(), name != ".." else { throw Folder.failure("find", url.path) }
            var status = stat()
            guard lstat(path, &status) != 0 else { throw StoreError(.cannotMove, "\(path) is a symbolic link to nothing") }
            if name != "." { missing.append(name) }
        }
    }

    /// Returns the nearest folder that exists: the place itself, or a folder above it.
    static func nearest(_ url: URL) -> URL {
        var url = url
        while access(url.path, F_OK) != 0, url.path != "/" { url = url.deletingLastPathComponent() }
        return url
    }

    private static func isSame(_ one: URL, _ other: URL) -> Bool {
        if one.path == other.path { return true }
        guard let file = FileStamp(one) else { return false }
        return file == FileStamp(other)
    }

    /// Returns whether a place is inside a folder. It compares the folders' identities and not only their paths: a file system
    /// may be mounted twice, or ignore the case of letters.
    static func isInside(_ url: URL, of folder: URL) -> Bool {
        var url = url
        while url.path != "/" {
            url = url.deletingLastPathComponent()
            if isSame(url, folder) { return true }
        }
        return false
    }

    /// The identity of a file, independent of its path.
    private struct FileStamp: Equatable {
        let device: UInt64
        let file: UInt64

        init?(_ url: URL) {
            var status = stat()
            guard stat(url.path, &status) == 0 else { return nil }
            (device, file) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(status.st_ino))
        }
    }

    /// The free bytes on the file system of a place, which need not exist.
    static func freeBytes(at url: URL) -> Int64 {
        var status = statvfs()
        guard statvfs(nearest(url).path, &status) == 0 else { return .max }
        let (bytes, overflows) = Int64(clamping: UInt64(status.f_bavail)).multipliedReportingOverflow(by: Int64(status.f_frsize))
        return overflows ? .max : bytes
    }
}
