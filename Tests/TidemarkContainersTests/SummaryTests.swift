import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkTransfer

@testable import TidemarkContainers
@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a summary shows what is in the container. Method: imports, and a second process that has the store open.
@Suite(.timeLimit(.minutes(30))) struct SummaryTests {
    private func summary(_ scratch: Scratch) throws -> ContainerSummary {
        try ContainerSummary(of: ContainerDirectory(openingAt: scratch.container))
    }

    @Test func `records, assets and the last transaction are counted, per scope`() async throws {
        let scratch = try Scratch()
        _ = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        #expect(try summary(scratch).stores.isEmpty)
        try scratch.write(Picture.png(1), to: "1.png")
        let options = ImportOptions.destination { $0.assetFields = ["image"] }
        try await scratch.importing(lines: [#"{"id": "a", "image": "1.png"}"#, #"{"id": "b"}"#], options)
        try await scratch.importing(lines: [#"{"id": "c"}"#], ImportOptions(type: "Place", nameField: "id"))
        _ = try RecordStore(container: ContainerDirectory(openingAt: scratch.container), scope: .shared)
        let stores = try summary(scratch).stores
        #expect(stores.map(\.scope) == [.private, .shared])
        #expect(stores[0].types == [.init(name: "Destination", records: 2), .init(name: "Place", records: 1)])
        #expect(stores[0].records == 3)
        #expect(stores[0].assets == 1)
        #expect(stores[0].assetBytes == Int64(Picture.png(1).count))
        #expect(stores[0].lastTransaction?.id == 2)
        #expect(stores[0].lastTransaction?.inserted == 1)
        #expect(stores[0].bytes == (try Data(contentsOf: scratch["Test.tidemark/private.sqlite"]).count))
        #expect(stores[1].types.isEmpty)
        #expect(stores[1].lastTransaction == nil)
    }

    @Test func `pages in the log are counted up to the last commit, without those of earlier rounds`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a"}"#], .destination())
        #expect(try summary(scratch).stores[0].pagesInLog == 0)
        let path = scratch["Test.tidemark/private.sqlite"].path
        let queue = try DatabaseQueue(path: path)
        func log() throws -> Int {
            // SQLite's own count, from a checkpoint that moves only what it may.
            try queue.inDatabase { try Row.fetchOne($0, sql: "PRAGMA wal_checkpoint(PASSIVE)")?["log"] ?? -1 }
        }
        try await queue.write { try $0.execute(sql: "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(200000))") }
        let long = try WriteAheadLog.pages(at: path + "-wal")
        #expect(long > 12)
        #expect(long == (try log()))
        // Everything is in the database: the log starts again, over its old pages.
        try await queue.write { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
        let short = try WriteAheadLog.pages(at: path + "-wal")
        #expect((1..<long).contains(short))
        #expect(short == (try log()))
        #expect(try WriteAheadLog.pages(at: scratch["nothing"].path) == 0)
        try scratch.write("no log", to: "text")
        #expect(try WriteAheadLog.pages(at: scratch["text"].path) == 0)
    }

    #if os(Linux)
        @Test(.timeLimit(.minutes(30))) func `a summary says that another process has a store open`() async throws {
            let scratch = try Scratch()
            let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
            _ = try RecordStore(container: container)
            #expect(try summary(scratch).stores[0].isOpenElsewhere == false)
            let notifier = try StoreChangeNotifier(container: container, role: .app)
            let notifications = try StoreChangeListener.notifications(at: container, ignoring: notifier)
            async let guest = Tool(named: "change-poster").run(["guest", container.url.path])
            for await _ in notifications { break }
            #expect(try summary(scratch).stores[0].isOpenElsewhere == true)
            notifier.post(transaction: 1, scope: .private)
            #expect(try await guest.status == 0)
            #expect(try summary(scratch).stores[0].isOpenElsewhere == false)
        }

        @Test func `the list of locks is parsed into device, file, kind and process`() {
            var status = stat()
            (status.st_dev, status.st_ino) = (0xfe01, 131074)
            func holders(_ lists: String...) -> Bool? { LockHolders(of: status, lists: lists, process: 42)?.hasOthers }
            let own = "1: POSIX  ADVISORY  READ  42 fe:01:131074 1073741826 1073742335\n"
            #expect(holders(own) == false)
            #expect(holders(own + "2: POSIX  ADVISORY  READ  43 fe:01:131074 120 120\n") == true)
            #expect(holders(own + "2: FLOCK  ADVISORY  WRITE 43 fe:01:131074 0 EOF\n") == false)
            #expect(holders(own + "2: POSIX  ADVISORY  READ  43 fe:01:131075 120 120\n") == false)
            #expect(holders(own + "2: POSIX  ADVISORY  READ  43 fe:02:131074 120 120\n") == false)
            #expect(holders(own + "1: -> POSIX  ADVISORY  WRITE 43 fe:01:131074 0 EOF\n") == false)
            #expect(holders("", own, "2: POSIX  ADVISORY  READ  43 fe:01:131074 120 120\n") == true)
            #expect(holders("") == nil)
            #expect(holders("2: POSIX  ADVISORY  READ  43 fe:01:131074 120 120\n") == nil)
            #expect(holders("nonsense\n::\n1: POSIX\n") == nil)
        }
    #endif
}
