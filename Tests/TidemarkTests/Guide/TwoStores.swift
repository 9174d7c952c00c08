import Foundation
import GRDB
import Tidemark
import TidemarkModel
import TidemarkStore

/// The code of `TwoStores.md`.
extension Guide {
    static func useBothStores(_ journal: PersistentContainer, _ share: Share) async throws -> [Destination] {
        try await journal.save(Destination(caption: "Senja"))
        try await journal.save([Destination(caption: "Ada's Lofoten")], in: share)
        let all = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)])

        return all
    }

    @MainActor
    final class DestinationList {
        private(set) var destinations: [Destination] = []

        func follow(_ journal: PersistentContainer) async throws {
            let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
            for try await list in journal.observe(Destination.self, sortedBy: newestFirst) {
                destinations = list.records
                for deleted in list.changes.deleted { print(deleted.recordName, "is gone") }
            }
        }
    }

    @MainActor static func observe(_ journal: PersistentContainer) -> ObservedRecords<Destination> {
        let newest = ObservedRecords(journal, Destination.self, sortedBy: [.descending(\.createdAt)], limit: 10)
        return newest
    }

    static func readWithSQL(_ journal: PersistentContainer) async throws -> [String] {
        let captions = try await journal.reader().read { db in
            try String.fetchAll(db, sql: "SELECT caption FROM Destination ORDER BY createdAt DESC LIMIT 10")
        }
        return captions
    }

    static func pin(_ journal: PersistentContainer) async throws -> (Int, [Destination]) {
        let pinned = try journal.snapshot()
        let count = try await pinned.count(Destination.self)
        let newest = try await pinned.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 10)

        return (count, newest)
    }
}
