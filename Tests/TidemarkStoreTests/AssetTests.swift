import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: each record reads its own picture's bytes, and the store holds each content once. Method: real files.
@Suite(.timeLimit(.minutes(30))) struct AssetTests {
    private let options = ImportOptions.destination { $0.assetFields = ["image"] }

    private func bytes(_ scratch: Scratch, _ name: String) throws -> Data {
        let reader = try scratch.reader()
        var found: Data?
        try reader.forEachRecord(RecordQuery(type: "Destination", condition: "_name = '\(name)'")) { record in
            guard case .asset(let id) = record.values[0] else { return }
            found = try Data(contentsOf: try reader.asset(id).url)
        }
        return try #require(found)
    }

    @Test func `the same picture under two names is stored once`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "a.png")
        try scratch.write(Picture.png(1), to: "b.png")
        let summary = try await scratch.importing(
            lines: [#"{"id": "a", "image": "a.png"}"#, #"{"id": "b", "image": "b.png"}"#, #"{"id": "c", "image": "a.png"}"#],
            options)
        #expect(summary.assets == AssetCounts(referenced: 3, stored: 1, bytes: Picture.png(1).count))
        #expect(try bytes(scratch, "b") == Picture.png(1))
        #expect(try scratch.verification().assets == 1)
    }

    @Test func `a second name of a content is durable once it is made, even if it was there already`() throws {
        let scratch = try Scratch()
        let (assets, content) = (scratch["assets"], Picture.png(1))
        let id = "ab000000000000000000000000000000-\(content.count)"
        let handle = try FileHandle(forReadingFrom: scratch.write(content, to: "assets/ab/\(id)"))
        let other = AssetIdentifier.ofDigest(try AssetFiles.digest(of: handle).sha256, size: Int64(content.count))
        try handle.close()
        let place = AssetFiles.url(of: other, in: assets)
        for _ in 0..<2 {
            let log = StepLog()
            let note: @Sendable (String) -> Void = { if FileManager.default.fileExists(atPath: place.path) { log.add($0) } }
            let isGiven = try DurableFile.$onSynchronized.withValue(.init(note)) {
                try AssetFiles.give(id, otherName: other, in: assets)
            }
            #expect(isGiven)
            #expect(log.all == [place.deletingLastPathComponent().path])
            #expect(AssetFiles.examine(other, in: assets) == .whole)
        }
    }

    @Test func `two contents with equal digests stay two`() async throws {
        let scratch = try Scratch()
        let (first, second) = Collision.pair
        #expect(first != second)
        try scratch.write(first, to: "first.bin")
        try scratch.write(second, to: "second.bin")
        let lines = [#"{"id": "a", "image": "first.bin"}"#, #"{"id": "b", "image": "second.bin"}"#]
        let summary = try await scratch.importing(lines: lines, options)
        #expect(summary.assets.stored == 2)
        #expect(try bytes(scratch, "a") == first)
        #expect(try bytes(scratch, "b") == second)
        let ids = try await scratch.reader().database.read {
            try String.fetchAll($0, sql: "SELECT id FROM tide_assets ORDER BY id")
        }
        // Without equal digests this test would prove nothing.
        #expect(ids[1] == ids[0] + "-1")
        #expect(try await scratch.importing(lines: lines, options).changes == ChangeCounts(unchanged: 2))
        #expect(try scratch.verification().isOK)
    }

    @Test func `a dry run tells two contents with equal digests apart`() async throws {
        let scratch = try Scratch()
        try scratch.write(Collision.pair.0, to: "picture.bin")
        let lines = [#"{"id": "a", "image": "picture.bin"}"#]
        try await scratch.importing(lines: lines, options)
        try scratch.write(Collision.pair.1, to: "picture.bin")
        var options = options
        options.isDryRun = true
        let summary = try await scratch.importing(lines: lines, options)
        #expect(summary.changes == ChangeCounts(updated: 1))
        #expect(summary.assets.stored == 1)
    }

    @Test func `imports of one process into one container keep their pictures apart`() async throws {
        let scratch = try Scratch()
        // The contents are too large to be held in memory, so each is staged while it is read.
        for importer in 0..<2 {
            for number in 0..<6 {
                try scratch.write(Data(repeating: UInt8(importer * 6 + number), count: 5 << 20), to: "\(importer)/\(number).bin")
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for importer in 0..<2 {
                let lines = (0..<6).map { #"{"id": "\#(importer)-\#($0)", "image": "\#(importer)/\#($0).bin"}"# }
                let source = try scratch.writeLines(lines, to: "\(importer).jsonl")
                group.addTask { try await scratch.importing(source, options) }
            }
            try await group.waitForAll()
        }
        #expect(try scratch.verification().assets == 12)
        #expect(try scratch.verification().isOK)
        #expect(try bytes(scratch, "0-3").first == 3)
        #expect(try bytes(scratch, "1-3").first == 9)
    }

    @Test func `a link in place of a folder of assets is not followed`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "a.png")
        try scratch.write("untouched", to: "outside/file")
        try await scratch.importing(lines: [#"{"id": "b"}"#], options)
        let assets = scratch["Test.tidemark/assets"]
        try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
        for byte in 0..<256 {
            try FileManager.default.createSymbolicLink(
                at: assets.appendingPathComponent(String(format: "%02x", byte)), withDestinationURL: scratch["outside"])
        }
        await #expect(throws: (any Error).self) {
            try await scratch.importing(lines: [#"{"id": "a", "image": "a.png"}"#], options)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["outside"].path) == ["file"])
    }

    @Test func `a row that names thousands of files is refused`() async throws {
        let scratch = try Scratch()
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "images", type: .list(of: .asset))])
        let names = (0..<5000).map { "\"\($0).png\"" }.joined(separator: ",")
        let summary = try await scratch.importing(
            lines: [#"{"id": "a", "images": [\#(names)]}"#, #"{"id": "b"}"#], .destination { $0.schema = [schema] })
        #expect(summary.rejected == 1)
        #expect(summary.changes.inserted == 1)
    }

    @Test func `a picture that changed under its name is another asset, and history keeps the old one`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "a.png")
        try await scratch.importing(lines: [#"{"id": "a", "image": "a.png"}"#], options)
        try scratch.write(Picture.png(2), to: "a.png")
        let summary = try await scratch.importing(lines: [#"{"id": "a", "image": "a.png"}"#], options)
        #expect(summary.changes.updated == 1)
        #expect(try bytes(scratch, "a") == Picture.png(2))
        #expect(try scratch.verification().isOK)
        #expect(try scratch.verification().assets == 2)
    }

    @Test func `lists of assets are imported`() async throws {
        let scratch = try Scratch()
        for number in 1...3 { try scratch.write(Picture.png(number), to: "\(number).png") }
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "images", type: .list(of: .asset))])
        let lines = [
            #"{"id": "a", "images": ["1.png", "2.png"]}"#, #"{"id": "b", "images": ["3.png", "1.png"]}"#,
            #"{"id": "c", "images": []}"#,
        ]
        let summary = try await scratch.importing(lines: lines, .destination { $0.schema = [schema] })
        #expect(summary.assets.referenced == 4)
        #expect(summary.assets.stored == 3)
        #expect(try scratch.verification().isOK)
        #expect(try await scratch.importing(lines: lines, .destination()).changes == ChangeCounts(unchanged: 3))
    }

    @Test func `large files are streamed and read back whole`() async throws {
        let scratch = try Scratch()
        var random = Randomness(seed: 7)
        let large = Data((0..<(5 << 20) / 8).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } })
        try scratch.write(large, to: "large.bin")
        try await scratch.importing(lines: [#"{"id": "a", "image": "large.bin"}"#], options)
        #expect(try bytes(scratch, "a") == large)
        #expect(try scratch.verification().isOK)
    }

    @Test func `verify reports a missing, a damaged and a stray asset`() async throws {
        let scratch = try Scratch()
        for number in 1...2 { try scratch.write(Picture.png(number), to: "\(number).png") }
        try await scratch.importing(lines: [#"{"id": "a", "image": "1.png"}"#, #"{"id": "b", "image": "2.png"}"#], options)
        let ids = try ["a", "b"].map { name in
            try scratch.reader().database.read {
                try String.fetchOne($0, sql: "SELECT image FROM _Destination WHERE _name = ?", arguments: [name])!
            }
        }
        func file(_ id: String) -> URL { scratch["Test.tidemark/assets/\(id.prefix(2))/\(id)"] }
        try FileManager.default.removeItem(at: file(ids[0]))
        var damaged = try Data(contentsOf: file(ids[1]))
        damaged[20] ^= 1
        try damaged.write(to: file(ids[1]))
        try scratch.write("x", to: "Test.tidemark/assets/zz/stray")
        let problems = try scratch.verification().problems
        #expect(Set(problems.map(\.kind)) == [.assetMissing, .assetDamaged, .assetStray])
        #expect(problems.first { $0.kind == .assetMissing }?.record == "a")
        #expect(problems.first { $0.kind == .assetDamaged }?.record == "b")
    }

    @Test func `leftovers of a dead import are cleaned up`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        try await scratch.importing(lines: [#"{"id": "a", "image": "1.png"}"#], options)
        // The state after a process dies between staging files and committing.
        try scratch.write("half", to: "Test.tidemark/staging/123-0.tmp")
        try scratch.write("", to: "Test.tidemark/staging/123-X.open")
        try scratch.write(Picture.png(9), to: "Test.tidemark/assets/ab/ab000000000000000000000000000000-9")
        #expect(try scratch.verification().isOK)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["Test.tidemark/staging"].path) == ["lock"])
        #expect(try bytes(scratch, "a") == Picture.png(1))
    }

    @Test func `a refused row leaves nothing in the store`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        let schema = RecordTypeSchema(
            name: "Destination", fields: [.init(name: "image", type: .asset), .init(name: "second", type: .asset)])
        let summary = try await scratch.importing(
            lines: [#"{"id": "a", "image": "1.png", "second": "none.png"}"#, #"{"id": "b"}"#],
            .destination { $0.schema = [schema] })
        #expect(summary.rejected == 1)
        #expect(try scratch.verification().isOK)
        #expect(try scratch.verification().assets == 0)
        let left = try FileManager.default.subpathsOfDirectory(atPath: scratch["Test.tidemark/assets"].path).filter {
            $0.contains("-")
        }
        #expect(left.isEmpty)
    }
}
