import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkTransfer

/// Goal: a folder of photos becomes records with the data of the files. Method: files with known content.
@Suite(.timeLimit(.minutes(30))) struct PhotoTests {
    @Test func `photos are recognised by content, and other files are skipped`() async throws {
        let scratch = try Scratch()
        let photo = try scratch.write(Picture.png(1, width: 40, height: 30), to: "in/b/Mount Fuji.png")
        try scratch.write(Picture.png(2), to: "in/a.dat")
        try scratch.write("text", to: "in/notes.txt")
        try scratch.write(Picture.png(3), to: "in/.hidden.png")
        try scratch.write("text", to: "in/fake.jpg")
        try FileManager.default.createSymbolicLink(atPath: scratch["in/link.png"].path, withDestinationPath: "a.dat")
        try FileManager.default.createSymbolicLink(atPath: scratch["in/around"].path, withDestinationPath: ".")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: photo.path)
        let options = ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"])
        let summary = try await scratch.importing(scratch["in"], options)
        #expect(summary.changes == ChangeCounts(inserted: 2))
        #expect(
            try scratch.rejects().map { "\($0.row ?? "") \($0.code)" } == [
                "fake.jpg assetNotAnImage", "link.png assetOutsideRoot",
            ])
        let records = try scratch.records("Photo")
        let fuji = try #require(records.first { $0.contains("Mount Fuji") })
        #expect(fuji.contains(#""caption":"Mount Fuji","createdAt":"2023-11-14T22:13:20Z","image":"asset:"#))
        #expect(fuji.hasSuffix(#""width":40,"height":30}"#))
        #expect(try await scratch.importing(scratch["in"], options).changes == ChangeCounts(unchanged: 2))
        #expect(try scratch.verification().isOK)
    }

    @Test func `the same photo in two places is two records and one asset`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "in/a/x.png")
        try scratch.write(Picture.png(1), to: "in/b/x.png")
        let summary = try await scratch.importing(scratch["in"], ImportOptions(type: "Photo"))
        #expect(summary.changes.inserted == 2)
        #expect(summary.assets == AssetCounts(referenced: 2, stored: 1, bytes: Picture.png(1).count))
    }

    @Test func `many photos are imported in batches`() async throws {
        let scratch = try Scratch()
        for number in 0..<600 { try scratch.write(Picture.png(number), to: "in/\(number % 7)/\(number).png") }
        let summary = try await scratch.importing(scratch["in"], ImportOptions(type: "Photo"))
        #expect(summary.changes.inserted == 600)
        #expect(summary.assets.stored == 600)
        #expect(try scratch.verification().isOK)
    }

    @Test(
        .enabled(
            if: ProcessInfo.processInfo.operatingSystemVersionString.contains("Linux")
                || FileManager.default.fileExists(atPath: "/proc")))
    func `a photo whose file name is not UTF-8 is refused by line`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "in/a.png")
        let copy = Array(scratch["in/"].path.utf8CString.dropLast()) + [0x2f, 0x62, -1, 0x2e, 0x70, 0x6e, 0x67, 0]
        #expect(link(scratch["in/a.png"].path, copy) == 0)
        let summary = try await scratch.importing(scratch["in"], ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"]))
        #expect(summary.changes.inserted == 1)
        #expect(try scratch.rejects().map { "\($0.line) \($0.code)" } == ["2 invalidUTF8"])
    }

    @Test func `photos are not imported into a type with other fields`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "in/a.png")
        try await scratch.importing(lines: [#"{"id": "x", "width": "wide"}"#], .destination())
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(scratch["in"], ImportOptions(type: "Destination"))
        }
        #expect(error?.code == .options)
    }

    @Test func `a container in the folder is skipped, and a folder with another container.json is not`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "in/a.png")
        try scratch.write(Picture.png(2), to: "in/app/b.png")
        try scratch.write("{\"services\": []}", to: "in/app/container.json")
        func importing() async throws -> ImportSummary {
            try await BulkImport(
                source: .folder(scratch["in"]), into: scratch["in/all.tidemark"], options: ImportOptions(type: "Photo")
            ).run()
        }
        let first = try await importing()
        #expect(first.changes == ChangeCounts(inserted: 2))
        let second = try await importing()
        #expect(second.read == 2)
        #expect(second.changes == ChangeCounts(unchanged: 2))
        // A container of another program in the folder.
        try await scratch.importing(lines: [#"{"id": "x"}"#], .destination())
        let other = try await BulkImport(
            source: .folder(scratch["in"]), into: scratch.container, options: ImportOptions(type: "Photo")
        ).run()
        #expect(other.changes == ChangeCounts(inserted: 2))
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(scratch["in/all.tidemark"], ImportOptions(type: "Photo"))
        }
        #expect(error?.code == .source)
    }

    /// Makes a chain of folders whose path is too long, with a picture at its end.
    private func makeChain(in folder: URL) throws {
        let picture = Picture.png(9)
        var at = open(folder.path, O_RDONLY | O_DIRECTORY)
        for _ in 0..<20 {
            let name = String(repeating: "n", count: 250)
            try #require(mkdirat(at, name, 0o755) == 0)
            let next = openat(at, name, O_RDONLY | O_DIRECTORY)
            close(at)
            at = next
        }
        let file = openat(at, "deep.png", O_WRONLY | O_CREAT, 0o644)
        #expect(picture.withUnsafeBytes { write(file, $0.baseAddress!, $0.count) } == picture.count)
        close(file)
        close(at)
    }

    @Test func `a folder that can't be reached is refused, and the others are imported`() async throws {
        let scratch = try Scratch()
        for name in ["a", "z"] { try scratch.write(Picture.png(1), to: "in/\(name).png") }
        try makeChain(in: scratch["in"])
        defer {
            // FileManager can't remove such a chain.
            _ = try? ChildProcess.run("/bin/rm", ["-rf", scratch["in"].path])
        }
        let options = ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"])
        let summary = try await scratch.importing(scratch["in"], options)
        #expect(summary.changes == ChangeCounts(inserted: 2))
        #expect(summary.read == 3)
        let rejects = try scratch.rejects()
        #expect(rejects.map { "\($0.line) \($0.code)" } == ["2 assetUnreadable"])
        #expect(rejects.first?.row?.hasPrefix("nnn") == true)
        #expect(rejects.first?.reason.hasSuffix("cannot be read: File name too long") == true)
    }

    // Root may read everything.
    @Test(.enabled(if: geteuid() != 0), arguments: [0o300, 0o600] as [mode_t])
    func `an unreadable subfolder is refused, and the others are imported`(mode: mode_t) async throws {
        let scratch = try Scratch()
        for name in ["a", "closed/b", "d"] { try scratch.write(Picture.png(1), to: "in/\(name).png") }
        chmod(scratch["in/closed"].path, mode)
        defer { chmod(scratch["in/closed"].path, 0o700) }
        let options = ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"])
        #expect(try await scratch.importing(scratch["in"], options).changes == ChangeCounts(inserted: 2))
        let refused = mode == 0o300 ? "closed" : "closed/b.png"
        #expect(
            try scratch.rejects().map { "\($0.line) \($0.row ?? "") \($0.code) \($0.reason)" }
                == ["2 \(refused) assetUnreadable '\(refused)' cannot be read: Permission denied"])
    }

    @Test func `an empty folder is no error`() async throws {
        let scratch = try Scratch()
        try FileManager.default.createDirectory(at: scratch["in"], withIntermediateDirectories: true)
        #expect(try await scratch.importing(scratch["in"], ImportOptions(type: "Photo")).read == 0)
    }
}
