import CTideManifest
import CTidePictures
import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: texts of RFC 3339, and no others, are times. Method: known texts, and random times written and read back.
@Suite(.timeLimit(.minutes(30))) struct TimeTests {
    private func parse(_ text: String) -> Int64? {
        var time: Int64 = 0
        let utf8 = Array(text.utf8CString)
        return tide_time_parse(utf8, utf8.count - 1, &time) ? time : nil
    }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2024-05-01T12:30:00+02:00", 1_714_559_400_000_000),
        ("2024-05-01 12:30:00z", 1_714_566_600_000_000),
        ("2024-02-29T23:59:60Z", 1_709_251_200_000_000), ("2000-01-01T00:00:00.1234567Z", 946_684_800_123_456),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000_000), ("2024-05-01T00:00:00-23:59", 1_714_607_940_000_000),
        ("0000-01-01T00:00:00-00:01", -62_167_219_140_000_000), ("9999-12-31T23:59:59.9999999Z", 253_402_300_799_999_999),
        ("9999-12-31T23:59:60+00:01", 253_402_300_740_000_000),
    ])
    func `a time is read to the microsecond`(text: String, expected: Int64) {
        #expect(parse(text) == expected)
    }

    @Test(arguments: [
        "", "2024-05-01", "2024-05-01T12:30:00", "2024-05-01T12:30Z", "2024-13-01T00:00:00Z", "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z", "2024-05-01T24:00:00Z", "2024-05-01T12:60:00Z", "2024-05-01T12:30:61Z", "2024-05-01T12:30:00.Z",
        "2024-05-01T12:30:00+2:00", "2024-05-01T12:30:00+24:00", "2024-05-01T12:30:00Zx", "2024-05-01T12:30:00+02:00x",
        "20240501T123000Z00000", "2024-05-01T12:30:00.5",
        // Years with five digits, or before 0.
        "9999-12-31T23:59:60Z", "0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00.5+00:01",
    ])
    func `text that is no RFC 3339 time is refused`(text: String) {
        #expect(parse(text) == nil)
    }

    @Test func `the first and the last time can be exported and imported, and those beyond are refused`() async throws {
        let scratch = try Scratch()
        let times = ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0000-01-01T00:00:00+23:59", "9999-12-31T23:59:60Z"]
        let fields: [RecordTypeSchema.Field] = [
            .init(name: "t", type: .timestamp), .init(name: "l", type: .list(of: .timestamp)),
        ]
        let options = ImportOptions.destination {
            $0.schema = [RecordTypeSchema(name: "Destination", fields: fields)]
            $0.rejects = scratch["rejects.jsonl"]
        }
        let lines = times.map { #"{"id": "\#($0)", "t": "\#($0)"}"# } + times.map { #"{"id": "l\#($0)", "l": ["\#($0)"]}"# }
        #expect(try await scratch.importing(lines: lines, options).changes.inserted == 4)
        #expect(try scratch.rejects().map { "\($0.line) \($0.code)" } == [3, 4, 7, 8].map { "\($0) wrongType" })
        let file = scratch["export.jsonl"]
        _ = try BulkExport(
            from: ContainerDirectory(openingAt: scratch.container), type: "Destination", format: .jsonl, to: .file(file)
        ).run()
        #expect(try String(contentsOf: file, encoding: .utf8).split(separator: "\n").count == 4)
        #expect(try await scratch.importing(file, options).changes == ChangeCounts(unchanged: 4))
    }

    /// A TIFF block with DateTimeOriginal and OffsetTimeOriginal.
    private func exif(_ time: String, _ offset: String) -> tide_exif {
        func short(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }
        func long(_ value: Int) -> [UInt8] { short(value & 0xffff) + short(value >> 16) }
        var block = Array("II".utf8) + short(42) + long(8)
        // The first directory points to EXIF's, at 26; the texts are behind that, at 56 and 76.
        block += short(1) + short(0x8769) + short(4) + long(1) + long(26) + long(0)
        block += short(2) + short(0x9003) + short(2) + long(20) + long(56)
        block += short(0x9011) + short(2) + long(7) + long(76) + long(0)
        block += Array("\(time)\0\(offset)\0".utf8)
        var read = tide_exif()
        tide_exif_read(block, block.count, &read)
        return read
    }

    @Test func `an EXIF time outside of the range is ignored`() {
        #expect(exif("2024:05:01 12:30:00", "+02:00").time == 1_714_559_400_000_000)
        #expect(exif("9999:12:31 23:59:59", "+00:00").time == 253_402_300_799_000_000)
        #expect(!exif("9999:12:31 23:59:59", "-14:00").has_time)
    }

    @Test func `written times are read as the same times`() {
        var random = Randomness("times")
        for _ in 0..<20_000 {
            let time = Int64.random(in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &random)
            #expect(parse(Timestamp.text(microseconds: time)) == time)
        }
    }
}
