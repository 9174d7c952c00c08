import Foundation
import Tidemark

/// Pictures with pixels, which can be decoded; the files of `Picture` have only a picture's structure.
public enum DrawnPicture {
    /// A PNG whose pixels a function returns.
    ///
    /// - Parameter pixel: Returns red, green, blue and perhaps alpha of a column and row.
    public static func png(width: Int, height: Int, hasAlpha: Bool = false, _ pixel: (_ x: Int, _ y: Int) -> [UInt8]) -> Data {
        var rows: [UInt8] = []
        for y in 0..<height {
            rows.append(0)
            for x in 0..<width { rows += pixel(x, y).prefix(hasAlpha ? 4 : 3) }
        }
        var data = Data([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
        data += chunk("IHDR", bigEndian(UInt32(width)) + bigEndian(UInt32(height)) + [8, hasAlpha ? 6 : 2, 0, 0, 0])
        data += chunk("IDAT", stored(rows))
        return data + chunk("IEND", [])
    }

    /// A PNG that differs for each number: waves of colours.
    public static func png(_ number: Int, width: Int = 64, height: Int = 48, hasAlpha: Bool = false) -> Data {
        png(width: width, height: height, hasAlpha: hasAlpha) { x, y in
            [
                UInt8(truncatingIfNeeded: x * 255 / width), UInt8(truncatingIfNeeded: y * 255 / height),
                UInt8(truncatingIfNeeded: number * 16), x < width / 2 ? 255 : 0,
            ]
        }
    }

    /// A JPEG of the picture of the same number, with EXIF data if there are any.
    public static func jpeg(_ number: Int, width: Int = 64, height: Int = 48, exif: [UInt8] = []) async throws -> Data {
        let picture = try await ScaledPicture(
            data: png(number, width: width, height: height), options: PictureOptions(maxPixelSize: 10_000, quality: 1))
        let jpeg = try picture.image.data()
        guard !exif.isEmpty else { return jpeg }
        let marker = Array("Exif\0\0".utf8) + exif
        let length = marker.count + 2
        return jpeg.prefix(2) + [0xff, 0xe1, UInt8(length >> 8), UInt8(length & 0xff)] + marker + jpeg.dropFirst(2)
    }

    /// EXIF data that say how a picture is turned, and where it was taken: 48° north, 11° east.
    public static func exif(orientation: UInt8) -> [UInt8] {
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) -> [UInt8] {
            [UInt8(tag >> 8), UInt8(tag & 0xff), 0, UInt8(type)] + bigEndian(UInt32(count)) + value
                + [UInt8](repeating: 0, count: 4 - value.count)
        }
        func degrees(_ value: UInt32) -> [UInt8] { [value, 1, 0, 1, 0, 1].flatMap { bigEndian($0) } }
        let main = [0, 2] + entry(0x112, 3, 1, [0, orientation]) + entry(0x8825, 4, 1, bigEndian(38)) + bigEndian(0)
        let position =
            [0, 4] + entry(1, 2, 2, Array("N\0".utf8)) + entry(2, 5, 3, bigEndian(92)) + entry(3, 2, 2, Array("E\0".utf8))
            + entry(4, 5, 3, bigEndian(116)) + bigEndian(0)
        return Array("MM\0*".utf8) + bigEndian(8) + main + position + degrees(48) + degrees(11)
    }

    /// A zlib stream that contains the bytes uncompressed.
    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        for start in stride(from: 0, to: bytes.count, by: 65_535) {
            let block = bytes[start..<min(start + 65_535, bytes.count)]
            let (length, isLast) = (UInt16(block.count), block.endIndex == bytes.count)
            stream += [isLast ? 1 : 0, UInt8(length & 0xff), UInt8(length >> 8), UInt8(~length & 0xff), UInt8(~length >> 8)]
            stream += block
        }
        var (one, two): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            one = (one + UInt32(byte)) % 65_521
            two = (two + one) % 65_521
        }
        return stream + bigEndian(two << 16 | one)
    }

    private static func chunk(_ type: String, _ content: [UInt8]) -> Data { Picture.chunk(type, content) }
    private static func bigEndian(_ value: UInt32) -> [UInt8] { Picture.bigEndian(value) }
}
