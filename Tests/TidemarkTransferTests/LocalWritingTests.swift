import CTideManifest
import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: times, numbers and texts are read in the forms that people and programs use. Method: known texts, and Foundation's
/// calendar as the oracle of time zones.
@Suite(.timeLimit(.minutes(30))) struct LocalWritingTests {
    private static let berlin = TimeZone(identifier: "Europe/Berlin")!

    private func read(_ text: String, order: tide_date_order = TIDE_DATE_ORDER_NONE) -> (time: Int64, isLocal: Bool)? {
        var (time, isLocal) = (Int64(0), false)
        var rules = tide_time_rules(offsets: nil, offset_count: 0, order: order)
        let utf8 = Array(text.utf8CString)
        return tide_time_read(utf8, utf8.count - 1, &rules, &time, &isLocal) ? (time, isLocal) : nil
    }

    @Test(arguments: [
        "2024-05-01 12:30:00", "2024-05-01T12:30:00", "2024-05-01 12:30", "2024/05/01 12:30", "01.05.2024 12:30",
        "1.5.2024 12:30:00",
        "01.05.2024, 12:30", "2024-05-01 12:30:00.000", "2024-05-01 12:30:00,0", "2024-5-1 12:30", "2024-05-01 12:30 PM",
    ])
    func `a usual form of a time without an offset is read`(text: String) {
        #expect(read(text)?.time == 1_714_566_600_000_000)
        #expect(read(text)?.isLocal == true)
    }

    @Test(arguments: [
        "2024-05-01T12:30Z", "2024-05-01 14:30:00+0200", "2024-05-01 14:30:00+02", "2024-05-01 12:30:00 UTC",
        "2024-05-01 12:30:00 +00:00", "2024-05-01T14:30+02:00",
    ])
    func `a usual form of a time with an offset is read`(text: String) {
        #expect(read(text)?.time == 1_714_566_600_000_000)
        #expect(read(text)?.isLocal == false)
    }

    @Test(arguments: [
        "5/1/2024", "05-01-2024", "2024", "10.0.0.1", "1.5.24", "32.01.2024", "29.02.2023", "2024-05-01 25:00", "2024-05-01 12",
        "2024-05-01 12:30 XM", "2024-05-01 13:30 PM", "2024-05-01 12:30:00 CEST", "2024-05-01x", "2024-05/01", "v1.2.2024",
        "2024-05-01 ",
    ])
    func `text that is no time, or an ambiguous one, stays text`(text: String) {
        #expect(read(text) == nil)
    }

    @Test func `an order of day and month decides about ambiguous dates`() {
        #expect(read("5/1/2024", order: TIDE_DATE_ORDER_MONTH_FIRST)?.time == 1_714_521_600_000_000)
        #expect(read("1/5/2024", order: TIDE_DATE_ORDER_DAY_FIRST)?.time == 1_714_521_600_000_000)
        #expect(read("5/1/2024 2:30 PM", order: TIDE_DATE_ORDER_MONTH_FIRST)?.time == 1_714_573_800_000_000)
        // With points the day always comes first.
        #expect(read("01.05.2024", order: TIDE_DATE_ORDER_MONTH_FIRST)?.time == 1_714_521_600_000_000)
        #expect(read("13/13/2024", order: TIDE_DATE_ORDER_MONTH_FIRST) == nil)
    }

    @Test func `times without an offset are in the given time zone, and the summary names their fields`() async throws {
        let scratch = try Scratch()
        let csv = "id,when,day,at\n1,2024-05-01 12:30:00,2024-01-02,2024-05-01T12:30:00Z\n"
        let file = try scratch.write(csv, to: "times.csv")
        let utc = try await scratch.importing(file, .destination())
        #expect(utc.localTimeFields == ["when", "day"])
        #expect(
            try scratch.records("Destination") == [
                #"{"id":"1","when":"2024-05-01T12:30:00Z","day":"2024-01-02T00:00:00Z","at":"2024-05-01T12:30:00Z"}"#
            ])
        let berlin = try await scratch.importing(file, .destination { $0.timeZone = Self.berlin })
        #expect(berlin.changes == ChangeCounts(updated: 1))
        #expect(
            try scratch.records("Destination") == [
                #"{"id":"1","when":"2024-05-01T10:30:00Z","day":"2024-01-01T23:00:00Z","at":"2024-05-01T12:30:00Z"}"#
            ])
        let lines = [#"{"id": "a", "t": ["2024-05-01 12:30"], "s": ["2024-05-01 12:30", "later"]}"#]
        let lists = try await scratch.importing(lines: lines, .destination { $0.timeZone = Self.berlin })
        #expect(lists.localTimeFields == ["t"])
        #expect(
            try scratch.records("Destination").last
                == #"{"id":"a","t":["2024-05-01T10:30:00Z"],"s":["2024-05-01 12:30","later"]}"#)
    }

    @Test(arguments: ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"])
    func `local times of a zone are those of the calendar, also at changes of the clock`(name: String) async throws {
        let zone = try #require(TimeZone(identifier: name))
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        var random = Randomness("local times of a zone")
        var moments = (0..<200).map { _ in
            Date(timeIntervalSince1970: Double(Int.random(in: -1_000_000_000...4_000_000_000, using: &random)))
        }
        var change = Date(timeIntervalSince1970: 1_600_000_000)
        for _ in 0..<8 {
            guard let next = zone.nextDaylightSavingTimeTransition(after: change) else { break }
            moments += [-7200, -3601, -3600, -1, 0, 1, 1799, 1800, 3599, 3600, 7200].map { next.addingTimeInterval($0) }
            change = next
        }
        var lines: [String] = []
        var expected: [Int64] = []
        for (index, moment) in moments.enumerated() {
            let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: moment)
            let text = String(
                format: "%04d-%02d-%02d %02d:%02d:%02d", parts.year!, parts.month!, parts.day!, parts.hour!, parts.minute!,
                parts.second!)
            lines.append(#"{"id": "m\#(1000 + index)", "t": "\#(text)"}"#)
            // If a time occurs twice, the first one counts.
            let earlier = [7200.0, 3600, 1800].map { moment.addingTimeInterval(-$0) }.first {
                calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: $0) == parts
            }
            expected.append(Int64((earlier ?? moment).timeIntervalSince1970.rounded()) * 1_000_000)
        }
        let scratch = try Scratch()
        try await scratch.importing(lines: lines, .destination { $0.timeZone = zone })
        var times: [Int64] = []
        try scratch.reader().forEachRecord(RecordQuery(type: "Destination", sortField: "_name")) {
            if case .timestamp(let time) = $0.values[0] { times.append(time) }
        }
        #expect(times == expected)
    }

    @Test func `a time that a change of the clock skips is read with the offset before`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(
            lines: [#"{"id": 1, "t": "2024-03-31 02:30:00"}"#], .destination { $0.timeZone = Self.berlin })
        #expect(try scratch.records("Destination") == [#"{"id":"1","t":"2024-03-31T01:30:00Z"}"#])
    }

    @Test func `numbers with a decimal comma are read on request`() async throws {
        let scratch = try Scratch()
        let csv = "id;price;count;code;mixed\n1;1.234,5;1.000;1.5;1,5\n2;-0,25;12;2,5,1;2\n3;7 000;1'000;x;\n"
        let file = try scratch.write(csv, to: "numbers.csv")
        let options = ImportOptions.destination {
            $0.delimiter = ";"
            $0.hasDecimalComma = true
        }
        #expect(try await scratch.importing(file, options).rejected == 0)
        #expect(
            try scratch.records("Destination") == [
                #"{"id":"1","price":1234.5,"count":1000,"code":"1.5","mixed":1.5}"#,
                #"{"id":"2","price":-0.25,"count":12,"code":"2,5,1","mixed":2.0}"#,
                #"{"id":"3","price":7000.0,"count":1000,"code":"x"}"#,
            ])
        // Without the option, a column of such numbers is text, and in a column of numbers the remedy is named.
        let plain = try Scratch()
        try await plain.importing(lines: [#"{"id": "a", "price": 1.5}"#], .destination())
        let refused = try await plain.importing(
            try plain.write("id,price\n1,\"2,5\"\n", to: "n.csv"), .destination { $0.rejects = plain["rejects.jsonl"] })
        #expect(refused.rejected == 1)
        #expect(try plain.rejects().first?.reason == "the value is no number; --decimal-comma reads such as 1,5")
    }

    @Test(arguments: [(";", "a.csv"), ("\t", "a.csv"), ("|", "a.csv"), ("\t", "a.tsv")])
    func `cells are separated by the given delimiter`(delimiter: String, name: String) async throws {
        let scratch = try Scratch()
        let csv = ["id,text,n", "1,\"a\(delimiter) \"\"b\"\"\",2", "2,c,3"].map {
            $0.replacingOccurrences(of: ",", with: delimiter)
        }
        let options = ImportOptions.destination { $0.delimiter = name == "a.tsv" ? nil : Character(delimiter) }
        #expect(try await scratch.importing(try scratch.write(csv.joined(separator: "\r\n"), to: name), options).rejected == 0)
        let shown = delimiter == "\t" ? "\\t" : delimiter
        #expect(
            try scratch.records("Destination") == [
                #"{"id":"1","text":"a\#(shown) \"b\"","n":2}"#, #"{"id":"2","text":"c","n":3}"#,
            ])
    }

    @Test(
        arguments: [
            ("windows-1252", [0x4b, 0xf6, 0x6c, 0x6e, 0x20, 0x80, 0x35]),
            ("latin-9", [0x4b, 0xf6, 0x6c, 0x6e, 0x20, 0xa4, 0x35]),
            ("macroman", [0x4b, 0x9a, 0x6c, 0x6e, 0x20, 0xdb, 0x35]),
        ] as [(String, [UInt8])])
    func `a source in another encoding is read with the encoding's name`(encoding: String, text: [UInt8]) async throws {
        let scratch = try Scratch()
        let file = try scratch.write(Data("id,city\n1,".utf8) + text + Data("\n".utf8), to: "cities.csv")
        #expect(try await scratch.importing(file, .destination { $0.encoding = encoding }).rejected == 0)
        #expect(try scratch.records("Destination") == [#"{"id":"1","city":"Köln €5"}"#])
    }

    /// In these encodings two characters may form one, so that the converter holds the last one back.
    @Test(arguments: [("EUC-JISX0213", [0xa4, 0xab]), ("SHIFT_JISX0213", [0x82, 0xa9])] as [(String, [UInt8])])
    func `the last character of a source without a final line end is not lost`(encoding: String, text: [UInt8]) async throws {
        let scratch = try Scratch()
        let file = try scratch.write(Data("id,city\n1,".utf8) + text, to: "cities.csv")
        #expect(try await scratch.importing(file, .destination { $0.encoding = encoding }).rejected == 0)
        #expect(try scratch.records("Destination") == [#"{"id":"1","city":"か"}"#])
    }

    @Test(arguments: [String.Encoding.utf16LittleEndian, .utf16BigEndian, .utf32LittleEndian, .utf32BigEndian])
    func `a byte order mark is recognised for UTF-16 and UTF-32`(encoding: String.Encoding) async throws {
        let scratch = try Scratch()
        // More than one block, with characters of every width at its edges.
        let rows = (0..<20_000).map { "\($0),Köln 🗺 \($0)\n" }
        let text = "\u{feff}id,city\n" + rows.joined()
        let file = try scratch.write(try #require(text.data(using: encoding)), to: "cities.csv")
        #expect(try await scratch.importing(file, .destination()).changes == ChangeCounts(inserted: rows.count))
        let plain = try scratch.write(text, to: "plain.csv")
        #expect(try await scratch.importing(plain, .destination()).changes == ChangeCounts(unchanged: rows.count))
    }

    @Test func `a byte that the encoding lacks refuses only its row, and an unknown encoding is an error`() async throws {
        let scratch = try Scratch()
        let file = try scratch.write(Data("id,c\n1,a\n2,".utf8) + [0x81] + Data("\n3,b\n".utf8), to: "c.csv")
        let summary = try await scratch.importing(
            file,
            .destination {
                $0.encoding = "windows-1252"
                $0.rejects = scratch["rejects.jsonl"]
            })
        #expect(summary.changes.inserted == 2)
        #expect(try scratch.rejects().map { "\($0.line) \($0.code)" } == ["3 invalidUTF8"])
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(file, .destination { $0.encoding = "klingon" })
        }
        #expect(error?.message.contains("the encoding 'klingon' is not known") == true)
    }
}
