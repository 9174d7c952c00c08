import Foundation

/// The state of a folder's files: names, contents, attributes, times; but not the times of access.
struct FileState: Equatable, CustomStringConvertible {
    private let attributes: [String: String]
    private let contents: [String: Data]

    init(of folder: URL) throws {
        var (attributes, contents): ([String: String], [String: Data]) = ([:], [:])
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) + ["."] {
            let path = folder.appendingPathComponent(name).path
            var status = stat()
            guard lstat(path, &status) == 0 else { throw POSIXError(.ENOENT) }
            #if canImport(Darwin)
                let (changed, modified) = (status.st_ctimespec, status.st_mtimespec)
            #else
                let (changed, modified) = (status.st_ctim, status.st_mtim)
            #endif
            attributes[name] = """
                inode \(status.st_ino) mode \(String(status.st_mode, radix: 8)) links \(status.st_nlink) owner \(status.st_uid) \
                size \(status.st_size) modified \(modified) changed \(changed)
                """
            if status.st_mode & S_IFMT == S_IFREG { contents[name] = try Data(contentsOf: URL(fileURLWithPath: path)) }
        }
        self.attributes = attributes
        self.contents = contents
    }

    var description: String { attributes.sorted { $0.key < $1.key }.map { "\n\($0.key): \($0.value)" }.joined() }
}
