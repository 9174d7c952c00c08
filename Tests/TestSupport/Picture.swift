import Foundation

/// Small files with the structure of pictures.
public enum Picture {
    /// A PNG of one colour whose bytes differ for each `number`.
    public static func png(_ number: Int, width: UInt32 = 4, height: UInt32 = 3) -> Data {
        var data = Data([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
        data += chunk("IHDR", bigEndian(width) + bigEndian(height) + [8, 2, 0, 0, 0])
        data += chunk("tEXt", Array("Number\0\(number)".utf8))
        data += chunk("IDAT", [0x78, 0x01, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01])
        return data + chunk("IEND", [])
    }

    static func chunk(_ type: String, _ content: [UInt8]) -> Data {
        let checked = Array(type.utf8) + content
        return Data(bigEndian(UInt32(content.count)) + checked + bigEndian(crc(checked)))
    }

    static func bigEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0 as UInt32) { crc, byte in
            (0..<8).reduce(crc ^ UInt32(byte)) { value, _ in value & 1 == 1 ? (value >> 1) ^ 0xEDB8_8320 : value >> 1 }
        }
    }
}
