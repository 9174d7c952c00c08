import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a store opens for reading, writing and verifying in every state in which SQLite can leave its database, log and index;
/// all commits are there; a reader changes nothing.
///
/// Method: the files before and after each step of a store's life are kept. The writes between them are known (a log's header,
/// then each frame's header and page; a checkpoint's pages in their order), so every state between two writes can be made, and
/// the states with a torn or lost write after a power cut. Each is tried with each kind of index beside it.
@Suite(.timeLimit(.minutes(30))) struct OpeningStatesTests {
    /// The files of a store that SQLite writes; `nil` for a missing one.
    struct Files: Sendable {
        var database: Data?
        var log: Data?
        var index: Data?
        var journal: Data?

        static let names = ["", "-wal", "-shm", "-journal"]
        var all: [Data?] { [database, log, index, journal] }

        init(of container: URL) {
            func data(_ suffix: String) -> Data? { try? Data(contentsOf: Self.url(suffix, in: container)) }
            (database, log, index, journal) = (data(""), data("-wal"), data("-shm"), data("-journal"))
        }

        static func url(_ suffix: String, in container: URL) -> URL {
            container.appendingPathComponent("private.sqlite\(suffix)")
        }

        func write(to container: URL) throws {
            for (suffix, data) in zip(Self.names, all) {
                let url = Self.url(suffix, in: container)
                try? FileManager.default.removeItem(at: url)
                try data?.write(to: url)
            }
        }
    }

    /// A state to open, and the numbers of records that it may show: those before and after the interrupted step.
    struct State: Sendable {
        let name: String
        let files: Files
        let counts: ClosedRange<Int>
    }

    private static let type = "Destination"
    private static let headerSize = 32
    private static let frameHeaderSize = 24
    private static let pageSize = StoreFormat.pageSize

    private static func save(_ store: RecordStore, _ number: Int) async throws {
        let schema = RecordTypeSchema(name: type, fields: [.init(name: "n", type: .int64)])
        let edit = RecordEdit(
            record: RecordName(type: type, name: "r\(number)"), base: .any, values: ["n": .int64(Int64(number))], fields: ["n"])
        _ = try await store.save(
            [edit], schemas: [schema], blobs: [], author: TransactionAuthor("test", origin: .save), policy: { _ in .overwrite },
            check: { _ in })
    }

    // The states

    /// The writes that make one log of another, in SQLite's order: offset and length.
    private static func logWrites(_ before: Data, _ after: Data) -> [Range<Int>] {
        var writes: [Range<Int>] = []
        if before.prefix(headerSize) != after.prefix(headerSize) { writes.append(0..<headerSize) }
        var offset = headerSize
        while offset + frameHeaderSize + pageSize <= after.count {
            let frame = offset..<offset + frameHeaderSize + pageSize
            if before.count < frame.upperBound || before[frame] != after[frame] {
                writes.append(offset..<offset + frameHeaderSize)
                writes.append(offset + frameHeaderSize..<frame.upperBound)
            }
            offset = frame.upperBound
        }
        return writes
    }

    /// The pages that a checkpoint writes.
    private static func pageWrites(_ before: Data, _ after: Data) -> [Range<Int>] {
        stride(from: 0, to: after.count, by: pageSize).map { $0..<$0 + pageSize }
            .filter { $0.upperBound > before.count || before[$0] != after[$0] }
    }

    private static func apply(_ writes: [Range<Int>], of after: Data, to before: Data) -> Data {
        var data = before
        for write in writes {
            // A write past the end leaves zeros before it.
            if data.count < write.upperBound { data.append(Data(count: write.upperBound - data.count)) }
            data.replaceSubrange(write, with: after[write])
        }
        return data
    }

    /// The states between two logs: after each write, within each, and with each lost while the others were not.
    private static func logs(_ before: Data, _ after: Data) -> [(name: String, log: Data)] {
        let writes = logWrites(before, after)
        // All writes if they are few; otherwise the first, the last, and some between.
        let step = max(1, writes.count / 12)
        let chosen = writes.indices.filter { $0 < 6 || $0 >= writes.count - 4 || $0 % step == 0 }
        return chosen.flatMap { number -> [(String, Data)] in
            let write = writes[number]
            let done = Array(writes[..<number])
            let half = write.lowerBound..<write.lowerBound + write.count / 2
            let byte = write.lowerBound..<write.lowerBound + 1
            return [
                ("\(number) writes", apply(done, of: after, to: before)),
                ("\(number) writes and a byte", apply(done + [byte], of: after, to: before)),
                ("\(number) writes and a half", apply(done + [half], of: after, to: before)),
                ("write \(number) alone", apply([write], of: after, to: before)),
                ("write \(number) lost", apply(writes.filter { $0 != write }, of: after, to: before)),
                (
                    "write \(number) alone, cut by a byte",
                    apply([write.lowerBound..<write.upperBound - 1], of: after, to: before)
                ),
            ]
        }
    }

    /// The steps of a store's life, and every state between them.
    private static func states() async throws -> [State] {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        let store = try RecordStore(container: container)
        func now() -> Files { Files(of: scratch.container) }
        var states: [State] = []
        func commit(_ what: String, _ before: Files, _ after: Files, from count: Int) {
            for (name, log) in logs(before.log ?? Data(), after.log ?? Data()) {
                var files = before
                files.log = log
                // Either commit may be the last valid one. While `log` still has the former one whole, that one must be.
                states.append(State(name: "\(what): \(name)", files: files, counts: count...count + 1))
            }
            states.append(State(name: "\(what): done", files: after, counts: count + 1...count + 1))
        }
        var before = now()
        for number in 1...2 {
            try await save(store, number)
            let after = now()
            if number == 2 { commit("a growing log", before, after, from: 1) }
            before = after
        }
        // After a checkpoint, with the log still there.
        try await store.checkpoint()
        let emptied = now()
        #expect(emptied.log == Data())
        let pages = pageWrites(before.database!, emptied.database!)
        #expect(!pages.isEmpty)
        for number in pages.indices {
            let page = pages[number]
            let half = page.lowerBound..<page.lowerBound + page.count / 2
            for (name, writes) in [
                ("\(number) pages", Array(pages[..<number])), ("\(number) pages and a half", pages[..<number] + [half]),
                ("page \(number) alone", [page]),
            ] {
                var files = before
                files.database = apply(writes, of: emptied.database!, to: before.database!)
                states.append(State(name: "a checkpoint: \(name)", files: files, counts: 2...2))
            }
        }
        states.append(State(name: "an emptied log", files: emptied, counts: 2...2))
        // An emptied log is written again.
        try await save(store, 3)
        let begun = now()
        commit("an emptied log begins", emptied, begun, from: 2)
        // A log that is checkpointed and kept, and is overwritten.
        let other = try DatabaseQueue(path: container.store(.private).path)
        _ = try await other.writeWithoutTransaction { db in try db.checkpoint(.passive) }
        try other.close()
        let kept = now()
        #expect(kept.log == begun.log)
        try await save(store, 4)
        commit("a kept log is written over", kept, now(), from: 3)
        // Headers that no program has written. Another test has the index that shows it.
        var damaged = now()
        damaged.index = emptied.index
        for (name, offset) in [("magic", 0), ("version", 7), ("page size", 10), ("salt", 17), ("checksum", 31)] {
            damaged.log![offset] ^= 1
            states.append(State(name: "a header with another \(name)", files: damaged, counts: 3...4))
            damaged.log![offset] ^= 1
        }
        for count in [1, 31, 32, 33, 56] {
            var files = emptied
            files.log = Data(count: count)
            states.append(State(name: "a log of \(count) zeros", files: files, counts: 2...2))
        }
        return states
    }

    /// The file that can be beside the database as its index.
    enum Index: String, CaseIterable {
        case asItWas, absent, empty, short, zeros, torn, stale, garbage

        func make(_ files: Files, stale: Data?) -> Data? {
            var index = files.index ?? Data(count: 32768)
            switch self {
            case .asItWas: break
            case .absent: return nil
            case .empty: return Data()
            case .short: return index.prefix(100)
            case .zeros: return Data(count: 32768)
            case .torn: for offset in 48..<96 { index[offset] ^= 0x55 }
            case .stale: return stale
            case .garbage: return Data((0..<32768).map { UInt8(truncatingIfNeeded: $0 &* 37) })
            }
            return index
        }
    }

    private func count(_ container: ContainerDirectory) throws -> Int { try count(StoreReader(container: container)) }

    private func count(_ reader: StoreReader) throws -> Int {
        try reader.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM Destination") ?? -1 }
    }

    @Test func `every state opens for a reader, a writer and verify, and shows all commits`() async throws {
        let states = try await Self.states()
        print("\(states.count) states")
        let scratch = try Scratch()
        _ = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        let stale = states.first?.files.index
        for (number, state) in states.enumerated() {
            // All kinds for the states of the log that begins; a few of them, in turn, for the others.
            let all = state.name.hasPrefix("an emptied log") || state.name.hasPrefix("a header")
            let kinds = all ? Index.allCases : [Index.allCases[number % 8], Index.allCases[(number + 3) % 8]]
            for kind in kinds {
                let what: Comment = "\(state.name), index \(kind.rawValue)"
                var files = state.files
                files.index = kind.make(files, stale: stale)
                try files.write(to: scratch.container)
                do {
                    let container = try ContainerDirectory(openingAt: scratch.container)
                    let before = try FileState(of: scratch.container)
                    let found = try count(container)
                    #expect(state.counts.contains(found), what)
                    #expect(try FileState(of: scratch.container) == before, what)
                    #expect(try StoreVerification(of: container).run().problems == [], what)
                    let early = try StoreReader(container: container)
                    #expect(try count(early) == found, what)
                    var store: RecordStore? = try RecordStore(container: container)
                    try await Self.save(#require(store), 100)
                    #expect(try count(container) == found + 1, what)
                    let check = try await store?.reader.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
                    #expect(check == "ok", what)
                    // The reader has built an index of its own, and no process updates the file.
                    store = nil
                    #expect(try count(early) == found + 1, what)
                } catch {
                    Issue.record("\(what): \(error)")
                }
            }
        }
    }

    // Write errors

    @Test(arguments: [0, 1, 31, 32, 33, 55, 56, 57, 1000, 32 + 24 + 16384, 32 + 24 + 16384 + 24, 40_000])
    func `a write error at any byte of an emptied log stops no reader or writer`(limit: Int) async throws {
        let probe = try Tool(named: "store-probe")
        let scratch = try Scratch()
        #expect(try await probe.run(["write", scratch.container.path, "--count", "2", "--checkpoints"]).status == 0)
        let failing = try probe.start(["write", scratch.container.path, "--file-limit", "\(limit)", "--stays"])
        #expect(try #require(await failing.line()).contains("error"))
        let container = try ContainerDirectory(openingAt: scratch.container)
        // One more record, which all saves change.
        #expect(try count(container) == 3)
        await failing.kill()
        let log = try Data(contentsOf: Files.url("-wal", in: scratch.container))
        #expect(log.count == limit)
        let before = try FileState(of: scratch.container)
        #expect(try count(container) == 3)
        #expect(try FileState(of: scratch.container) == before)
        #expect(try scratch.verification().problems == [])
        #expect(try await probe.run(["write", scratch.container.path, "--count", "1"]).status == 0)
        #expect(try count(container) == 4)
        #expect(try scratch.verification().problems == [])
    }

    // Rollback journals

    /// A store whose log another program has replaced by a rollback journal, which it left in the middle of a transaction.
    private func brokenOff() async throws -> Scratch {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        do {
            let store = try RecordStore(container: container)
            for number in 1...3 { try await Self.save(store, number) }
            try await store.checkpoint()
        }
        let queue = try DatabaseQueue(path: container.store(.private).path)
        let files = try await queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2; BEGIN")
            // More than the cache holds, so that pages are written before the commit.
            try db.execute(
                sql: """
                    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
                    INSERT INTO tide_sync SELECT 'x' || i, hex(randomblob(50)) FROM n; UPDATE tide_meta SET value = value
                    """)
            let files = Files(of: scratch.container)
            try db.execute(sql: "ROLLBACK")
            return files
        }
        try queue.close()
        try #require(files.journal?.count ?? 0 > 512)
        try files.write(to: scratch.container)
        return scratch
    }

    @Test func `a reader leaves a rollback journal alone, and rolls it back only if it may`() async throws {
        let scratch = try await brokenOff()
        let container = try ContainerDirectory(openingAt: scratch.container)
        let before = try FileState(of: scratch.container)
        #expect(throws: StoreError(.unreadable, "")) { try count(container) }
        #expect(try FileState(of: scratch.container) == before)
        try StoreReader.$rollsBackJournals.withValue(true) {
            let found = try count(container)
            #expect(found == 3)
        }
        #expect(try scratch.verification().problems == [])
        #expect(!FileManager.default.fileExists(atPath: Files.url("-journal", in: scratch.container).path))
    }

    // The making of a store

    @Test func `a store whose making was interrupted at any write is made by the next writer`() async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        // SQLite writes the first page by way of a rollback journal, as the file is made one with a log.
        let queue = try DatabaseQueue(path: container.store(.private).path)
        let page = try await queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA page_size = \(Self.pageSize); PRAGMA journal_mode = PERSIST; PRAGMA user_version = 0")
            try db.execute(sql: "PRAGMA journal_mode = WAL")
            return Files(of: scratch.container).database ?? Data()
        }
        try queue.close()
        #expect(page.count == Self.pageSize)
        var made = Files(of: scratch.container)
        do {
            let store = try RecordStore(container: container)
            withExtendedLifetime(store) { made = Files(of: scratch.container) }
        }
        // A hot journal of a database that was empty: its magic, no records, and the size before, 0 pages.
        var hot = Data([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7] + [UInt8](repeating: 0, count: 12))
        hot += Data([0, 0, 2, 0, 0, 0, 0x40, 0]) + Data(count: 512 - 28)
        var states: [(String, Files)] = []
        func add(_ name: String, _ change: (inout Files) -> Void) {
            var files = made
            (files.log, files.index, files.journal) = (nil, nil, nil)
            change(&files)
            states.append((name, files))
        }
        add("an empty database") { $0.database = Data() }
        add("an empty database and its journal") { ($0.database, $0.journal) = (Data(), hot) }
        add("a part of a page and its journal") { ($0.database, $0.journal) = (page.prefix(5000), hot) }
        add("a page of zeros and its journal") { ($0.database, $0.journal) = (Data(count: Self.pageSize), hot) }
        add("a page and its journal") { ($0.database, $0.journal) = (page, hot) }
        add("a page") { $0.database = page }
        add("a page and an empty log") { ($0.database, $0.log) = (page, Data()) }
        for (name, log) in Self.logs(Data(), made.log!) {
            // Without an index: it is written after the log, and the index of `made` is from the end.
            add("the first transaction: \(name)") { ($0.database, $0.log) = (page, log) }
        }
        for (name, files) in states {
            let what: Comment = "\(name)"
            try files.write(to: scratch.container)
            do {
                let container = try ContainerDirectory(openingAt: scratch.container)
                let before = try FileState(of: scratch.container)
                do {
                    #expect(try StoreReader(container: container).types() == [], what)
                } catch {
                    #expect(error.code == .notFound || files.journal != nil && error.code == .unreadable, "\(name): \(error)")
                }
                #expect(try FileState(of: scratch.container) == before, what)
                let store = try RecordStore(container: container)
                try await Self.save(store, 1)
                #expect(try count(container) == 1, what)
                #expect(try StoreVerification(of: container).run().problems == [], what)
            } catch {
                Issue.record("\(what): \(error)")
            }
        }
    }

    // Damage that SQLite does not report

    /// The damage to a log of five commits, all of whose pages are behind its header.
    enum Damage: String, CaseIterable {
        case checksumOfHeader, saltOfHeader, page, frame, cut
    }

    @Test(arguments: Damage.allCases)
    func `verify and the next opening report a log that ends before its index says, and keep it`(damage: Damage) async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        let files = try await {
            let store = try RecordStore(container: container)
            try await Self.save(store, 1)
            try await store.checkpoint()
            for number in 2...6 { try await Self.save(store, number) }
            return Files(of: scratch.container)
        }()
        var damaged = files
        let third = Self.headerSize + 2 * (Self.frameHeaderSize + Self.pageSize)
        switch damage {
        case .checksumOfHeader: damaged.log![31] ^= 4
        case .saltOfHeader: damaged.log![17] ^= 4
        case .page: damaged.log![third + Self.frameHeaderSize + 777] ^= 4
        case .frame: damaged.log![third + 9] ^= 4
        case .cut: damaged.log = files.log!.prefix(third + 100)
        }
        try damaged.write(to: scratch.container)
        #expect(try count(container) < 6)
        let problems = try StoreVerification(of: container).run().problems
        #expect(problems.map(\.kind) == [.database])
        #expect(problems.first?.message.contains("private.sqlite-wal is damaged after page") == true, "\(problems)")
        // No copy counts as whole, and no move removes the log.
        for copying in [
            { _ = try ContainerBackup(of: container, to: scratch["Backup.tidemark"]).run() },
            { _ = try StoreMover(from: scratch.container, to: scratch["Moved.tidemark"]).run() },
        ] as [() throws -> Void] {
            let refusal = #expect(throws: StoreError.self) { try copying() }
            #expect(refusal?.code == .corrupt && refusal?.message.contains("private.sqlite-wal is damaged after page") == true)
        }
        #expect(try Data(contentsOf: Files.url("-wal", in: scratch.container)) == damaged.log)
        #expect(!FileManager.default.fileExists(atPath: scratch["Moved.tidemark"].path))
        let error = #expect(throws: StoreError.self) { try RecordStore(container: container) }
        #expect(error?.code == .corrupt)
        #expect(error?.message.hasSuffix("open the store again") == true)
        let copies = try LogExamination.copies(in: scratch.container)
        #expect(copies.count == 1)
        #expect(try Data(contentsOf: scratch.container.appendingPathComponent(copies[0])) == damaged.log)
        // Nothing more is lost from then on.
        let left = try count(container)
        let store = try RecordStore(container: container)
        try await Self.save(store, 100)
        #expect(try count(container) == left + 1)
        #expect(try StoreVerification(of: container).run().problems.map(\.kind) == [.database])
        try FileManager.default.removeItem(at: scratch.container.appendingPathComponent(copies[0]))
        #expect(try StoreVerification(of: container).run().problems == [])
    }

    @Test func `a damaged log that is wholly in the database has lost nothing`() async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        var files = try await {
            let store = try RecordStore(container: container)
            for number in 1...3 { try await Self.save(store, number) }
            let other = try DatabaseQueue(path: container.store(.private).path)
            _ = try await other.writeWithoutTransaction { db in try db.checkpoint(.passive) }
            try other.close()
            return Files(of: scratch.container)
        }()
        files.log![Self.headerSize + Self.frameHeaderSize + 5] ^= 1
        try files.write(to: scratch.container)
        #expect(try StoreVerification(of: container).run().problems == [])
        let store = try RecordStore(container: container)
        #expect(try await store.reader.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM Destination") } == 3)
    }

    // Refused stores

    @Test(arguments: [("PRAGMA user_version = 99", StoreError.Code.newerFormat), ("PRAGMA application_id = 12", .notAStore)])
    func `a refused store stays as it is, including its log`(sql: String, code: StoreError.Code) async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        let files = try await {
            let store = try RecordStore(container: container)
            try await Self.save(store, 1)
            try await store.checkpoint()
            try await Self.save(store, 2)
            // The number is only in the log.
            let other = try DatabaseQueue(path: container.store(.private).path)
            try await other.writeWithoutTransaction { db in try db.execute(sql: sql) }
            try other.close()
            return Files(of: scratch.container)
        }()
        try #require(files.log!.count > Self.headerSize)
        try files.write(to: scratch.container)
        let before = try FileState(of: scratch.container)
        for readsConcurrently in [false, true] {
            let error = #expect(throws: StoreError.self) {
                try RecordStore(container: container, readsConcurrently: readsConcurrently)
            }
            #expect(error?.code == code)
        }
        let shared = #expect(throws: StoreError.self) {
            try SharedDatabase(
                at: container.store(.private), migrations: FormatMigrations(applicationID: 0x5469_6465, oldest: 3), tables: "",
                prepare: { _ in })
        }
        #expect(shared?.code == code)
        let after = try FileState(of: scratch.container)
        #expect(after == before, "\(after)\n\(before)")
    }
}
