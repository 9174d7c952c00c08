import CTideManifest
import Foundation
import TidemarkModel
import TidemarkStore

/// Reads a folder of photos, subfolders included, in the order of their names; see `tide_photo.h`.
///
/// Names that begin with a dot are passed over, symbolic links are not followed.
actor PhotoFolder: BatchReader {
    private nonisolated let executor = StoreExecutor(label: "tidemark.photos")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated let total: Int?
    private let root: URL
    private let type: String
    private let workers: IntakeWorkers
    private var walk: FolderWalk
    private var position = SourcePosition()
    private var digest = PathDigest()

    /// The fields that photos have; see `tide_photo.h`.
    static let fields: [RecordTypeSchema.Field] = [
        .init(name: "caption", type: .string), .init(name: "createdAt", type: .timestamp), .init(name: "image", type: .asset),
        .init(name: "width", type: .int64), .init(name: "height", type: .int64), .init(name: "position", type: .location),
    ]

    /// Files taken in for one batch: each costs far more than a row.
    private static let filesPerBatch = 256

    init(root: URL, type: String, workers: IntakeWorkers) throws(ImportError) {
        self.root = root
        self.type = type
        self.workers = workers
        walk = try FolderWalk(root: root)
        var counting = walk
        var count = 0
        while try counting.next() != nil { count += 1 }
        total = count
    }

    func fill(_ batch: RecordBatch) throws -> FilledBatch {
        var paths: [FolderWalk.Path] = []
        while paths.count < Self.filesPerBatch, let path = try walk.next() {
            paths.append(path)
            digest.add(path)
        }
        let first = position.offset + 1
        position.offset += UInt64(paths.count)
        position.line = position.offset
        position.digest = digest.bytes
        let blobs = try takeIn(paths, first: first, batch: batch)
        return FilledBatch(batch: batch, isLast: paths.count < Self.filesPerBatch, position: position, blobs: blobs)
    }

    func resume(at position: SourcePosition) throws {
        while self.position.offset < position.offset, let path = try walk.next() {
            digest.add(path)
            self.position.offset += 1
        }
        guard self.position.offset == position.offset, digest.bytes == position.digest else {
            throw ImportError(
                .manifest,
                "\(root.path) no longer holds the files that the interrupted import has seen; import it without --resume")
        }
        self.position = position
    }

    private func takeIn(_ paths: [FolderWalk.Path], first: UInt64, batch: RecordBatch) throws -> [BlobStore.Blob] {
        guard !paths.isEmpty else { return [] }
        let strings = paths.map { path in path.withUnsafeBufferPointer { UnsafePointer(strdup($0.baseAddress!)!) } }
        defer { for string in strings { free(UnsafeMutablePointer(mutating: string)) } }
        let (pointers, type) = (workers.pointers, type)
        return try workers.collectBlobs { context, visitor, error in
            pointers.withUnsafeBufferPointer { workers in
                strings.withUnsafeBufferPointer { paths in
                    tide_photos_take_in(
                        workers.baseAddress!, UInt32(workers.count), paths.baseAddress!, UInt32(paths.count), first, type,
                        batch.pointer, visitor, context, &error)
                }
            }
        }
    }
}

/// A digest of a sequence of paths (FNV-1a, 64 bits): tells whether a folder is still the same, to those who mean no harm.
private struct PathDigest {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ path: FolderWalk.Path) {
        for byte in path { state = (state ^ UInt64(UInt8(bitPattern: byte))) &* 0x100_0000_01b3 }
    }

    var bytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: state >> (8 * $0)) } }
}

/// Walks the files below a folder, one directory's names in memory at a time per level. Names are bytes: not all are UTF-8.
private struct FolderWalk {
    /// A path below the root, with its NUL.
    typealias Path = [CChar]

    private let root: URL
    /// Names still to visit, last first, per level; the path of each level.
    private var levels: [(path: Path, names: [Path])] = []

    init(root: URL) throws(ImportError) {
        self.root = root
        levels = [([], try names(in: []))]
    }

    /// The next file's path below the root. A folder that can't be read is an error: it would silently be left out.
    mutating func next() throws(ImportError) -> Path? {
        while let level = levels.last {
            guard let name = level.names.last else {
                levels.removeLast()
                continue
            }
            levels[levels.count - 1].names.removeLast()
            let path = level.path.isEmpty ? name : level.path.dropLast() + [CChar(UInt8(ascii: "/"))] + name
            var status = stat()
            guard lstat(absolute(path), &status) == 0 else { continue }
            guard status.st_mode & S_IFMT == S_IFDIR else { return path }
            levels.append((path, try names(in: path)))
        }
        return nil
    }

    private func absolute(_ path: Path) -> Path {
        let start = root.path.utf8CString.dropLast()
        return path.isEmpty ? start + [0] : start + [CChar(UInt8(ascii: "/"))] + path
    }

    private func names(in path: Path) throws(ImportError) -> [Path] {
        guard let folder = opendir(absolute(path)) else {
            let shown = String(decoding: absolute(path).dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            throw ImportError(.source, "cannot read the folder \(shown): \(String(cString: strerror(errno)))")
        }
        defer { closedir(folder) }
        var names: [Path] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) }
            }
            if name[0] != CChar(UInt8(ascii: ".")) { names.append(name) }
        }
        // Last first, because they are taken from the end.
        return names.sorted {
            $1.lexicographicallyPrecedes($0) { UInt8(bitPattern: $0) < UInt8(bitPattern: $1) }
        }
    }
}
