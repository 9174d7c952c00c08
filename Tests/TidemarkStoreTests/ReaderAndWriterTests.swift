import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: readers and writers of one store, in one process or in several, do not disturb each other; a reader sees whole
/// transactions, and all of them. Method: real processes that save, are killed, and start during a read.
@Suite(.timeLimit(.minutes(30))) struct ReaderAndWriterTests {
    private func probe() throws -> Tool { try Tool(named: "store-probe") }

    /// Saves in another process, and returns when that has ended.
    private func save(_ scratch: Scratch, _ count: Int, checkpoints: Bool = false) throws {
        let arguments = ["write", scratch.container.path, "--count", "\(count)"] + (checkpoints ? ["--checkpoints"] : [])
        let status = try ChildProcess.run(probe().executable.path, arguments)
        guard status == 0 else { throw StoreError(.core, "the writer ended with \(status)") }
    }

    private func numbers(_ db: Database) throws -> [Int] {
        let row = try Row.fetchOne(
            db, sql: "SELECT (SELECT count(*) FROM Destination) - 1, (SELECT n FROM Destination WHERE _key = 'last')")!
        return [row[0], row[1]]
    }

    private var index: String { "Test.tidemark/private.sqlite-shm" }

    // In one process

    private func save(_ store: RecordStore, _ number: Int) async throws {
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "n", type: .int64)])
        func edit(_ name: String) -> RecordEdit {
            RecordEdit(
                record: RecordName(type: "Destination", name: name), base: .any, values: ["n": .int64(Int64(number))],
                fields: ["n"])
        }
        _ = try await store.save(
            [edit("r\(number)"), edit("last")], schemas: [schema], blobs: [], author: TransactionAuthor("test", origin: .save),
            policy: { _ in .overwrite }, check: { _ in })
    }

    #if os(Linux)
        @Test func `a process that opens one container after the other keeps no descriptors of closed ones`() async throws {
            let scratch = try Scratch()
            for number in 0..<20 {
                let url = scratch["\(number).tidemark"]
                let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: url))
                try await save(store, 1)
                // The reader is closed while the process writes: the descriptor of the index has to stay open then.
                let reader = try StoreReader(container: store.container)
                #expect(try reader.read(numbers) == [1, 1])
            }
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            }
            // Descriptors of the last container are closed with the next reader that is closed.
            let left = open.filter { $0.hasPrefix(scratch.url.path) && !$0.contains("/19.tidemark/") }
            #expect(left.isEmpty)
        }
    #endif

    @Test(arguments: [false, true])
    func `a reader and a writer of one process respect each other's locks`(readsConcurrently: Bool) async throws {
        let scratch = try Scratch()
        try save(scratch, 3)
        let container = try ContainerDirectory(openingAt: scratch.container)
        // The reader is opened first: its descriptor of the index is not the writer's.
        let early = try StoreReader(container: container)
        #expect(try early.read(numbers) == [3, 3])
        let store = try RecordStore(container: container, readsConcurrently: readsConcurrently)
        for number in 4...10 {
            try await save(store, number)
            let late = try StoreReader(container: container)
            #expect(try late.read(numbers) == [number, number])
            #expect(try early.read(numbers) == [number, number])
        }
        let pinned = try early.snapshot()
        try await save(store, 11)
        try await store.checkpoint()
        try save(scratch, 1, checkpoints: true)
        #expect(try pinned.read(numbers) == [10, 10])
        #expect(try early.read(numbers) == [12, 12])
        #expect(try scratch.verification().problems == [])
    }

    @Test func `closed readers leave the locks of their process's writer alone`() async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        let store = try RecordStore(container: container)
        for number in 1...3 {
            try await save(store, number)
            #expect(try StoreReader(container: container).read(numbers) == [number, number])
            // Another process sees that the index is in use.
            let locks = try await probe().run(["locks", scratch[index].path])
            #expect(try locks.json()["isHeld"] as? Bool == true)
        }
        try await save(store, 4)
    }

    @Test func `descriptors of the index are closed when the process no longer needs them`() async throws {
        let scratch = try Scratch()
        try save(scratch, 1)
        let container = try ContainerDirectory(openingAt: scratch.container)
        var status = stat()
        #expect(stat(scratch[index].path, &status) == 0)
        func open() -> Int {
            let all = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd")) ?? []
            return all.compactMap(Int32.init).count { descriptor in
                var other = stat()
                return fstat(descriptor, &other) == 0 && other.st_ino == status.st_ino && other.st_dev == status.st_dev
            }
        }
        do {
            let readers = try (0..<3).map { _ in try StoreReader(container: container) }
            for reader in readers { #expect(try reader.read(numbers) == [1, 1]) }
            #expect(open() > 0)
        }
        #expect(open() == 0)
        weak var writer: RecordStore?
        do {
            let store = try RecordStore(container: container)
            try await save(store, 2)
            writer = store
            let mine = open()
            for _ in 0..<10 { #expect(try StoreReader(container: container).read(numbers) == [2, 2]) }
            // They are kept, because closing them would release the writer's locks; and they are used again.
            #expect(open() <= mine + 2)
        }
        // The thread that saved may hold the store for a moment.
        #expect(try await eventually { writer == nil })
        // A reader that comes later cleans up.
        #expect(try StoreReader(container: container).read(numbers) == [2, 2])
        #expect(open() == 0)
    }

    // Writers that start and end

    @Test func `a reader that was opened first sees later commits of writers`() async throws {
        for removesIndex in [false, true] {
            let scratch = try Scratch()
            try save(scratch, 3)
            if removesIndex { try FileManager.default.removeItem(at: scratch[index]) }
            let reader = try scratch.reader()
            #expect(try reader.read(numbers) == [3, 3])
            for round in 1...3 {
                try save(scratch, 2, checkpoints: round == 2)
                #expect(try reader.read(numbers) == [3 + 2 * round, 3 + 2 * round])
            }
            let writer = try probe().start(["write", scratch.container.path, "--count", "1", "--stays"])
            _ = try #require(await writer.line())
            #expect(try reader.read(numbers) == [10, 10])
            await writer.kill()
            #expect(try reader.read(numbers) == [10, 10])
            try save(scratch, 1)
            #expect(try reader.read(numbers) == [11, 11])
        }
    }

    /// A store with more pages than a connection caches, and an empty log.
    private func large() throws -> Scratch {
        let scratch = try Scratch()
        let status = try ChildProcess.run(probe().executable.path, ["fill", scratch.container.path, "--megabytes", "12"])
        guard status == 0 else { throw StoreError(.core, "the writer ended with \(status)") }
        return scratch
    }

    private let sum = "SELECT sum(n) - (SELECT n FROM Destination WHERE _key = 'last') FROM Destination"

    @Test func `a read without an index starts again if a writer interferes`() throws {
        let scratch = try large()
        try FileManager.default.removeItem(at: scratch[index])
        let reader = try scratch.reader()
        var tries = 0
        let found = try reader.read { db in
            tries += 1
            let last = try Int.fetchOne(db, sql: "SELECT n FROM Destination WHERE _key = 'last'")!
            if tries == 1 { try save(scratch, 3, checkpoints: true) }
            return (last, try Int.fetchOne(db, sql: sum)!)
        }
        #expect(tries == 2)
        #expect(found == (5003, 5003 * 5004 / 2))
        #expect(try reader.read(numbers) == [5003, 5003])
    }

    @Test func `a reader that can't start again reports that writers have invalidated its read`() throws {
        let scratch = try large()
        try FileManager.default.removeItem(at: scratch[index])
        let reader = try scratch.reader()
        let pinned = try reader.snapshot()
        var seen = 0
        #expect(throws: StoreError(.changed, "")) {
            try reader.forEachRecord(RecordQuery(type: "Destination")) { _ in
                seen += 1
                if seen == 1 { try save(scratch, 3, checkpoints: true) }
            }
        }
        #expect(seen >= 1 && seen < 5001)
        #expect(throws: StoreError(.changed, "")) { _ = try pinned.count(type: "Destination") }
        #expect(throws: StoreError(.changed, "")) { _ = try pinned.read(numbers) }
        #expect(try reader.count(type: "Destination") == 5004)
    }

    @Test func `a read that finds the store locked names the store`() async throws {
        let scratch = try Scratch()
        try save(scratch, 1)
        let locked = DatabaseError(resultCode: .SQLITE_BUSY, message: "database is locked")
        let error = #expect(throws: StoreError.self) { try scratch.reader().read { _ in throw locked } }
        #expect(error?.code == .busy && error?.recovery == .retry)
        #expect(error?.message.contains(scratch.container.path) == true, "\(error?.message ?? "")")
        let source = RecordSource(try scratch.reader())
        let other = await #expect(throws: StoreError.self) { try await source.read { _ in throw locked } }
        #expect(other?.code == .busy && other?.message == error?.message)
    }

    @Test func `a read with an index that no process updates blocks the writer's checkpoint`() throws {
        let scratch = try large()
        let reader = try scratch.reader()
        var tries = 0
        let found = try reader.read { db in
            tries += 1
            let last = try Int.fetchOne(db, sql: "SELECT n FROM Destination WHERE _key = 'last'")!
            try save(scratch, 3, checkpoints: true)
            return (last, try Int.fetchOne(db, sql: sum)!)
        }
        #expect(tries == 1)
        #expect(found == (5000, 5000 * 5001 / 2))
        #expect(try reader.read(numbers) == [5003, 5003])
    }

    @Test func `an index that no process updates is not used`() throws {
        let scratch = try Scratch()
        try save(scratch, 5)
        let old = try Data(contentsOf: scratch[index])
        try save(scratch, 3)
        // The index is whole, but of another time.
        let file = try FileHandle(forUpdating: scratch[index])
        try file.write(contentsOf: old)
        try file.close()
        let before = try FileState(of: scratch.container)
        #expect(try scratch.reader().read(numbers) == [8, 8])
        #expect(try FileState(of: scratch.container) == before)
    }

    @Test func `a pinned state stays while others write, and new reads see the writes`() async throws {
        let scratch = try Scratch()
        try save(scratch, 5)
        let reader = try scratch.reader()
        let pinned = try reader.snapshot()
        #expect(pinned.isSnapshot && !reader.isSnapshot)
        for round in 1...5 {
            try save(scratch, 4, checkpoints: true)
            #expect(try pinned.read(numbers) == [5, 5])
            #expect(try pinned.snapshot().transactions().count == 5)
            #expect(try reader.read(numbers) == [5 + 4 * round, 5 + 4 * round])
        }
    }

    /// Bytes of the index to overwrite: the second copy of its header; its read marks.
    @Test(arguments: [(64, 4, 0xa5), (100, 20, 0xff)] as [(UInt64, Int, UInt8)])
    func `a torn index is not used`(offset: UInt64, count: Int, byte: UInt8) async throws {
        let scratch = try Scratch()
        // A process has the store open, and does nothing.
        let idle = try probe().start(["write", scratch.container.path, "--count", "5", "--stays"])
        _ = try #require(await idle.line())
        let reader = try scratch.reader()
        #expect(try reader.read(numbers) == [5, 5])
        let file = try FileHandle(forUpdating: scratch[index])
        try file.seek(toOffset: offset)
        try file.write(contentsOf: Data(repeating: byte, count: count))
        try file.close()
        #expect(try scratch.reader().read(numbers) == [5, 5])
        #expect(try reader.read(numbers) == [5, 5])
        // The next writer repairs it.
        try save(scratch, 2)
        #expect(try reader.read(numbers) == [7, 7])
        #expect(try scratch.reader().read(numbers) == [7, 7])
        await idle.kill()
    }

    @Test func `after a kill at any moment a reader sees all acknowledged saves, whole`() async throws {
        var random = Randomness("reading after kills")
        let scratch = try Scratch()
        try save(scratch, 1)
        let early = try scratch.reader()
        var begin = 1
        for _ in 0..<20 {
            let writer = try probe().start([
                "write", scratch.container.path, "--count", "100000", "--rate", "500", "--acknowledges",
            ])
            var last = ""
            for _ in 0..<Int.random(in: 1...40, using: &random) { last = await writer.line() ?? last }
            let acknowledged = try #require(Int(await writer.kill().last ?? last))
            let before = try FileState(of: scratch.container)
            for (name, reader) in [("the early reader", early), ("a new reader", try scratch.reader())] {
                let (found, again) = (try reader.read(numbers), try reader.read(numbers)[0])
                #expect(found[0] == found[1])
                // One more save may be durable than was acknowledged.
                #expect(
                    (acknowledged...acknowledged + 1).contains(found[0]),
                    "\(name), whose second read found \(again); the writer began after \(begin)")
            }
            begin = acknowledged
            #expect(try FileState(of: scratch.container) == before)
        }
        #expect(try scratch.verification().problems == [])
    }

    @Test func `while a writer saves, readers of other processes see whole transactions`() async throws {
        let scratch = try Scratch()
        try save(scratch, 1)
        let (probe, path) = (try probe(), scratch.container.path)
        async let writing = probe.run(["write", path, "--count", "1500", "--checkpoints"])
        try await withThrowingTaskGroup(of: Tool.Result.self) { group in
            for number in 0..<3 {
                group.addTask { try await probe.run(["read", path, "--until", "1501"] + (number == 0 ? ["--reopens"] : [])) }
            }
            for try await result in group {
                #expect(try result.json()["problems"] as? [String] == [], "\(result)")
            }
        }
        #expect(try await writing.status == 0)
        #expect(try scratch.reader().read(numbers) == [1501, 1501])
    }

    // Several writers

    /// Lets a writer continue its lane and kills it, once for each number of saves that it acknowledges before.
    private static func write(_ probe: Tool, _ path: String, _ lane: String, _ plan: [Int]) async throws {
        var acknowledged = 1
        for saves in plan {
            let writer = try probe.start(["write-lane", path, lane, "--count", "100000"])
            let begin = try #require(Int(await writer.line() ?? ""))
            // One more save may be durable than was acknowledged.
            #expect((acknowledged...acknowledged + 1).contains(begin), "\(lane) begins with \(begin) after \(acknowledged)")
            acknowledged = begin
            for _ in 0..<saves { acknowledged = try #require(Int(await writer.line() ?? "")) }
            let rest = await writer.kill()
            acknowledged = rest.last.flatMap { Int($0) } ?? acknowledged
        }
    }

    @Test func `while two writers save and are killed, four readers see whole transactions`() async throws {
        var random = Randomness("two writers that are killed")
        let scratch = try Scratch()
        let (probe, path) = (try probe(), scratch.container.path)
        for lane in ["a", "b"] { #expect(try await probe.run(["write-lane", path, lane, "--count", "1"]).status == 0) }
        var plans: [[Int]] = [[], []]
        for number in 0..<12 { plans[number % 2].append(Int.random(in: 1...60, using: &random)) }
        let (first, second) = (plans[0], plans[1])
        let wanted = try scratch.write("", to: "reading").path
        async let reading = withThrowingTaskGroup(of: Tool.Result.self, returning: [Tool.Result].self) { group in
            for number in 0..<4 {
                let arguments = ["read-lanes", path, "--while-there", wanted] + (number == 0 ? ["--reopens"] : [])
                group.addTask { try await probe.run(arguments) }
            }
            var results: [Tool.Result] = []
            for try await result in group { results.append(result) }
            return results
        }
        var failure: (any Error)?
        do {
            async let one: Void = Self.write(probe, path, "a", first)
            async let other: Void = Self.write(probe, path, "b", second)
            _ = try await (one, other)
        } catch {
            failure = error
        }
        // The readers end, whatever errors the writers had.
        try FileManager.default.removeItem(atPath: wanted)
        for result in try await reading {
            let found = try result.json()
            #expect(found["problems"] as? [String] == [], "\(result)")
            #expect((found["reads"] as? Int ?? 0) > 0)
        }
        if let failure { throw failure }
        #expect(try scratch.verification().problems == [])
    }
}
