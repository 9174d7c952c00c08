package import Foundation

/// The identity of a file or folder, independent of its path. Two names of one file have the same identity.
package struct FileIdentity: Hashable {
    private let device: UInt64
    private let inode: UInt64
    /// Whether it is a regular file, and not a pipe, a terminal or a folder.
    package let isFile: Bool

    /// Makes the identity of the item at a path, following links; `nil` when there is none, or when it can't be examined.
    package init?(_ url: URL) {
        var status = stat()
        guard stat(url.path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Makes the identity of an open file; `nil` when the descriptor is not valid.
    init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
        isFile = status.st_mode & S_IFMT == S_IFREG
    }

    /// Whether a path is a folder's or leads into it. Neither need exist.
    static func lies(_ url: URL, within folder: URL) -> Bool {
        let (path, root) = (resolved(url), resolved(folder))
        return path == root || path.hasPrefix(root + "/")
    }

    /// The path with its existing part free of links and `..`. The rest stays as it is written.
    private static func resolved(_ url: URL) -> String {
        let parts = url.absoluteURL.path.split(separator: "/")
        for count in stride(from: parts.count, through: 1, by: -1) {
            guard let real = realpath("/" + parts[..<count].joined(separator: "/"), nil) else { continue }
            defer { free(real) }
            return ([String(cString: real)] + parts[count...].map(String.init)).joined(separator: "/")
        }
        return "/" + parts.joined(separator: "/")
    }
}
