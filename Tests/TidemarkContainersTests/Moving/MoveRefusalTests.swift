import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: an impossible move is refused with the reason before anything happens, and a failing one leaves everything as it was.
/// Method: targets and sources of every wrong kind; whole listings before and after.
@Suite(.timeLimit(.minutes(30))) struct MoveRefusalTests {
    /// Tries a move that must fail, and checks that the source has not changed and nothing of the copy is left.
    private func refusal(_ movable: MovableContainer, to target: URL? = nil) throws -> StoreError {
        let places = [movable.source, target ?? movable.target]
        let before = try places.map(MovableContainer.listing)
        let error = try #require(try storeError { try StoreMover(from: movable.source, to: places[1]).run() })
        #expect(try places.map(MovableContainer.listing) == before)
        #expect(try MovableContainer.state(of: movable.source) == movable.state)
        return error
    }

    @Test func `a target with files is refused`() async throws {
        let movable = try await MovableContainer()
        try movable.scratch.write("mine", to: "Full/letter.txt")
        let full = try refusal(movable, to: movable.scratch["Full"])
        #expect(full.code == .cannotMove)
        #expect(full.message.contains("holds other files, letter.txt among them; name a place where nothing is"))
        let file = try refusal(movable, to: movable.scratch["0.png"])
        #expect(file.code == .cannotMove)
        _ = try ContainerDirectory(openingOrCreatingAt: movable.scratch["Other.tidemark"])
        #expect(try refusal(movable, to: movable.scratch["Other.tidemark"]).message.contains("holds another container"))
        try FileManager.default.copyItem(at: movable.source, to: movable.scratch["Copy.tidemark"])
        let copy = try refusal(movable, to: movable.scratch["Copy.tidemark"])
        #expect(copy.message.contains("holds a copy of the same container, which no move has made"))
    }

    @Test func `the copy of another move is refused as a target`() async throws {
        let (first, second) = (try await MovableContainer(), try await MovableContainer())
        var mover = StoreMover(from: first.source, to: first.target, keepsSource: true)
        struct Stop: Error {}
        mover.hook = { if $0 == .switched { throw Stop() } }
        #expect(throws: StoreError.self) { try mover.run() }
        #expect(try refusal(second, to: first.target).message.contains("is the copy of another move"))
        #expect(try first.open() == [first.target])
    }

    @Test func `a target that is the container, in it or around it is refused`() async throws {
        let movable = try await MovableContainer()
        let root = movable.source.deletingLastPathComponent()
        try FileManager.default.createSymbolicLink(at: root.appendingPathComponent("link"), withDestinationURL: movable.source)
        #expect(try refusal(movable, to: movable.source).message.hasSuffix("are the same place"))
        #expect(try refusal(movable, to: root.appendingPathComponent("link")).message.hasSuffix("are the same place"))
        #expect(try refusal(movable, to: root.appendingPathComponent("link/deeper/New.tidemark")).code == .cannotMove)
        #expect(try refusal(movable, to: movable.source.appendingPathComponent("assets/New.tidemark")).code == .cannotMove)
        #expect(try refusal(movable, to: root).code == .cannotMove)
        #expect(try refusal(movable, to: URL(fileURLWithPath: "/")).code == .cannotMove)
        try FileManager.default.createSymbolicLink(
            atPath: root.appendingPathComponent("dangling").path, withDestinationPath: "/nowhere/at/all")
        #expect(try refusal(movable, to: root.appendingPathComponent("dangling")).message.contains("symbolic link to nothing"))
    }

    @Test func `a missing container or store is refused as a source`() async throws {
        let scratch = try Scratch()
        func moving(_ path: String) throws -> StoreError.Code? {
            try storeError { try StoreMover(from: scratch[path], to: scratch["New.tidemark"]).run() }?.code
        }
        #expect(try moving("Nothing") == .notFound)
        try scratch.write("x", to: "Folder/x")
        #expect(try moving("Folder") == .notAStore)
        let movable = try await MovableContainer()
        try FileManager.default.removeItem(at: movable.source.appendingPathComponent("private.sqlite"))
        let lost = try storeError { try StoreMover(from: movable.source, to: movable.target).run() }
        #expect(lost?.code == .notFound)
        #expect(!FileManager.default.fileExists(atPath: movable.target.path))
    }

    @Test(arguments: ["missing", "damaged", "linked"]) func `a missing, damaged or linked asset stops the move`(
        kind: String
    ) async throws {
        let movable = try await MovableContainer()
        let assets = movable.source.appendingPathComponent("assets")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: assets.path).filter { $0.count > 2 }
        let victim = assets.appendingPathComponent(try #require(paths.min()))
        let content = try Data(contentsOf: victim)
        try FileManager.default.removeItem(at: victim)
        if kind == "damaged" { try Data(content.map { $0 ^ 1 }).write(to: victim) }
        if kind == "linked" {
            try content.write(to: movable.scratch["outside"])
            try FileManager.default.createSymbolicLink(at: victim, withDestinationURL: movable.scratch["outside"])
        }
        let error = try #require(try storeError { try StoreMover(from: movable.source, to: movable.target).run() })
        #expect(error.code == .corrupt)
        #expect(error.message.hasSuffix("; nothing was moved, the container stays at \(movable.source.path)"), "\(error.message)")
        #expect(!FileManager.default.fileExists(atPath: movable.target.path))
        #expect(!FileManager.default.fileExists(atPath: movable.source.appendingPathComponent("moving-to.json").path))
        _ = try RecordStore(container: ContainerDirectory(openingAt: movable.source))
    }

    @Test func `a database that SQLite finds damaged stops the move`() async throws {
        let movable = try await MovableContainer()
        let file = try FileHandle(forUpdating: movable.source.appendingPathComponent("private.sqlite"))
        // Damages pages of rows: the header and the registry can still be read.
        let length = try file.seekToEnd()
        try file.seek(toOffset: length - 16384)
        try file.write(contentsOf: Data(repeating: 0xff, count: 16384))
        try file.close()
        let error = try #require(try storeError { try StoreMover(from: movable.source, to: movable.target).run() })
        #expect(error.code == .corrupt, "\(error.message)")
        #expect(!FileManager.default.fileExists(atPath: movable.target.path))
    }

    @Test func `a copy that changes before it is verified is discarded`() async throws {
        let movable = try await MovableContainer()
        let target = movable.target
        for change in ["row", "asset"] {
            var mover = StoreMover(from: movable.source, to: target)
            mover.hook = { step in
                guard step == .copied else { return }
                if change == "row" {
                    try DatabaseQueue.execute(
                        target.appendingPathComponent("shared.sqlite"), "UPDATE tide_zones SET name = 'other'")
                } else {
                    let assets = target.appendingPathComponent("assets")
                    let path = try #require(
                        try FileManager.default.subpathsOfDirectory(atPath: assets.path).first { $0.count > 2 })
                    let content = try Data(contentsOf: assets.appendingPathComponent(path))
                    try Data(content.map { $0 ^ 1 }).write(to: assets.appendingPathComponent(path), options: .atomic)
                }
            }
            let error = try #require(try storeError { try mover.run() })
            #expect(error.code == .corrupt, "\(error.message)")
            if change == "row" {
                #expect(error.message.contains("it differs in values in the table tide_zones"), "\(error.message)")
            }
            #expect(try movable.open() == [movable.source])
            #expect(!FileManager.default.fileExists(atPath: target.path))
        }
    }

    @Test func `changes of a writer without our lock are not mixed into the copy`() async throws {
        let movable = try await MovableContainer()
        let source = movable.source
        var mover = StoreMover(from: source, to: movable.target)
        mover.hook = { step in
            guard step == .drafted else { return }
            try DatabaseQueue.execute(source.appendingPathComponent("private.sqlite"), "UPDATE tide_zones SET name = 'other'")
        }
        // The writer wrote after the state was fixed, so the copy has the state before, which no process has used since.
        try mover.run()
        #expect(try MovableContainer.state(of: movable.target) == movable.state)
    }

    @Test(.enabled(if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount")))
    func `a full disk at the target leaves the source as it was, and nothing behind`() async throws {
        let movable = try await MovableContainer(records: 6000)
        let disk = movable.scratch["disk"]
        try FileManager.default.createDirectory(at: disk, withIntermediateDirectories: true)
        // Not every root process may mount.
        guard try ChildProcess.run("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk.path]) == 0 else { return }
        defer { _ = try? ChildProcess.run("/bin/umount", ["-l", disk.path]) }
        let target = disk.appendingPathComponent("New.tidemark")
        // The lack of room is found beforehand.
        let reason = try refusal(movable, to: target)
        #expect(reason.code == .diskFull)
        #expect(reason.message.contains(" bytes free, and the container needs "))
        // The disk fills up during the copy.
        #expect(try ChildProcess.run("/bin/mount", ["-o", "remount,size=64m", disk.path]) == 0)
        var mover = StoreMover(from: movable.source, to: target)
        let plan = try mover.plan()
        mover.hook = { step in
            guard step == .drafted else { return }
            try Data(count: Int(plan.free - plan.bytes / 2)).write(to: disk.appendingPathComponent("ballast"))
        }
        let before = try MovableContainer.listing(movable.source)
        let full = try #require(try storeError { try mover.run() })
        #expect(full.code == .diskFull, "\(full.message)")
        #expect(full.message.hasSuffix("; nothing was moved, the container stays at \(movable.source.path)"))
        #expect(try MovableContainer.listing(movable.source) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == ["ballast"])
        #expect(try MovableContainer.state(of: movable.source) == movable.state)
        // With room, the move works across file systems: the files are copied, not linked.
        try FileManager.default.removeItem(at: disk.appendingPathComponent("ballast"))
        mover.hook = { _ in }
        try mover.run()
        #expect(try MovableContainer.state(of: target) == movable.state)
        #expect(try MovableContainer.verification(of: target).isOK)
    }
}
