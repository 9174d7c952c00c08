import Foundation

/// Endings of files, by what the files begin with: assets have no names of their own.
enum FileEnding {
    /// How many bytes of a file are looked at.
    static let size = 4_096

    /// What files of a kind begin with, and where in them it stands.
    private static let beginnings: [(start: Int, bytes: [UInt8], ending: String)] = [
        (0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], "png"), (0, [0xff, 0xd8, 0xff], "jpg"),
        (0, Array("GIF8".utf8), "gif"), (8, Array("WEBP".utf8), "webp"), (8, Array("WAVE".utf8), "wav"),
        (0, [0x49, 0x49, 0x2a, 0x00], "tiff"), (0, [0x4d, 0x4d, 0x00, 0x2a], "tiff"), (0, Array("%PDF-".utf8), "pdf"),
        (0, [0x50, 0x4b, 0x03, 0x04], "zip"), (0, [0x1f, 0x8b], "gz"), (0, Array("ID3".utf8), "mp3"),
        (0, Array("OggS".utf8), "ogg"),
        (0, Array("fLaC".utf8), "flac"), (0, [0x1a, 0x45, 0xdf, 0xa3], "mkv"), (0, Array("{\\rtf".utf8), "rtf"),
        (0, Array("SQLite format 3\0".utf8), "sqlite"),
    ]
    /// Kinds of files in boxes (ISO 14496-12), by their brands.
    private static let brands = [
        "avif": "avif", "heic": "heic", "heix": "heic", "mif1": "heic", "qt  ": "mov", "M4A ": "m4a", "M4V ": "m4v",
        "3gp4": "3gp",
        "3gp5": "3gp",
    ]

    /// Returns the ending of a file. HTML pages and SVG drawings get that of a text, so that opening them runs no script.
    ///
    /// - Parameter bytes: The first ``size`` bytes, or all.
    static func of(_ bytes: Data) -> String {
        let bytes = [UInt8](bytes.prefix(size))
        for (start, known, ending) in beginnings where bytes.dropFirst(start).starts(with: known) {
            guard start == 0 || bytes.starts(with: "RIFF".utf8) else { continue }
            return ending
        }
        if bytes.count >= 12, bytes[4..<8].elementsEqual("ftyp".utf8) {
            return brands[String(decoding: bytes[8..<12], as: UTF8.self)] ?? "mp4"
        }
        return isText(bytes) ? "txt" : "bin"
    }

    /// Whether bytes begin a text. A character may be cut off at the end.
    private static func isText(_ bytes: [UInt8]) -> Bool {
        for cut in 0..<min(4, bytes.count) {
            guard let text = String(validating: bytes.dropLast(cut), as: UTF8.self) else { continue }
            return text.unicodeScalars.allSatisfy {
                $0.properties.generalCategory != .control || ["\t", "\n", "\r"].contains($0)
            }
        }
        return false
    }
}
