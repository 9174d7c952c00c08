import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkStore

/// Goal: the examples of the guide on moving into a group work. Method: its functions run against real containers.
@Suite(.timeLimit(.minutes(30))) struct GuideMovingTests {
    private func former(_ scratch: Scratch) async throws -> URL {
        let old = scratch["old/Journal.tidemark"]
        try FileManager.default.createDirectory(at: old.deletingLastPathComponent(), withIntermediateDirectories: true)
        let journal = try PersistentContainer(directory: ContainerDirectory(openingOrCreatingAt: old))
        try await journal.save(Guide.Destination(caption: "Senja", image: Asset(data: Picture.png(1))))
        return old
    }

    @Test func `a container is moved when it is first opened in the group, and never again`() async throws {
        let scratch = try Scratch()
        let old = try await former(scratch)
        let new = scratch["group/Journal.tidemark"]
        let identity = try ContainerDirectory(openingAt: old).description.identity
        for _ in 0..<2 {
            let journal = try Guide.openMoved(
                from: .directory(old.deletingLastPathComponent()), into: .directory(new.deletingLastPathComponent()))
            #expect(journal.directory.url.path == new.path)
            #expect(journal.directory.description.identity == identity)
            let found = try await journal.fetchAll(Guide.Destination.self)
            #expect(found.map(\.caption) == ["Senja"])
            #expect(try found.first?.image?.data() == Picture.png(1))
        }
        #expect(try Guide.find(old)?.path == new.path)
        #expect(throws: StoreError(.moved, "")) { try ContainerDirectory(openingAt: old) }
        // Without a container to move, a new one is opened.
        let other = try Guide.openMoved(from: .directory(scratch["none"]), into: .directory(scratch["another"]))
        #expect(try await other.count(Guide.Destination.self) == 0)
    }

    @Test(arguments: [true, false]) func `a careful move is finished or undone`(isGood: Bool) async throws {
        let scratch = try Scratch()
        let old = try await former(scratch)
        let new = scratch["group/Journal.tidemark"]
        try FileManager.default.createDirectory(at: new.deletingLastPathComponent(), withIntermediateDirectories: true)
        let plan = try Guide.rehearse(from: old, to: new)
        #expect(plan.reasonsAgainst == [] && plan.assets == 1)
        try await Guide.moveCarefully(from: old, to: new) { journal in
            let count = try await journal.count(Guide.Destination.self)
            #expect(count == 1)
            return isGood
        }
        let place = isGood ? new : old
        let journal = try PersistentContainer(directory: ContainerDirectory(openingAt: place))
        #expect(try await journal.fetchAll(Guide.Destination.self).map(\.caption) == ["Senja"])
        #expect(FileManager.default.fileExists(atPath: new.path) == isGood)
    }
}
