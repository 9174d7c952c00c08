import CTideManifest
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Reads a folder of photos, subfolders included, in the order of their names; see `tide_photo.h`.
///
/// Names that begin with a dot, and containers, are skipped. Symbolic links are not followed.
actor PhotoFolder: BatchReader {
    private nonisolated let executor = StoreExecutor(label: "tidemark.photos")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The number of files in the folder. They are counted when the first batch is read, since counting a large folder takes
    /// time.
    private(set) var total: Int?
    private let root: URL
    private let type: String
    private let workers: IngestWorkers
    private let pictures: PictureConversion?
    private let start: FolderWalk
    private var walk: FolderWalk
    private var position = SourcePosition()
    private var digest = PathDigest()
    private var passedOver: [String: Int] = [:]

    /// The fields that photos have; see `tide_photo.h`.
    static let fields: [RecordTypeSchema.Field] = [
        .init(name: "caption", type: .string), .init(name: "createdAt", type: .timestamp), .init(name: "image", type: .asset),
        .init(name: "width", type: .int64), .init(name: "height", type: .int64), .init(name: "position", type: .location),
    ]

    /// The files of a batch. They are fewer than the rows of a manifest's batch, because a file takes much more time than a row.
    private static let filesPerBatch = 256

    /// The field for thumbnails.
    static let thumbnailField = RecordTypeSchema.Field(name: "imageThumbnail", type: .asset)

    /// - Parameters:
    ///   - file: The name of the only file of the folder to read; `nil` for all.
    ///   - pictures: The conversion of pictures; `nil` for none.
    init(
        root: URL, file: String?, type: String, workers: IngestWorkers, pictures: PictureConversion? = nil
    ) throws(ImportError) {
        self.pictures = pictures
        self.root = root
        self.type = type
        self.workers = workers
        if let file { start = FolderWalk(root: root, file: file) } else { start = try FolderWalk(root: root) }
        walk = start
    }

    private func count() -> Int {
        var walk = start
        var count = 0
        while walk.next() != nil { count += 1 }
        return count
    }

    func fill(_ batch: RecordBatch) async throws -> FilledBatch {
        total = total ?? count()
        var entries: [FolderWalk.Entry] = []
        while entries.count < Self.filesPerBatch, let entry = walk.next() {
            entries.append(entry)
            digest.add(entry.path)
        }
        let first = position.offset + 1
        position.offset += UInt64(entries.count)
        position.line = position.offset
        position.digest = digest.bytes
        let blobs =
            if let pictures {
                try await pictures.cancelling { try ingest(entries, first: first, batch: batch) }
            } else {
                try ingest(entries, first: first, batch: batch)
            }
        return FilledBatch(batch: batch, isLast: entries.count < Self.filesPerBatch, position: position, blobs: blobs)
    }

    /// Returns the files that are not photos. The options name no fields of a folder, so there are no other notes.
    func notes() -> SourceNotes { SourceNotes(passedOver: passedOver) }

    func resume(at position: SourcePosition) throws {
        while self.position.offset < position.offset, let entry = walk.next() {
            digest.add(entry.path)
            self.position.offset += 1
        }
        guard self.position.offset == position.offset, digest.bytes == position.digest else {
            throw ImportError(
                .manifest,
                "\(root.path) no longer holds the files that the interrupted import has seen; import it without --resume")
        }
        self.position = position
    }

    /// Ingests the files in runs. A run ends at a file that can't be read, which is refused.
    private func ingest(_ entries: [FolderWalk.Entry], first: UInt64, batch: RecordBatch) throws -> [BlobStore.Blob] {
        var blobs: [BlobStore.Blob] = []
        var rest = entries[...]
        while !rest.isEmpty {
            let files = rest.prefix { $0.failure == nil }
            blobs += try ingest(files.map(\.path), first: first + UInt64(rest.startIndex), batch: batch)
            rest = rest.dropFirst(files.count)
            guard let unreadable = rest.popFirst() else { break }
            try refuse(unreadable, line: first + UInt64(files.endIndex), batch: batch)
        }
        return blobs
    }

    private func refuse(_ entry: FolderWalk.Entry, line: UInt64, batch: RecordBatch) throws {
        try checked { error in
            var source = tide_span()
            var status = tide_batch_text_add(batch.pointer, entry.path, entry.path.count - 1, &source)
            if status == TIDE_OK {
                status = tide_batch_reject(batch.pointer, line, source, false, TIDE_REJECT_ASSET_UNREADABLE, entry.failure ?? "")
            }
            return status
        }
    }

    private func ingest(_ paths: [FolderWalk.Path], first: UInt64, batch: RecordBatch) throws -> [BlobStore.Blob] {
        guard !paths.isEmpty else { return [] }
        let strings = paths.map { path in path.withUnsafeBufferPointer { UnsafePointer(strdup($0.baseAddress!)!) } }
        defer { for string in strings { free(UnsafeMutablePointer(mutating: string)) } }
        let (pointers, type, hasThumbnails) = (workers.pointers, type, pictures?.hasThumbnails == true)
        var isPassedOver = [Bool](repeating: false, count: paths.count)
        let blobs = try workers.collectBlobs { context, visitor, error in
            pointers.withUnsafeBufferPointer { workers in
                strings.withUnsafeBufferPointer { paths in
                    tide_photos_take_in(
                        workers.baseAddress!, UInt32(workers.count), paths.baseAddress!, UInt32(paths.count), first, type,
                        hasThumbnails, batch.pointer, &isPassedOver, visitor, context, &error)
                }
            }
        }
        for (path, isPassedOver) in zip(paths, isPassedOver) where isPassedOver {
            passedOver[Self.kind(of: path), default: 0] += 1
        }
        return blobs
    }

    /// A file's extension in lower case, as far as it can be shown; empty when it has none.
    private static func kind(of path: FolderWalk.Path) -> String {
        let bytes = path.dropLast().map(UInt8.init(bitPattern:))
        let name = bytes[(bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0)...]
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return "" }
        let kind = name[(dot + 1)...]
        let isPlain = kind.allSatisfy {
            $0 < 0x80 && ($0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") || $0 >= 0x30 && $0 <= 0x39)
        }
        return isPlain && kind.count <= 10 ? String(decoding: kind, as: UTF8.self).lowercased() : ""
    }
}

/// A digest of a sequence of paths (FNV-1a, 64 bits). It shows whether a folder has changed, but not against deliberate
/// collisions.
private struct PathDigest {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ path: FolderWalk.Path) {
        for byte in path { state = (state ^ UInt64(UInt8(bitPattern: byte))) &* 0x100_0000_01b3 }
    }

    var bytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: state >> (8 * $0)) } }
}

/// Walks the files below a folder. For each level it keeps the names of one directory in memory. Names are bytes, since not all
/// are UTF-8.
private struct FolderWalk {
    /// A path below the root, with the NUL at its end.
    typealias Path = [CChar]

    /// A file. With a `failure`, a file or folder that can't be read; it is reported, so that it is not left out silently.
    struct Entry {
        let path: Path
        var failure: String?
    }

    /// The `errno` of a failed system call.
    private struct Failure: Error {
        let number: Int32
        var reason: String { String(cString: strerror(number)) }
    }

    private let root: URL
    /// For each level its path, and the names that are still to be visited, in reverse order.
    private var levels: [(path: Path, names: [Path])] = []

    /// Makes a walk of one file below the root.
    init(root: URL, file: String) {
        self.root = root
        levels = [([], [Array(file.utf8CString)])]
    }

    init(root: URL) throws(ImportError) {
        self.root = root
        do throws(Failure) {
            levels = [([], try names(in: []))]
        } catch {
            throw ImportError(.source, "cannot read the folder \(root.path): \(error.reason)")
        }
        // A folder that can't be opened as a container is a folder of photos.
        guard (try? ContainerDirectory(openingAt: root)) == nil else {
            throw ImportError(.source, "\(root.path) is a container, not a folder of photos; `tidemark export` reads it")
        }
    }

    /// Returns the next file below the root, or the next item that can't be read; `nil` at the end.
    mutating func next() -> Entry? {
        while let level = levels.last {
            guard let name = level.names.last else {
                levels.removeLast()
                continue
            }
            levels[levels.count - 1].names.removeLast()
            let path = level.path.isEmpty ? name : level.path.dropLast() + [CChar(UInt8(ascii: "/"))] + name
            switch look(at: path) {
            case nil: continue
            case .file: return Entry(path: path)
            case .unreadable(let reason): return Entry(path: path, failure: reason)
            case .folder(let names): levels.append((path, names))
            }
        }
        return nil
    }

    private enum Found {
        case file
        case folder([Path])
        case unreadable(String)
    }

    /// Examines an item. Returns `nil` for a container, whose assets must not be taken for photos, and for an item that was
    /// removed after its folder was read.
    private func look(at path: Path) -> Found? {
        do throws(Failure) {
            guard try isFolder(path) else { return .file }
            let names = try names(in: path)
            guard names.contains(Self.containerFile) else { return .folder(names) }
            return lookInto(path, names: names)
        } catch {
            let shown = String(decoding: path.dropLast().prefix(300).map(UInt8.init(bitPattern:)), as: UTF8.self)
            return error.number == ENOENT ? nil : .unreadable("'\(shown)' cannot be read: \(error.reason)")
        }
    }

    private static let containerFile = Array("container.json".utf8CString)

    /// Examines a folder that has a file `container.json`. It need not be a container, since other programs use that name, too.
    private func lookInto(_ path: Path, names: [Path]) -> Found? {
        let folder = URL(fileURLWithFileSystemRepresentation: absolute(path), isDirectory: true, relativeTo: nil)
        do throws(StoreError) {
            _ = try ContainerDirectory(openingAt: folder)
            return nil
        } catch {
            switch error.code {
            case .notAStore: return .folder(names)
            case .newerFormat, .olderFormat, .notFound: return nil
            default: return .unreadable(error.message)
            }
        }
    }

    private func absolute(_ path: Path) -> Path {
        let start = root.path.utf8CString.dropLast()
        return path.isEmpty ? start + [0] : start + [CChar(UInt8(ascii: "/"))] + path
    }

    private func isFolder(_ path: Path) throws(Failure) -> Bool {
        var status = stat()
        guard lstat(absolute(path), &status) == 0 else { throw Failure(number: errno) }
        return status.st_mode & S_IFMT == S_IFDIR
    }

    /// Opens a folder below the root without following symbolic links: a link may have replaced the folder after it was examined.
    private func descriptor(of path: Path) throws(Failure) -> Int32 {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        var folder = open(root.path, flags)
        var number = errno
        for part in path.dropLast().split(separator: CChar(UInt8(ascii: "/"))) where folder >= 0 {
            let name: Path = Array(part) + [0]
            let next = openat(folder, name, flags | O_NOFOLLOW)
            number = errno
            close(folder)
            folder = next
        }
        guard folder >= 0 else { throw Failure(number: number) }
        return folder
    }

    private func names(in path: Path) throws(Failure) -> [Path] {
        let descriptor = try descriptor(of: path)
        guard let folder = fdopendir(descriptor) else {
            let number = errno
            close(descriptor)
            throw Failure(number: number)
        }
        defer { closedir(folder) }
        var names: [Path] = []
        errno = 0
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) }
            }
            if name[0] != CChar(UInt8(ascii: ".")) { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw Failure(number: errno) }
        // Reverse order, because names are taken from the end.
        return names.sorted {
            $1.lexicographicallyPrecedes($0) { UInt8(bitPattern: $0) < UInt8(bitPattern: $1) }
        }
    }
}
