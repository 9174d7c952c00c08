import Foundation
import TestSupport
import Testing
import TidemarkContainers
import TidemarkSQLite
import TidemarkStore

/// Goal: at whatever moment a move is killed, exactly one whole container is there, and the move can be continued or undone.
/// Method: SIGKILL of real processes, after each step and at random moments; whole states. Tests/Prove/kill-move.py makes more
/// runs.
@Suite(.timeLimit(.minutes(30))) struct MoveKillTests {
    private let tool: Tool

    init() throws { tool = try Tool() }

    private func move(_ movable: MovableContainer, _ more: [String] = []) -> [String] {
        ["store", "move", movable.source.path, movable.target.path] + more
    }

    private func killed(_ arguments: [String], at step: MoveStep) async throws {
        let result = try await tool.run(arguments, environment: ["TIDEMARK_KILL_AT": step.rawValue])
        #expect(result.signal == SIGKILL, "\(step): \(result.errors)")
    }

    static let forward: [MoveStep] = [
        .claimed, .drafted, .databaseCopied, .assetCopied, .copied, .verified, .described, .switched, .released,
        .oldDatabasesRemoved,
        .oldAssetsRemoved, .oldLocksRemoved,
    ]
    static let beforeSwitch = Array(forward.prefix { $0 != .switched })

    @Test(arguments: forward) func `a move that is killed after a step leaves one container, and can be continued`(
        step: MoveStep
    ) async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: step)
        let isBefore = Self.beforeSwitch.contains(step)
        #expect(try movable.open() == [isBefore ? movable.source : movable.target])
        // The copy that does not count yet can't be opened for writing either.
        #expect(throws: StoreError.self) {
            try ContainerDirectory(openingOrCreatingAt: isBefore ? movable.target : movable.source)
        }
        let result = try await tool.run(move(movable, ["--json"]))
        #expect(result.status == 0, "\(result.errors)")
        #expect(try result.json()["sourceIsDeleted"] as? Bool == true)
        #expect(try movable.open() == [movable.target])
        #expect(try FileManager.default.contentsOfDirectory(atPath: movable.source.path) == ["container.json"])
        #expect(try MovableContainer.verification(of: movable.target).isOK)
        #expect(try await tool.run(move(movable, ["--json"])).json()["alreadyMoved"] as? Bool == true)
    }

    @Test(arguments: beforeSwitch)
    func `before the switch, a killed move leaves a container that can be written, and can be undone`(
        step: MoveStep
    ) async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: step)
        // The container changes, so that the next move may not use the earlier copy.
        try await movable.scratch.importing(lines: [#"{"id": "late", "caption": "late"}"#], .destination())
        let state = try MovableContainer.state(of: movable.source)
        #expect(state != movable.state)
        let undone = try await tool.run(move(movable, ["--rollback"]))
        #expect(undone.status == 0, "\(undone.errors)")
        #expect(try MovableContainer.state(of: movable.source) == state)
        #expect(!FileManager.default.fileExists(atPath: movable.target.path))
        #expect(!FileManager.default.fileExists(atPath: movable.source.appendingPathComponent("moving-to.json").path))
        #expect(try await tool.run(move(movable)).status == 0)
        #expect(try MovableContainer.state(of: movable.target) == state)
    }

    @Test(arguments: beforeSwitch) func `before the switch, a killed move is continued with all records that were written since`(
        step: MoveStep
    ) async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: step)
        try movable.scratch.write(Picture.png(77), to: "77.png")
        try await movable.scratch.importing(
            lines: [#"{"id": "late", "caption": "late", "image": "77.png"}"#], .destination { $0.assetFields = ["image"] })
        let state = try MovableContainer.state(of: movable.source)
        #expect(try await tool.run(move(movable)).status == 0)
        #expect(try MovableContainer.state(of: movable.target) == state)
    }

    @Test(arguments: [MoveStep.recalled, .switchedBack, .copyRemoved]) func `an undo that is killed leaves one container`(
        step: MoveStep
    ) async throws {
        for goesOn in [true, false] {
            let movable = try await MovableContainer()
            #expect(try await tool.run(move(movable, ["--keep-source"])).status == 0)
            try await killed(["store", "move", movable.source.path, "--rollback"], at: step)
            #expect(try movable.open() == [step == .recalled ? movable.target : movable.source])
            if goesOn {
                let result = try await tool.run(move(movable))
                #expect(result.status == 0, "\(result.errors)")
                #expect(try movable.open() == [movable.target])
            } else {
                let result = try await tool.run(move(movable, ["--rollback"]))
                // After the last step there is nothing left to undo.
                #expect(result.status == (step == .copyRemoved ? 73 : 0), "\(result.errors)")
                #expect(try movable.open() == [movable.source])
                #expect(!FileManager.default.fileExists(atPath: movable.target.path))
            }
        }
    }

    @Test func `a copy that an interrupted move has left is reported as that`() async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: .described)
        let copy = try await tool.run(["verify", movable.target.path])
        #expect(copy.status == 66)
        #expect(
            copy.errors.hasPrefix(
                "tidemark: \(movable.target.path) is the copy of a move that is not done: the container is at \(movable.source.path). "
            ))
        // The container may have moved elsewhere since; the copy can still be removed.
        let elsewhere = movable.source.deletingLastPathComponent().appendingPathComponent("Elsewhere.tidemark")
        #expect(try await tool.run(["store", "move", movable.source.path, elsewhere.path]).status == 0)
        #expect(try movable.open() == [])
        #expect(try MovableContainer.state(of: elsewhere) == movable.state)
        let given = try await tool.run(["verify", movable.target.path])
        #expect(
            given.errors.contains(
                "the copy of a move that was given up: the container has moved to \(elsewhere.path). To remove it"))
        let undone = try await tool.run(move(movable, ["--rollback"]))
        #expect(undone.output == "The container is at \(elsewhere.path) as before.\n")
        #expect(!FileManager.default.fileExists(atPath: movable.target.path))
        #expect(try MovableContainer.state(of: elsewhere) == movable.state)
    }

    @Test func `an incomplete copy does not count as the container while its source is missing`() async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: .switched)
        #expect(try movable.open() == [movable.target])
        try FileManager.default.moveItem(at: movable.source, to: movable.scratch["unplugged"])
        let error = try #require(try storeError { _ = try ContainerDirectory(openingAt: movable.target) })
        #expect(error.code == .incompleteCopy)
        #expect(error.message.contains("which is not to be seen from here"))
        try FileManager.default.moveItem(at: movable.scratch["unplugged"], to: movable.source)
        #expect(try movable.open() == [movable.target])
        // If the source is gone permanently, a person can make the copy the container.
        try FileManager.default.removeItem(at: movable.source)
        #expect(try movable.open() == [])
        try StoreMover(from: movable.source, to: movable.target).finish()
        #expect(try MovableContainer.state(of: movable.target) == movable.state)
    }

    @Test func `a container whose move was killed right after the switch can be moved on, and back`() async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: .switched)
        let third = movable.source.deletingLastPathComponent().appendingPathComponent("Third.tidemark")
        #expect(try await tool.run(["store", "move", movable.target.path, third.path]).status == 0)
        #expect(try MovableContainer.state(of: third) == movable.state)
        #expect(try movable.open() == [])
        let back = try await tool.run(["store", "move", third.path, movable.target.path])
        #expect(back.status == 0, "\(back.errors)")
        #expect(try movable.open() == [movable.target])
        // The old files of the first move are still to be deleted.
        #expect(try await tool.run(move(movable)).status == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: movable.source.path) == ["container.json"])
        #expect(try movable.open() == [movable.target])
    }

    @Test func `an asset that an interrupted move has left damaged is copied again`() async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: .copied)
        let assets = movable.target.appendingPathComponent("assets")
        let path = try #require(try FileManager.default.subpathsOfDirectory(atPath: assets.path).first { $0.count > 2 })
        let content = try Data(contentsOf: assets.appendingPathComponent(path))
        // The copy has other bytes under that name; the source still has the right ones.
        try Data(content.map { $0 ^ 1 }).write(to: assets.appendingPathComponent(path), options: .atomic)
        #expect(try await tool.run(move(movable)).status == 0)
        #expect(try movable.open() == [movable.target])
    }

    @Test func `an incomplete copy never counts, and partial files are no obstacle`() async throws {
        let movable = try await MovableContainer()
        try await killed(move(movable), at: .copied)
        for (folder, name) in [(movable.source, "moving-to.json"), (movable.target, "moving-from.json")] {
            try Data("{".utf8).write(to: folder.appendingPathComponent(".\(name).\(UUID().uuidString)"))
        }
        let aside = movable.scratch["aside"]
        try FileManager.default.moveItem(at: movable.source, to: aside)
        #expect(try storeError { try StoreMover(from: movable.source, to: movable.target).finish() }?.code == .notFound)
        try FileManager.default.moveItem(at: aside, to: movable.source)
        #expect(try await tool.run(move(movable)).status == 0)
        #expect(try movable.open() == [movable.target])
        for folder in [movable.source, movable.target] {
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.filter { $0.hasPrefix(".") } == [])
        }
        // The move was killed while it wrote the journal, at the very beginning.
        let again = try await MovableContainer()
        try FileManager.default.createDirectory(at: again.target, withIntermediateDirectories: true)
        try Data("{".utf8).write(to: again.target.appendingPathComponent(".moving-from.json.\(UUID().uuidString)"))
        #expect(try await tool.run(move(again)).status == 0)
        #expect(try again.open() == [again.target])
    }

    @Test func `a move that is killed at random moments ends with the same container`() async throws {
        var random = Randomness("kills of a move")
        let clock = ContinuousClock()
        let first = try await MovableContainer(records: 2500, pictures: 40)
        let start = clock.now
        #expect(try await tool.run(move(first)).status == 0)
        var length = clock.now - start
        var kills = 0
        while kills < 25 {
            let movable = try await MovableContainer(records: 2500, pictures: 40)
            var isDone = false
            while !isDone {
                let began = clock.now
                let result = try await tool.run(move(movable), killingAfter: length * Double.random(in: 0.02...1, using: &random))
                #expect(try movable.open().count == 1)
                if result.signal != nil {
                    kills += 1
                } else {
                    #expect(result.status == 0, "\(result.errors)")
                    isDone = true
                    length = min(length, clock.now - began)
                }
            }
            #expect(try movable.open() == [movable.target])
            #expect(try MovableContainer.verification(of: movable.target).isOK)
        }
    }
}
