import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkTransfer

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a migration that can't be done changes nothing, and programs that have the container open are not disturbed. Method: the
/// tool of a newer version on a read-only disk, and on a full one; readers, observers and writers of this version while stores
/// are migrated beside them.
@Suite(.timeLimit(.minutes(30))) struct MigrationEdgeTests {
    private static let old = Int(FormatMigrations.stores.newest)
    private static let new = Int(FormatMigrations.testStores.newest)
    private static let lines = [
        #"{"id": "a", "n": 1, "caption": "A"}"#, #"{"id": "b", "caption": "B"}"#, #"{"id": "c", "n": 3}"#,
    ]
    private let scratch: Scratch
    private let probe: Tool

    init() throws {
        scratch = try Scratch()
        probe = try Tool(named: "store-probe")
    }

    private struct Destination: Tidemark.Record, Identifiable {
        var id: String
        var n: Int?
        var caption: String?
    }

    private var path: String { scratch.container.path }

    private func opened(
        _ url: URL? = nil, _ migrations: FormatMigrations = .testStores
    ) throws -> ContainerDirectory {
        try ContainerDirectory(openingAt: url ?? scratch.container, migrations: migrations)
    }

    /// A container of this version's format with both stores.
    private func makeOld() async throws {
        try await scratch.importing(lines: Self.lines, .destination())
        _ = try RecordStore(container: opened(nil, .stores), scope: .shared)
    }

    /// The formats of the description and of both stores.
    private func formats(_ url: URL) throws -> [Int] {
        let container = try opened(url)
        return [container.description.format]
            + (try ContainerDirectory.scopes.map { try FrozenFormats.format(of: container.store($0)) })
    }

    @Sendable private static func captions(_ db: Database) throws -> [String?] {
        try String?.fetchAll(db, sql: "SELECT caption FROM Destination ORDER BY _key")
    }

    private static func captions(eachOf reader: StoreReader) throws -> [String?] {
        var captions: [String?] = []
        try reader.forEachRecord(RecordQuery(type: "Destination", sortField: "_name")) { record in
            // The value of the only field.
            captions.append(record.values.lazy.compactMap { if case .string(let text) = $0 { text } else { nil } }.first)
        }
        return captions
    }

    private func expectMigrated(_ url: URL, _ comment: Comment? = nil) throws {
        #expect(try formats(url) == [Self.new, Self.new, Self.new], comment)
        #expect(try StoreReader(container: opened(url)).read(Self.captions) == ["A!", "B!", nil], comment)
        #expect(try StoreVerification(of: opened(url)).run().problems.isEmpty, comment)
    }

    // Read-only places

    /// Commands that read the container `Test.tidemark`.
    private static let readingCommands = [
        "records Test.tidemark --type Destination", "records get Test.tidemark a", "export Test.tidemark --to out.jsonl",
        "verify Test.tidemark", "history Test.tidemark", "watch Test.tidemark", "store info Test.tidemark",
        "store verify Test.tidemark", "status Test.tidemark", "events Test.tidemark", "conflicts Test.tidemark",
        "permissions Test.tidemark a", "refused Test.tidemark", "account status Test.tidemark", "share list Test.tidemark",
        "import manifest.jsonl --into Test.tidemark --type Destination --id id --dry-run",
    ]

    private func words(_ command: String) -> [String] { ["newer"] + command.split(separator: " ").map(String.init) }

    private func expectRefusal(_ result: Tool.Result, of command: String, _ remedy: String) {
        #expect(result.status == 73, "\(command): \(result)")
        #expect(result.output == "", "\(command)")
        let words = "has format \(Self.old), which this version reads once it is migrated. \(remedy)"
        #expect(result.errors.contains(words), "\(command): \(result.errors)")
    }

    @Test func `every command that only reads says how to migrate an older container, and changes nothing`() async throws {
        try await makeOld()
        let before = try FileState(of: scratch.container)
        for command in Self.readingCommands {
            let result = try await probe.run(words(command), in: scratch.url)
            expectRefusal(
                result, of: command, "To migrate it: `tidemark store migrate \(path)`; so does everything that writes to it")
        }
        #expect(try FileState(of: scratch.container) == before)
    }

    @Test(arguments: [
        "records set Test.tidemark a caption=B", "records rename Test.tidemark a d", "records delete Test.tidemark a",
        "undo Test.tidemark 1",
    ])
    func `a command that writes migrates an older container first, and does its work`(command: String) async throws {
        try await makeOld()
        let result = try await probe.run(words(command), in: scratch.url)
        #expect(result.status == 0, "\(result)")
        #expect(try formats(scratch.container) == [Self.new, Self.new, Self.new])
        #expect(try StoreReader(container: opened()).read(Self.captions) != ["A!", "B!", nil])
    }

    @Test(.enabled(if: MountNamespace.isPossible, "\(MountNamespace.refusal)"))
    func `in a read-only place, every command that reads says how to migrate a copy`() async throws {
        try await makeOld()
        let before = try FileState(of: scratch.container)
        let remedy = """
            It can't be migrated where it is: \(path) may not be written (Read-only file system). To migrate a copy: `tidemark store backup \
            \(path) Copy.tidemark`, then `tidemark store migrate Copy.tidemark`
            """
        for command in Self.readingCommands + ["store migrate Test.tidemark"] {
            let result = try await MountNamespace.run(probe, words(command), readOnly: scratch.container, in: scratch.url)
            expectRefusal(result, of: command, remedy)
        }
        // The commands of the message work.
        for command in ["store backup Test.tidemark Copy.tidemark", "store migrate Copy.tidemark"] {
            let result = try await MountNamespace.run(probe, words(command), readOnly: scratch.container, in: scratch.url)
            #expect(result.status == 0, "\(command): \(result)")
        }
        try expectMigrated(scratch["Copy.tidemark"])
        #expect(try FileState(of: scratch.container) == before)
        // If there is nothing to migrate, nothing is written.
        let copy = try FileState(of: scratch["Copy.tidemark"])
        let again = try await MountNamespace.run(
            probe, words("store migrate Copy.tidemark"), readOnly: scratch["Copy.tidemark"], in: scratch.url)
        #expect(again.output == "\(scratch["Copy.tidemark"].path) has the newest format, \(Self.new).\n", "\(again)")
        #expect(try FileState(of: scratch["Copy.tidemark"]) == copy)
    }

    // A full disk

    /// - Parameter lacks: Patterns of files that are missing, so that they have to be made first.
    @Test(.enabled(if: MountNamespace.isPossible, "\(MountNamespace.refusal)"), arguments: ["", "*-shm *-wal *-lock"])
    func `a full disk stops a migration between two formats, which continues when there is space`(lacks: String) async throws {
        try await makeOld()
        for scope in ContainerDirectory.scopes {
            try await RecordStore(container: opened(nil, .stores), scope: scope).checkpoint()
        }
        try FileManager.default.createDirectory(at: scratch["disk"], withIntermediateDirectories: false)
        // Free space, in pages of memory: the migration needs an amount between the first and the last.
        let spaces = [0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 256]
        let script = """
            disk=$1 probe=$2 lacks=$3; shift 3
            mount -t tmpfs -o size=32m,mode=700 tmpfs "$disk"
            for space in "$@"; do
                rm -rf "$disk"/*; cp -a Test.tidemark "$disk/Test.tidemark"
                (cd "$disk/Test.tidemark"; rm -f $lacks)
                free=$(df -k --output=avail "$disk" | tail -1)
                dd if=/dev/zero of="$disk/filler" bs=4096 count=$((free / 4 - space)) 2>/dev/null
                status=0; "$probe" newer store migrate "$disk/Test.tidemark" 2>errors-$space >/dev/null || status=$?
                echo $status >status-$space
                cp -a "$disk/Test.tidemark" Stopped-$space.tidemark
                rm "$disk/filler"
                "$probe" newer store migrate "$disk/Test.tidemark" >/dev/null
                cp -a "$disk/Test.tidemark" Finished-$space.tidemark
            done
            """
        let result = try await MountNamespace.run(
            script, [scratch["disk"].path, probe.executable.path, lacks] + spaces.map(String.init), in: scratch.url)
        #expect(result.status == 0, "\(result)")
        var stopped: Set<[Int]> = []
        for space in spaces {
            let errors = try String(contentsOf: scratch["errors-\(space)"], encoding: .utf8)
            let status = try String(contentsOf: scratch["status-\(space)"], encoding: .utf8)
            let copy = scratch["Stopped-\(space).tidemark"]
            if status == "0\n" {
                try expectMigrated(copy, "\(space)")
            } else {
                #expect(
                    status == "74\n" && errors.contains("Free space on its disk; the next opening goes on"),
                    "\(space): \(status)\(errors)")
                let formats = try formats(copy)
                stopped.insert(formats)
                #expect(formats[0] == Self.old && formats.allSatisfy { $0 >= Self.old }, "\(space): \(formats)")
                _ = try RecordStore(container: opened(copy))
                try expectMigrated(copy, "\(space)")
            }
            try expectMigrated(scratch["Finished-\(space).tidemark"], "\(space)")
        }
        #expect(
            stopped.contains([Self.old, Self.old, Self.old]) && !stopped.contains([Self.new, Self.new, Self.new]), "\(stopped)")
        #expect(try String(contentsOf: scratch["status-256"], encoding: .utf8) == "0\n")
    }

    // Other processes that have the container open

    @Test func `a reader sees the old state whole or is refused, at each moment of a migration`() async throws {
        try await makeOld()
        let container = try opened(nil, .stores)
        let reader = try StoreReader(container: container)
        let pinned = try reader.snapshot()
        var migrations = FormatMigrations.testStores
        let found = Found()
        migrations.hook = { _ in
            found.append(Result { try reader.read(Self.captions) })
            found.append(Result { try Self.captions(eachOf: reader) })
            found.append(Result { try pinned.read(Self.captions) })
        }
        try opened(nil, migrations).migrate()
        let states = found.all.map { result -> String in
            switch result {
            case .success(let captions): captions == ["A", "B", nil] ? "old" : "\(captions)"
            case .failure(let error): (error as? StoreError)?.code.rawValue ?? "\(error)"
            }
        }
        // The first of the moments lies within the transaction of the first step.
        let afterwards = Array(repeating: ["newerFormat", "newerFormat", "old"], count: 9).flatMap(\.self)
        #expect(states == ["old", "old", "old"] + afterwards, "\(states)")
    }

    private final class Found: @unchecked Sendable {
        // The thread that migrates also reads.
        private(set) var all: [Result<[String?], any Error>] = []
        func append(_ result: Result<[String?], any Error>) { all.append(result) }
    }

    @Test
    func `a read that has begun sees the old state to its end, though another process migrates in the meantime`() async throws {
        try await makeOld()
        let reader = try StoreReader(container: opened(nil, .stores))
        let states = try reader.read { db in
            let before = try Self.captions(db)
            let status = try ChildProcess.run(probe.executable.path, ["migrate", path])
            #expect(status == 0)
            return [before, try Self.captions(db)]
        }
        #expect(states == [["A", "B", nil], ["A", "B", nil]])
        #expect(throws: StoreError(.newerFormat, "")) { try reader.read(Self.captions) }
        try expectMigrated(scratch.container)
    }

    /// - Parameter moment: When the process that migrates is killed: after migrating only the private store, or all but the
    ///   description.
    @Test(arguments: [4, 8, nil] as [Int?])
    func `a program with the container open neither reads nor writes what a newer version has migrated`(
        moment: Int?
    ) async throws {
        try await makeOld()
        let directory = try opened(nil, .stores)
        let journal = try PersistentContainer(directory: directory)
        let (store, reader) = (try RecordStore(container: directory), try StoreReader(container: directory))
        let observation = journal.observe(Destination.self, sortedBy: [.ascending("n")])
        var values = observation.makeAsyncIterator()
        #expect(try await values.next()?.count == 3)
        var changes = journal.changes().makeAsyncIterator()
        let killed = try await probe.run(["migrate", path] + (moment.map { ["--kill-at", "\($0)"] } ?? []))
        #expect(killed.signal == (moment == nil ? nil : SIGKILL), "\(killed)")
        let state = [moment == nil ? Self.new : Self.old, Self.new, moment == 4 ? Self.old : Self.new]
        #expect(try formats(scratch.container) == state)
        // All files but the logs' indexes, in which every reader leaves its mark.
        func contents() throws -> [Data] {
            let stores = ContainerDirectory.scopes.flatMap { ["\($0.name).sqlite", "\($0.name).sqlite-wal"] }
            return try (["container.json"] + stores).map { try Data(contentsOf: scratch.container.appendingPathComponent($0)) }
        }
        let before = try contents()

        func expectRefused(_ what: Comment, _ body: () async throws -> Void) async {
            await #expect(throws: StoreError(.newerFormat, ""), what) { try await body() }
        }
        await expectRefused("fetch") { _ = try await journal.fetch(Destination.self, named: "a") }
        await expectRefused("fetchAll") { _ = try await journal.fetchAll(Destination.self) }
        await expectRefused("count") { _ = try await journal.count(Destination.self) }
        await expectRefused("save") { try await journal.save(Destination(id: "d", n: 4, caption: "D")) }
        await expectRefused("updateAll") { _ = try await journal.updateAll(Destination.self, set: ["n": 7]) }
        await expectRefused("types") { _ = try await store.types() }
        await expectRefused("read") { _ = try reader.read(Self.captions) }
        await expectRefused("snapshot") { _ = try reader.snapshot().read(Self.captions) }
        await expectRefused("history") { _ = try reader.transactions() }
        await expectRefused("record") { _ = try reader.record(named: "a") }
        #expect(try contents() == before)

        // The newer version continues to write, and this one is notified.
        let edit = try await probe.run(["newer", "records", "set", path, "a", "caption=New"])
        // Without the edit there is no notification.
        try #require(edit.status == 0, "\(edit)")
        await expectRefused("changes") { while try await changes.next() != nil {} }
        await expectRefused("observation") { while try await values.next() != nil {} }
        #expect(try StoreReader(container: opened()).read(Self.captions) == ["New", "B!", nil])
    }
}
