import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkTransfer

/// Goal: every row that breaks a rule is refused with its line, field and reason, and the others are imported. Method: one row
/// per rule between two good ones, whole rejects files compared.
@Suite(.timeLimit(.minutes(30))) struct BadInputTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let row: [UInt8]
        let field: String?
        let code: String
        var testDescription: String { "\(code) \(String(decoding: row.prefix(60), as: UTF8.self))" }

        init(_ row: String, _ field: String?, _ code: String) {
            self.row = Array(row.utf8)
            (self.field, self.code) = (field, code)
        }

        init(bytes: [UInt8], _ code: String) {
            (row, field, self.code) = (bytes, nil, code)
        }
    }

    static let cases: [Case] = [
        Case("[1, 2]", nil, "notAnObject"), Case("\"text\"", nil, "notAnObject"), Case("nonsense", nil, "notAnObject"),
        Case("{\"id\": \"x\", \"caption\": \"open", nil, "malformed"), Case("{\"id\": \"x\"} more", nil, "malformed"),
        Case("{\"id\": \"x\", \"n\": 1,}", nil, "malformed"), Case("{\"id\": \"x\" \"n\": 1}", nil, "malformed"),
        Case("{\"id\": \"x\", \"n\": 01}", "n", "malformed"), Case("{\"id\": \"x\", \"n\": tru}", "n", "malformed"),
        Case("{\"id\": \"x\", \"caption\": nul}", "caption", "malformed"),
        Case("{\"id\": \"x\", \"caption\": \"\\ud800\"}", "caption", "malformed"),
        Case("{\"id\": \"x\", \"caption\": \"a\\u0000b\"}", "caption", "malformed"),
        Case("{\"id\": \"x\", \"caption\": \"\u{1}\"}", nil, "malformed"),
        Case(bytes: Array("{\"id\": \"x\", \"caption\": \"".utf8) + [0xff, 0xfe] + Array("\"}".utf8), "invalidUTF8"),
        Case(bytes: Array("{\"id\": \"x\", \"caption\": \"".utf8) + [0xc0, 0x80] + Array("\"}".utf8), "invalidUTF8"),
        Case(
            "{\"id\": \"x\", \"caption\": \(String(repeating: "[", count: 50_000))\(String(repeating: "]", count: 50_000))}",
            "caption", "wrongType"),
        Case(
            "{\"id\": \"x\", \"caption\": \(String(repeating: "{\"a\":", count: 5000))1\(String(repeating: "}", count: 5000))}",
            "caption", "wrongType"),
        Case(
            "{\"id\": \"x\", \"tags\": \(String(repeating: "[", count: 50_000))\(String(repeating: "]", count: 50_000))}", "tags",
            "tooDeep"),
        Case("{\"id\": \"x\", \"n\": 99999999999999999999}", "n", "outOfRange"),
        Case("{\"id\": \"x\", \"n\": 1e999}", "n", "outOfRange"),
        Case("{\"id\": \"x\", \"n\": 9223372036854775808}", "n", "outOfRange"),
        Case("{\"id\": \"x\", \"d\": 9007199254740993}", "d", "outOfRange"),
        Case("{\"id\": \"x\", \"n\": 1, \"n\": 1}", "n", "duplicateKey"),
        Case("{\"id\": \"x\", \"id\": \"y\"}", "id", "duplicateKey"),
        Case("{\"id\": \"x\", \"n\": 1, \"\\u006e\": 1}", "n", "duplicateKey"),
        Case("{\"caption\": \"nameless\"}", "id", "missingName"), Case("{\"id\": \"\"}", "id", "missingName"),
        Case("{\"id\": null}", "id", "missingName"), Case("{}", "id", "missingName"),
        Case("{\"id\": {}}", "id", "badName"), Case("{\"id\": 1.5}", "id", "badName"), Case("{\"id\": true}", "id", "badName"),
        Case("{\"id\": \"\(String(repeating: "n", count: 256))\"}", "id", "badName"),
        Case("{\"id\": \"a\\u0007\"}", "id", "badName"),
        Case("{\"id\": \"x\", \"n\": \"text\"}", "n", "wrongType"), Case("{\"id\": \"x\", \"n\": 1.5}", "n", "wrongType"),
        Case("{\"id\": \"x\", \"n\": [1]}", "n", "wrongType"), Case("{\"id\": \"x\", \"caption\": 5}", "caption", "wrongType"),
        Case("{\"id\": \"x\", \"caption\": {\"a\": 1}}", "caption", "wrongType"),
        Case("{\"id\": \"x\", \"at\": \"yesterday\"}", "at", "wrongType"), Case("{\"id\": \"x\", \"at\": 5}", "at", "wrongType"),
        Case("{\"id\": \"x\", \"at\": \"2024-02-30T00:00:00Z\"}", "at", "wrongType"),
        Case("{\"id\": \"x\", \"tags\": [1]}", "tags", "wrongType"),
        Case("{\"id\": \"x\", \"tags\": [\"a\", null]}", "tags", "wrongType"),
        Case("{\"id\": \"x\", \"place\": {\"latitude\": 1}}", "place", "wrongType"),
        Case("{\"id\": \"x\", \"place\": {\"latitude\": 91, \"longitude\": 0}}", "place", "outOfRange"),
        Case("{\"id\": \"x\", \"raw\": \"no base64!\"}", "raw", "wrongType"),
        Case("{\"id\": \"x\", \"a b\": 1}", "a b", "badIdentifier"), Case("{\"id\": \"x\", \"_id\": 1}", "_id", "badIdentifier"),
        Case("{\"id\": \"x\", \"x); DROP TABLE t; --\": 1}", "x); DROP TABLE t; --", "badIdentifier"),
        Case("{\"id\": \"x\", \"sqlite_x\": 1}", "sqlite_x", "badIdentifier"),
        Case("{\"id\": \"x\", \"tide_x\": 1}", "tide_x", "badIdentifier"),
        Case("{\"id\": \"x\", \"é\": 1}", "é", "badIdentifier"), Case("{\"id\": \"x\", \"\": 1}", nil, "badIdentifier"),
        Case("{\"id\": \"x\", \"image\": \"pictures/none.png\"}", "image", "assetMissing"),
        Case("{\"id\": \"x\", \"image\": \"\"}", "image", "assetMissing"),
        Case("{\"id\": \"x\", \"image\": 5}", "image", "wrongType"),
        Case("{\"id\": \"x\", \"image\": \"pictures/empty.png\"}", "image", "assetEmpty"),
        Case("{\"id\": \"x\", \"image\": \"pictures/cut.png\"}", "image", "assetTruncated"),
        Case("{\"id\": \"x\", \"image\": \"pictures/page.jpg\"}", "image", "assetNotAnImage"),
        Case("{\"id\": \"x\", \"image\": \"pictures\"}", "image", "assetNotAFile"),
        Case("{\"id\": \"x\", \"image\": \"pictures/fifo.png\"}", "image", "assetNotAFile"),
        Case("{\"id\": \"x\", \"image\": \"pictures/\"}", "image", "assetNotAFile"),
        Case("{\"id\": \"x\", \"image\": \"../outside.png\"}", "image", "assetOutsideRoot"),
        Case("{\"id\": \"x\", \"image\": \"pictures/../../outside.png\"}", "image", "assetOutsideRoot"),
        Case("{\"id\": \"x\", \"image\": \"/etc/passwd\"}", "image", "assetOutsideRoot"),
        Case("{\"id\": \"x\", \"image\": \"pictures/link.png\"}", "image", "assetOutsideRoot"),
        Case("{\"id\": \"x\", \"image\": \"linked/good.png\"}", "image", "assetOutsideRoot"),
        Case("{\"id\": \"x\", \"image\": \"asset:00000000000000000000000000000000-5\"}", "image", "assetUnknown"),
        Case("{\"id\": \"x\", \"image\": \"pictures/good.png/x\"}", "image", "assetMissing"),
        Case("{\"id\": \"x\", \"image\": \"\(String(repeating: "p", count: 5000))\"}", "image", "assetMissing"),
    ]

    /// A folder with every kind of file that a path may lead to, and a schema of the fields.
    private func folder() throws -> (Scratch, ImportOptions) {
        let scratch = try Scratch()
        try scratch.write(Picture.png(0), to: "outside.png")
        try scratch.write(Picture.png(1), to: "in/pictures/good.png")
        try scratch.write(Picture.png(2).dropLast(15), to: "in/pictures/cut.png")
        try scratch.write("", to: "in/pictures/empty.png")
        try scratch.write("<html>", to: "in/pictures/page.jpg")
        let files = FileManager.default
        try files.createSymbolicLink(atPath: scratch["in/pictures/link.png"].path, withDestinationPath: "good.png")
        try files.createSymbolicLink(atPath: scratch["in/linked"].path, withDestinationPath: "pictures")
        mkfifo(scratch["in/pictures/fifo.png"].path, 0o600)
        let fields: [(String, FieldType)] = [
            ("caption", .string), ("n", .int64), ("d", .double), ("at", .timestamp), ("tags", .list(of: .string)),
            ("place", .location),
            ("raw", .bytes), ("image", .asset), ("ok", .int64),
        ]
        let schema = RecordTypeSchema(
            name: "Destination", fields: fields.map { .init(name: $0.0, type: $0.1, isBoolean: $0.0 == "ok") })
        return (
            scratch,
            .destination {
                $0.schema = [schema]
                $0.rejects = scratch["rejects.jsonl"]
            }
        )
    }

    @Test(arguments: [
        ("n", "x", "the value is no integer"),
        ("d", "many", "the value is no number"),
        ("at", "yesterday", "the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024"),
        ("ok", "maybe", "the value is no Boolean; write true or false"),
    ])
    func `a CSV cell of the wrong type is refused, and the reason names the type`(
        field: String, cell: String, reason: String
    ) async throws {
        let (scratch, options) = try folder()
        let source = try scratch.writeLines(["id,\(field)", "good-1,", "bad,\(cell)", "good-2,"], to: "in/manifest.csv")
        let summary = try await scratch.importing(source, options)
        #expect(summary.changes == ChangeCounts(inserted: 2))
        let rejected = try #require(try scratch.rejects().first)
        #expect((rejected.line, rejected.code, rejected.field) == (3, "wrongType", field))
        #expect(rejected.reason == reason)
    }

    @Test(arguments: cases)
    func `a row that breaks a rule is refused, and its neighbours are imported`(bad: Case) async throws {
        let (scratch, options) = try folder()
        let good = #"{"id": "good-1", "caption": "fine", "image": "pictures/good.png"}"#
        var manifest = Data((good + "\n").utf8)
        manifest += bad.row + Array("\n{\"id\": \"good-2\"}\n".utf8)
        let summary = try await scratch.importing(try scratch.write(manifest, to: "in/manifest.jsonl"), options)
        #expect(summary.read == 3)
        #expect(summary.rejected == 1)
        #expect(summary.changes == ChangeCounts(inserted: 2))
        let rejects = try scratch.rejects()
        #expect(rejects.map(\.line) == [2])
        #expect(rejects[0].code == bad.code, "\(rejects[0].reason)")
        #expect(rejects[0].field == bad.field)
        #expect(!rejects[0].reason.isEmpty)
        let row =
            rejects[0].row.map { Array($0.utf8) } ?? rejects[0].rowBase64.flatMap { Data(base64Encoded: $0) }.map(Array.init)
        #expect(row == bad.row)
        #expect(try scratch.verification().isOK)
    }

    @Test(arguments: cases)
    func `in a JSON array a row that breaks a rule is refused as well`(bad: Case) async throws {
        // A syntax error in an array may affect the neighbours; a row that is valid JSON must not.
        guard bad.code != "malformed", bad.code != "notAnObject" else { return }
        let (scratch, options) = try folder()
        var manifest = Data("[{\"id\": \"good-1\"},\n".utf8)
        manifest += bad.row + Array(",\n{\"id\": \"good-2\"}]\n".utf8)
        let summary = try await scratch.importing(try scratch.write(manifest, to: "in/manifest.json"), options)
        #expect(summary.changes == ChangeCounts(inserted: 2))
        #expect(try scratch.rejects().map { [String($0.line), $0.code] } == [["2", bad.code]])
    }

    @Test func `a file that cannot be read is refused`() async throws {
        // Root may read everything.
        guard geteuid() != 0 else { return }
        let (scratch, options) = try folder()
        chmod(scratch["in/pictures/good.png"].path, 0)
        let file = try scratch.writeLines([#"{"id": "a", "image": "pictures/good.png"}"#], to: "in/manifest.jsonl")
        #expect(try await scratch.importing(file, options).rejected == 1)
        #expect(try scratch.rejects()[0].code == "assetUnreadable")
    }

    @Test func `a file that changes while it is read is refused`() async throws {
        let scratch = try Scratch()
        let content = Data(repeating: 7, count: 96 << 20)
        let path = try scratch.write(content, to: "in/growing.bin").path
        let file = try scratch.writeLines([#"{"id": "a", "image": "growing.bin"}"#, #"{"id": "b"}"#], to: "in/manifest.jsonl")
        // A thread of its own: the threads of tasks are few, and the import needs them.
        let isRead = LockedValue(false)
        let (done, end) = AsyncStream.makeStream(of: Void.self)
        Thread.detachNewThread {
            if let handle = FileHandle(forWritingAtPath: path) {
                while !isRead.withLock({ $0 }) {
                    try? handle.seek(toOffset: UInt64.random(in: 0..<(96 << 20)))
                    try? handle.write(contentsOf: [UInt8.random(in: 0...255)])
                }
            }
            end.finish()
        }
        let summary = try await scratch.importing(
            file,
            .destination {
                $0.assetFields = ["image"]
                $0.rejects = scratch["rejects.jsonl"]
            })
        isRead.withLock { $0 = true }
        for await _ in done {}
        #expect(summary.rejected == 1)
        #expect(try scratch.rejects()[0].code == "assetChanged")
        #expect(try scratch.verification().isOK)
    }

    @Test(arguments: [ImportFormat.jsonl, .json, .csv])
    func `a row longer than 16 MiB is refused without being read into memory`(format: ImportFormat) async throws {
        let scratch = try Scratch()
        let long = String(repeating: "x", count: 20 << 20)
        let text =
            switch format {
            case .json: "[{\"id\": \"a\"},\n{\"id\": \"b\", \"c\": \"\(long)\"},\n{\"id\": \"d\"}]"
            case .csv: "id,c\na,1\nb,\"\(long)\"\nd,2\n"
            default: "{\"id\": \"a\"}\n{\"id\": \"b\", \"c\": \"\(long)\"}\n{\"id\": \"d\"}\n"
            }
        let summary = try await scratch.importing(
            try scratch.write(text, to: "manifest"),
            .destination {
                $0.format = format
                $0.rejects = scratch["rejects.jsonl"]
            })
        #expect(summary.changes.inserted == 2)
        let rejects = try scratch.rejects()
        #expect(rejects.map(\.code) == ["tooLong"])
        #expect(rejects[0].line == (format == .csv ? 3 : 2))
        #expect(rejects[0].rowIsCut == true)
        #expect((rejects[0].row?.utf8.count ?? 0) <= 64 << 10)
    }

    @Test(arguments: ["1Type", "a b", "x; DROP TABLE y", "sqlite_master", "tide_meta", "", "é"])
    func `a type that is no identifier is an error before a container is made`(type: String) async throws {
        let scratch = try Scratch()
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [#"{"id": "a"}"#], .destination { $0.type = type })
        }
        #expect(error?.code == .options)
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
    }
}
