import Foundation
import TidemarkCloud
import TidemarkModel

/// The files of an archive that is being written, and their checksums.
struct ArchiveFolder {
    private let url: URL
    /// Whether the files have to survive a power cut.
    private let isDurable: Bool
    private var files: [String: FileHandle] = [:]
    /// The files whose checksums are written already, by their paths.
    private var summed: Set<String> = []
    /// The names of files that are finished.
    private(set) var finished: Set<String> = []
    /// Bytes that were written to its files.
    private(set) var bytes: Int64 = 0

    /// The file of the checksums.
    static let sums = "SHA256SUMS"

    /// - Parameter url: A folder that is there.
    init(_ url: URL, isDurable: Bool) { (self.url, self.isDurable) = (url, isDurable) }

    /// Whether a file was begun, and is not finished.
    func isOpen(_ path: String) -> Bool { files[path] != nil }

    /// Adds a line of JSON to a file.
    mutating func line(_ path: String, _ body: (inout JSONWriter) -> Void) throws {
        var json = JSONWriter()
        body(&json)
        try write(json.bytes + [0x0a], to: path)
    }

    /// Adds bytes to a file, which is made if need be.
    mutating func write(_ bytes: [UInt8], to path: String) throws {
        let file = try files[path] ?? Self.make(url.appendingPathComponent(path))
        files[path] = file
        try file.write(contentsOf: bytes)
        self.bytes += Int64(bytes.count)
    }

    /// Closes files.
    mutating func finish(_ isWanted: (String) -> Bool) throws {
        for (path, file) in files where isWanted(path) {
            if isDurable { try file.synchronize() }
            try file.close()
            files[path] = nil
            finished.insert(path)
        }
    }

    /// Writes the checksum of a file that is in the folder and whole.
    mutating func addSum(_ digest: String, of path: String) throws {
        try write(Array("\(digest)  \(path)\n".utf8), to: Self.sums)
        summed.insert(path)
    }

    /// Writes the checksums of all files that are there and have none yet.
    mutating func writeSums() throws {
        for path in try FileManager.default.subpathsOfDirectory(atPath: url.path).sorted()
        where path != Self.sums && !summed.contains(path) {
            let place = url.appendingPathComponent(path)
            guard try place.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
            let file = try FileHandle(forReadingFrom: place)
            defer { try? file.close() }
            var digest = AssetDigest()
            while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { digest.update(piece) }
            try addSum(digest.finish().digest, of: path)
        }
    }

    /// Makes the folder that a file is in.
    static func makeFolder(of url: URL) throws {
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    /// Makes a file, and the folder that it is in.
    static func make(_ url: URL) throws -> FileHandle {
        try makeFolder(of: url)
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw AdministrationError(.failed, "cannot make \(url.path): \(String(cString: strerror(errno)))")
        }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}
