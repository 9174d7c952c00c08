import Foundation
import GRDB
import Tidemark
import TidemarkModel
import TidemarkStore

/// The code of `ComingFromCoreData.md`.
extension Guide {
    /// Not run: it opens the person's own.
    static func open() throws -> PersistentContainer {
        let journal = try PersistentContainer(named: "Journal", author: "Journal")
        return journal
    }

    static func add(_ photo: URL, to journal: PersistentContainer) async throws -> Destination? {
        var senja = Destination(caption: "Senja")
        senja.image = Asset(fileURL: photo)
        try await journal.save(senja)
        let saved = try await journal.fetch(Destination.self, id: senja.id)
        let file = saved?.image?.fileURL

        return file == nil ? nil : saved
    }

    static func fetch(_ journal: PersistentContainer) async throws -> (newest: [String], good: [String], unrated: Int) {
        let newest = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 10)
        let good = try await journal.fetchAll(
            Destination.self, where: \.rating >= 4 && .field(\.caption).contains("fjord"),
            sortedBy: [.descending(\.rating), .ascending(\.caption)])
        let unrated = try await journal.count(Destination.self, where: \.rating == nil)

        return (newest.map(\.caption), good.map(\.caption), unrated)
    }

    static func average(_ journal: PersistentContainer) async throws -> Double? {
        let average = try await journal.reader().read { db in
            try Double.fetchOne(db, sql: "SELECT avg(rating) FROM Destination")
        }

        return average
    }

    static func edit(_ senja: Destination, in journal: PersistentContainer) async throws -> SaveResult? {
        let context = journal.newContext()
        guard var mine = try await context.fetch(Destination.self, named: senja.recordName) else { return nil }
        mine.caption = "Senja in winter"
        try await context.update(mine)
        let result = try await context.save()
        for conflict in result.conflicts {
            print(conflict.record, conflict.field ?? "as a whole", conflict.winner)
        }

        return result
    }

    /// - Parameter meanwhile: What another does before the save.
    static func editOrTell(
        _ senja: Destination, in journal: PersistentContainer, meanwhile: () async throws -> Void,
        tell: (RecordMerge.Unresolved) -> Void
    ) async throws {
        let context = journal.newContext(mergePolicy: .error)
        guard var mine = try await context.fetch(Destination.self, named: senja.recordName) else { return }
        mine.rating = 5
        try await context.update(mine)
        try await meanwhile()

        do {
            try await context.save()
        } catch let conflicts as UnresolvedConflicts {
            for record in conflicts.records { tell(record) }
            // The edits are still there. Take what others saved, with these on top, and save again.
            try await context.refreshAll()
            try await context.save()
        }
    }

    static func batches(_ journal: PersistentContainer, _ many: [Destination]) async throws -> [[String]] {
        try await journal.save(many)
        let rated = try await journal.updateAll(Destination.self, where: \.rating == nil, set: ["rating": 3])
        let deleted = try await journal.deleteAll(Destination.self, where: \.rating < 3)

        return [rated, deleted]
    }

    static func history(_ journal: PersistentContainer, since token: HistoryToken) async throws -> HistoryToken {
        let page = try journal.history().changes(since: token)
        for it in page.transactions {
            print(it.transaction.author, it.changes.map(\.record.name))
        }
        let next = page.token

        try await journal.purgeHistory(olderThan: .seconds(30 * 86_400))

        return next
    }

    static func deleteAndUndo(_ senja: Destination, in journal: PersistentContainer) async throws {
        let deletion = try await journal.delete(senja)
        if let transaction = deletion.transactions[.private] {
            try await journal.undo(transaction: transaction)
        }
    }
}
