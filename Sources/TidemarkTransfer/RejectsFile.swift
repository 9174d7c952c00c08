import Foundation
import TidemarkSQLite
import TidemarkStore

/// Writes refused rows, one JSON object in each line; see Documentation/Formats/rejects.md.
final class RejectsFile {
    private let handle: FileHandle
    private let path: String
    /// The bytes in the file; for a pipe or a device, the bytes written.
    private(set) var length: UInt64 = 0

    /// Opens the file, and makes it if it is missing. Its contents stay until `begin`.
    init(at url: URL) throws(ImportError) {
        path = url.path
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Self.failure(.output, path: url.path, errno) }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Empties the file.
    ///
    /// - Parameter keeping: The bytes of an interrupted import that stay. A file with fewer bytes is not that import's, and is
    ///   emptied.
    func begin(keeping: UInt64) throws(ImportError) {
        let descriptor = handle.fileDescriptor
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.failure(.output, path: path, errno) }
        // A pipe or a device can't be truncated.
        guard status.st_mode & S_IFMT == S_IFREG else { return }
        length = UInt64(status.st_size) >= keeping ? keeping : 0
        guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) >= 0 else {
            throw Self.failure(.output, path: path, errno)
        }
    }

    /// Refuses a path at which the rejects would overwrite the source, or be inside the container.
    static func check(_ url: URL, source: ImportSource, container: URL) throws(ImportError) {
        let imported =
            switch source {
            case .file(let file), .folder(let file): FileIdentity(file)
            case .standardInput: FileIdentity(descriptor: STDIN_FILENO)
            }
        if let imported, imported.isFile, imported == FileIdentity(url) {
            throw ImportError(.options, "the rejects cannot go to \(url.path): that is the source, which they would overwrite")
        }
        guard !FileIdentity.lies(url, within: container) else {
            throw ImportError(
                .options, "the rejects cannot go to \(url.path): that is in the container, which holds the store's files only")
        }
    }

    /// Appends the refusals of a batch, and makes them durable.
    func append(_ rejections: [RecordBatch.Rejection]) throws(ImportError) {
        guard !rejections.isEmpty else { return }
        var lines: [UInt8] = []
        for rejection in rejections { lines += RejectsFile.line(rejection) + [0x0a] }
        try handle.write(all: lines, "write the rejects to \(path)")
        length += UInt64(lines.count)
        // A pipe or a device cannot be synchronised.
        guard DurableFile.flush(handle.fileDescriptor) || errno == EINVAL || errno == ENOTSUP else {
            throw Self.failure(.writing, path: path, errno)
        }
    }

    private static func failure(_ code: ImportError.Code, path: String, _ number: Int32) -> ImportError {
        ImportError(code, "cannot write the rejects to \(path): \(String(cString: strerror(number)))")
    }

    private struct Line: Encodable {
        var line: UInt64
        var field: String?
        var code: String
        var reason: String
        var row: String?
        var rowBase64: String?
        var rowIsCut: Bool?
    }

    static func line(_ rejection: RecordBatch.Rejection) -> Data {
        var line = Line(
            line: rejection.line, field: rejection.field.isEmpty ? nil : rejection.field, code: rejection.code,
            reason: rejection.message, rowIsCut: rejection.sourceIsCut ? true : nil)
        if let text = String(validating: rejection.source, as: UTF8.self) {
            line.row = text
        } else {
            line.rowBase64 = Data(rejection.source).base64EncodedString()
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings, numbers and Booleans can always be encoded.
        return (try? encoder.encode(line)) ?? Data()
    }
}
