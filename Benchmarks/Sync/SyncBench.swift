import Foundation
import Tidemark
import TidemarkModel
import TidemarkStore

/// Makes and hears what `sync.py` measures of the synchronisation; see README.md.
///
///     sync-bench merge ROUNDS                  prints merges of one record in memory, a second of one core, for each round
///     sync-bench edit CONTAINER COUNT PAUSE    saves records, with so many milliseconds between; prints names and times
///     sync-bench hear CONTAINER                prints the name and the time of each record that others have saved
@main
struct SyncBench {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst().map(\.self)
        switch (arguments.first, arguments.count) {
        case ("merge", 2): try merge(rounds: Int(arguments[1])!)
        case ("edit", 4):
            try await edit(URL(fileURLWithPath: arguments[1]), count: Int(arguments[2])!, pause: Int(arguments[3])!)
        case ("hear", 2): try await hear(URL(fileURLWithPath: arguments[1]))
        default:
            FileHandle.standardError.write(Data("usage: sync-bench merge|edit|hear …\n".utf8))
            exit(64)
        }
    }

    /// Nanoseconds of a clock; by default of one that all processes share.
    private static func now(_ clock: clockid_t = CLOCK_MONOTONIC) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Prints a line at once, also into a pipe.
    private static func tell(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

    // In memory

    /// Both sides have edited a field, not the same; of six.
    private static func merges() -> [RecordMerge] {
        (0..<1000).map { number in
            let ancestor: [String: FieldValue] = [
                "caption": .string("Destination \(number)"), "createdAt": .timestamp(Int64(number) * 1_000_000),
                "details": .string(String(repeating: "Here the sea begins. ", count: 50)), "elevation": .double(Double(number)),
                "rating": .int64(Int64(number % 5)), "visited": .int64(0),
            ]
            var (local, store) = (ancestor, ancestor)
            local["rating"] = .int64(9)
            store["caption"] = .string("Elsewhere \(number)")
            return RecordMerge(
                type: "Destination", record: "\(number)", ancestor: RecordVersion(ancestor), local: RecordVersion(local),
                store: RecordVersion(store))
        }
    }

    private static func merge(rounds: Int) throws {
        let merges = merges()
        for _ in 0..<rounds {
            let start = now(CLOCK_THREAD_CPUTIME_ID)
            var fields = 0
            for _ in 0..<200 {
                for merge in merges { fields += try merge.run(.mergeByPropertyObjectTrump).values?.count ?? 0 }
            }
            precondition(fields == 200 * merges.count * 6)
            tell("\(Double(200 * merges.count) / (Double(now(CLOCK_THREAD_CPUTIME_ID) - start) / 1e9))")
        }
    }

    // Between processes

    struct Destination: Tidemark.Record, Identifiable {
        var id: UUID
        var caption: String
        var rating: Int
    }

    static func edit(_ container: URL, count: Int, pause: Int) async throws {
        let journal = try PersistentContainer(directory: ContainerDirectory(openingOrCreatingAt: container))
        for number in 0..<count {
            let record = Destination(id: UUID(), caption: "Edited", rating: number % 5)
            let start = now()
            try await journal.save(record)
            tell("\(record.id.uuidString.lowercased()) \(start) \(now())")
            try await Task.sleep(for: .milliseconds(pause))
        }
    }

    static func hear(_ container: URL) async throws {
        let journal = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: container))
        var changes = journal.changes(since: try journal.historyToken()).makeAsyncIterator()
        tell("ready")
        while let change = try await changes.next() {
            let time = now()
            for record in change.changes { tell("\(record.record.name.lowercased()) \(time)") }
        }
    }
}
