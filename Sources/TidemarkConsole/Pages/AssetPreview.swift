import Foundation
import TidemarkAdministration
import TidemarkCloud

/// The preview of an asset on a page: a picture, the beginning of a text, or nothing. An uploaded file is never shown as HTML or
/// SVG.
enum AssetPreview: Equatable {
    case picture
    /// The beginning of a text.
    case text(String)
    /// No preview, and the reason.
    case none(String)

    /// The most bytes of a picture that is shown. Larger ones can be downloaded.
    static let pictureSize: Int64 = 20_000_000
    /// The most bytes of a picture that has a thumbnail in a table.
    static let thumbSize: Int64 = 4_000_000
    /// The most pixels of a picture that is shown. A small file may have very many pixels, all of which a browser has to hold.
    static let pixels = 50_000_000
    /// The most bytes of a text that are shown.
    private static let textSize = 4_000

    /// Makes the preview of an asset.
    init(of asset: CloudAsset, in place: RecordPlace, _ administration: Administration) async throws(AdministrationError) {
        guard asset.size > 0 else {
            self = .none("It is empty.")
            return
        }
        let read = try await administration.reader(of: asset, in: place)
        if let picture = try await PictureHeader(size: asset.size, read) {
            let isTooLarge = asset.size > Self.pictureSize || picture.pixels > Self.pixels
            self = isTooLarge ? .none("A picture of \(picture.width) × \(picture.height), too large to be shown here.") : .picture
            return
        }
        let beginning = try await read(0, Int(min(Int64(Self.textSize), asset.size)))
        self = Self.text(of: beginning).map { .text($0) } ?? .none("Neither a picture nor a text.")
    }

    /// The text with which bytes begin; `nil` if they are no text. A character that is cut off at the end is left out.
    static func text(of bytes: Data) -> String? {
        for cut in 0..<min(4, max(bytes.count, 1)) {
            guard let text = String(validating: bytes.dropLast(cut), as: UTF8.self) else { continue }
            let isText = text.unicodeScalars.allSatisfy {
                $0.properties.generalCategory != .control || ["\t", "\n", "\r"].contains($0)
            }
            return isText && !text.isEmpty ? FieldView.normalized(text) : nil
        }
        return nil
    }
}

/// The header of a picture, for the formats that can't contain scripts.
struct PictureHeader: Equatable {
    /// The media type.
    let type: String
    let width, height: Int

    var pixels: Int { width * height }

    private static let first = 65_536
    /// The most segments of a JPEG that are read, and the most reads for them.
    private static let segments = 1_000
    private static let reads = 8

    private init?(_ type: String, _ width: Int, _ height: Int) {
        guard width > 0, height > 0 else { return nil }
        (self.type, self.width, self.height) = (type, width, height)
    }

    /// Reads the beginning of an asset; `nil` if it is no picture, or has no size.
    ///
    /// - Parameter piece: Reads bytes from an offset on: as many as asked for, or as there are.
    init?(
        size: Int64, _ piece: (Int64, Int) async throws(AdministrationError) -> Data
    ) async throws(AdministrationError) {
        guard size >= 16 else { return nil }
        let bytes = [UInt8](try await piece(0, Int(min(size, Int64(Self.first)))))
        let found: PictureHeader? =
            if bytes.starts(with: [0xff, 0xd8, 0xff]) {
                try await Self.jpeg(bytes, size, piece)
            } else {
                Self.png(bytes) ?? Self.gif(bytes) ?? Self.webP(bytes)
            }
        guard let found else { return nil }
        self = found
    }

    private static func png(_ bytes: [UInt8]) -> PictureHeader? {
        guard bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), bytes.count >= 24,
            bytes[12..<16].elementsEqual("IHDR".utf8)
        else { return nil }
        func number(_ at: Int) -> Int { bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) } }
        guard number(16) < 1 << 31, number(20) < 1 << 31 else { return nil }
        return PictureHeader("image/png", number(16), number(20))
    }

    private static func gif(_ bytes: [UInt8]) -> PictureHeader? {
        guard bytes.starts(with: "GIF87a".utf8) || bytes.starts(with: "GIF89a".utf8), bytes.count >= 10 else { return nil }
        return PictureHeader("image/gif", Int(bytes[6]) | Int(bytes[7]) << 8, Int(bytes[8]) | Int(bytes[9]) << 8)
    }

    private static func webP(_ bytes: [UInt8]) -> PictureHeader? {
        guard bytes.starts(with: "RIFF".utf8), bytes.count >= 30, bytes[8..<12].elementsEqual("WEBP".utf8) else { return nil }
        func number(_ at: Int, _ count: Int) -> Int { bytes[at..<(at + count)].reversed().reduce(0) { $0 << 8 | Int($1) } }
        switch String(decoding: bytes[12..<16], as: UTF8.self) {
        case "VP8X": return PictureHeader("image/webp", number(24, 3) + 1, number(27, 3) + 1)
        case "VP8L" where bytes[20] == 0x2f:
            let packed = number(21, 4)
            return PictureHeader("image/webp", (packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1)
        case "VP8 " where bytes[23..<26].elementsEqual([0x9d, 0x01, 0x2a]):
            return PictureHeader("image/webp", number(26, 2) & 0x3fff, number(28, 2) & 0x3fff)
        default: return nil
        }
    }

    /// Reads the segments up to the one with the picture's size.
    private static func jpeg(
        _ beginning: [UInt8], _ size: Int64, _ piece: (Int64, Int) async throws(AdministrationError) -> Data
    ) async throws(AdministrationError) -> PictureHeader? {
        var offset: Int64 = 2
        var (known, start, reads) = (beginning, 0 as Int64, reads)
        for _ in 0..<segments {
            guard offset + 10 <= size else { return nil }
            if offset + 10 > start + Int64(known.count) {
                guard reads > 0 else { return nil }
                reads -= 1
                start = offset
                known = [UInt8](try await piece(offset, Int(min(size - offset, Int64(first)))))
            }
            let place = Int(offset - start)
            guard place + 10 <= known.count else { return nil }
            let bytes = Array(known[place..<(place + 10)])
            guard bytes[0] == 0xff else { return nil }
            switch bytes[1] {
            // A fill byte.
            case 0xff: offset += 1
            case 0xc0...0xcf where ![0xc4, 0xc8, 0xcc].contains(bytes[1]):
                return PictureHeader("image/jpeg", Int(bytes[7]) << 8 | Int(bytes[8]), Int(bytes[5]) << 8 | Int(bytes[6]))
            default: offset += 2 + (Int64(bytes[2]) << 8 | Int64(bytes[3]))
            }
        }
        return nil
    }
}
