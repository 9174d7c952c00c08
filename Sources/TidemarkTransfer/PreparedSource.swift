import CTideManifest
import Foundation
import TidemarkSQLite
import TidemarkStore

/// A source that can be read: a manifest, or a folder of photos. A zip archive was unpacked.
struct PreparedSource {
    /// The source. A file or standard input is a manifest; a folder has photos.
    var source: ImportSource
    var format: ImportFormat
    /// The only file of the folder to read.
    var photo: String?
    /// The folder with the files of an unpacked archive; `remove()` deletes it.
    var unpacked: URL?

    /// Examines a source, and unpacks it if it is an archive.
    ///
    /// - Throws: ``ImportError`` `source` when the source can't be read, or can't be imported.
    init(_ source: ImportSource, format given: ImportFormat) throws(ImportError) {
        self.source = source
        format = given
        switch source {
        case .folder(let url):
            try Self.checkReadable(url)
            guard given == .auto || given == .photos else {
                throw ImportError(.source, "\(url.path) is a folder, which can only be imported as photos")
            }
            format = .photos
        case .standardInput:
            guard given != .photos else {
                throw ImportError(.options, "photos are imported from a folder, not from standard input")
            }
        case .file(let url):
            try Self.checkReadable(url)
            try prepare(url, given)
        }
    }

    /// Removes the files of an unpacked archive.
    func remove() {
        // A folder that stays is in the system's folder for temporary files.
        if let unpacked { try? FileManager.default.removeItem(at: unpacked) }
    }

    private static func checkReadable(_ url: URL) throws(ImportError) {
        guard access(url.path, R_OK) == 0 else {
            throw ImportError(.source, "cannot read \(url.path): \(String(cString: strerror(errno)))")
        }
    }

    private mutating func prepare(_ url: URL, _ given: ImportFormat) throws(ImportError) {
        let head = Self.head(of: url)
        if head.starts(with: [0x50, 0x4b, 0x03, 0x04]) || head.starts(with: [0x50, 0x4b, 0x05, 0x06]) {
            return try unpack(url, given)
        }
        if given == .auto || given == .photos, Self.isPhoto(url, head: head) {
            (source, format, photo) = (.folder(url.deletingLastPathComponent()), .photos, url.lastPathComponent)
            return
        }
        guard given != .photos else {
            throw ImportError(.source, "\(url.path) is neither a folder nor a photo; photos are imported from these")
        }
        guard given == .auto else { return }
        try Self.checkIsManifest(url)
        format = Self.format(of: url)
    }

    /// The first bytes of a regular file. Nothing is read from a pipe, since these bytes would be lost.
    private static func head(of url: URL) -> [UInt8] {
        // For a file that can't be read this returns no bytes. Reading it as a source reports the error.
        guard FileIdentity(url)?.isFile == true, let file = try? FileHandle(forReadingFrom: url) else { return [] }
        defer { try? file.close() }
        return (try? file.read(upToCount: 12)).flatMap { $0 }.map(Array.init) ?? []
    }

    private static func isPhoto(_ url: URL, head: [UInt8]) -> Bool {
        let name = url.lastPathComponent
        if tide_media_claimed(name, name.utf8.count) { return true }
        return head.withUnsafeBufferPointer { head in
            guard let start = head.baseAddress else { return false }
            var image = tide_image()
            // The probe may fail because the bytes end early. It has recognised the kind of image by then.
            _ = tide_image_probe(tide_bytes(memory: start, descriptor: -1, size: UInt64(head.count)), &image, nil)
            return image.media != TIDE_MEDIA_UNKNOWN
        }
    }

    private static let spreadsheets: Set = ["xlsx", "xls", "ods", "numbers"]
    private static let otherKinds: Set = [
        "bmp", "mov", "mp4", "m4v", "avi", "mkv", "webm", "pdf", "svg", "mp3", "m4a", "wav", "doc", "docx", "7z", "rar", "tar",
        "tgz",
    ]

    private static func checkIsManifest(_ url: URL) throws(ImportError) {
        let kind = url.pathExtension.lowercased()
        if spreadsheets.contains(kind) { throw ImportError(.source, spreadsheet(url)) }
        guard !otherKinds.contains(kind) else {
            throw ImportError(
                .source,
                "\(url.path) is neither a manifest (JSON, CSV) nor a photo of a known kind (JPEG, PNG, GIF, WebP, HEIC, AVIF, TIFF); "
                    + "if it is a manifest after all, say so with --format")
        }
    }

    private static func spreadsheet(_ url: URL) -> String { "\(url.path) is a spreadsheet; save it as CSV and import that" }

    /// The form that a file's extension names, without an extension of compression.
    private static func format(of url: URL) -> ImportFormat {
        var url = url
        if ["gz", "zst"].contains(url.pathExtension.lowercased()) { url.deletePathExtension() }
        switch url.pathExtension.lowercased() {
        case "csv", "tsv", "tab": return .csv
        case "jsonl", "ndjson": return .jsonl
        default: return .auto
        }
    }

    /// Whether a file's extension means that tabs separate its cells.
    static func hasTabs(_ source: ImportSource) -> Bool {
        guard case .file(var url) = source else { return false }
        if ["gz", "zst"].contains(url.pathExtension.lowercased()) { url.deletePathExtension() }
        return ["tsv", "tab"].contains(url.pathExtension.lowercased())
    }

    // Archives

    private mutating func unpack(_ url: URL, _ given: ImportFormat) throws(ImportError) {
        if Self.spreadsheets.contains(url.pathExtension.lowercased()) { throw ImportError(.source, Self.spreadsheet(url)) }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "tidemark-unpacked-\(getpid())-\(UUID().uuidString)", isDirectory: true)
        unpacked = folder
        do throws(ImportError) {
            try Self.unpack(url, into: folder)
            try choose(url, given, folder)
        } catch {
            remove()
            throw error
        }
    }

    private static func unpack(_ url: URL, into folder: URL) throws(ImportError) {
        guard mkdir(folder.path, 0o700) == 0 else {
            throw ImportError(.source, "cannot make \(folder.path): \(String(cString: strerror(errno)))")
        }
        let archive = open(url.path, O_RDONLY | O_CLOEXEC)
        defer { close(archive) }
        let place = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(place) }
        guard archive >= 0, place >= 0 else {
            throw ImportError(.source, "cannot read \(url.path): \(String(cString: strerror(errno)))")
        }
        var error = tide_error()
        var count: UInt64 = 0
        guard tide_archive_unpack(archive, place, &count, &error) == TIDE_OK else {
            throw ImportError(
                error.status == TIDE_REJECTED ? .manifest : error.status == TIDE_DISK_FULL ? .writing : .source,
                "\(url.path): \(error.text)")
        }
    }

    /// Chooses the part of an archive that is imported: its only manifest, or its photos.
    private mutating func choose(_ url: URL, _ given: ImportFormat, _ folder: URL) throws(ImportError) {
        let files = try Self.files(in: folder)
        if files.contains("[Content_Types].xml") { throw ImportError(.source, Self.spreadsheet(url)) }
        let kinds: Set = ["csv", "tsv", "tab", "jsonl", "ndjson", "json", "geojson"]
        var manifests = files.filter { kinds.contains(URL(fileURLWithPath: $0).pathExtension.lowercased()) }
        // A single file is the manifest whatever its name is, if the format of a manifest was given.
        if manifests.isEmpty, files.count == 1, given != .auto, given != .photos { manifests = files }
        if given == .photos || manifests.isEmpty {
            guard given == .auto || given == .photos else {
                throw ImportError(.source, "\(url.path) has no manifest (*.csv, *.jsonl, *.json)")
            }
            (source, format) = (.folder(folder), .photos)
            return
        }
        guard manifests.count == 1 else {
            let names = manifests.sorted().prefix(5).joined(separator: ", ")
            throw ImportError(
                .source,
                "\(url.path) has several manifests (\(names)\(manifests.count > 5 ? ", …" : "")); unpack it and import one")
        }
        let manifest = folder.appendingPathComponent(manifests[0])
        source = .file(manifest)
        format = given == .auto ? Self.format(of: manifest) : given
    }

    /// The files below a folder, without hidden files and those that macOS adds to archives.
    private static func files(in folder: URL) throws(ImportError) -> [String] {
        let paths: [String]
        do {
            paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        } catch {
            throw ImportError(.source, "cannot read \(folder.path): \(error.localizedDescription)")
        }
        return paths.filter { path in
            let isHidden = path.split(separator: "/").contains { $0.hasPrefix(".") || $0 == "__MACOSX" }
            return !isHidden && FileIdentity(folder.appendingPathComponent(path))?.isFile == true
        }
    }
}
