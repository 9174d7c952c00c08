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
        var paths: [String] = []
        while paths.count < Self.filesPerBatch, let path = try walk.next() {
            paths.append(path)
            digest.add(path)
        }
        let first = position.offset + 1
        position.offset += UInt64(paths.count)
        position.line = position.offset
        position.digest = digest.bytes
        var assets = AssetCounts()
        let blobs = try takeIn(paths, first: first, batch: batch, assets: &assets)
        return FilledBatch(
            batch: batch, isLast: paths.count < Self.filesPerBatch, position: position, blobs: blobs, assets: assets)
    }

    func resume(at position: SourcePosition) throws {
        while self.position.offset < position.offset, let path = try walk.next() {
            digest.add(path)
            self.position.offset += 1
        }
        guard self.position.offset == position.offset, digest.bytes == position.digest else {
            throw ImportError(
                .manifest, "\(root.path) no longer holds the files that the interrupted import has seen; import it without --resume")
        }
        self.position = position
    }

    private func takeIn(
        _ paths: [String], first: UInt64, batch: RecordBatch, assets: inout AssetCounts
    ) throws -> [BlobStore.Blob] {
        guard !paths.isEmpty else { return [] }
        let strings = paths.map { UnsafePointer(strdup($0)!) }
        defer { for string in strings { free(UnsafeMutablePointer(mutating: string)) } }
        let (pointers, type) = (workers.pointers, type)
        return try workers.collectBlobs(counts: &assets) { counts, context, visitor, error in
            pointers.withUnsafeBufferPointer { workers in
                strings.withUnsafeBufferPointer { paths in
                    tide_photos_take_in(
                        workers.baseAddress!, UInt32(workers.count), paths.baseAddress!, UInt32(paths.count), first, type,
                        batch.pointer, &counts, visitor, context, &error)
                }
            }
        }
    }
}

/// A digest of a sequence of paths (FNV-1a, 64 bits): tells whether a folder is still the same, to those who mean no harm.
private struct PathDigest {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ path: String) {
        for byte in path.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
        state = state &* 0x100_0000_01b3
    }

    var bytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: state >> (8 * $0)) } }
}

/// Walks the files below a folder, one directory's names in memory at a time per level.
private struct FolderWalk {
    private let root: URL
    /// Names still to visit, last first, per level; the path of each level.
    private var levels: [(path: String, names: [String])] = []

    init(root: URL) throws(ImportError) {
        self.root = root
        levels = [("", try Self.names(in: root, path: ""))]
    }

    /// The next file's path below the root. A folder that can't be read is an error: it would silently be left out.
    mutating func next() throws(ImportError) -> String? {
        while let level = levels.last {
            guard let name = level.names.last else {
                levels.removeLast()
                continue
            }
            levels[levels.count - 1].names.removeLast()
            let path = level.path.isEmpty ? name : "\(level.path)/\(name)"
            var status = stat()
            guard lstat(root.appendingPathComponent(path).path, &status) == 0 else { continue }
            guard status.st_mode & S_IFMT == S_IFDIR else { return path }
            levels.append((path, try Self.names(in: root, path: path)))
        }
        return nil
    }

    private static func names(in root: URL, path: String) throws(ImportError) -> [String] {
        let folder = path.isEmpty ? root : root.appendingPathComponent(path)
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.path)
                .filter { !$0.hasPrefix(".") }
                .sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
                .reversed()
        } catch {
            throw ImportError(.source, "cannot read the folder \(folder.path): \(error.localizedDescription)")
        }
    }
}
