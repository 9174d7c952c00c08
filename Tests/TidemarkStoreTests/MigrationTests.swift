import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkTransfer

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a database of an older format is migrated to the newest once and as a whole, whatever interrupts it; a format that this
/// version can't migrate is left as it is. Method: real stores, with steps that only tests have; processes that are killed at
/// each moment of a migration.
@Suite(.timeLimit(.minutes(30))) struct MigrationTests {
    private static let old = Int(FormatMigrations.stores.newest)
    private static let new = Int(FormatMigrations.testStores.newest)
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func opened(_ url: URL? = nil, _ migrations: FormatMigrations = .testStores) throws -> ContainerDirectory {
        try ContainerDirectory(openingAt: url ?? scratch.container, migrations: migrations)
    }

    /// A container of this version's format with both stores, each with a log that is not checkpointed yet.
    private func makeOld() async throws {
        try await scratch.importing(
            lines: [#"{"id": "a", "n": 1, "caption": "A"}"#, #"{"id": "b", "caption": "B"}"#, #"{"id": "c", "n": 3}"#],
            .destination())
        _ = try RecordStore(container: ContainerDirectory(openingAt: scratch.container), scope: .shared)
        #expect(try formats() == [Self.old, Self.old, Self.old])
    }

    /// The formats of the description and of both stores.
    private func formats(_ url: URL? = nil) throws -> [Int] {
        let container = try opened(url)
        return [container.description.format]
            + (try ContainerDirectory.scopes.map { try FrozenFormats.format(of: container.store($0)) })
    }

    private func captions(_ container: ContainerDirectory) throws -> [String?] {
        try StoreReader(container: container).read { db in
            try String?.fetchAll(db, sql: "SELECT caption FROM Destination ORDER BY _key")
        }
    }

    private func expectMigrated(_ url: URL? = nil, _ comment: Comment? = nil) throws {
        #expect(try formats(url) == [Self.new, Self.new, Self.new], comment)
        let container = try opened(url)
        #expect(try captions(container) == ["A!", "B!", nil], comment)
        let report = try StoreVerification(of: container).run()
        #expect(report.problems.isEmpty, "\(comment ?? "") \(report.problems)")
    }

    @Test func `opening for writing migrates both stores and then the description`() async throws {
        try await makeOld()
        let store = try RecordStore(container: opened())
        #expect(store.container.description.format == Self.new)
        try expectMigrated()
        // The store knows the new description as its place, so the container does not count as another one.
        #expect(store.container.place.isUnchanged)
        #expect(try await store.types().map(\.name) == ["Destination"])
    }

    @Test func `a process killed at any moment leaves a container that the next opening finishes`() async throws {
        try await makeOld()
        let before = try formats()
        let original = scratch["Original.tidemark"]
        try FileManager.default.copyItem(at: scratch.container, to: original)
        let probe = try Tool(named: "store-probe")
        var states: [[Int]] = []
        for moment in 0..<100 {
            let copy = scratch["Killed\(moment).tidemark"]
            try FileManager.default.copyItem(at: original, to: copy)
            let result = try await probe.run(["migrate", copy.path, "--kill-at", "\(moment)"])
            if result.signal == nil {
                #expect(result.status == 0, "\(result.errors)")
                try expectMigrated(copy)
                // Two steps of two stores, within and behind the transaction; before and behind the description.
                #expect(moment == 10)
                break
            }
            #expect(result.signal == SIGKILL)
            let state = try formats(copy)
            states.append(state)
            #expect(zip(state, before).allSatisfy { $0 >= $1 } && state[0] <= state.dropFirst().min()!, "\(state)")
            _ = try RecordStore(container: opened(copy))
            try expectMigrated(copy, "killed at \(moment)")
        }
        let (old, new) = (Self.old, Self.new)
        #expect(
            states == [
                [old, old, old], [old, old + 1, old], [old, old + 1, old], [old, new, old], [old, new, old], [old, new, old + 1],
                [old, new, old + 1], [old, new, new], [old, new, new], [new, new, new],
            ])
    }

    @Test func `processes that open a container at once migrate it once`() async throws {
        try await makeOld()
        let probe = try Tool(named: "store-probe")
        let path = scratch.container.path
        try await withThrowingTaskGroup(of: Tool.Result.self) { group in
            for _ in 0..<4 { group.addTask { try await probe.run(["migrate", path]) } }
            for try await result in group { #expect(result.status == 0, "\(result.errors)") }
        }
        try expectMigrated()
    }

    @Test func `a failing step changes nothing, and is named`() async throws {
        try await makeOld()
        let failing = FormatMigrations.stores.adding([
            FormatMigrations.testSteps[0],
            .init("a step that fails") { db in
                try db.execute(sql: "UPDATE Destination SET caption = 'half'")
                try db.execute(sql: "INSERT INTO nowhere VALUES (1)")
            },
        ])
        let error = #expect(throws: StoreError.self) { _ = try RecordStore(container: opened(nil, failing)) }
        let path = scratch["Test.tidemark/private.sqlite"].path
        #expect(
            error?.message == """
                cannot migrate \(path) from format \(Self.old + 1) to \(Self.new) (a step that fails): no such table: nowhere. It still has \
                format \(Self.old + 1). The next opening goes on from there
                """)
        #expect(try formats() == [Self.old, Self.old + 1, Self.old])
        _ = try RecordStore(container: opened(), scope: .shared)
        try expectMigrated()
    }

    @Test func `a reader changes nothing, and says how to migrate the container`() async throws {
        try await makeOld()
        let before = try FileState(of: scratch.container)
        for scope in ContainerDirectory.scopes {
            let error = #expect(throws: StoreError.self) { _ = try StoreReader(container: opened(), scope: scope) }
            #expect(error?.code == .olderFormat)
            let path = scratch.container.path
            #expect(
                error?.message == """
                    \(path)/\(scope.name).sqlite has format \(Self.old), which this version reads once it is migrated. To migrate it: \
                    `tidemark store migrate \(path)`; so does everything that writes to it
                    """)
        }
        #expect(try FileState(of: scratch.container) == before)
        _ = try opened().migrate()
        #expect(try captions(opened()) == ["A!", "B!", nil])
    }

    @Test(arguments: ["both", "store", "description"]) func `a newer format is refused, and no file is changed`(
        what: String
    ) async throws {
        try await makeOld()
        // For this version the migrated container is newer.
        let old = try Data(contentsOf: scratch["Test.tidemark/container.json"])
        if what != "description" { try opened().migrate() }
        if what == "store" { try old.write(to: scratch["Test.tidemark/container.json"]) }
        if what == "description" {
            let text = String(decoding: old, as: UTF8.self).replacingOccurrences(
                of: "\"format\" : \(Self.old)", with: "\"format\" : \(Self.new)")
            try scratch.write(text, to: "Test.tidemark/container.json")
        }
        // The migration has left a log, which opening for writing would checkpoint.
        if what != "description" { #expect(try !Data(contentsOf: scratch["Test.tidemark/private.sqlite-wal"]).isEmpty) }
        let before = try FileState(of: scratch.container)
        for scope in ContainerDirectory.scopes {
            for body in [
                { _ = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container), scope: scope) },
                { _ = try StoreReader(container: ContainerDirectory(openingAt: scratch.container), scope: scope) },
                { try ContainerDirectory(openingAt: scratch.container).migrate() },
            ] as [() throws -> Void] {
                let error = #expect(throws: StoreError.self) { try body() }
                #expect(error?.code == .newerFormat)
                #expect(
                    error?.message.hasSuffix(
                        "has format \(Self.new); this version reads up to \(Self.old). Update Tidemark to open it") == true)
            }
        }
        #expect(try FileState(of: scratch.container) == before)
    }

    @Test func `a writer with an open store writes nothing once a newer version has migrated it`() async throws {
        try await makeOld()
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        let old = try Data(contentsOf: scratch["Test.tidemark/container.json"])
        _ = try opened().migrate()
        let error = await #expect(throws: StoreError.self) {
            try await store.transact("save", author: TransactionAuthor("test", origin: .save)) { _ in }
        }
        #expect(error?.code == .newerFormat)
        // If the migration was killed before it wrote the description, the store's own format shows it.
        try old.write(to: scratch["Test.tidemark/container.json"])
        let other = await #expect(throws: StoreError.self) {
            try await store.transact("save", author: TransactionAuthor("test", origin: .save)) { _ in }
        }
        #expect(other?.code == .newerFormat)
        #expect(other?.message.contains("has been migrated to format \(Self.new) since it was opened") == true)
    }

    @Test func `a backup of an older container is made as it is, and migrated when it is opened`() async throws {
        try await makeOld()
        let backup = scratch["Backup.tidemark"]
        try ContainerBackup(of: opened(), to: backup).run()
        #expect(try formats() == [Self.old, Self.old, Self.old])
        #expect(try formats(backup) == [Self.old, Self.old, Self.old])
        _ = try RecordStore(container: opened(backup))
        try expectMigrated(backup)
    }

    @Test func `a restored store of an older format is migrated when it is opened`() async throws {
        try await makeOld()
        let kept = ["", "-wal"].map {
            (name: "Test.tidemark/private.sqlite\($0)", data: try? Data(contentsOf: scratch["Test.tidemark/private.sqlite\($0)"]))
        }
        try opened().migrate()
        for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(at: scratch["Test.tidemark/private.sqlite\(suffix)"])
        }
        for file in kept { if let data = file.data { try scratch.write(data, to: file.name) } }
        #expect(try formats() == [Self.new, Self.old, Self.new])
        _ = try RecordStore(container: opened())
        try expectMigrated()
    }

    @Test func `rewriting a field leaves a damaged record damaged`() async throws {
        try await makeOld()
        let queue = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try queue.inDatabase { db in try db.execute(sql: "UPDATE Destination SET n = 2 WHERE _key = 'b'") }
        try queue.close()
        _ = try RecordStore(container: opened())
        let problems = try StoreVerification(of: opened()).run().problems
        #expect(problems.count == 1 && problems.first?.message.contains("b") == true, "\(problems)")
    }

    // Databases beside stores

    private static let tables = "CREATE TABLE contents (content TEXT NOT NULL) STRICT"
    private static let shared = FormatMigrations(applicationID: 0x5465_7374, oldest: 3)

    private func openShared(_ migrations: FormatMigrations) throws -> SharedDatabase {
        try SharedDatabase(at: scratch["shared.sqlite"], migrations: migrations, tables: Self.tables, prepare: { _ in })
    }

    @Test func `a database beside the stores continues an interrupted migration`() throws {
        let first = FormatMigrations.Step("a second column") { db in
            try db.execute(sql: "ALTER TABLE contents ADD COLUMN more TEXT")
        }
        let second = FormatMigrations.Step("marks") { db in try db.execute(sql: "UPDATE contents SET content = content || '!'") }
        let old = try openShared(Self.shared)
        try old.write { db in try db.execute(sql: "INSERT INTO contents (content) VALUES ('a')") }
        var stopped = Self.shared.adding([first, second])
        stopped.hook = { moment in
            if case .applied(_, 5) = moment { throw StoreError(.diskFull, "full") }
        }
        #expect(throws: StoreError(.diskFull, "")) { _ = try openShared(stopped) }
        #expect(try FrozenFormats.format(of: scratch["shared.sqlite"]) == 4)
        let new = try openShared(Self.shared.adding([first, second]))
        #expect(
            try new.reader.read { db in try String.fetchAll(db, sql: "SELECT content || coalesce(more, '') FROM contents") } == [
                "a!"
            ])
        #expect(try FrozenFormats.format(of: scratch["shared.sqlite"]) == 5)
        // An older version has the database open.
        #expect(throws: StoreError(.newerFormat, "")) { try old.write { db in try db.execute(sql: "DELETE FROM contents") } }
        let before = try FileState(of: scratch.url)
        #expect(throws: StoreError(.newerFormat, "")) { _ = try openShared(Self.shared) }
        #expect(try FileState(of: scratch.url) == before)
    }

    @Test func `a format older than the first frozen one is refused`() throws {
        _ = try openShared(FormatMigrations(applicationID: 0x5465_7374, oldest: 2))
        let error = #expect(throws: StoreError.self) { _ = try openShared(Self.shared) }
        #expect(
            error?.message.hasSuffix("has format 2; this version reads from 3 on. Open it with the Tidemark that made it") == true
        )
    }
}
