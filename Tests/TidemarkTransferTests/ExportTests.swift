import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: the copies of an export are the store's contents, whatever was in their place before; an export of a damaged store has
/// all intact records. Method: folders, links and damage prepared, then compared byte by byte.
@Suite(.timeLimit(.minutes(30))) struct ExportTests {
    private func container() async throws -> Scratch {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        try await scratch.importing(lines: [#"{"id": "a", "image": "1.png"}"#], .destination { $0.assetFields = ["image"] })
        return scratch
    }

    private func export(
        _ scratch: Scratch, to path: String, assets: String? = nil, namesForPeople: Bool = false
    ) throws -> BulkExport.Summary {
        let container = try ContainerDirectory(openingAt: scratch.container)
        return try BulkExport(
            from: container, type: "Destination", format: .jsonl, to: .file(scratch[path]), assets: assets.map { scratch[$0] },
            namesAssetsForPeople: namesForPeople
        ).run()
    }

    /// The copy of the only asset.
    private func export(_ scratch: Scratch) throws -> URL {
        #expect(try export(scratch, to: "export.jsonl", assets: "new/files").problems == [])
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch["new/files"].path)
        try #require(names.count == 1)
        return scratch["new/files/\(names[0])"]
    }

    @Test func `a file that is not the asset is replaced, of whatever kind it is`() async throws {
        let scratch = try await container()
        let copy = try export(scratch)
        #expect(try Data(contentsOf: copy) == Picture.png(1))
        let identity = try FileManager.default.attributesOfItem(atPath: copy.path)[.systemFileNumber] as? Int
        // A right copy stays.
        #expect(try export(scratch) == copy)
        #expect(try FileManager.default.attributesOfItem(atPath: copy.path)[.systemFileNumber] as? Int == identity)

        // A file of the same size.
        var other = Picture.png(1)
        other[40] ^= 1
        try other.write(to: copy)
        #expect(try Data(contentsOf: export(scratch)) == Picture.png(1))
        try (Picture.png(1) + [0]).write(to: copy)
        #expect(try Data(contentsOf: export(scratch)) == Picture.png(1))

        // A link to another file.
        let precious = try scratch.write("precious", to: "precious")
        try FileManager.default.removeItem(at: copy)
        try FileManager.default.createSymbolicLink(at: copy, withDestinationURL: precious)
        #expect(try Data(contentsOf: export(scratch)) == Picture.png(1))
        #expect(try String(contentsOf: precious, encoding: .utf8) == "precious")
    }

    @Test func `copies are durable before they have their names, and so are those of earlier exports`() async throws {
        let scratch = try await container()
        let log = StepLog()
        let copy = try export(scratch)
        for isThere in [true, false] {
            if !isThere { try FileManager.default.removeItem(at: copy) }
            let note: @Sendable (String) -> Void = { path in
                guard path == copy.path else { return }
                log.add(FileManager.default.fileExists(atPath: copy.path) ? "there" : "not yet there")
            }
            _ = try DurableFile.$onSynchronized.withValue(.init(note)) { try export(scratch) }
        }
        #expect(log.all == ["there", "not yet there"])
    }

    @Test func `an export removes leftovers of killed exports, and none of a running one`() async throws {
        let scratch = try await container()
        _ = try export(scratch)
        let copy = try #require(try FileManager.default.contentsOfDirectory(atPath: scratch["new/files"].path).first)
        func temporary(_ name: String) -> String { ".\(name).\(UUID().uuidString).tmp" }
        let left = [temporary("export.jsonl"), "new/files/\(temporary(copy))"]
        // Files of another export, of other programs, and of a running export.
        let kept = [temporary("other.jsonl"), ".export.jsonl.tmp", "new/files/\(temporary("letter.txt"))"]
        let running = temporary("export.jsonl")
        for name in left + kept + [running] { try scratch.write("half", to: name) }
        let descriptor = open(scratch[running].path, O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        _ = try export(scratch, to: "export.jsonl", assets: "new/files")
        func isThere(_ name: String) -> Bool { FileManager.default.fileExists(atPath: scratch[name].path) }
        #expect(left.filter(isThere) == [])
        #expect((kept + [running]).filter(isThere) == kept + [running])
        close(descriptor)
        _ = try export(scratch, to: "export.jsonl", assets: "new/files")
        #expect(!isThere(running))
        // Files with readable names, if they may be pictures.
        let named = "new/files/\(temporary("Abisko, Sweden.png"))"
        try scratch.write("half", to: named)
        _ = try export(scratch, to: "export.jsonl", assets: "new/files", namesForPeople: true)
        #expect(!isThere(named) && isThere(kept[2]))
    }

    @Test func `a schema file that is too long is refused with its limit`() throws {
        let scratch = try Scratch()
        let file = try scratch.write("", to: "schema.json")
        try #require(truncate(file.path, 5 << 30) == 0)
        let error = #expect(throws: ImportError.self) { try SchemaFile.read(file) }
        #expect(error?.code == .schemaFile)
        #expect(error?.message.contains("schema.json: a schema file has 8388608 bytes at the most") == true)
    }

    @Test func `no text of a CSV is a formula to a spreadsheet, and an import restores each text exactly`() async throws {
        let texts = [
            "=1+1", "+46 70", "-5", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\u{ff1d}1", "'=1", "''=1", "'", "''", "'quoted'", "a=1",
            " =1",
            "=\"a\",b", "", "plain",
        ]
        let scratch = try Scratch()
        func line(_ index: Int, _ text: String) throws -> String {
            let object: [String: Any] = ["id": "n\(index)", "caption": text, "number": -5 - index]
            return String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
        }
        try await scratch.importing(lines: texts.enumerated().map(line), .destination())
        let container = try ContainerDirectory(openingAt: scratch.container)
        let file = scratch["export.csv"]
        _ = try BulkExport(from: container, type: "Destination", format: .csv, to: .file(file)).run()
        let csv = try String(contentsOf: file, encoding: .utf8)
        for begin in ["=", "+", "@", "\"=", "\"\t", "\"\r", "\"\n", "\u{ff1d}"] {
            #expect(!csv.contains(",\(begin)"), "\(begin)")
        }
        // Numbers are not texts.
        #expect(csv.contains(",-5") && !csv.contains("'-6"))
        let summary = try await BulkImport(
            source: .file(file), into: scratch.container, options: .destination { $0.nameField = "id" }
        ).run()
        #expect(summary.changes.unchanged == texts.count && summary.changes.updated == 0 && summary.rejected == 0)
    }

    @Test func `printed and exported JSON has no control characters of terminals`() throws {
        let text = "a\u{7f}b\u{9b}31mc\u{202e}d\u{2066}e\u{1b}[31m\u{2028}é€\"\\"
        var out: [UInt8] = []
        JSONString.append(text, to: &out)
        let shown = String(decoding: out, as: UTF8.self)
        #expect(shown == #""a\u007fb\u009b31mc\u202ed\u2066e\u001b[31m\u2028é€\"\\""#)
        #expect(try JSONDecoder().decode(String.self, from: Data(out)) == text)
    }

    @Test func `only the file in its place in the container is copied`() async throws {
        let scratch = try await container()
        let id = try #require(
            try await scratch.reader().database.read { db in try String.fetchOne(db, sql: "SELECT id FROM tide_assets") })
        let asset = scratch["Test.tidemark/assets/\(id.prefix(2))/\(id)"]
        let secret = try scratch.write(Data(count: Picture.png(1).count), to: "secret")
        try FileManager.default.removeItem(at: asset)
        try FileManager.default.createSymbolicLink(at: asset, withDestinationURL: secret)
        #expect(try export(scratch, to: "export.jsonl", assets: "new/files").problems.count == 1)
        try FileManager.default.removeItem(at: asset)
        try FileManager.default.removeItem(at: asset.deletingLastPathComponent())
        try scratch.write(Data(count: Picture.png(1).count), to: "elsewhere/\(id)")
        try FileManager.default.createSymbolicLink(
            at: asset.deletingLastPathComponent(), withDestinationURL: scratch["elsewhere"])
        #expect(try export(scratch, to: "export.jsonl", assets: "new/files").problems.count == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["new/files"].path) == [])
    }

    @Test func `an export that fails leaves no partial copy`() async throws {
        let scratch = try await container()
        let copy = try export(scratch)
        try FileManager.default.removeItem(at: copy)
        try FileManager.default.removeItem(at: scratch["export.jsonl"])
        // A folder can't be replaced by a file.
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
        let error = #expect(throws: ImportError.self) { _ = try export(scratch) }
        #expect(error?.code == .writing)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["new/files"].path) == [copy.lastPathComponent])
        #expect(!FileManager.default.fileExists(atPath: scratch["export.jsonl"].path))
    }

    @Test func `a damaged asset is not copied`() async throws {
        let scratch = try await container()
        let id = try #require(
            try await scratch.reader().database.read { db in try String.fetchOne(db, sql: "SELECT id FROM tide_assets") })
        var flipped = Picture.png(1)
        flipped[flipped.count / 2] ^= 1
        for damaged in [Picture.png(1).dropLast(), flipped] {
            try damaged.write(to: scratch["Test.tidemark/assets/\(id.prefix(2))/\(id)"])
            #expect(try export(scratch, to: "export.jsonl", assets: "new/files").problems.count == 1)
            #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["new/files"].path) == [])
        }
    }

    @Test func `a lost asset is reported, and the others are exported`() async throws {
        let scratch = try await container()
        try scratch.write(Picture.png(2), to: "2.png")
        try await scratch.importing(lines: [#"{"id": "b", "image": "2.png"}"#], .destination { $0.assetFields = ["image"] })
        let ids = try scratch.records("Destination").map { try #require($0.split(separator: "asset:").last?.dropLast(2)) }
        try FileManager.default.removeItem(at: scratch["Test.tidemark/assets/\(ids[0].prefix(2))/\(ids[0])"])
        let summary = try export(scratch, to: "out.jsonl", assets: "pictures")
        #expect(summary.records == 2)
        #expect(summary.assets == 1)
        #expect(summary.problems.count == 1)
        let lines = try String(contentsOf: scratch["out.jsonl"], encoding: .utf8).split(separator: "\n")
        #expect(lines[0].contains("\"asset:\(ids[0])\""))
        #expect(lines[1].contains("\"pictures/\(ids[1]).png\""))
    }

    @Test func `a link is followed for writing, and stays`() async throws {
        let scratch = try await container()
        try scratch.write("old", to: "real.jsonl")
        try FileManager.default.createSymbolicLink(at: scratch["link.jsonl"], withDestinationURL: scratch["real.jsonl"])
        _ = try export(scratch, to: "link.jsonl")
        #expect(
            try FileManager.default.destinationOfSymbolicLink(atPath: scratch["link.jsonl"].path) == scratch["real.jsonl"].path)
        #expect(try String(contentsOf: scratch["real.jsonl"], encoding: .utf8).split(separator: "\n").count == 1)
    }

    @Test func `a device is written to, and not replaced`() async throws {
        let scratch = try await container()
        try FileManager.default.createSymbolicLink(at: scratch["null"], withDestinationURL: URL(fileURLWithPath: "/dev/null"))
        #expect(try export(scratch, to: "null").records == 1)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: scratch["null"].path) == "/dev/null")
    }

    @Test(arguments: [("Test.tidemark/private.sqlite", nil), ("out.jsonl", "Test.tidemark/assets" as String?)])
    func `an export into the container is refused`(path: String, assets: String?) async throws {
        let scratch = try await container()
        #expect(throws: ImportError(.options, "")) { _ = try export(scratch, to: path, assets: assets) }
        #expect(try scratch.verification().isOK)
    }
}
