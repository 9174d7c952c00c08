package import Foundation

/// Which file or folder a path leads to, whatever the path: two names of one file have the same identity.
package struct FileIdentity: Hashable {
    private let device: UInt64
    private let inode: UInt64
    /// No pipe, no terminal, no folder.
    package let isFile: Bool

    /// What is at a path, links followed; `nil` when nothing is, or nothing that may be looked at.
    package init?(_ url: URL) {
        var status = stat()
        guard stat(url.path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// `nil` when the descriptor is none.
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

    /// Whether a path is a folder or leads into it. Neither need be there yet.
    static func lies(_ url: URL, within folder: URL) -> Bool {
        let (path, root) = (resolved(url), resolved(folder))
        return path == root || path.hasPrefix(root + "/")
    }

    /// The path without links and `..` as far as it exists; the rest as it is written.
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
