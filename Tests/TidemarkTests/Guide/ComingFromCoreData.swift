import Foundation
import GRDB
import Tidemark
import TidemarkModel
import TidemarkStore

/// The code of `ComingFromCoreData.md`.
extension Guide {
    /// Not run: it opens the user's own container.
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

    /// - Parameter meanwhile: The other context's change before the save.
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

    /// The cells of the article's tables.
    static func calls(
        _ journal: PersistentContainer, _ trip: Models.Trip, _ trips: [Models.Trip], _ databases: CloudDatabases
    ) async throws {
        let good: RecordPredicate<Destination> = \Destination.rating >= 4
        for condition: RecordPredicate<Destination> in [
            good, .field(\.caption).begins(with: "fj"), \.rating >= 2 && \.rating <= 4, \.rating == nil,
            .field(\.caption).contains("fjord", options: [.caseInsensitive, .diacriticInsensitive]),
            .field(\.rating).isIn([1, 2]), .sql("caption LIKE ?", "%fjord") && good,
        ] { _ = try await journal.fetchAll(Destination.self, where: condition, sortedBy: [.descending(\.createdAt)]) }
        _ = try await journal.fetchAll(Destination.self, sortedBy: [.ascending(\.caption, order: .localizedStandard)])
        _ = try await journal.fetchAll(Models.Stop.self, where: \.trip == trip)
        _ = try await journal.fetchAll(Models.Stop.self, where: .field(\.trip).matches(\.title == "Lofoten"))
        _ = try await journal.fetchAll(Models.Trip.self, where: .isReferenced(by: \Models.Stop.trip, where: \.day > 0))
        _ = try await journal.fetchAll(Models.Trip.self, where: !.isReferenced(by: \Models.Stop.trip))
        _ = try await journal.fetchAll(Models.Trip.stops, of: trips)
        _ = try await journal.counts(Models.Trip.stops, of: trips)
        _ = (try await journal.canEdit(trip), try await journal.canDelete(trip), try await journal.fetchShare(of: trip))
        _ = RecordName(trip)
        _ = try await journal.share(trip, in: databases)
        _ = try await databases.private.users(matching: [.emailAddress("ben@example.org")])
        _ = try journal.history().transactions(limit: 1).map(\.date)
        _ = try journal.history().changes(ofRecord: trip.recordName)
        _ = try journal.history().conflicts()
    }

    static func extensionOfAnApp() throws -> PersistentContainer {
        try PersistentContainer(named: "Journal", at: .group("group.com.example.journal"), role: .extension)
    }
}
