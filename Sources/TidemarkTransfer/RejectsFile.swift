import Foundation
import TidemarkStore

/// Writes refused rows, a JSON object a line; see Documentation/Formats/rejects.md.
final class RejectsFile {
    private let handle: FileHandle
    private let path: String
    private(set) var length: UInt64

    /// - Parameter keeping: Bytes of an interrupted import's file that stay.
    init(at url: URL, keeping: UInt64) throws(ImportError) {
        path = url.path
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw ImportError(.output, "cannot write the rejects to \(url.path): \(String(cString: strerror(errno)))")
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            let existing = try handle.seekToEnd()
            // A pipe or a device has no length to cut.
            if existing > 0 || keeping > 0 { try handle.truncate(atOffset: min(keeping, existing)) }
            length = try handle.seekToEnd()
        } catch {
            length = 0
        }
    }

    /// Appends the refusals of a batch, and sees to it that they are on disk.
    func append(_ rejections: [RecordBatch.Rejection]) throws(ImportError) {
        guard !rejections.isEmpty else { return }
        var lines = Data()
        for rejection in rejections {
            lines.append(RejectsFile.line(rejection))
            lines.append(0x0a)
        }
        do {
            try handle.write(contentsOf: lines)
            length += UInt64(lines.count)
            fsync(handle.fileDescriptor)
        } catch {
            throw ImportError(.output, "cannot write the rejects to \(path): \(error.localizedDescription)")
        }
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
