import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a move takes everything along, once, and leaves one container. Method: real containers; the whole state before and
/// after.
@Suite(.timeLimit(.minutes(30))) struct MoveTests {
    @Test func `a move takes along every row, asset and token, and leaves a note`() async throws {
        let movable = try await MovableContainer()
        let summary = try StoreMover(from: movable.source, to: movable.target).run()
        #expect(summary.stores == 2)
        #expect(summary.assets == 6)
        #expect(summary.sourceIsDeleted && !summary.alreadyMoved)
        #expect(try MovableContainer.state(of: movable.target) == movable.state)
        #expect(try MovableContainer.verification(of: movable.target).isOK)
        #expect(try FileManager.default.contentsOfDirectory(atPath: movable.source.path) == ["container.json"])
        let error = try #require(try storeError { _ = try ContainerDirectory(openingAt: movable.source) })
        #expect(error.code == .moved)
        #expect(
            error.message == "the container that was at \(movable.source.path) has moved to \(movable.target.path); open it there"
        )
        #expect(try storeError { _ = try ContainerDirectory(openingOrCreatingAt: movable.source) }?.code == .moved)
        #expect(!FileManager.default.fileExists(atPath: movable.target.appendingPathComponent("moving-from.json").path))
    }

    @Test(arguments: [false, true])
    func `the switch is durable before the copy counts by itself, also if a killed move is continued`(
        isKilled: Bool
    ) async throws {
        struct Stop: Error {}
        let movable = try await MovableContainer()
        let (source, log) = (movable.source.path, StepLog())
        let note: @Sendable (String) -> Void = { if $0 == source { log.add("durable") } }
        var mover = StoreMover(from: movable.source, to: movable.target)
        mover.hook = { step in
            log.add(step.rawValue)
            if isKilled, step == .switched { throw Stop() }
        }
        try DurableFile.$onSynchronized.withValue(.init(note)) {
            if isKilled {
                #expect(throws: StoreError.self) { try mover.run() }
                mover.hook = { log.add($0.rawValue) }
            }
            try mover.run()
        }
        let switched = try #require(log.all.firstIndex(of: "switched"))
        // A process that opens the copy makes the switch durable as well.
        let next = log.all[(switched + 1)...]
        #expect(next.first == "durable" && next.first { $0 != "durable" } == "released", "\(log.all)")
    }

    @Test func `every operation of a reader after a move names the new place of the container`() async throws {
        let movable = try await MovableContainer()
        let container = try ContainerDirectory(openingAt: movable.source)
        let reader = try StoreReader(container: container)
        let source = RecordSource(reader)
        let id = try #require(try reader.read { db in try String.fetchOne(db, sql: "SELECT id FROM tide_assets") })
        let asset = try reader.asset(id)
        try StoreMover(from: movable.source, to: movable.target).run()
        let beginnings: [(String, () throws -> Void)] = [
            ("a read", { _ = try reader.types() }), ("a snapshot", { _ = try reader.snapshot() }),
            ("a pinned source", { _ = try source.pinned() }), ("an asset's file", { _ = try reader.open(asset) }),
            ("an examination", { _ = try StoreVerification(of: container).run() }),
            ("a backup", { _ = try ContainerBackup(of: container, to: movable.scratch["Copy.tidemark"]).run() }),
            ("another reader", { _ = try StoreReader(container: container, scope: .shared) }),
        ]
        for (name, begin) in beginnings {
            let error = try storeError(begin)
            #expect(error?.code == .moved, "\(name): \(String(describing: error))")
            #expect(
                error?.message.contains("has moved to \(movable.target.path)") == true, "\(name): \(String(describing: error))")
        }
    }

    @Test func `readers during moves there and back see whole states, or learn where the container is`() async throws {
        let movable = try await MovableContainer()
        let places = [movable.source, movable.target]
        final class Flag: Sendable {
            let isSet = LockedValue(false)
        }
        let isOver = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { isOver.isSet.withLock { $0 = true } }
                for _ in 0..<8 {
                    try StoreMover(from: places[0], to: places[1]).run()
                    try StoreMover(from: places[1], to: places[0]).run()
                }
            }
            for number in 0..<3 {
                group.addTask {
                    var reads = 0
                    while !isOver.isSet.withLock({ $0 }) || reads == 0 {
                        do {
                            let reader = try StoreReader(container: ContainerDirectory(openingAt: places[number % 2]))
                            for pinned in [reader, try reader.snapshot()] {
                                do {
                                    let count = try pinned.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM Destination") }
                                    #expect(count == 120)
                                } catch let error as StoreError where pinned.isSnapshot && error.code == .changed {
                                    // A pinned state is gone if the copy had no index yet.
                                }
                            }
                            reads += 1
                        } catch {
                            let codes: [StoreError.Code] = [.moved, .incompleteCopy, .notFound, .notAStore]
                            let isClear = (error as? StoreError).map { codes.contains($0.code) } ?? false
                            #expect(isClear && !"\(error)".contains("SQLite error"), "\(error)")
                            if isOver.isSet.withLock({ $0 }) { break }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try MovableContainer.state(of: movable.source) == movable.state)
    }

    @Test func `the moved container is readable by its owner only`() async throws {
        let movable = try await MovableContainer()
        try FileManager.default.createDirectory(at: movable.target, withIntermediateDirectories: true)
        try StoreMover(from: movable.source, to: movable.target).run()
        func mode(_ path: String) throws -> Int? {
            let attributes = try FileManager.default.attributesOfItem(atPath: movable.target.appendingPathComponent(path).path)
            return (attributes[.posixPermissions] as? NSNumber)?.intValue
        }
        #expect(try mode("") == 0o700)
        #expect(try mode("assets") == 0o700)
        #expect(try mode("container.json") == 0o600)
    }

    @Test func `a repeated move does nothing`() async throws {
        let movable = try await MovableContainer()
        let mover = StoreMover(from: movable.source, to: movable.target)
        try mover.run()
        let before = try MovableContainer.listing(movable.scratch.url)
        let again = try mover.run()
        #expect(again.alreadyMoved && again.sourceIsDeleted)
        #expect(try mover.plan().state == .done)
        #expect(try mover.finish().alreadyMoved)
        #expect(try MovableContainer.listing(movable.scratch.url) == before)
    }

    @Test func `a container moves there and back, and on`() async throws {
        let movable = try await MovableContainer()
        let third = movable.source.deletingLastPathComponent().appendingPathComponent("Third.tidemark")
        try StoreMover(from: movable.source, to: movable.target).run()
        try StoreMover(from: movable.target, to: movable.source).run()
        #expect(try MovableContainer.state(of: movable.source) == movable.state)
        #expect(try movable.open() == [movable.source])
        try StoreMover(from: movable.source, to: movable.target).run()
        try StoreMover(from: movable.target, to: third).run()
        #expect(try MovableContainer.state(of: third) == movable.state)
        // The first of the two moves still counts as done.
        #expect(try StoreMover(from: movable.source, to: movable.target).run().alreadyMoved)
        #expect(try movable.open() == [])
    }

    @Test func `a plan says what would be copied, and changes nothing`() async throws {
        let movable = try await MovableContainer()
        let before = try MovableContainer.listing(movable.scratch.url)
        let plan = try StoreMover(from: movable.source, to: movable.target).plan()
        #expect(plan.state == .new)
        #expect(plan.stores.map(\.name) == ["private.sqlite", "shared.sqlite"])
        #expect(plan.stores.allSatisfy { $0.bytes > 0 && $0.bytes % 16384 == 0 })
        #expect(plan.assets == 6)
        #expect(plan.assetBytes > 0)
        #expect(plan.bytes == plan.stores.reduce(0) { $0 + $1.bytes })
        #expect(plan.free > plan.bytes)
        #expect(plan.reasonsAgainst == [] && plan.staying == [])
        #expect(try MovableContainer.listing(movable.scratch.url) == before)
    }

    @Test func `files that do not belong to the container stay, and are reported`() async throws {
        let movable = try await MovableContainer()
        let letter = movable.source.appendingPathComponent("letter.txt")
        let stray = movable.source.appendingPathComponent("assets/mine.txt")
        for file in [letter, stray] { try Data("mine".utf8).write(to: file) }
        let mover = StoreMover(from: movable.source, to: movable.target)
        #expect(try mover.plan().staying == ["letter.txt"])
        #expect(try mover.run().staying == ["letter.txt"])
        for file in [letter, stray] { #expect(try Data(contentsOf: file) == Data("mine".utf8)) }
        #expect(try MovableContainer.state(of: movable.target) == movable.state)
    }

    @Test func `staging is not copied, and a container without a store moves too`() async throws {
        let scratch = try Scratch()
        let made = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        try scratch.write("half", to: "Test.tidemark/staging/1.tmp")
        try StoreMover(from: scratch.container, to: scratch["New.tidemark"]).run()
        let moved = try ContainerDirectory(openingAt: scratch["New.tidemark"])
        #expect(moved.description.identity == made.description.identity)
        #expect(try FileManager.default.contentsOfDirectory(atPath: moved.url.path) == ["container.json"])
    }

    @Test func `rows that are only in the log move too`() async throws {
        let movable = try await MovableContainer()
        let container = try ContainerDirectory(openingAt: movable.source)
        let store = try RecordStore(container: container)
        try await store.declare([RecordTypeSchema(name: "Late", fields: [])], environment: .development)
        let log = URL(fileURLWithPath: container.store(.private).path + "-wal")
        try #require(try Data(contentsOf: log).count > 0)
        let state = try MovableContainer.state(of: movable.source)
        try StoreMover(from: movable.source, to: movable.target).run()
        #expect(try MovableContainer.state(of: movable.target) == state)
    }

    @Test func `symbolic links in the path are followed, and the note is left where the container was`() async throws {
        let movable = try await MovableContainer()
        let root = movable.source.deletingLastPathComponent()
        let (link, elsewhere) = (root.appendingPathComponent("link"), root.appendingPathComponent("elsewhere"))
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: movable.source)
        try FileManager.default.createDirectory(at: root.appendingPathComponent("real"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: elsewhere, withDestinationURL: root.appendingPathComponent("real"))
        let summary = try StoreMover(from: link, to: elsewhere.appendingPathComponent("New.tidemark")).run()
        #expect(summary.from == movable.source.path)
        #expect(summary.to == root.appendingPathComponent("real/New.tidemark").path)
        #expect(try MovableContainer.state(of: root.appendingPathComponent("real/New.tidemark")) == movable.state)
        #expect(try storeError { _ = try ContainerDirectory(openingAt: link) }?.code == .moved)
    }

    @Test func `a process with the container open notices that it has moved`() async throws {
        let movable = try await MovableContainer()
        let container = try ContainerDirectory(openingAt: movable.source)
        try container.checkPlace()
        try StoreMover(from: movable.source, to: movable.target, keepsSource: true).run()
        #expect(try storeError { try container.checkPlace() }?.code == .moved)
        let there = try ContainerDirectory(openingAt: movable.target)
        try StoreMover(from: movable.source, to: movable.target).rollBack()
        // The files are those that the process has open.
        try container.checkPlace()
        #expect(try storeError { try there.checkPlace() }?.code == .moved)
        try StoreMover(from: movable.source, to: movable.target).run()
        try StoreMover(from: movable.target, to: movable.source).run()
        // The container is back, but not with the files that were open.
        let error = try #require(try storeError { try container.checkPlace() })
        #expect(error.code == .moved)
        #expect(error.message.hasPrefix("another container has come to the place of the one that was opened at "))
    }

    @Test func `a writer that has the store open writes nothing into the old files`() async throws {
        let movable = try await MovableContainer()
        let store = try RecordStore(container: ContainerDirectory(openingAt: movable.source), scope: .shared)
        let schema = RecordTypeSchema(name: "Later", fields: [])
        // Another process moves it, once keeping the old files and once deleting them.
        for options in [["--keep-source"], ["--finish"]] {
            let moved = try await Tool().run(["store", "move", movable.source.path, movable.target.path] + options)
            #expect(moved.status == 0, "\(moved.errors)")
            let error = await #expect(throws: StoreError.self) { try await store.declare([schema], environment: .development) }
            #expect(error?.code == .moved)
            #expect(error?.message.contains("has moved to \(movable.target.path); open it there") == true)
        }
        #expect(try MovableContainer.state(of: movable.target) == movable.state)
    }

    @Test func `files that are staged after the move are refused`() async throws {
        let movable = try await MovableContainer()
        let container = try ContainerDirectory(openingAt: movable.source)
        try StoreMover(from: movable.source, to: movable.target).run()
        #expect(try storeError { _ = try BlobStore(container: container) }?.code == .moved)
        #expect(try FileManager.default.contentsOfDirectory(atPath: movable.source.path) == ["container.json"])
    }

    @Test func `the locks of both stores are held from the copying to the switch`() async throws {
        let movable = try await MovableContainer()
        var mover = StoreMover(from: movable.source, to: movable.target)
        let seen = LockedValue<[String]>([])
        let source = movable.source
        mover.hook = { step in
            guard [.drafted, .copied, .verified, .described, .switched].contains(step) else { return }
            for name in ["private.sqlite-lock", "shared.sqlite-lock", "staging/lock"] {
                let lock = try StoreLock(at: source.appendingPathComponent(name))
                do {
                    try lock.acquire(shared: true, timeout: .zero)
                    seen.withLock { $0.append("\(step) \(name) is free") }
                } catch let error as StoreError {
                    #expect(error.code == .busy)
                }
            }
            if step == .verified {
                let busy = StoreError(.busy, "held")
                let message = try ContainerDirectory(openingAt: source).naming(busy).message
                seen.withLock { $0.append(message.contains("a move of \(source.path) to ") ? "named" : message) }
            }
        }
        try mover.run()
        #expect(seen.withLock { $0 } == ["named"])
    }

    @Test func `a move waits for a store in use, and then reports it`() async throws {
        let movable = try await MovableContainer()
        let before = try MovableContainer.listing(movable.source)
        for name in ["private.sqlite-lock", "shared.sqlite-lock", "staging/lock"] {
            let lock = try StoreLock(at: movable.source.appendingPathComponent(name))
            try lock.acquire(shared: name == "staging/lock", timeout: .zero)
            let mover = StoreMover(from: movable.source, to: movable.target, lockTimeout: .milliseconds(50))
            let error = try #require(try storeError { try mover.run() })
            #expect(error.code == .busy)
            lock.release()
        }
        #expect(try MovableContainer.listing(movable.source) == before)
        #expect(!FileManager.default.fileExists(atPath: movable.target.path))
    }
}
