import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: sources can have the usual forms: JSON in any layout, compressed, in archives, one photo. Method: the same rows in each
/// form, whole stores compared; damaged and hostile forms leave nothing.
@Suite(.serialized, .timeLimit(.minutes(30))) struct SourceTests {
    private static let rows = [#"{"id":"a","n":1}"#, #"{"id":"b","n":2}"#]

    @Test(
        arguments: [
            "{\n  \"id\": \"a\",\n  \"n\": 1\n}\n{\n  \"id\": \"b\",\n  \"n\": 2\n}\n",
            "{\"id\": \"a\",\n\"n\": 1}\n\n{\"id\": \"b\", \"n\": 2}",
            #"{"items": [{"id": "a", "n": 1}, {"id": "b", "n": 2}]}"#,
            "{\n  \"count\": 2,\n  \"tags\": [\"x\"],\n  \"items\": [\n    {\"id\": \"a\", \"n\": 1},\n    {\"id\": \"b\", \"n\": 2}\n  ],\n  \"next\": null\n}\n",
            "[\n  {\n    \"id\": \"a\",\n    \"n\": 1\n  },\n  {\"id\": \"b\", \"n\": 2}]",
        ], ["in.json", "in.jsonl", "in"])
    func `JSON is read in every usual layout`(text: String, name: String) async throws {
        let scratch = try Scratch()
        // A file with the ending of JSON Lines that is an array or one object is read as JSON Lines.
        guard name != "in.jsonl" || !(text.hasPrefix("[") || text.hasPrefix("{\"items")) else { return }
        let summary = try await scratch.importing(try scratch.write(text, to: name), .destination())
        #expect(summary.rejected == 0)
        #expect(try scratch.records("Destination") == Self.rows)
    }

    @Test func `a malformed first line does not change the layout of a file`() async throws {
        for broken in [#"{"id": "x", "n": "#, #"{"id": "x","#, #"{"id": "x"#] {
            let scratch = try Scratch()
            let summary = try await scratch.importing(lines: [broken] + Self.rows, .destination())
            #expect(summary.rejected == 1, "\(broken)")
            #expect(try scratch.records("Destination") == Self.rows, "\(broken)")
        }
    }

    @Test(arguments: [
        (#"{"a": [{"id": "a", "n": 1}], "b": [{"id": "c"}]}"#, "a second array of objects"),
        (#"{"a": [{"id": "a", "n": 1}]"#, "ends before its object does"),
        (#"{"a": [{"id": "a", "n": 1}]} x"#, "text after the object"),
    ])
    func `members of an object beside its rows are reported, and the rows imported`(text: String, reason: String) async throws {
        let scratch = try Scratch()
        let options = ImportOptions.destination { $0.rejects = scratch["rejects.jsonl"] }
        // If text follows, the line is a row.
        let file = try scratch.write(text.replacingOccurrences(of: ": [", with: ":\n["), to: "in.json")
        let summary = try await scratch.importing(file, options)
        #expect(summary.changes.inserted == 1)
        #expect(try scratch.rejects().map(\.code) == ["malformed"])
        #expect(try scratch.rejects().first?.reason.contains(reason) == true)
    }

    @Test func `an import of objects over several lines is resumed where it stopped`() async throws {
        let scratch = try Scratch()
        let text = (0..<95).map { "{\n  \"id\": \"r\($0)\",\n  \"n\": \($0)\n}\n" }.joined()
        for (name, text) in [
            ("sequence.json", text),
            (
                "wrapper.json",
                "{\"rows\": [\n" + (0..<95).map { "{\"id\": \"r\($0)\", \"n\": \($0)}" }.joined(separator: ",\n") + "]}"
            ),
        ] {
            let summary = try await scratch.importing(try scratch.write(text, to: name), .destination { $0.batchSize = 10 })
            #expect(summary.read == 95)
            #expect(summary.rejected == 0)
        }
    }

    // Nested values

    private static let nested = """
        {"id": 1, "who": {"name": "Ada", "home": {"city": "Köln", "place": {"latitude": 50.9, "longitude": 6.9}}}, "tags": ["x"], \
        "rows": [{"a": 1}, [2]], "at": {"latitude": 1, "longitude": 2}, "none": {}}
        """

    @Test func `nested objects become fields or JSON texts, or are refused`() async throws {
        let flat = try Scratch()
        try await flat.importing(lines: [Self.nested], .destination { $0.nestedJSON = .flatten })
        #expect(
            try flat.records("Destination") == [
                #"{"id":"1","who_name":"Ada","who_home_city":"Köln","who_home_place":{"latitude":50.9,"longitude":6.9},"#
                    + #""tags":["x"],"rows":"[{\"a\":1},[2]]","at":{"latitude":1,"longitude":2}}"#
            ])
        let json = try Scratch()
        try await json.importing(lines: [Self.nested], .destination { $0.nestedJSON = .json })
        #expect(
            try json.records("Destination") == [
                #"{"id":"1","who":"{\"name\":\"Ada\",\"home\":{\"city\":\"Köln\",\"place\":{\"latitude\":50.9,\"longitude\":6.9}}}","#
                    + #""tags":["x"],"rows":"[{\"a\":1},[2]]","at":{"latitude":1,"longitude":2},"none":"{}"}"#
            ])
        let refused = try Scratch()
        let summary = try await refused.importing(
            lines: [Self.nested], .destination { $0.rejects = refused["rejects.jsonl"] })
        #expect(summary.rejected == 1)
        #expect(try refused.rejects().first?.reason.contains("--nested flatten or --nested json") == true)
    }

    @Test func `members of nested objects are mapped by their path, and can name rows`() async throws {
        let scratch = try Scratch()
        let lines = [
            #"{"user": {"id": 7, "e.mail": "a@b"}, "user_name": "x"}"#, #"{"user": {"id": 8, "name": "y"}, "user_name": "x"}"#,
        ]
        let options = ImportOptions.destination {
            $0.nestedJSON = .flatten
            $0.mappings = [("user.id", "id"), ("user.e.mail", "mail")]
            $0.rejects = scratch["rejects.jsonl"]
        }
        try await scratch.importing(lines: lines, options)
        #expect(try scratch.records("Destination") == [#"{"id":"7","mail":"a@b","user_name":"x"}"#])
        #expect(try scratch.rejects().map { "\($0.line) \($0.field ?? "") \($0.code)" } == ["2 user_name duplicateKey"])
        let deep = String(repeating: #"{"a":"#, count: 40) + "1" + String(repeating: "}", count: 40)
        let summary = try await scratch.importing(lines: [#"{"id": "d", "x": \#(deep)}"#], options)
        #expect(summary.rejected == 1)
        #expect(try scratch.rejects().first?.code == "tooDeep")
    }

    // Compressed sources

    @Test(arguments: ["gz", "zst"])
    func `a compressed source is recognised by its content`(kind: String) async throws {
        let scratch = try Scratch()
        let text = Data("id,n\n".utf8) + Data((0..<50_000).map { "r\($0),\($0)\n" }.joined().utf8)
        let packed = kind == "gz" ? try PackedFile.gzip(text) : try PackedFile.zstd(text)
        let options = ImportOptions.destination { $0.batchSize = 5000 }
        let summary = try await scratch.importing(try scratch.write(packed, to: "rows.csv.\(kind)"), options)
        #expect(summary.changes == ChangeCounts(inserted: 50_000))
        #expect(
            try await scratch.importing(try scratch.write(packed, to: "rows"), options).changes == ChangeCounts(unchanged: 50_000)
        )
        #expect(
            try await scratch.importing(try scratch.write(text, to: "rows.csv"), options).changes
                == ChangeCounts(unchanged: 50_000))
    }

    @Test(arguments: ["gz", "zst"])
    func `a truncated compressed source ends the import with an error`(kind: String) async throws {
        let scratch = try Scratch()
        let text = Data((0..<50_000).map { #"{"id":"r\#($0)","n":\#($0 &* 2_654_435_761 % 1_000_003)}"# + "\n" }.joined().utf8)
        let packed = kind == "gz" ? try PackedFile.gzip(text) : try PackedFile.zstd(text)
        for length in [6, 20, packed.count / 2, packed.count - 5] {
            let file = try scratch.write(packed.prefix(length), to: "rows.jsonl.\(kind)")
            let error = await #expect(throws: ImportError.self, "\(length)") { try await scratch.importing(file, .destination()) }
            #expect(error?.code == .manifest)
            #expect(error?.message.contains("the compressed data is damaged") == true, "\(error?.message ?? "")")
        }
    }

    @Test func `a compressed source that expands endlessly is refused`() async throws {
        let scratch = try Scratch()
        // 1.1 GiB of line ends.
        let file = try scratch.write(try Self.bomb(), to: "bomb.jsonl.gz")
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(file, .destination()) }
        #expect(error?.code == .manifest)
        #expect(error?.message.contains("expands to more than 200 times its size") == true, "\(error?.message ?? "")")
    }

    /// Several members of gzip in sequence are one text.
    private static func bomb() throws -> Data {
        let part = try PackedFile.gzip(Data(repeating: 0x0a, count: 16 << 20))
        return (0..<72).reduce(into: Data()) { data, _ in data += part }
    }

    // Archives

    @Test func `an archive of photos is imported like its folder`() async throws {
        let scratch = try Scratch()
        let files = [
            ("b/Mount Fuji.png", Picture.png(1)), ("a.png", Picture.png(2)), ("Köln.png", Picture.png(3)),
            ("film.mov", Data([1, 2, 3])),
        ]
        for (name, data) in files { try scratch.write(data, to: "in/\(name)") }
        let archive = try scratch.write(try PackedFile.zip(files, link: ("link.png", "/etc/passwd")), to: "photos.zip")
        let options = ImportOptions(type: "Photo")
        let summary = try await scratch.importing(archive, options)
        #expect(summary.changes == ChangeCounts(inserted: 3))
        #expect(summary.passedOver == ["mov": 1])
        #expect(try scratch.records("Photo").allSatisfy { $0.contains(#""createdAt":"2023-11-14T22:13:20Z""#) })
        // Names follow from paths and contents: the photos of the folder are the same, with other times.
        #expect(try await scratch.importing(scratch["in"], options).changes.inserted == 0)
        #expect(try scratch.verification().isOK)
        #expect(try Self.unpackedFolders() == [])
    }

    @Test func `an archive with a manifest and its pictures is imported like its folder`() async throws {
        let scratch = try Scratch()
        let manifest = Data((#"{"id":"a","image":"pictures/1.png"}"# + "\n").utf8)
        let archive = try scratch.write(
            try PackedFile.zip([
                ("out/journal.jsonl", manifest), ("out/pictures/1.png", Picture.png(1)), ("__MACOSX/x.csv", Data()),
            ]),
            to: "journal.zip")
        let summary = try await scratch.importing(archive, .destination { $0.assetFields = ["image"] })
        #expect(summary.changes == ChangeCounts(inserted: 1))
        #expect(summary.assets.stored == 1)
        #expect(try Self.unpackedFolders() == [])
    }

    @Test(
        arguments: [
            ([("../evil.csv", "id\n1\n")], "names a file outside of itself: ../evil.csv"),
            ([("a/../../evil.csv", "id\n1\n")], "names a file outside of itself"), ([("/tmp/evil.csv", "id\n1\n")], "evil.csv"),
            ([("a.csv", "id\n"), ("b.jsonl", "")], "has several manifests (a.csv, b.jsonl); unpack it and import one"),
            ([("a.csv", "id\n1\n"), ("a.csv", "id\n2\n")], "a.csv cannot be unpacked: it is there twice"),
            ([("[Content_Types].xml", ""), ("xl/sheet.xml", "")], "is a spreadsheet; save it as CSV"),
        ] as [([(String, String)], String)])
    func `a hostile or ambiguous archive is refused as a whole`(files: [(String, String)], message: String) async throws {
        let scratch = try Scratch()
        let archive = try scratch.write(try PackedFile.zip(files.map { ($0.0, Data($0.1.utf8)) }), to: "in.zip")
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(archive, .destination()) }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
        #expect(!FileManager.default.fileExists(atPath: "/tmp/evil.csv"))
        #expect(try Self.unpackedFolders() == [])
    }

    @Test func `a link in an archive is not followed`() async throws {
        let scratch = try Scratch()
        try scratch.write("", to: "outside/keep")
        let archive = try PackedFile.zip(
            [("way/evil.csv", Data("id\n1\n".utf8))], link: ("way", scratch["outside"].path))
        _ = try? await scratch.importing(try scratch.write(archive, to: "in.zip"), .destination())
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["outside"].path) == ["keep"])
        let cut = try scratch.write(archive.prefix(archive.count / 3), to: "cut.zip")
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(cut, .destination()) }
        #expect([.manifest, .source].contains(error?.code))
        #expect(try Self.unpackedFolders() == [])
    }

    /// Leftovers of imports of this process; the suite's tests run one after the other.
    private static func unpackedFolders() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: FileManager.default.temporaryDirectory.path)
            .filter { $0.hasPrefix("tidemark-unpacked-\(getpid())-") }
    }

    // Photos

    @Test func `one photo becomes the same record as from its folder`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1, width: 40, height: 30), to: "in/Senja.png")
        try scratch.write(Picture.png(2), to: "in/other.png")
        try scratch.write(Picture.png(3), to: "in/unnamed")
        var options = ImportOptions(type: "Record")
        options.photoType = "Photo"
        #expect(try await scratch.importing(scratch["in/Senja.png"], options).changes == ChangeCounts(inserted: 1))
        #expect(try scratch.records("Photo").first?.hasSuffix(#""width":40,"height":30}"#) == true)
        #expect(try await scratch.importing(scratch["in/unnamed"], options).changes == ChangeCounts(inserted: 1))
        #expect(try await scratch.importing(scratch["in"], options).changes == ChangeCounts(inserted: 1, unchanged: 2))
    }

    @Test(arguments: [
        ("empty.jpg", Data(), "is empty"), ("text.png", Data("id\n1\n".utf8), "has the name of an image and the content of none"),
    ])
    func `a file with only a photo's name is refused with the reason`(name: String, data: Data, reason: String) async throws {
        let scratch = try Scratch()
        let options = ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"])
        let summary = try await scratch.importing(try scratch.write(data, to: name), options)
        #expect(summary.rejected == 1)
        #expect(try scratch.rejects().first?.reason.contains(reason) == true)
    }

    @Test(arguments: [("film.mov", "neither a manifest"), ("book.xlsx", "is a spreadsheet"), ("page.pdf", "neither a manifest")])
    func `a file of another kind gets an error that says what can be imported`(name: String, message: String) async throws {
        let scratch = try Scratch()
        let file = try scratch.write(Data([0, 1, 2, 0xff]), to: name)
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(file, .destination()) }
        #expect(error?.code == .source)
        #expect(error?.message.contains(message) == true)
    }

    @Test func `files that are no photos are counted by kind`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "in/a.png")
        for name in ["b.mov", "c.MOV", "d.bmp", "e.pdf", "sub/f.mov", "README"] { try scratch.write("text", to: "in/\(name)") }
        let summary = try await scratch.importing(scratch["in"], ImportOptions(type: "Photo"))
        #expect(summary.read == 1)
        #expect(summary.passedOver == ["mov": 3, "bmp": 1, "pdf": 1, "": 1])
    }

    @Test func `a TIFF is a photo with its size`() async throws {
        let scratch = try Scratch()
        func number(_ value: UInt32, _ width: Int) -> [UInt8] { (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
        func entry(_ tag: UInt32, _ value: UInt32) -> [UInt8] { number(tag, 2) + number(4, 2) + number(1, 4) + number(value, 4) }
        let entries = entry(256, 640) + entry(257, 480) + entry(273, 62) + entry(279, 10)
        let head: [UInt8] = [0x49, 0x49, 42, 0] + number(8, 4) + number(4, 2)
        let tiff = Data(head + entries + number(0, 4) + [UInt8](repeating: 7, count: 10))
        try scratch.write(tiff, to: "in/scan.tif")
        try scratch.write(tiff.dropLast(), to: "in/cut.tiff")
        let summary = try await scratch.importing(scratch["in"], ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"]))
        #expect(summary.changes == ChangeCounts(inserted: 1))
        #expect(try scratch.records("Photo").first?.hasSuffix(#""width":640,"height":480}"#) == true)
        #expect(try scratch.rejects().map { "\($0.row ?? "") \($0.code)" } == ["cut.tiff assetTruncated"])
        #expect(try scratch.verification().isOK)
    }

    @Test func `text values that are paths of existing files are noticed`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "pictures/1.png")
        let csv = "id,photo,other\n1,pictures/1.png,x.png\n2,,y\n"
        let summary = try await scratch.importing(try scratch.write(csv, to: "in.csv"), .destination())
        #expect(summary.fileFields == ["photo"])
        var options = ImportOptions(type: "Taken", nameField: "id", assetFields: ["photo"])
        options.namesHaveType = true
        let taken = try await scratch.importing(scratch["in.csv"], options)
        #expect(taken.fileFields == [])
        #expect(taken.assets.referenced == 1)
    }

    @Test func `non-ASCII names in a zip are read in any locale of the process`() async throws {
        // Made by Python's zipfile: 'Bücher/für.jsonl', with the flag for UTF-8 names.
        let archive = try #require(
            Data(
                base64Encoded: """
                    UEsDBBQAAAgAAAAAIVhoi/ugFAAAABQAAAASAAAAQsO8Y2hlci9mw7xyLmpzb25seyJpZCI6ImEiLCJ0Ijoiw7wifQpQSwECFAMU\
                    AAAIAAAAACFYaIv7oBQAAAAUAAAAEgAAAAAAAAAAAAAAgAEAAAAAQsO8Y2hlci9mw7xyLmpzb25sUEsFBgAAAAABAAEAQAAAAEQA\
                    AAAAAA==
                    """))
        let scratch = try Scratch()
        let file = try scratch.write(archive, to: "Bücher.zip")
        #expect(try await scratch.importing(file, .destination()).changes.inserted == 1)
    }
}
