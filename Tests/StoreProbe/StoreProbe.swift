import ArgumentParser
import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A process of its own for tests: writes to a store or reads it, and can be killed while it does.
///
/// Each save adds a record `r<n>` and sets the number of the record `last` to n, in one transaction. So in every state of the store
/// there are as many numbered records as `last` says.
@main struct StoreProbe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(subcommands: [
        Write.self, Fill.self, Read.self, WriteLane.self, ReadLanes.self, Open.self, Locks.self, Migrate.self, Newer.self,
    ])

    static func print(_ object: [String: Any]) throws {
        let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
        FileHandle.standardOutput.write(data + Data("\n".utf8))
    }

    /// Milliseconds of a sorted list at a share of its length.
    static func milliseconds(_ durations: [Duration], at share: Double) -> Double {
        let sorted = durations.sorted()
        guard !sorted.isEmpty else { return 0 }
        let duration = sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
        return Double(duration.components.seconds) * 1e3 + Double(duration.components.attoseconds) / 1e15
    }
}

/// The type of the records.
private let schema = RecordTypeSchema(
    name: "Destination",
    fields: [.init(name: "n", type: .int64), .init(name: "caption", type: .string), .init(name: "details", type: .string)])

private func edit(_ name: String, _ number: Int, size: Int = 300) -> RecordEdit {
    RecordEdit(
        record: RecordName(type: "Destination", name: name), base: .any,
        values: [
            "n": .int64(Int64(number)), "caption": .string("Place \(number)"),
            "details": .string(String(repeating: "details of \(number) ", count: size / 16)),
        ], fields: Set(schema.fields.map(\.name)))
}

private func container(_ path: String) -> URL { URL(fileURLWithPath: path) }

struct Write: AsyncParsableCommand {
    @Argument var path: String
    /// Saves.
    @Option var count = 100
    /// Records that a save adds.
    @Option var each = 1
    /// Saves a second; 0 for as fast as it goes.
    @Option var rate = 0.0
    /// Prints the number of each save's last record once it is durable.
    @Flag var acknowledges = false
    /// Bytes that a file may have; a write past them fails, and ends the saving.
    @Option var fileLimit: UInt64?
    /// Empties the log in the end.
    @Flag var checkpoints = false
    /// Stays, with the store open, until it is killed.
    @Flag var stays = false

    func run() async throws {
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: container(path)))
        var last = try await store.reader.read { db in
            try db.tableExists("Destination") ? Int.fetchOne(db, sql: "SELECT max(n) FROM Destination") ?? 0 : 0
        }
        let clock = ContinuousClock()
        let start = clock.now
        var durations: [Duration] = []
        if let fileLimit {
            do {
                try await limitingFiles(to: fileLimit) { try await save(store, last + 1...last + each) }
            } catch {
                try StoreProbe.print(["error": "\(error)"])
            }
        }
        for number in 0..<(fileLimit == nil ? count : 0) {
            if rate > 0 { try await Task.sleep(until: start + .seconds(Double(number) / rate), clock: clock) }
            let began = clock.now
            try await save(store, last + 1...last + each)
            last += each
            durations.append(clock.now - began)
            if acknowledges { FileHandle.standardOutput.write(Data("\(last)\n".utf8)) }
        }
        if checkpoints { try await store.checkpoint() }
        try StoreProbe.print([
            "saved": count, "p50": StoreProbe.milliseconds(durations, at: 0.5),
            "p99": StoreProbe.milliseconds(durations, at: 0.99), "slowest": StoreProbe.milliseconds(durations, at: 1),
            "seconds": StoreProbe.milliseconds([clock.now - start], at: 0) / 1e3,
        ])
        // A test that fails leaves no process behind.
        if stays { alarm(30 * 60) }
        while stays { pause() }
    }

    private func save(_ store: RecordStore, _ numbers: ClosedRange<Int>) async throws {
        _ = try await store.save(
            numbers.map { edit("r\($0)", $0) } + [edit("last", numbers.upperBound)], schemas: [schema], blobs: [],
            author: TransactionAuthor("probe", origin: .save), policy: { _ in .overwrite }, check: { _ in })
    }

    /// Runs `body` while no file of the process may grow past a size: the system writes what fits, and fails.
    private func limitingFiles(to size: UInt64, _ body: () async throws -> Void) async throws {
        signal(SIGXFSZ, SIG_IGN)
        var before = rlimit()
        getrlimit(Self.fileSizeLimit, &before)
        var limited = rlimit(rlim_cur: rlim_t(size), rlim_max: before.rlim_max)
        setrlimit(Self.fileSizeLimit, &limited)
        defer { setrlimit(Self.fileSizeLimit, &before) }
        try await body()
    }

    #if canImport(Glibc)
        private static let fileSizeLimit = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    #else
        private static let fileSizeLimit = RLIMIT_FSIZE
    #endif
}

/// Makes a large store.
struct Fill: AsyncParsableCommand {
    @Argument var path: String
    @Option var megabytes = 1000

    func run() async throws {
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: container(path)))
        let size = 4000
        var number = 0
        while number * size < megabytes << 20 {
            let edits = (number + 1...number + 5000).map { edit("r\($0)", $0, size: size) }
            number += edits.count
            _ = try await store.save(
                edits + [edit("last", number)], schemas: [schema], blobs: [], author: TransactionAuthor("probe", origin: .save),
                policy: { _ in .overwrite }, check: { _ in })
        }
        try await store.checkpoint()
        try StoreProbe.print(["records": number])
    }
}

struct Read: AsyncParsableCommand {
    @Argument var path: String
    /// Reads so long, over and over; once without.
    @Option var seconds = 0.0
    /// Reads, over and over, until it has found so many rows.
    @Option var until: Int?
    /// Milliseconds from a read to the next.
    @Option var pause = 0
    /// Opens the store anew for each read.
    @Flag var reopens = false
    /// Gives up the rights of root first.
    @Flag var asNobody = false

    func run() async throws {
        if asNobody {
            guard setgroups(0, nil) == 0, setgid(65534) == 0, setuid(65534) == 0 else { throw ValidationError("not root") }
        }
        let container = try ContainerDirectory(openingAt: container(path))
        let clock = ContinuousClock()
        let end = clock.now + .seconds(seconds)
        var reader = try StoreReader(container: container)
        var (durations, rows, problems): ([Duration], Int, [String]) = ([], 0, [])
        repeat {
            let began = clock.now
            do {
                if reopens { reader = try StoreReader(container: container) }
                let found = try reader.read { db in
                    try Row.fetchOne(
                        db,
                        sql: """
                            SELECT (SELECT count(*) FROM Destination), (SELECT n FROM Destination WHERE _key = 'last'),
                            (SELECT max(n) FROM Destination)
                            """)!
                }
                let (count, last, most): (Int, Int, Int) = (found[0], found[1], found[2])
                if count != last + 1 || most != last {
                    problems.append("\(count) records, the last \(last), the highest \(most)")
                }
                if last < rows { problems.append("\(last) records after \(rows)") }
                rows = last
            } catch {
                problems.append("\(error)")
            }
            durations.append(clock.now - began)
            if pause > 0 { try await Task.sleep(for: .milliseconds(pause)) }
        } while (clock.now < end || until.map { rows < $0 } == true) && problems.count < 20
        try StoreProbe.print([
            "reads": durations.count, "rows": rows, "problems": problems, "p50": StoreProbe.milliseconds(durations, at: 0.5),
            "slowest": StoreProbe.milliseconds(durations, at: 1),
        ])
    }
}

/// Sets all records of a lane to the next number, in one transaction, again and again: each writer of a store has a lane of its own.
///
/// Prints the number that it begins with, then that of each save once it is durable.
struct WriteLane: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "write-lane")

    @Argument var path: String
    @Argument var lane: String
    /// Saves.
    @Option var count = 100
    /// Records of the lane.
    @Option var records = 5

    func run() async throws {
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: container(path)))
        let first = "\(lane)-0"
        let begin = try await store.reader.read { db in
            try db.tableExists("Destination")
                ? Int.fetchOne(db, sql: "SELECT n FROM Destination WHERE _key = ?", arguments: [first]) ?? 0 : 0
        }
        acknowledge(begin)
        guard count > 0 else { return }
        for number in begin + 1...begin + count {
            let edits = (0..<records).map { edit("\(lane)-\($0)", number) }
            _ = try await store.save(
                edits, schemas: [schema], blobs: [], author: TransactionAuthor("probe", origin: .save),
                policy: { _ in .overwrite }, check: { _ in })
            acknowledge(number)
        }
    }

    private func acknowledge(_ number: Int) { FileHandle.standardOutput.write(Data("\(number)\n".utf8)) }
}

/// Reads all lanes: the records of each have one number, which never becomes smaller.
struct ReadLanes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "read-lanes")

    @Argument var path: String
    /// Reads, over and over, as long as this file is there; once without.
    @Option var whileThere: String?
    /// Records of a lane.
    @Option var records = 5
    /// Milliseconds from a read to the next.
    @Option var pause = 0
    /// Opens the store anew for each read.
    @Flag var reopens = false

    func run() async throws {
        let directory = try ContainerDirectory(openingAt: container(path))
        var reader = try StoreReader(container: directory)
        var (reads, lanes, problems): (Int, [String: Int], [String]) = (0, [:], [])
        var isWanted = true
        while isWanted {
            do {
                if reopens { reader = try StoreReader(container: directory) }
                for (lane, numbers) in try numbers(reader) {
                    if numbers.count != records || Set(numbers).count != 1 { problems.append("\(lane) has \(numbers)") }
                    let before = lanes[lane] ?? 0
                    if numbers[0] < before { problems.append("\(lane) has \(numbers[0]) after \(before)") }
                    lanes[lane] = numbers[0]
                }
            } catch {
                problems.append("\(error)")
            }
            reads += 1
            if pause > 0 { try await Task.sleep(for: .milliseconds(pause)) }
            let isThere = whileThere.map { FileManager.default.fileExists(atPath: $0) } ?? false
            isWanted = isThere && problems.count < 20
        }
        try StoreProbe.print(["reads": reads, "lanes": lanes, "problems": problems])
    }

    /// The numbers of each lane's records, in one state of the store.
    private func numbers(_ reader: StoreReader) throws -> [String: [Int]] {
        let rows = try reader.read { db in
            try Row.fetchAll(db, sql: "SELECT _key, n FROM Destination ORDER BY _key")
        }
        var lanes: [String: [Int]] = [:]
        for row in rows {
            let (name, number): (String, Int) = (row[0], row[1])
            lanes[String(name.prefix { $0 != "-" }), default: []].append(number)
        }
        return lanes
    }
}

/// Measures how long opening takes, a first read included.
struct Open: AsyncParsableCommand {
    @Argument var path: String
    @Option var times = 200

    func run() async throws {
        let clock = ContinuousClock()
        var (opening, whole): ([Duration], [Duration]) = ([], [])
        for _ in 0..<times {
            let began = clock.now
            let reader = try StoreReader(container: ContainerDirectory(openingAt: container(path)))
            opening.append(clock.now - began)
            _ = try reader.read { db in try Int.fetchOne(db, sql: "SELECT n FROM Destination WHERE _key = 'last'") }
            whole.append(clock.now - began)
        }
        try StoreProbe.print([
            "first": StoreProbe.milliseconds([opening[0]], at: 0), "p50": StoreProbe.milliseconds(opening, at: 0.5),
            "p99": StoreProbe.milliseconds(opening, at: 0.99), "p50WithRead": StoreProbe.milliseconds(whole, at: 0.5),
        ])
    }
}

/// Tells who has locked the dead man's switch of a wal-index.
struct Locks: AsyncParsableCommand {
    @Argument var path: String

    func run() async throws {
        let file = open(path, O_RDONLY)
        guard file >= 0 else { throw ValidationError("no \(path)") }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = 128
        lock.l_len = 1
        guard fcntl(file, F_GETLK, &lock) == 0 else { throw ValidationError("no locks") }
        try StoreProbe.print(["isHeld": lock.l_type != Int16(F_UNLCK)])
    }
}
