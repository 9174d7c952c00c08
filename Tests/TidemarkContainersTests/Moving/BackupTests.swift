import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a backup is a container of one moment, and a restored container is whole, or nothing has changed. Method: backups while
/// other processes write, damaged backups, kills; whole states.
@Suite(.timeLimit(.minutes(30))) struct BackupTests {
    private func historyIdentity(_ url: URL) throws -> String? {
        try StoreReader(container: ContainerDirectory(openingAt: url), scope: .shared).database.read { db in
            try String.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'history_identity'")
        }
    }

    private func isWritten(_ state: String, as other: String) -> Bool {
        state.replacing(#/history_identity" value:"[-0-9A-F]+"/#, with: "")
            == other.replacing(#/history_identity" value:"[-0-9A-F]+"/#, with: "")
    }

    @Test func `a backup has the whole container, which stays in use`() async throws {
        let movable = try await MovableContainer()
        let container = try ContainerDirectory(openingAt: movable.source)
        let summary = try ContainerBackup(of: container, to: movable.target).run()
        #expect(summary.path == movable.target.path)
        #expect(summary.stores == 2 && summary.assets == 6)
        #expect(try MovableContainer.state(of: movable.target) == movable.state)
        #expect(try MovableContainer.verification(of: movable.target).isOK)
        try container.checkPlace()
        #expect(try MovableContainer.state(of: movable.source) == movable.state)
        // No file is shared, so damage or an edit in one place does not reach the other.
        let assets = movable.target.appendingPathComponent("assets")
        for path in try FileManager.default.subpathsOfDirectory(atPath: assets.path) where path.count > 2 {
            var status = stat()
            #expect(stat(assets.appendingPathComponent(path).path, &status) == 0 && status.st_nlink == 1)
        }
    }

    @Test func `a backup overwrites nothing, and in a folder it gets a name of its own`() async throws {
        let movable = try await MovableContainer()
        let container = try ContainerDirectory(openingAt: movable.source)
        try movable.scratch.write("mine", to: "Backups/letter.txt")
        let summary = try ContainerBackup(of: container, to: movable.scratch["Backups"]).run()
        #expect(URL(fileURLWithPath: summary.path).lastPathComponent.wholeMatch(of: #/Test-\d{8}T\d{6}Z\.tidemark/#) != nil)
        #expect(try MovableContainer.state(of: URL(fileURLWithPath: summary.path)) == movable.state)
        let before = try MovableContainer.listing(movable.scratch.url)
        for place in [
            summary.path, movable.scratch["Backups/letter.txt"].path, movable.source.path, movable.source.path + "/assets/x",
        ] {
            let error = try storeError { try ContainerBackup(of: container, to: URL(fileURLWithPath: place)).run() }
            #expect(error?.code == .cannotMove, "\(place) \(String(describing: error))")
        }
        #expect(try MovableContainer.listing(movable.scratch.url) == before)
    }

    @Test func `leftovers of a killed backup are removed by the next one`() async throws {
        let movable = try await MovableContainer()
        let tool = try Tool()
        let backups = movable.scratch["Backups"]
        try FileManager.default.createDirectory(at: backups, withIntermediateDirectories: true)
        let arguments = ["store", "backup", movable.source.path, backups.path]
        let killed = try await tool.run(arguments, environment: ["TIDEMARK_KILL_AT": "described"])
        #expect(killed.signal == SIGKILL, "\(killed.errors)")
        let left = try FileManager.default.contentsOfDirectory(atPath: backups.path)
        #expect(left.count == 1 && left[0].hasPrefix(".Test-") && left[0].hasSuffix(".tidemark.unfinished"))
        #expect(try await tool.run(arguments).status == 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: backups.path)
        #expect(names.count == 1 && names[0].hasPrefix("Test-"), "\(names)")
    }

    @Test func `a backup is of one moment while another process writes`() async throws {
        let movable = try await MovableContainer(records: 400)
        let tool = try Tool()
        // Both stores count up, the private one first: a backup has both counts equal, or the private one ahead by one.
        let container = try ContainerDirectory(openingAt: movable.source)
        for scope in ContainerDirectory.scopes {
            try DatabaseQueue.execute(container.store(scope), "INSERT INTO tide_meta (key, value) VALUES ('count', 0)")
        }
        let isDone = LockedValue(false)
        async let writing: Int = {
            let locks = try ContainerDirectory.scopes.map { try CountedStore(container, $0) }
            var count = 0
            while !isDone.withLock({ $0 }) {
                count += 1
                for lock in locks { try lock.set(count) }
            }
            return count
        }()
        // Even after an error, because the writer would not end otherwise.
        defer { isDone.withLock { $0 = true } }
        for number in 0..<6 {
            let result = try await tool.run([
                "store", "backup", movable.source.path, movable.scratch["\(number).tidemark"].path, "--json",
            ])
            #expect(result.status == 0, "\(result.errors)")
            let backup = try ContainerDirectory(openingAt: movable.scratch["\(number).tidemark"])
            let counts = try ContainerDirectory.scopes.map { scope in
                try StoreReader(container: backup, scope: scope).database.read { db in
                    try Int.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'count'") ?? -1
                }
            }
            #expect(counts[0] - counts[1] == 0 || counts[0] - counts[1] == 1, "\(counts)")
            #expect(try MovableContainer.verification(of: backup.url).isOK)
        }
        isDone.withLock { $0 = true }
        #expect(try await writing > 6)
    }

    @Test func `a backup starts again if the first writer comes while it reads`() async throws {
        let movable = try await MovableContainer()
        let container = try ContainerDirectory(openingAt: movable.source)
        for scope in ContainerDirectory.scopes {
            try FileManager.default.removeItem(atPath: container.store(scope).path + "-shm")
        }
        let copied = LockedValue(0)
        var backup = ContainerBackup(of: container, to: movable.target)
        backup.hook = { step in
            guard step == .databaseCopied,
                copied.withLock({
                    $0 += 1
                    return $0
                }) == 1
            else { return }
            for scope in ContainerDirectory.scopes {
                try DatabaseQueue.execute(container.store(scope), "INSERT INTO tide_meta (key, value) VALUES ('count', 1)")
            }
        }
        try backup.run()
        // The first store, and then both again.
        #expect(copied.withLock { $0 } == 3)
        let copy = try ContainerDirectory(openingAt: movable.target)
        let counts = try ContainerDirectory.scopes.map { scope in
            try StoreReader(container: copy, scope: scope).database.read { db in
                try Int.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'count'")
            }
        }
        #expect(counts == [1, 1])
        #expect(try MovableContainer.verification(of: movable.target).isOK)
    }

    /// Writes to a store under its lock.
    private final class CountedStore: @unchecked Sendable {
        private let queue: DatabaseQueue
        private let lock: StoreLock

        init(_ container: ContainerDirectory, _ scope: StoreScope) throws {
            queue = try DatabaseQueue(path: container.store(scope).path)
            lock = try StoreLock(at: URL(fileURLWithPath: container.store(scope).path + "-lock"))
        }

        func set(_ count: Int) throws {
            try lock.withLock(timeout: .seconds(30)) {
                try queue.inDatabase { try $0.execute(sql: "UPDATE tide_meta SET value = \(count) WHERE key = 'count'") }
            }
        }
    }

    @Test func `a restored container has the records of the backup, and a new history`() async throws {
        let movable = try await MovableContainer()
        let backup = movable.scratch["Backup.tidemark"]
        let container = try ContainerDirectory(openingAt: movable.source)
        try ContainerBackup(of: container, to: backup).run()
        let summary = try ContainerRestoration(of: ContainerDirectory(openingAt: backup), to: movable.target).run()
        #expect(summary.records == 120 && summary.assets == 6 && !summary.hasReplaced)
        #expect(try MovableContainer.state(of: backup) == movable.state)
        let restored = try MovableContainer.state(of: movable.target)
        #expect(restored != movable.state && isWritten(restored, as: movable.state))
        let identity = try #require(try historyIdentity(movable.target))
        #expect(UUID(uuidString: identity) != nil && identity != "11111111-1111-1111-1111-111111111111")
        #expect(try MovableContainer.verification(of: movable.target).isOK)
    }

    @Test func `a container is replaced only on request and by a whole one, and open containers notice it`() async throws {
        let movable = try await MovableContainer()
        let backup = movable.scratch["Backup.tidemark"]
        let container = try ContainerDirectory(openingAt: movable.source)
        try ContainerBackup(of: container, to: backup).run()
        try await movable.scratch.importing(lines: [#"{"id": "late", "caption": "late"}"#], .destination())
        try Data("mine".utf8).write(to: movable.source.appendingPathComponent("letter.txt"))
        let opened = try ContainerDirectory(openingAt: backup)
        let before = try MovableContainer.listing(movable.source)
        let refused = try #require(try storeError { try ContainerRestoration(of: opened, to: movable.source).run() })
        #expect(refused.code == .cannotMove)
        #expect(refused.message.hasSuffix("to have it replaced, say so (--replace)"))
        #expect(try MovableContainer.listing(movable.source) == before)
        let summary = try ContainerRestoration(of: opened, to: movable.source, replaces: true).run()
        #expect(summary.hasReplaced)
        #expect(isWritten(try MovableContainer.state(of: movable.source), as: movable.state))
        #expect(try storeError { try container.checkPlace() }?.code == .moved)
        let kept = try #require(summary.kept)
        #expect(try MovableContainer.listing(URL(fileURLWithPath: kept)) == ["letter.txt": Data("mine".utf8)])
    }

    @Test func `a replacement is durable before any file of the old container is deleted`() async throws {
        let movable = try await MovableContainer()
        let (place, backup, log) = (movable.source, movable.scratch["Backup.tidemark"], StepLog())
        try ContainerBackup(of: ContainerDirectory(openingAt: place), to: backup).run()
        let folder: @Sendable () -> UInt64 = {
            var status = stat()
            return stat(place.path, &status) == 0 ? UInt64(status.st_ino) : 0
        }
        let (old, parent) = (folder(), place.deletingLastPathComponent().path)
        let note: @Sendable (String) -> Void = { if $0 == parent { log.add(folder() == old ? "old" : "new") } }
        var restoration = ContainerRestoration(of: try ContainerDirectory(openingAt: backup), to: place, replaces: true)
        restoration.hook = { log.add($0.rawValue) }
        try DurableFile.$onSynchronized.withValue(.init(note)) { try restoration.run() }
        let replaced = try #require(log.all.firstIndex(of: "replaced"))
        #expect(log.all[..<replaced].suffix(2) == ["described", "new"])
    }

    @Test func `a damaged backup, or one of another container, replaces nothing`() async throws {
        let (movable, other) = (try await MovableContainer(), try await MovableContainer())
        let backup = movable.scratch["Backup.tidemark"]
        try ContainerBackup(of: ContainerDirectory(openingAt: movable.source), to: backup).run()
        let opened = try ContainerDirectory(openingAt: backup)
        let foreign = try storeError { try ContainerRestoration(of: opened, to: other.source, replaces: true).run() }
        #expect(foreign?.message.contains("is another container than the one that was backed up") == true)
        #expect(try MovableContainer.state(of: other.source) == other.state)
        try movable.scratch.write("mine", to: "Folder/letter.txt")
        let folder = try storeError { try ContainerRestoration(of: opened, to: movable.scratch["Folder"], replaces: true).run() }
        #expect(folder?.code == .cannotMove)
        let assets = backup.appendingPathComponent("assets")
        let path = try #require(try FileManager.default.subpathsOfDirectory(atPath: assets.path).first { $0.count > 2 })
        try FileManager.default.removeItem(at: assets.appendingPathComponent(path))
        let before = try MovableContainer.listing(movable.source)
        let damaged = try #require(
            try storeError { try ContainerRestoration(of: opened, to: movable.source, replaces: true).run() })
        #expect(damaged.code == .corrupt)
        #expect(damaged.message.contains("and nothing was restored"))
        #expect(try MovableContainer.listing(movable.source) == before)
    }

    @Test func `a damaged container can be replaced`() async throws {
        let movable = try await MovableContainer()
        let backup = movable.scratch["Backup.tidemark"]
        try ContainerBackup(of: ContainerDirectory(openingAt: movable.source), to: backup).run()
        for name in ["private.sqlite", "container.json"] {
            try Data("nonsense".utf8).write(to: movable.source.appendingPathComponent(name))
        }
        try ContainerRestoration(of: ContainerDirectory(openingAt: backup), to: movable.source, replaces: true).run()
        #expect(isWritten(try MovableContainer.state(of: movable.source), as: movable.state))
    }

    @Test(arguments: [MoveStep.databaseCopied, .described, .replaced])
    func `after a kill during a replacement, the old container or the new one is there`(
        step: MoveStep
    ) async throws {
        let movable = try await MovableContainer()
        let tool = try Tool()
        let backup = movable.scratch["Backup.tidemark"]
        #expect(try await tool.run(["store", "backup", movable.source.path, backup.path]).status == 0)
        try await movable.scratch.importing(lines: [#"{"id": "late", "caption": "late"}"#], .destination())
        let state = try MovableContainer.state(of: movable.source)
        let arguments = ["store", "restore", backup.path, movable.source.path, "--replace"]
        let killed = try await tool.run(arguments, environment: ["TIDEMARK_KILL_AT": step.rawValue])
        #expect(killed.signal == SIGKILL, "\(killed.errors)")
        let after = try MovableContainer.state(of: movable.source)
        #expect(step == .replaced ? isWritten(after, as: movable.state) : after == state)
        let again = try await tool.run(arguments)
        #expect(again.status == 0, "\(again.errors)")
        #expect(isWritten(try MovableContainer.state(of: movable.source), as: movable.state))
        let left = try FileManager.default.contentsOfDirectory(atPath: movable.scratch.url.path)
        #expect(!left.contains { $0.hasPrefix(".") }, "\(left)")
    }
}
