import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

@testable import TidemarkTransfer

/// Goal: imports can be tried, interrupted and repeated. Method: whole stores compared with that of an undisturbed run.
@Suite(.timeLimit(.minutes(30))) struct RunTests {
    private func lines(_ numbers: Range<Int>, caption: (Int) -> String = { "place \($0)" }) -> [String] {
        numbers.map { #"{"id":"r\#($0)","caption":"\#(caption($0))","n":\#($0)}"# }
    }

    private func snapshot(_ folder: URL) throws -> [String: Data] {
        let files = FileManager.default
        guard files.fileExists(atPath: folder.path) else { return [:] }
        return try files.subpathsOfDirectory(atPath: folder.path).reduce(into: [:]) { found, path in
            // SQLite's shared memory is not content: readers write to it.
            guard !path.hasSuffix("-shm") else { return }
            found[path] = (try? Data(contentsOf: folder.appendingPathComponent(path))) ?? Data()
        }
    }

    @Test func `a dry run says what would happen and writes nothing`() async throws {
        let scratch = try Scratch()
        for number in 1...3 { try scratch.write(Picture.png(number), to: "\(number).png") }
        let options = ImportOptions.destination {
            $0.assetFields = ["image"]
            $0.batchSize = 7
        }
        try await scratch.importing(
            lines: lines(0..<50) + [#"{"id": "p1", "image": "1.png"}"#, #"{"id": "p2", "image": "2.png"}"#], options)
        let before = try snapshot(scratch.container)
        let changed =
            lines(40..<60, caption: { $0 < 45 ? "changed" : "place \($0)" }) + lines(59..<60, caption: { _ in "again" })
            + [
                #"{"id": "p1", "image": "3.png"}"#, #"{"id": "p3", "image": "3.png", "new": 1}"#,
                #"{"id": "p4", "image": "none.png"}"#,
            ]
        var dry = options
        dry.isDryRun = true
        let rehearsal = try await scratch.importing(lines: changed, dry)
        #expect(try snapshot(scratch.container) == before)
        let real = try await scratch.importing(lines: changed, options)
        #expect(rehearsal.changes == real.changes)
        #expect(rehearsal.assets == real.assets)
        #expect(rehearsal.rejected == real.rejected)
        #expect(real.changes == ChangeCounts(inserted: 11, updated: 7, unchanged: 5))
    }

    @Test func `a dry run without a container makes none`() async throws {
        let scratch = try Scratch()
        let summary = try await scratch.importing(lines: lines(0..<10) + lines(0..<1), .destination { $0.isDryRun = true })
        #expect(summary.changes == ChangeCounts(inserted: 10, updated: 0, unchanged: 1))
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
    }

    /// Runs the first batches of an import, and stops like a process that dies.
    private func interrupt(_ scratch: Scratch, _ file: URL, _ options: ImportOptions, after batches: Int) async throws {
        let session = try await ImportSession(source: .file(file), container: scratch.container, options: options)
        struct Stop: Error {}
        await #expect(throws: CancellationError.self) {
            let task = Task {
                try await session.run {
                    if $0.summary.read >= batches * options.batchSize { withUnsafeCurrentTask { $0?.cancel() } }
                }
            }
            _ = try await task.value
        }
    }

    @Test(arguments: [ImportFormat.jsonl, .json, .csv], [1, 3])
    func `an interrupted import continues behind its last batch and ends in the same store`(
        format: ImportFormat, batches: Int
    ) async throws {
        let rows = (0..<95).map { $0 % 10 == 3 ? #"{"id":"bad\#($0)","n":"x"}"# : #"{"id":"r\#($0)","n":\#($0)}"# }
        let text =
            switch format {
            case .json: "[" + rows.joined(separator: ",\n") + "]"
            case .csv: "id,n\n" + (0..<95).map { $0 % 10 == 3 ? "bad\($0),x\n" : "r\($0),\($0)\n" }.joined()
            default: rows.joined(separator: "\n")
            }
        let (scratch, undisturbed) = (try Scratch(), try Scratch())
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "n", type: .int64)])
        func options(_ place: Scratch) -> ImportOptions {
            .destination {
                $0.format = format
                $0.batchSize = 10
                $0.schema = [schema]
                $0.rejects = place["rejects.jsonl"]
            }
        }
        let expected = try await undisturbed.importing(try undisturbed.write(text, to: "in"), options(undisturbed))
        let file = try scratch.write(text, to: "in")
        try await interrupt(scratch, file, options(scratch), after: batches)
        let between = try scratch.reader().count(type: "Destination")
        #expect(between > 0 && between < expected.changes.inserted)
        var resuming = options(scratch)
        resuming.resumes = true
        let summary = try await scratch.importing(file, resuming)
        #expect((summary.resumedAfter ?? 0) >= batches * 10)
        #expect(summary.changes == expected.changes)
        #expect(summary.read == expected.read)
        #expect(summary.rejected == expected.rejected)
        #expect(try scratch.records("Destination") == undisturbed.records("Destination"))
        #expect(try scratch.rejects() == undisturbed.rejects())
        #expect(try scratch.verification().isOK)
        // There is nothing left to resume.
        #expect(try await scratch.importing(file, resuming).resumedAfter == nil)
    }

    @Test func `an interrupted import starts again if the time zone has changed`() async throws {
        let scratch = try Scratch()
        let rows = (0..<1_000).map { "\($0),2024-05-01 12:30:00\n" }.joined()
        let file = try scratch.write("id,when\n" + rows, to: "in.csv")
        func options(_ zone: String) -> ImportOptions {
            .destination {
                $0.batchSize = 10
                $0.timeZone = TimeZone(identifier: zone)!
            }
        }
        try await interrupt(scratch, file, options("Europe/Berlin"), after: 2)
        var resuming = options("Asia/Tokyo")
        resuming.resumes = true
        let summary = try await scratch.importing(file, resuming)
        #expect(summary.resumedAfter == nil && summary.read == 1_000)
        #expect(try scratch.records("Destination").allSatisfy { $0.contains("2024-05-01T03:30:00Z") })
    }

    @Test(arguments: ["rejects.jsonl", "other.jsonl", "old.jsonl", nil])
    func `a resumed import reports refusals that its rejects file lacks`(rejects: String?) async throws {
        let scratch = try Scratch()
        let rows = (0..<40).map { $0 % 10 == 3 ? "nonsense \($0)" : #"{"id":"r\#($0)"}"# }
        let file = try scratch.writeLines(rows, to: "in.jsonl")
        func options(_ rejects: String?) -> ImportOptions {
            .destination {
                $0.batchSize = 10
                $0.rejects = rejects.map { scratch[$0] }
            }
        }
        try await interrupt(scratch, file, options("rejects.jsonl"), after: 2)
        try scratch.write("of another import\n", to: "old.jsonl")
        let before = try scratch.rejects().count
        #expect(before >= 2)
        var resuming = options(rejects)
        resuming.resumes = true
        let summary = try await scratch.importing(file, resuming)
        #expect(summary.rejected == 4)
        let isSame = rejects == "rejects.jsonl"
        #expect(summary.rejectedElsewhere == (isSame ? 0 : before))
        if let rejects { #expect(try scratch.rejects(rejects).map(\.line) == [4, 14, 24, 34].suffix(isSame ? 4 : 4 - before)) }
    }

    @Test(arguments: [ImportFormat.jsonl, .json, .csv])
    func `an import that was interrupted after its last row is resumed to its end`(format: ImportFormat) async throws {
        let scratch = try Scratch()
        let text =
            switch format {
            case .json: "[{\"id\": \"a\", \"n\": 1}, {\"id\": \"b\", \"n\": 1}]"
            case .csv: "id,n\na,1\nb,1\n"
            default: "{\"id\": \"a\", \"n\": 1}\n{\"id\": \"b\", \"n\": 1}"
            }
        let file = try scratch.write(text, to: "in")
        let options = ImportOptions.destination {
            $0.format = format
            $0.resumes = true
        }
        // All stages but the end: the store's rows are there, and so is the state of the import.
        let session = try await ImportSession(source: .file(file), container: scratch.container, options: options)
        try await session.runStages { _ in }
        let summary = try await scratch.importing(file, options)
        #expect(summary.resumedAfter == 2)
        #expect(summary.rejected == 0)
        #expect(summary.changes == ChangeCounts(inserted: 2))
    }

    @Test func `another source is not resumed`() async throws {
        let scratch = try Scratch()
        let options = ImportOptions.destination {
            $0.batchSize = 10
            $0.resumes = true
        }
        let file = try scratch.writeLines(lines(0..<50), to: "in.jsonl")
        try await interrupt(scratch, file, options, after: 1)
        try scratch.writeLines(lines(1000..<1050), to: "in.jsonl")
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(file, options) }
        #expect(error?.code == .manifest)
        #expect(error?.message.contains("without --resume") == true)
    }

    @Test(arguments: BulkExport.Format.allCases, [true, false])
    func `importing an export again changes nothing`(format: BulkExport.Format, withAssets: Bool) async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        let options = ImportOptions.destination { $0.assetFields = ["image"] }
        try await scratch.importing(
            lines: [
                #"{"id": "a", "s": "x,\"y\"\n", "d": 1e300, "t": "2024-05-01T12:30:00.001Z", "l": ["p", "q"], "image": "1.png"}"#,
                #"{"id": "b", "s": "", "place": {"latitude": 1, "longitude": 2}, "lt": ["2024-05-01T12:30:00Z"]}"#,
            ], options)
        let file = scratch["out/export.\(format.rawValue)"]
        try FileManager.default.createDirectory(at: scratch["out"], withIntermediateDirectories: true)
        let container = try ContainerDirectory(openingAt: scratch.container)
        let summary = try BulkExport(
            from: container, type: "Destination", format: format, to: .file(file), assets: withAssets ? scratch["out/files"] : nil
        ).run()
        #expect(summary.records == 2)
        #expect(summary.assets == (withAssets ? 1 : 0))
        #expect(try await scratch.importing(file, ImportOptions(type: "Destination")).changes == ChangeCounts(unchanged: 2))
        if withAssets {
            let copy = try Scratch()
            try await copy.importing(file, .destination { $0.schema = [try! scratch.reader().type(named: "Destination")] })
            #expect(try copy.records("Destination") == scratch.records("Destination"))
        }
    }

    @Test func `an asset can't be obtained by naming its identifier`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        let options = ImportOptions.destination {
            $0.assetFields = ["image"]
            $0.rejects = scratch["rejects.jsonl"]
        }
        try await scratch.importing(lines: [#"{"id": "a", "image": "1.png"}"#, #"{"id": "c"}"#], options)
        let id = try #require(try scratch.records("Destination")[0].split(separator: "\"").last { $0.hasPrefix("asset:") })
        let summary = try await scratch.importing(
            lines: ["a", "b", "c"].map { #"{"id": "\#($0)", "image": "\#(id)"}"# }, options)
        #expect(summary.changes == ChangeCounts(unchanged: 1))
        #expect(try scratch.rejects().map { "\($0.line) \($0.code)" } == ["2 assetUnknown", "3 assetUnknown"])
    }

    @Test func `progress rises to the end`() async throws {
        let scratch = try Scratch()
        let file = try scratch.writeLines(lines(0..<100), to: "in.jsonl")
        let bulkImport = BulkImport(source: .file(file), into: scratch.container, options: .destination { $0.batchSize = 10 })
        async let summary = bulkImport.run()
        var seen: [ImportProgress] = []
        for await progress in bulkImport.progress { seen.append(progress) }
        #expect(try await summary.read == 100)
        #expect(seen.map(\.done) == seen.map(\.done).sorted())
        #expect(seen.last?.done == seen.last?.total)
    }
}
