import Foundation
import GRDB
import Tidemark
import TidemarkStore

/// Measures the store's API beside SQLite's own commits and beside GRDB, in one run; see README.md.
///
///     StoreBench api FOLDER ROUNDS          prints a JSON object of lists of ratios
///     StoreBench fetch FOLDER ours|grdb N   fetches all of 10,000 records N times, to be counted from outside
///     StoreBench save FOLDER ours|sqlite N  saves N records one by one, likewise
///     StoreBench observe FOLDER ROUNDS RECORDS SAVES  prints a JSON object: saves alone, and beside observed lists
///     StoreBench bulk FOLDER N              prints a JSON object of how long saves of N records take, in milliseconds
///     StoreBench references FOLDER ROUNDS RECORDS  prints a JSON object: queries along references
///     StoreBench listen CONTAINER           prints the time of each change that it hears
///     StoreBench notify CONTAINER COMMITS   saves, and prints the time of each commit
///     StoreBench open CONTAINER TIMES       prints how long each opening for reading takes
@main
struct StoreBench {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst().map(\.self)
        switch (arguments.first, arguments.count) {
        case ("api", 3): try await api(URL(fileURLWithPath: arguments[1]), rounds: Int(arguments[2])!)
        case ("fetch", 4): try await fetch(URL(fileURLWithPath: arguments[1]), arguments[2], times: Int(arguments[3])!)
        case ("save", 4): try await save(URL(fileURLWithPath: arguments[1]), arguments[2], times: Int(arguments[3])!)
        case ("observe", 5):
            try await observe(
                URL(fileURLWithPath: arguments[1]), rounds: Int(arguments[2])!, records: Int(arguments[3])!,
                saves: Int(arguments[4])!)
        case ("listen", 2): try await listen(URL(fileURLWithPath: arguments[1]))
        case ("bulk", 3): try await bulk(URL(fileURLWithPath: arguments[1]), count: Int(arguments[2])!)
        case ("references", 4):
            try printReport(
                try await ReferenceBench(folder: URL(fileURLWithPath: arguments[1]), photos: Int(arguments[3])!)
                    .run(rounds: Int(arguments[2])!))
        case ("notify", 3): try await notify(URL(fileURLWithPath: arguments[1]), commits: Int(arguments[2])!)
        case ("open", 3): try open(URL(fileURLWithPath: arguments[1]), times: Int(arguments[2])!)
        default:
            FileHandle.standardError.write(
                Data("usage: StoreBench api|fetch|save|observe|bulk|references|listen|notify|open …\n".utf8))
            exit(64)
        }
    }

    /// Nanoseconds of a clock that all processes share.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Prints a line at once, also into a pipe.
    private static func tell(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

    /// The median of so many runs of `body`, in nanoseconds.
    static func median(_ count: Int, _ body: (Int) async throws -> Void) async rethrows -> Double {
        var times: [Int64] = []
        for index in 0..<count {
            let start = now()
            try await body(index)
            times.append(now() - start)
        }
        return Double(times.sorted()[count / 2])
    }

    // The API beside its floors and peers

    static func api(_ folder: URL, rounds: Int) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var report: [String: [Double]] = [:]
        for round in 0..<rounds {
            let place = folder.appendingPathComponent("round-\(round)")
            try? FileManager.default.removeItem(at: place)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for (figure, value) in try await self.round(place) { report[figure, default: []].append(value) }
            try FileManager.default.removeItem(at: place)
        }
        try printReport(report)
    }

    private static func printReport(_ report: [String: [Double]]) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        print(String(decoding: try encoder.encode(report), as: UTF8.self))
    }

    private static func round(_ place: URL) async throws -> [String: Double] {
        let journal = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: place.appendingPathComponent("Bench.tidemark")))
        let records = (0..<10_000).map(Destination.init(number:))
        try await journal.save(records)
        let peer = try DatabasePool(path: place.appendingPathComponent("peer.sqlite").path, configuration: peerConfiguration)
        try await peer.write { db in
            try Peer.create(in: db)
            for record in records { try Peer(record).insert(db) }
        }

        let saves = 400
        let more = (0..<saves).map { Destination(number: 20_000 + $0) }
        // Turn by turn, so that what else goes on weighs on both.
        var (ours, raw): ([Int64], [Int64]) = ([], [])
        let floor = try Floor(place.appendingPathComponent("floor.sqlite"), records: records)
        for record in more {
            var start = now()
            try await journal.save(record)
            ours.append(now() - start)
            start = now()
            try floor.save(record)
            raw.append(now() - start)
        }
        func middle(_ times: [Int64]) -> Double { Double(times.sorted()[times.count / 2]) }

        let names = (0..<2000).map { _ in records.randomElement()!.id }
        let fetch = try await median(names.count) { _ = try await journal.fetch(Destination.self, id: names[$0])! }
        let peerFetch = try await median(names.count) { index in
            _ = try await peer.read { db in try Peer.fetchOne(db, key: names[index])! }
        }
        // The two take turns, so that other load affects both.
        var (fetches, peerFetches): ([Int64], [Int64]) = ([], [])
        for _ in 0..<21 {
            var start = now()
            let count = try await journal.fetchAll(Destination.self).count
            fetches.append(now() - start)
            start = now()
            let peerCount = try await peer.read { db in try Peer.fetchAll(db).count }
            peerFetches.append(now() - start)
            precondition(count == 10_400 && peerCount == 10_000)
        }
        let (all, peerAll) = (middle(fetches), middle(peerFetches))
        return [
            "save, µs": middle(ours) / 1000, "save, SQLite, µs": middle(raw) / 1000, "save ÷ SQLite": middle(ours) / middle(raw),
            "fetch by name, µs": fetch / 1000, "fetch by name ÷ GRDB": fetch / peerFetch,
            "fetch all, ms": all / 1e6,
            "fetch all ÷ GRDB": all / Double(records.count + saves) / (peerAll / Double(records.count)),
        ]
    }

    private static func fetch(_ folder: URL, _ side: String, times: Int) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let records = (0..<10_000).map(Destination.init(number:))
        if side == "ours" {
            let journal = try PersistentContainer(
                directory: ContainerDirectory(openingOrCreatingAt: folder.appendingPathComponent("Fetch.tidemark")))
            if try await journal.count(Destination.self) == 0 { try await journal.save(records) }
            for _ in 0..<times { _ = try await journal.fetchAll(Destination.self) }
        } else {
            let peer = try DatabasePool(path: folder.appendingPathComponent("peer.sqlite").path, configuration: peerConfiguration)
            try await peer.write { db in
                guard try !db.tableExists("Destination") else { return }
                try Peer.create(in: db)
                for record in records { try Peer(record).insert(db) }
            }
            for _ in 0..<times { _ = try await peer.read { db in try Peer.fetchAll(db) } }
        }
    }

    private static func bulk(_ folder: URL, count: Int) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        print(String(decoding: try encoder.encode(try await BulkBench(folder: folder, count: count).run()), as: UTF8.self))
    }

    private static func save(_ folder: URL, _ side: String, times: Int) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let records = (0..<times).map(Destination.init(number:))
        if side == "ours" {
            let journal = try PersistentContainer(
                directory: ContainerDirectory(openingOrCreatingAt: folder.appendingPathComponent("Save.tidemark")))
            for record in records { try await journal.save(record) }
        } else {
            let floor = try Floor(folder.appendingPathComponent("floor.sqlite"), records: [])
            for record in records { try floor.save(record) }
        }
    }

    // Saves beside observed lists

    private static func observe(_ folder: URL, rounds: Int, records: Int, saves: Int) async throws {
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let journal = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: folder.appendingPathComponent("Observe.tidemark")))
        var all = (0..<records).map(Destination.init(number:))
        try await journal.save(all)
        let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
        var report: [String: [Double]] = [:]
        for round in 0..<rounds {
            // The three take turns in small parts, so that other load affects all of them.
            let parts = 4
            var times: [String: Int64] = [:]
            var lists: [String: Int] = [:]
            for part in 0..<parts {
                for side in ["alone", "all", "top ten"] {
                    let observation = journal.observe(
                        Destination.self, sortedBy: side == "all" ? [] : newestFirst, limit: side == "all" ? nil : 10)
                    let (first, isFirst) = AsyncStream.makeStream(of: Void.self)
                    let observing =
                        side == "alone"
                        ? nil
                        : Task {
                            var count = 0
                            for try await list in observation {
                                precondition(!list.isEmpty)
                                count += 1
                                isFirst.yield()
                            }
                            return count
                        }
                    if observing != nil { for await _ in first { break } }
                    let start = now()
                    for number in 0..<(saves / parts) {
                        // One of the newest ten each time, so that both lists change.
                        let index = records - 1 - number % min(10, records)
                        all[index].caption = "\(side) \(round) \(part) \(number)"
                        try await journal.save(all[index])
                    }
                    times[side, default: 0] += now() - start
                    observing?.cancel()
                    // The first list does not follow a save.
                    lists[side, default: 0] += max(0, (try await observing?.value ?? 1) - 1)
                }
            }
            for side in ["all", "top ten"] {
                report["beside \(side) ÷ alone", default: []].append(Double(times[side]!) / Double(times["alone"]!))
                report["fetches of \(side)", default: []].append(Double(lists[side]!) * 1000 / Double(saves / parts * parts))
            }
            report["saves alone, ms", default: []].append(Double(times["alone"]!) / 1e6)
        }
        try printReport(report)
        try FileManager.default.removeItem(at: folder)
    }

    private static var peerConfiguration: Configuration {
        var configuration = Configuration()
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA page_size = 16384") }
        return configuration
    }

    // Between processes

    static func listen(_ container: URL) async throws {
        let journal = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: container))
        var changes = journal.changes(since: try journal.historyToken()).makeAsyncIterator()
        tell("ready")
        while let change = try await changes.next() {
            tell("\(change.transaction.id) \(now()) \(change.changes.count)")
        }
    }

    static func notify(_ container: URL, commits: Int) async throws {
        let journal = try PersistentContainer(directory: ContainerDirectory(openingOrCreatingAt: container))
        let heard = Task {
            var count = 0
            for try await change in journal.changes() { count += change.origin == .thisProcess ? 1 : 0 }
            return count
        }
        for number in 0..<commits {
            let result = try await journal.save(Destination(number: number))
            print(result.transactions[.private]!, now())
            if number % 20 == 0 { try await Task.sleep(for: .milliseconds(1)) }
        }
        try await Task.sleep(for: .milliseconds(500))
        heard.cancel()
        print("heard of its own:", (try? await heard.value) ?? 0)
    }

    static func open(_ container: URL, times: Int) throws {
        for _ in 0..<times {
            let start = now()
            let journal = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: container))
            let first = try journal.reader()!.read { try Row.fetchOne($0, sql: "SELECT * FROM Destination LIMIT 1") }
            print(Double(now() - start) / 1e6)
            precondition(first != nil)
        }
    }
}

/// SQLite's own commit of one row, durable: the same columns and a unique key, one prepared statement.
private final class Floor {
    private let database: DatabaseQueue

    init(_ url: URL, records: [Destination]) throws {
        var configuration = Configuration()
        configuration.prepareDatabase { db in
            try db.execute(
                sql:
                    "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0"
            )
        }
        database = try DatabaseQueue(path: url.path, configuration: configuration)
        try database.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE Destination (
                        _id INTEGER PRIMARY KEY, _key BLOB NOT NULL, createdAt INTEGER, caption TEXT, details TEXT, rating INTEGER,
                        elevation REAL
                    );
                    CREATE UNIQUE INDEX names ON Destination (_key)
                    """)
            for record in records { try insert(db, record) }
        }
    }

    func save(_ record: Destination) throws {
        try database.inDatabase { db in
            try db.inTransaction(.immediate) {
                try insert(db, record)
                return .commit
            }
        }
    }

    private func insert(_ db: Database, _ record: Destination) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO Destination (_key, createdAt, caption, details, rating, elevation) VALUES (?, ?, ?, ?, ?, ?)
                """)
        try statement.execute(arguments: [
            withUnsafeBytes(of: record.id.uuid) { Data($0) }, Int64(record.createdAt.timeIntervalSince1970 * 1e6), record.caption,
            record.details, record.rating, record.elevation,
        ])
    }
}
