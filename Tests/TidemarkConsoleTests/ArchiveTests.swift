import Foundation
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: a person can read the archive of their data: each file is explained, tables open in a spreadsheet, and assets are files with names. Method: an
/// archive of records that are hard to write, unpacked by tar, checked by sha256sum and read by Python.
@Suite(.timeLimit(.minutes(30))) struct ArchiveTests {
    private static let part = "containers/\(ConsoleFixture.journal)/development"

    /// Runs a program, and returns what it has printed.
    @discardableResult
    private static func run(_ arguments: [String], in folder: URL) throws -> String {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        (process.arguments, process.currentDirectoryURL, process.standardOutput) = (arguments, folder, output)
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(arguments)")
        return String(decoding: printed, as: UTF8.self)
    }

    /// The rows of a CSV file, as Python reads them.
    private static func rows(_ file: String, in folder: URL) throws -> [[String]] {
        let program =
            "import csv, json, sys; print(json.dumps(list(csv.reader(open(sys.argv[1], encoding='utf-8-sig', newline=''), strict=True))))"
        let json = try run(["python3", "-c", program, file], in: folder)
        return try JSONDecoder().decode([[String]].self, from: Data(json.utf8))
    }

    /// The folder that tar makes of the archive of an account, in which nothing else is.
    private func unpacked(_ account: StoredAccount, _ fixture: ConsoleFixture) async throws -> URL {
        let administration = Administration(fixture.cloud, fixture.credentials, by: .system(name: "root"))
        let file = try await administration.archive(of: account.id)
        var bytes = Data()
        while Int64(bytes.count) < file.count { bytes += try await file.read(at: Int64(bytes.count), most: 7_000) }
        try bytes.write(to: fixture.scratch["archive.tar"])
        let folder = fixture.scratch["unpacked"]
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Self.run(["tar", "xf", fixture.scratch["archive.tar"].path], in: folder)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [file.name])
        return folder.appendingPathComponent(file.name)
    }

    private func upload(_ contents: Data, of account: StoredAccount, _ fixture: ConsoleFixture) async throws -> CloudValue {
        let asset = AssetDigest.asset(of: contents)
        let database = try fixture.cloud.database(.private, of: ConsoleFixture.journal, account: account.id)
        _ = try await database.upload(contents, of: asset, at: 0, in: .default)
        return .asset(asset)
    }

    @Test func `assets are files with names and endings, and a table names the records that have them`() async throws {
        let fixture = try await ConsoleFixture()
        let cleo = fixture.cleo
        let (picture, page) = (Picture.png(1), Data("<html><script>alert(1)</script></html>".utf8))
        let (first, text) = (try await upload(picture, of: cleo, fixture), try await upload(page, of: cleo, fixture))
        let empty = try await upload(Data([0, 1, 2]), of: cleo, fixture)
        try await fixture.save("oslo", type: "Photo", ["image": first], by: cleo, scope: .private)
        try await fixture.save(
            "../../Tromsø 1", type: "Photo", ["image": text, "more": .list([empty, first], of: .asset)], by: cleo, scope: .private
        )
        let folder = try await unpacked(cleo, fixture)
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.contains("/assets/") }.sorted()
        let names = files.map { String($0.dropFirst("\(Self.part)/assets/".count)) }.filter { $0.contains("/") }
        #expect(names.count == 3, "\(names)")
        #expect(
            names.contains { $0.wholeMatch(of: /Photo\/oslo-image-[0-9a-f]{8}\.png/) != nil }
                || names.contains { $0.hasSuffix("-more-\(names).png") }, "\(names)")
        #expect(names.contains { $0.wholeMatch(of: /Photo\/_\._.._Troms__1-image-[0-9a-f]{8}\.txt/) != nil }, "\(names)")
        #expect(names.contains { $0.wholeMatch(of: /Photo\/_\._.._Troms__1-more-[0-9a-f]{8}\.bin/) != nil }, "\(names)")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { path in
            var isFolder: ObjCBool = false
            let place = folder.appendingPathComponent(path).path
            let isThere = FileManager.default.fileExists(atPath: place, isDirectory: &isFolder)
            return isThere && !isFolder.boolValue && path != "SHA256SUMS"
        }
        // The checksums list each file once.
        let checked = try Self.run(["sha256sum", "-c", "SHA256SUMS"], in: folder).split(separator: "\n")
        #expect(checked.sorted() == paths.map { "\($0): OK" }.sorted().map { Substring($0) })
        #expect(paths.contains("README.txt") && paths.contains { $0.hasSuffix("records/Photo.csv") })

        let part = folder.appendingPathComponent(Self.part)
        let table = try Self.rows("assets.csv", in: part)
        #expect(table[0] == ["database", "zone", "type", "record", "field", "file", "bytes", "sha256"])
        #expect(table.count == 5)
        for row in table.dropFirst() {
            let contents = try Data(contentsOf: part.appendingPathComponent(row[5]))
            #expect(row[6] == "\(contents.count)" && row[7] == AssetDigest.asset(of: contents).digest, "\(row)")
            #expect(Array(row[0...2]) == ["private", "_defaultZone", "Photo"])
        }
        // An asset of two records is one file.
        let ofPicture = table.filter { $0[7] == AssetDigest.asset(of: picture).digest }
        #expect(Set(ofPicture.map { $0[3] }) == ["oslo", "../../Tromsø 1"] && Set(ofPicture.map { $0[5] }).count == 1)
        let records = try Self.rows("records/Photo.csv", in: part)
        #expect(
            records[0] == ["recordName", "database", "zone", "createdTimestamp", "modifiedTimestamp", "parent", "image", "more"])
        let image = try #require(records.first { $0[0] == "oslo" })[6]
        #expect(image == ofPicture[0][5])
    }

    @Test func `the table of a type has all fields of all records, and no cell that a spreadsheet would run`() async throws {
        let fixture = try await ConsoleFixture()
        let cleo = fixture.cleo
        let hostile = ["=HYPERLINK(\"https://evil.example.org\")", "+1", "-1", "@x", "\t=1", "'=1", "a,\"b\"\r\nc", ""]
        for (number, text) in hostile.enumerated() {
            try await fixture.save(
                "note-\(number)", type: "Note",
                ["text": .string(text), "n\(number)": .int64(-Int64(number)), "at": .timestamp(1_780_000_000_123_000)], by: cleo,
                scope: .private)
        }
        let part = try await unpacked(cleo, fixture).appendingPathComponent(Self.part)
        let rows = try Self.rows("records/Note.csv", in: part)
        #expect(rows.count == hostile.count + 1 && rows.allSatisfy { $0.count == rows[0].count })
        let head = rows[0]
        #expect(head.count == 6 + 2 + hostile.count)
        func cell(_ row: [String], _ name: String) throws -> String { row[try #require(head.firstIndex(of: name))] }
        for row in rows.dropFirst() {
            let number = try #require(Int(try cell(row, "recordName").dropFirst(5)))
            let text = try cell(row, "text")
            #expect(text == (number < 6 ? "'" : "") + hostile[number])
            #expect(try cell(row, "n\(number)") == "\(-number)" && cell(row, "n\((number + 1) % hostile.count)").isEmpty)
            #expect(try cell(row, "at") == "2026-05-28T20:26:40.123Z")
            #expect(try cell(row, "createdTimestamp").hasSuffix("Z"))
        }
        let records = try String(contentsOf: part.appendingPathComponent("records.jsonl"), encoding: .utf8)
        #expect(records.split(separator: "\n").count == hostile.count)
        #expect(
            try !FileManager.default.contentsOfDirectory(atPath: part.appendingPathComponent("records").path).contains {
                $0.hasSuffix("rows")
            })
    }

    @Test func `the archive explains each file, and names the person behind each entry`() async throws {
        let fixture = try await ConsoleFixture()
        let cleo = fixture.cleo
        try await fixture.save("note", type: "Note", ["text": .string("mine")], by: cleo, scope: .private)
        let browser = try await fixture.browser(fixture.anna)
        _ = try await browser.post("account", ["id": cleo.email, "action": "quota", "quota": "5GB"])
        let folder = try await unpacked(cleo, fixture)
        #expect(folder.lastPathComponent == "tidemark-export-cleo@example.org-2027-01-15")
        #expect(
            try Self.run(["tar", "tf", fixture.scratch["archive.tar"].path], in: folder).hasPrefix(
                "\(folder.lastPathComponent)/README.txt\n"))
        let readme = try String(contentsOf: folder.appendingPathComponent("README.txt"), encoding: .utf8)
        #expect(readme.hasPrefix("All data of cleo@example.org in this Tidemark cloud\nMade 2027-01-15T08:00:00Z\n"))
        #expect(readme.contains("\(Self.part)\n  1 record, 0 shares and 0 files\n"))
        #expect(readme.split(separator: "\n").allSatisfy { $0.count <= 80 || $0.hasPrefix("containers/") })
        #expect(readme.contains("\nIn each of them, where there are any:\n"))
        // The explanation names the files that are there, and no others.
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
        where name != "README.txt" && name != "containers" {
            #expect(readme.contains("\n\(name)\n"), "\(name)")
        }
        for name in ["problems.jsonl", "identities.jsonl"] { #expect(!readme.contains("\n\(name)\n"), "\(name)") }
        let log = try String(contentsOf: folder.appendingPathComponent("audit.jsonl"), encoding: .utf8)
        let changed = try #require(log.split(separator: "\n").first { $0.contains("admin.account.set") })
        #expect(changed.contains(#""by":"anna@example.org""#) && !log.contains(fixture.anna.id))
    }

    @Test func `the name of an archive is valid in a header and on a disk for any address`() async throws {
        let fixture = try await ConsoleFixture()
        for (address, name) in [
            ("anna+news@example.org", "anna+news@example.org"), ("../\"x\";\r\n%2f@example.org", ".._x____2f@example.org"),
            ("åsa@exämple.org", "_sa@ex_mple.org"), (String(repeating: "a", count: 300), String(repeating: "a", count: 100)),
        ] {
            var account = fixture.cleo
            account.email = address
            let made = PersonArchive.name(of: account, at: 1_800_000_000_000_000)
            #expect(made.unicodeScalars.allSatisfy { $0.isASCII && !"/\\\"%;\r\n ".unicodeScalars.contains($0) }, "\(made)")
            if !address.hasPrefix(".") { #expect(made == "tidemark-export-\(name)-2027-01-15") }
        }
    }
}
