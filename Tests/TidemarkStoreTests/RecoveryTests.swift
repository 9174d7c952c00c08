import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: cleaning up removes files that no record names, and no others. Method: containers in the state after damage, links and
/// running imports; whole listings before and after.
@Suite(.timeLimit(.minutes(30))) struct RecoveryTests {
    private let options = ImportOptions.destination { $0.assetFields = ["image"] }

    /// A container with two pictures and a marker that an import with a refused row has left.
    private func container() async throws -> Scratch {
        let scratch = try Scratch()
        for number in 1...2 { try scratch.write(Picture.png(number), to: "\(number).png") }
        try await scratch.importing(
            lines: [#"{"id": "a", "image": "1.png"}"#, #"{"id": "b", "image": "2.png"}"#, #"{"id": "c", "image": "none.png"}"#],
            options)
        try #require(try FileManager.default.contentsOfDirectory(atPath: scratch["Test.tidemark/staging"].path).count == 2)
        return scratch
    }

    private func files(_ scratch: Scratch) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: scratch["Test.tidemark/assets"].path).sorted()
    }

    private func losing(_ names: [String], of scratch: Scratch) throws {
        for name in names {
            try FileManager.default.moveItem(
                at: scratch["Test.tidemark/\(name)"], to: scratch["\(name).aside"])
        }
    }

    private func execute(_ scratch: Scratch, _ sql: String) throws {
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try store.inDatabase { db in try db.execute(sql: sql) }
        try store.close()
    }

    @Test(arguments: [["private.sqlite", "private.sqlite-wal", "private.sqlite-shm"], ["private.sqlite"]])
    func `a missing store is reported, and no picture is removed`(names: [String]) async throws {
        let scratch = try await container()
        let before = try files(scratch)
        try losing(names, of: scratch)
        var messages: [String] = []
        do {
            _ = try scratch.verification()
        } catch let error as StoreError {
            #expect(error.code == .notFound)
            messages.append(error.message)
        }
        for isDryRun in [true, false] {
            var options = options
            options.isDryRun = isDryRun
            let error = await #expect(throws: ImportError.self) {
                try await scratch.importing(lines: [#"{"id": "d", "n": 1}"#], options)
            }
            #expect(error?.cause?.code == .notFound)
            messages.append(error?.message ?? "")
        }
        #expect(messages.count == 3)
        #expect(messages.allSatisfy { $0.contains("private.sqlite is missing") }, "\(messages)")
        #expect(try files(scratch) == before)
        #expect(!FileManager.default.fileExists(atPath: scratch["Test.tidemark/private.sqlite"].path))
        for name in names {
            try FileManager.default.moveItem(at: scratch["\(name).aside"], to: scratch["Test.tidemark/\(name)"])
        }
        #expect(try scratch.verification().isOK)
        #expect(try files(scratch) == before)
    }

    @Test func `a log without its database is not removed`() async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        _ = try RecordStore(container: container, readsConcurrently: true)
        let log = try Data(contentsOf: scratch["Test.tidemark/private.sqlite-wal"])
        try #require(!log.isEmpty)
        try losing(["private.sqlite"], of: scratch)
        #expect(throws: StoreError(.notFound, "")) { _ = try RecordStore(container: container) }
        #expect(try Data(contentsOf: scratch["Test.tidemark/private.sqlite-wal"]) == log)
    }

    @Test func `a store whose making was interrupted is made by the next import`() async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        // The files after a process dies before its first transaction.
        let store = try DatabaseQueue(path: container.store(.private).path)
        _ = try await store.writeWithoutTransaction { db in try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL") }
        try store.close()
        #expect(throws: StoreError(.notFound, "")) { try scratch.verification() }
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], options)
        #expect(try scratch.verification().isOK)
    }

    @Test func `verify makes no store`() throws {
        let scratch = try Scratch()
        _ = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        #expect(throws: StoreError(.notFound, "")) { try scratch.verification() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.container.path) == ["container.json"])
    }

    @Test(arguments: [
        "", "DROP TABLE tide_assets", "ALTER TABLE tide_assets RENAME COLUMN id TO name", "DELETE FROM tide_assets",
        "DROP TABLE tide_assets; CREATE VIEW tide_assets AS SELECT '' AS id, 0 AS size, 0 AS media",
    ])
    func `an invalid registry removes no picture`(sql: String) async throws {
        let scratch = try await container()
        let before = try files(scratch)
        if sql.isEmpty {
            for name in ["private.sqlite", "private.sqlite-wal"] { try Data().write(to: scratch["Test.tidemark/\(name)"]) }
        } else {
            try execute(scratch, sql)
        }
        let report = try? scratch.verification()
        #expect(report?.isOK != true)
        #expect(try files(scratch) == before)
        guard !sql.hasPrefix("DELETE") else { return }
        await #expect(throws: ImportError.self) { try await scratch.importing(lines: [#"{"id": "d", "n": 1}"#], options) }
        #expect(try files(scratch) == before)
    }

    @Test func `links and foreign files in assets are reported, and never removed or followed`() async throws {
        let scratch = try await container()
        let stranger = "ab000000000000000000000000000000-9"
        try scratch.write("theirs", to: "outside/\(stranger)")
        let assets = scratch["Test.tidemark/assets"]
        // No folder of ours may be at the link's target.
        let free = try #require(["ab", "ac", "ad"].first { !FileManager.default.fileExists(atPath: assets.path + "/" + $0) })
        let inFree = free + String(stranger.dropFirst(2))
        try scratch.write("theirs", to: "outside/\(inFree)")
        let files = FileManager.default
        try files.createSymbolicLink(at: assets.appendingPathComponent(free), withDestinationURL: scratch["outside"])
        let own = try #require(try self.files(scratch).first { $0.contains("-") }).prefix(2)
        let link = "\(own)/\(own)000000000000000000000000000000-9"
        try files.createSymbolicLink(at: assets.appendingPathComponent(link), withDestinationURL: scratch["outside/\(stranger)"])
        let kept = [
            "letter.txt", "zz/stray", "\(own)/letter.txt", "\(own)/cd000000000000000000000000000000-9", "\(own)0/\(inFree)",
        ]
        for path in kept { try scratch.write("theirs", to: "Test.tidemark/assets/\(path)") }
        // A removed file of our own shows that the recovery has run.
        let stray = "\(own)/\(own)111111111111111111111111111111-6"
        try scratch.write("strays", to: "Test.tidemark/assets/\(stray)")
        let before = try self.files(scratch)
        let report = try scratch.verification()
        #expect(try self.files(scratch) == before.filter { $0 != stray })
        #expect(try String(contentsOf: scratch["outside/\(inFree)"], encoding: .utf8) == "theirs")
        #expect(try String(contentsOf: scratch["outside/\(stranger)"], encoding: .utf8) == "theirs")
        #expect(Set(report.problems.map(\.kind)) == [.assetStray])
        let found = report.problems.map { $0.message.components(separatedBy: "/assets/")[1].components(separatedBy: " ")[0] }
        #expect(
            Set(found) == ["letter.txt", "zz", "\(own)/letter.txt", kept[3], "\(own)0", free, link])
    }

    @Test func `cleaning up removes leftovers in staging, but not the lock and folders`() async throws {
        let scratch = try await container()
        let staging = scratch["Test.tidemark/staging"]
        try scratch.write("theirs", to: "Test.tidemark/staging/folder/file")
        try scratch.write("half", to: "Test.tidemark/staging/half")
        let directory = try ContainerDirectory(openingAt: scratch.container)
        for _ in 0..<2 {
            try BlobStore.recover(directory)
            #expect(try FileManager.default.contentsOfDirectory(atPath: staging.path).sorted() == ["folder", "lock"])
        }
        #expect(try scratch.verification().isOK)
    }

    @Test func `the marker of a removal is durable before a store forgets a content`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        try await scratch.importing(lines: [#"{"id": "a", "image": "1.png"}"#], options)
        let container = try ContainerDirectory(openingAt: scratch.container)
        let store = try RecordStore(container: container)
        // No record names the content.
        try scratch.write(
            Picture.png(2), to: "Test.tidemark/assets/ab/ab000000000000000000000000000000-\(Picture.png(2).count)")
        let (log, staging) = (StepLog(), container.staging.path)
        let note: @Sendable (String) -> Void = { path in
            guard path == staging, let names = try? FileManager.default.contentsOfDirectory(atPath: path) else { return }
            log.add(names.contains { $0.hasSuffix(".open") } ? "marked" : "unmarked")
        }
        let removal = try await DurableFile.$onSynchronized.withValue(.init(note)) {
            try await AssetCleaning(container, stores: [store]).removeUnnamed { log.add($0.rawValue) }
        }
        #expect(removal.assets == 1)
        #expect(log.all == ["found", "marked", "unlisted", "fileRemoved", "filesRemoved"])
        // The marker of an interruption is gone.
        #expect(try FileManager.default.contentsOfDirectory(atPath: staging).allSatisfy { !$0.hasSuffix(".open") })
    }

    @Test
    func `a cleaning does nothing while files are ingested, and the next one removes contents that history no longer names`()
        async throws
    {
        let scratch = try Scratch()
        for number in 1...2 {
            try scratch.write(Picture.png(number), to: "\(number).png")
            try await scratch.importing(lines: [#"{"id": "a", "image": "\#(number).png"}"#], options)
        }
        // The last transaction stays in history.
        try await scratch.importing(lines: [#"{"id": "b", "n": 1}"#], options)
        let container = try ContainerDirectory(openingAt: scratch.container)
        let store = try RecordStore(container: container)
        _ = try await store.purgeHistory(olderThan: .zero, keepingAtLeast: .zero)
        let cleaning = AssetCleaning(container, stores: [store])
        let lock = try StoreLock(at: container.staging.appendingPathComponent("lock"))
        try lock.acquire(shared: true, timeout: .zero)
        #expect(try await cleaning.removeUnnamedIfDue() == nil)
        lock.release()
        #expect(try await cleaning.removeUnnamedIfDue()?.assets == 1)
        #expect(try await cleaning.removeUnnamedIfDue() == nil)
        #expect(try scratch.verification().isOK)
    }

    @Test func `an assets folder that is a link is not cleaned up`() async throws {
        let scratch = try await container()
        try FileManager.default.moveItem(at: scratch["Test.tidemark/assets"], to: scratch["assets"])
        try FileManager.default.createSymbolicLink(at: scratch["Test.tidemark/assets"], withDestinationURL: scratch["assets"])
        let stray = try scratch.write("x", to: "assets/ab/ab000000000000000000000000000000-1")
        #expect(throws: (any Error).self) { try scratch.verification() }
        #expect(FileManager.default.fileExists(atPath: stray.path))
    }

    @Test func `while files are staged, contents that no record names yet are no problem`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], options)
        let container = try ContainerDirectory(openingAt: scratch.container)
        let blobs = try BlobStore(container: container)
        try scratch.write(Picture.png(1), to: "1.png")
        let taken = try scratch.write(
            Picture.png(1), to: "Test.tidemark/assets/ab/ab000000000000000000000000000000-\(Picture.png(1).count)")
        #expect(try scratch.verification().isOK)
        #expect(FileManager.default.fileExists(atPath: taken.path))
        try scratch.write("x", to: "Test.tidemark/assets/letter.txt")
        #expect(try scratch.verification().problems.map(\.kind) == [.assetStray])
        blobs.close()
        withExtendedLifetime(blobs) {}
    }

    #if os(Linux)
        @Test func `assets that can't be locked are released`() throws {
            let scratch = try Scratch()
            let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
            try FileManager.default.createDirectory(
                at: scratch["Test.tidemark/staging/lock"], withIntermediateDirectories: true)
            #expect(throws: StoreError(.io, "")) { _ = try BlobStore(container: container) }
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            }
            #expect(open.filter { $0.contains(scratch.url.lastPathComponent) } == [])
        }
    #endif
}
