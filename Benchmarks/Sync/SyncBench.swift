import Foundation
import Tidemark
import TidemarkModel
import TidemarkStore

/// Makes and hears what `sync.py` measures of the synchronisation; see README.md.
///
///     sync-bench merge ROUNDS                  prints merges of one record in memory, a second of one core, for each round: by
///                                              fields in order, as the synchronisation merges, and by names, as the API has it
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

    private static let fields = ["caption", "createdAt", "details", "elevation", "id", "image", "rating"]

    /// A record of a journal and what has become of it on two sides. Nothing is shared between the three, as they come from a row, from
    /// history and from a cloud. Both sides have edited a field, not the same; in one of ten both have edited the details as well.
    private static func versions(_ number: Int, _ random: inout Seeded) -> [[String: FieldValue]] {
        let ancestor: [String: FieldValue] = [
            "caption": .string(random.text(10...40)), "createdAt": .timestamp(Int64(number) * 1_000_000),
            "details": .string(random.text(200...2000)), "elevation": .double(Double(number) / 7),
            "id": .string(UUID().uuidString.lowercased()), "rating": .int64(Int64(number % 5)),
            "image": .asset("\(random.text(32...32, of: "0123456789abcdef"))-\(number)"),
        ]
        var (local, store) = (ancestor.mapValues(copy), ancestor.mapValues(copy))
        local["rating"] = .int64(9)
        store["caption"] = .string(random.text(10...40))
        if number % 10 == 0 {
            local["details"] = .string(random.text(200...2000))
            store["details"] = .string(random.text(200...2000))
        }
        return [ancestor, local, store]
    }

    private static func copy(_ value: FieldValue) -> FieldValue {
        switch value {
        case .string(let text): .string(String(decoding: Array(text.utf8), as: UTF8.self))
        case .asset(let text): .asset(String(decoding: Array(text.utf8), as: UTF8.self))
        default: value
        }
    }

    private static func merge(rounds: Int) throws {
        var random = Seeded(seed: 1)
        let records = (0..<1000).map { versions($0, &random) }
        let ordered = records.map { $0.map { version in fields.map { version[$0] } } }
        let times = (
            EditTime(microseconds: 1, device: "b"), EditTime(microseconds: 2, device: "a"), EditTime(microseconds: 1, device: "b")
        )
        let named = records.enumerated().map { number, versions in
            RecordMerge(
                type: "Destination", record: "\(number)", ancestor: RecordVersion(versions[0]), local: RecordVersion(versions[1]),
                store: RecordVersion(versions[2]))
        }
        for _ in 0..<rounds {
            var (edits, conflicts, values) = (0, 0, 0)
            let inOrder = try rate { turns in
                for _ in 0..<turns {
                    for (number, versions) in ordered.enumerated() {
                        let merge = FieldMerge(type: "Destination", record: named[number].record, fields: fields)
                        let merged = try merge.run(
                            .mergeByPropertyObjectTrump, ancestor: versions[0], local: versions[1], store: versions[2],
                            times: { _ in times })
                        edits += merged.edits.count
                        conflicts += merged.conflicts.count
                    }
                }
            }
            let byName = try rate { turns in
                for _ in 0..<turns {
                    for merge in named { values += try merge.run(.mergeByPropertyObjectTrump).values?.count ?? 0 }
                }
            }
            precondition(edits == turns * 1100 && conflicts == turns * 100 && values == turns * 7000)
            tell("\(inOrder) \(byName)")
        }
    }

    private static let turns = 200

    /// Records a second, of a core.
    private static func rate(_ body: (_ turns: Int) throws -> Void) rethrows -> Double {
        let start = now(CLOCK_THREAD_CPUTIME_ID)
        try body(turns)
        return Double(turns * 1000) / (Double(now(CLOCK_THREAD_CPUTIME_ID) - start) / 1e9)
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

/// The same numbers each time.
private struct Seeded: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// Text of so many characters, with letters beyond ASCII as all the data has.
    mutating func text(_ length: ClosedRange<Int>, of letters: String = "abcdefghijklmnopqrstuvwxyzæøå     ") -> String {
        let letters = Array(letters)
        return String((0..<Int.random(in: length, using: &self)).map { _ in letters.randomElement(using: &self)! })
    }
}
