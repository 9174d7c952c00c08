import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: in every state in which SQLite can leave database, log and index, each command does with a container what it does with a
/// whole one. If a log is known to have lost commits, commands that write, copy or verify say so.
///
/// Method: the files of a store are kept before and after a save, and states between are made of them. Each command runs as a
/// process of its own on a copy of the container in that state, and on one with whole files and the same content. A seed chooses
/// some pairs of command and state; `TIDEMARK_ALL_STATES=1` runs all.
@Suite(.timeLimit(.minutes(30))) struct OpeningStatesCommandTests {
    private typealias Files = [String: Data]

    /// Which result a command must have.
    private enum Expectation: Sendable {
        /// The same exit code, and the same output where a command only reads.
        case like(String)
        /// The log has lost commits, and the index knows it.
        case lost
    }

    private struct State: Sendable {
        let name: String
        let files: Files
        let expectation: Expectation
        /// A state that a user has reported: each command runs on it, whatever the seed.
        var isAlwaysRun = false
    }

    private enum Kind: Sendable { case reads, writes, copies, verifies }

    private struct Command: Sendable {
        let kind: Kind
        let arguments: [String]
        var usesCloud = false

        init(_ kind: Kind, _ line: String, usesCloud: Bool = false) {
            (self.kind, self.usesCloud) = (kind, usesCloud)
            arguments = line.split(separator: " ").map(String.init)
        }
    }

    /// Every command that opens a container; `C` stands for it.
    private static let commands = [
        Command(.reads, "records C"), Command(.reads, "records list C --type Destination --sort caption"),
        Command(.reads, "records get C a"), Command(.writes, "records set C a caption=9"),
        Command(.writes, "records set C new caption=9 --type Destination"), Command(.writes, "records rename C a z"),
        Command(.writes, "records delete C c --yes"), Command(.reads, "export C --to - --type Destination"),
        Command(.writes, "export C --to folder"),
        Command(.writes, "import j.jsonl --into C --type Destination --id id --plain-ids"),
        Command(.verifies, "verify C"), Command(.writes, "verify C --repair"), Command(.reads, "history C"),
        Command(.reads, "history C --record a"), Command(.writes, "undo C --yes"), Command(.verifies, "store verify C"),
        Command(.reads, "watch C --since TOKEN --count 1 --json"), Command(.reads, "store info C"),
        Command(.copies, "store backup C backup.tidemark"), Command(.copies, "store move C moved.tidemark"),
        Command(.copies, "store move C moved.tidemark --dry-run"), Command(.copies, "store restore C restored.tidemark"),
        Command(.reads, "account status C", usesCloud: true), Command(.writes, "account set C --merge-policy latestEdit"),
        Command(.writes, "account sign-out C --records keep", usesCloud: true), Command(.writes, "sync C", usesCloud: true),
        Command(.copies, "sync C --dry-run", usesCloud: true), Command(.reads, "status C"),
        Command(.reads, "status C --record a"), Command(.reads, "events C"), Command(.reads, "conflicts C"),
        Command(.writes, "conflicts resolve C --merge-policy latestEdit", usesCloud: true), Command(.reads, "quarantine list C"),
        Command(.reads, "refused C"), Command(.reads, "permissions C"), Command(.reads, "permissions C a"),
        Command(.reads, "share list C"), Command(.reads, "share show C T"),
        Command(.writes, "share create C a --no-sync", usesCloud: true), Command(.writes, "share link C T", usesCloud: true),
        Command(.writes, "share stop C T --no-sync", usesCloud: true),
    ]

    private let tool: Tool
    private let scratch: Scratch
    private static let names = ["", "-wal", "-shm", "-journal"]

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    private static func files(in container: URL) -> Files {
        names.reduce(into: [:]) { $0[$1] = try? Data(contentsOf: container.appendingPathComponent("private.sqlite\($1)")) }
    }

    /// A container with records, an account and a share.
    private func makeContainer() async throws -> (token: String, files: [Files]) {
        try scratch.writeLines(["a", "b", "c"].map { #"{"id": "\#($0)", "caption": "of \#($0)"}"# }, to: "j.jsonl")
        for line in [
            "import j.jsonl --into C --type Destination --id id --plain-ids",
            "account sign-in C --cloud cloud --email anna@example.org --create", "sync C", "share create C b --title T",
            // The last transaction is one that can be undone.
            "records set C c caption=edited",
        ] {
            let result = try await run(Command(.writes, line), in: scratch.url)
            try #require(result.status == 0, "\(line): \(result.errors)")
        }
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        try await RecordStore(container: ContainerDirectory(openingAt: scratch.container), scope: .shared).checkpoint()
        try await store.checkpoint()
        // The token is from before the first transaction, so that every state has changes to show.
        let token: String = try ContainerDirectory.scopes.map { scope -> String in
            let reader = try StoreReader(container: ContainerDirectory(openingAt: scratch.container), scope: scope)
            return "\(scope.name)=\(try reader.historyToken().description.split(separator: ":")[0]):0"
        }.joined(separator: ",")
        var states = [Self.files(in: scratch.container)]
        for number in 1...2 {
            let edit = RecordEdit(
                record: RecordName(type: "Destination", name: "a"), base: .any, values: ["caption": .string("saved \(number)")],
                fields: ["caption"])
            _ = try await store.save(
                [edit], schemas: [], blobs: [], author: TransactionAuthor("test", origin: .save), policy: { _ in .overwrite },
                check: { _ in })
            states.append(Self.files(in: scratch.container))
        }
        return (token, states)
    }

    private func run(_ command: Command, in place: URL, token: String = "") async throws -> Tool.Result {
        try await tool.run(
            command.arguments.map { word in
                switch word {
                case "C": place.appendingPathComponent("Test.tidemark").path
                case "TOKEN": token
                case "j.jsonl", "cloud", "folder", "backup.tidemark", "moved.tidemark", "restored.tidemark":
                    place.appendingPathComponent(word).path
                default: word
                }
            })
    }

    // The states

    /// A rollback journal that restores the last page, which is damaged in the file.
    private static func brokenOff(_ files: Files) -> Files {
        var (database, journal) = (files[""]!, Data())
        let (size, nonce) = (StoreFormat.pageSize, UInt32(77))
        let count = database.count / size
        let page = [UInt8](database.suffix(size))
        func add(_ number: UInt32) { withUnsafeBytes(of: number.bigEndian) { journal.append(contentsOf: $0) } }
        journal.append(contentsOf: [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7])
        for number in [1, nonce, UInt32(count), 512, UInt32(size)] { add(number) }
        journal.append(Data(count: 512 - journal.count))
        add(UInt32(count))
        journal.append(contentsOf: page)
        add(stride(from: size - 200, to: 0, by: -200).reduce(nonce) { $0 &+ UInt32(page[$1]) })
        database.replaceSubrange(database.count - size..<database.count, with: Data(repeating: 0x5a, count: size))
        return ["": database, "-journal": journal]
    }

    private static func states(_ made: [Files]) -> [State] {
        let (emptied, first, second) = (made[0], made[1], made[2])
        let log = second["-wal"]!
        let frame = 24 + StoreFormat.pageSize
        let garbage = Data((0..<32768).map { UInt8(truncatingIfNeeded: $0 &* 37) })
        var states: [State] = []
        func add(
            _ name: String, _ base: Files, _ expectation: Expectation, always: Bool = false,
            _ change: (inout Files) -> Void = { _ in }
        ) {
            var files = base
            change(&files)
            states.append(State(name: name, files: files, expectation: expectation, isAlwaysRun: always))
        }
        add("an emptied log", emptied, .like("an emptied log"), always: true)
        add("one save in the log", first, .like("one save in the log"), always: true)
        add("two saves in the log", second, .like("two saves in the log"), always: true)
        // A log that has a header and no commit.
        add("a log of its header", emptied, .like("an emptied log"), always: true) { $0["-wal"] = log.prefix(32) }
        for count in [1, 31, 33, 56, 56 + 1000, 32 + frame - 1] {
            add("a log of \(count) bytes", emptied, .like("an emptied log")) { $0["-wal"] = log.prefix(count) }
        }
        let absent: Data? = nil
        for (name, index) in [("no index", absent), ("an empty index", Data()), ("an index of zeros", Data(count: 32768))] {
            add("a log of its header, \(name)", emptied, .like("an emptied log")) {
                ($0["-wal"], $0["-shm"]) = (log.prefix(32), index)
            }
        }
        add("no log, and an index", emptied, .like("an emptied log")) { $0["-wal"] = nil }
        add("no log and no index", emptied, .like("an emptied log")) { ($0["-wal"], $0["-shm"]) = (nil, nil) }
        for count in [32, 56, 40_000] {
            add("a log of \(count) zeros", emptied, .like("an emptied log")) { $0["-wal"] = Data(count: count) }
        }
        add("a log whose header is garbage", emptied, .like("an emptied log")) {
            $0["-wal"] = garbage.prefix(32) + log.dropFirst(32)
        }
        add("a log of garbage", emptied, .like("an emptied log")) { $0["-wal"] = garbage }
        // A log that grows while the index is not written yet.
        for cut in [1, StoreFormat.pageSize, frame - 1] {
            add("the last frame lacks \(cut) bytes", first, .like("one save in the log")) { $0["-wal"] = log.dropLast(cut) }
        }
        add("garbage behind the log", first, .like("one save in the log")) { $0["-wal"]! += garbage.prefix(5000) }
        // The index.
        for (name, index) in [
            ("none", absent), ("empty", Data()), ("cut", second["-shm"]!.prefix(100)), ("zeros", Data(count: 32768)),
            ("garbage", garbage),
            ("older than the log", first["-shm"]!), ("of the emptied log", emptied["-shm"]!),
        ] { add("the index: \(name)", second, .like("two saves in the log")) { $0["-shm"] = index } }
        // Rollback journals.
        add("a broken-off transaction", brokenOff(emptied), .like("an emptied log"), always: true)
        add("an empty journal", emptied, .like("an emptied log")) { $0["-journal"] = Data() }
        add("a journal of zeros", emptied, .like("an emptied log")) { $0["-journal"] = Data(count: 512) }
        add("a journal of garbage", emptied, .like("an emptied log")) { $0["-journal"] = garbage.dropFirst().prefix(600) }
        // Commits that are lost.
        add("a log that ends before its index", second, .lost, always: true) { $0["-wal"] = log.dropLast(frame + 1) }
        add("a flipped bit in a committed page", second, .lost) { $0["-wal"]![32 + 24 + 777] ^= 4 }
        return states
    }

    // The runs

    private struct Outcome: Sendable {
        let status: Int32
        let output: String
        let errors: String
        let duration: Duration
    }

    /// Runs a command on a state. Names that differ from copy to copy are made equal in all outcomes.
    private func outcome(_ command: Command, _ state: State, token: String) async throws -> Outcome {
        let place = scratch[UUID().uuidString]
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        for name in ["Test.tidemark", "j.jsonl"] {
            try FileManager.default.copyItem(at: scratch[name], to: place.appendingPathComponent(name))
        }
        for name in Self.names {
            let file = place.appendingPathComponent("Test.tidemark/private.sqlite\(name)")
            try? FileManager.default.removeItem(at: file)
            try state.files[name]?.write(to: file)
        }
        let began = ContinuousClock.now
        let result = try await run(command, in: place, token: token)
        return Outcome(
            status: result.signal.map { -$0 } ?? result.status,
            output: result.output.replacingOccurrences(of: place.path, with: "P"),
            errors: result.errors.replacingOccurrences(of: place.path, with: "P"), duration: ContinuousClock.now - began)
    }

    /// Does things, several at a time, and returns their results in order.
    private func concurrently<Input: Sendable, Output: Sendable>(
        _ inputs: [Input], _ body: @escaping @Sendable (Input) async throws -> Output
    ) async throws -> [Output] {
        try await withThrowingTaskGroup(of: (Int, Output).self) { group in
            var results = [Output?](repeating: nil, count: inputs.count)
            for (number, input) in inputs.enumerated() {
                if number >= 4, let (done, result) = try await group.next() { results[done] = result }
                group.addTask { (number, try await body(input)) }
            }
            for try await (done, result) in group { results[done] = result }
            return results.compactMap { $0 }
        }
    }

    private struct Pair: Sendable {
        let command: Command
        let state: State
    }

    @Test func `each command does the same on each state as on whole files, or says that commits are lost`() async throws {
        let (token, made) = try await makeContainer()
        let states = Self.states(made)
        var random = Randomness("commands on opening states")
        let runsAll = ProcessInfo.processInfo.environment["TIDEMARK_ALL_STATES"] != nil
        let pairs = states.flatMap { state in
            Self.commands.filter { _ in state.isAlwaysRun || runsAll || Int.random(in: 0..<8, using: &random) == 0 }
                .map { Pair(command: $0, state: state) }
        }
        // Commands that change the cloud run one by one, each on the cloud as it was.
        let inCloud = pairs.filter(\.command.usesCloud)
        let others = pairs.filter { !$0.command.usesCloud }
        try FileManager.default.copyItem(at: scratch["cloud"], to: scratch["cloud as it was"])
        async let local = concurrently(others) { try await outcome($0.command, $0.state, token: token) }
        var outcomes: [Outcome] = []
        for pair in inCloud {
            try FileManager.default.removeItem(at: scratch["cloud"])
            try FileManager.default.copyItem(at: scratch["cloud as it was"], to: scratch["cloud"])
            outcomes.append(try await outcome(pair.command, pair.state, token: token))
        }
        let all = zip(others + inCloud, try await local + outcomes)
        var whole: [String: Outcome] = [:]
        for (pair, outcome) in all { whole["\(pair.state.name) \(pair.command.arguments)"] = outcome }
        for (pair, outcome) in all {
            let what: Comment =
                "\(pair.state.name): \(pair.command.arguments): \(outcome.status) \(outcome.output)\(outcome.errors)"
            #expect(!outcome.errors.contains("locking protocol") && !outcome.errors.contains("SQLite error"), what)
            switch pair.state.expectation {
            case .like(let name):
                let wanted = try #require(whole["\(name) \(pair.command.arguments)"])
                #expect(outcome.status == wanted.status, what)
                // The size of a file shows its state, and a rolled back transaction leaves a log.
                if pair.command.kind == .reads, !pair.command.arguments.contains("info"), !pair.command.arguments.contains("move")
                {
                    #expect(outcome.output == wanted.output, what)
                }
            case .lost:
                switch pair.command.kind {
                // An export may be read later, so it has to warn that something is missing.
                case .reads where pair.command.arguments[0] == "export":
                    #expect(outcome.status == 65, what)
                    #expect(outcome.errors.contains("private.sqlite-wal is damaged after page"), what)
                case .reads: #expect(outcome.status == 0, what)
                case .writes, .copies:
                    #expect(outcome.status == 65, what)
                    #expect(outcome.errors.contains("private.sqlite-wal is damaged after page"), what)
                case .verifies:
                    #expect(outcome.status == 1, what)
                    #expect(outcome.output.contains("private.sqlite-wal is damaged after page"), what)
                }
            }
        }
        let longest = all.max { $0.1.duration < $1.1.duration }!
        print(
            "\(pairs.count) of \(states.count * Self.commands.count) pairs; the longest: \(longest.0.command.arguments) on",
            "\(longest.0.state.name), \(longest.1.duration)")
        // Each of these commands succeeds on an emptied log; a failure would compare nothing.
        for (pair, outcome) in all where pair.state.name == "an emptied log" {
            #expect(outcome.status == 0, "\(pair.command.arguments): \(outcome.status) \(outcome.errors)")
        }
    }
}
