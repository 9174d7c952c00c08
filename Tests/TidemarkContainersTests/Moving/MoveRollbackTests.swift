import Foundation
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: a move can be undone until the old files are deleted or the new place was written to. Method: moves undone at each
/// stage; whole states.
@Suite(.timeLimit(.minutes(30))) struct MoveRollbackTests {
    @Test func `a move that keeps the old files can be undone, repeated and finished`() async throws {
        let movable = try await MovableContainer()
        let mover = StoreMover(from: movable.source, to: movable.target, keepsSource: true)
        #expect(try !mover.run().sourceIsDeleted)
        #expect(try movable.open() == [movable.target])
        // Files that were to be kept stay, also without the flag.
        #expect(try !StoreMover(from: movable.source, to: movable.target).run().sourceIsDeleted)
        #expect(try mover.plan().state == .switched)
        #expect(try StoreMover.target(ofMoveFrom: movable.source)?.path == movable.target.path)
        try mover.rollBack()
        #expect(try movable.open() == [movable.source])
        #expect(!FileManager.default.fileExists(atPath: movable.target.path))
        #expect(try MovableContainer.verification(of: movable.source).isOK)
        try mover.run()
        #expect(try mover.finish().sourceIsDeleted)
        #expect(try movable.open() == [movable.target])
        #expect(try FileManager.default.contentsOfDirectory(atPath: movable.source.path) == ["container.json"])
        #expect(try storeError { try mover.rollBack() }?.code == .cannotMove)
        #expect(try movable.open() == [movable.target])
    }

    @Test func `a process with the new place open notices at once that the move is undone`() async throws {
        let movable = try await MovableContainer()
        var mover = StoreMover(from: movable.source, to: movable.target, keepsSource: true)
        try mover.run()
        let there = try ContainerDirectory(openingAt: movable.target)
        let seen = LockedValue<[StoreError.Code?]>([])
        mover.hook = { step in
            let code = try storeError { try there.checkPlace() }?.code
            if step != .copyRemoved { seen.withLock { $0.append(code) } }
        }
        try mover.rollBack()
        // The copy counts until the source does again.
        #expect(seen.withLock { $0 } == [nil, .incompleteCopy])
    }

    @Test func `a move can't be undone once the new place was written to`() async throws {
        let movable = try await MovableContainer()
        let mover = StoreMover(from: movable.source, to: movable.target, keepsSource: true)
        try mover.run()
        let store = try RecordStore(container: ContainerDirectory(openingAt: movable.target), scope: .shared)
        try await store.declare([RecordTypeSchema(name: "Later", fields: [])], environment: .development)
        let state = try MovableContainer.state(of: movable.target)
        let error = try #require(try storeError { try mover.rollBack() })
        #expect(error.code == .cannotMove)
        #expect(
            error.message.contains("was written to since the move (the definitions of tables), and undoing the move would lose"))
        #expect(try MovableContainer.state(of: movable.target) == state)
    }

    @Test func `damaged old files can't be restored`() async throws {
        let movable = try await MovableContainer()
        let mover = StoreMover(from: movable.source, to: movable.target, keepsSource: true)
        try mover.run()
        let assets = movable.source.appendingPathComponent("assets")
        let path = try #require(try FileManager.default.subpathsOfDirectory(atPath: assets.path).first { $0.count > 2 })
        try FileManager.default.removeItem(at: assets.appendingPathComponent(path))
        let error = try #require(try storeError { try mover.rollBack() })
        #expect(error.code == .cannotMove)
        #expect(error.message.contains("the old files at \(movable.source.path) are not whole any more"))
        #expect(try movable.open() == [movable.target])
    }

    @Test func `without a move there is nothing to undo or to finish`() async throws {
        let movable = try await MovableContainer()
        let mover = StoreMover(from: movable.source, to: movable.target)
        #expect(try storeError { try mover.rollBack() }?.code == .cannotMove)
        #expect(try storeError { try mover.finish() }?.code == .cannotMove)
        #expect(try movable.open() == [movable.source])
    }

    @Test func `old files are not deleted if the container is not at the target`() async throws {
        let movable = try await MovableContainer()
        let mover = StoreMover(from: movable.source, to: movable.target, keepsSource: true)
        try mover.run()
        let aside = movable.scratch["aside"]
        try FileManager.default.moveItem(at: movable.target, to: aside)
        let before = try MovableContainer.listing(movable.source)
        #expect(try storeError { try mover.finish() }?.code == .cannotMove)
        #expect(try MovableContainer.listing(movable.source) == before)
        // A container that was moved by hand is found at its new place.
        #expect(try StoreMover(from: movable.source, to: aside).finish().sourceIsDeleted)
    }

    @Test func `an interrupted import continues at the new place`() async throws {
        let scratch = try Scratch()
        let lines = (0..<300).map { #"{"id": "r\#($0)", "caption": "c\#($0)"}"# }
        let file = try scratch.writeLines(lines + ["nonsense"], to: "all.jsonl")
        let options = ImportOptions.destination { ($0.batchSize, $0.resumes) = (50, true) }
        let running = BulkImport(source: .file(file), into: scratch.container, options: options)
        let task = Task { try await running.run() }
        for await progress in running.progress where progress.summary.read >= 50 { task.cancel() }
        _ = await task.result
        try StoreMover(from: scratch.container, to: scratch["New.tidemark"]).run()
        let summary = try await BulkImport(source: .file(file), into: scratch["New.tidemark"], options: options).run()
        #expect(summary.read == 301)
        let reader = try StoreReader(container: ContainerDirectory(openingAt: scratch["New.tidemark"]))
        #expect(try reader.count(type: "Destination") == 300)
    }
}
