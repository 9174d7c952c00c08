import Foundation
import Tidemark
import TidemarkContainers
import TidemarkStore

/// The code of `MovingIntoAGroup.md`.
extension Guide {
    static func openMoved(from former: StoreLocation, into group: StoreLocation) throws -> PersistentContainer {
        let old = try former.containerURL(named: "Journal")
        let new = try group.containerURL(named: "Journal", makingFolder: true)
        if FileManager.default.fileExists(atPath: old.path) {
            try StoreMover(from: old, to: new).run()
        }
        let journal = try PersistentContainer(named: "Journal", at: group)
        return journal
    }

    /// Not run: it opens the user's own container.
    static func openMovedIntoGroup() throws -> PersistentContainer {
        let group = StoreLocation.group("group.com.example.journal")
        return try openMoved(from: .default, into: group)
    }

    static func rehearse(from old: URL, to new: URL) throws -> MovePlan {
        let plan = try StoreMover(from: old, to: new).plan()
        print("\(plan.bytes) bytes to copy, \(plan.free) free")
        for reason in plan.reasonsAgainst { print(reason) }

        return plan
    }

    static func moveCarefully(
        from old: URL, to new: URL, isGood: (ReadOnlyContainer) async throws -> Bool
    ) async throws {
        let mover = StoreMover(from: old, to: new, keepsSource: true)
        try mover.run { progress in print(progress.phase, progress.bytes, progress.total) }

        let journal = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: new))
        if try await isGood(journal) {
            try mover.finish()
        } else {
            try mover.rollBack()
        }
    }

    static func find(_ old: URL) throws -> URL? {
        let place = try StoreMover.target(ofMoveFrom: old)

        return place
    }
}
