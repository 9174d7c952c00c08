import Foundation
import Tidemark
import TidemarkContainers
import TidemarkModel

/// The examples of the doc comments in `Sources/Tidemark`. Not run.
extension Guide {
    static func asset(_ photo: URL, of destination: inout Destination) throws -> Data? {
        destination.image = Asset(fileURL: photo) // ingested when the record is saved
        let data = try destination.image?.data() // of a record that was fetched
        return data
    }

    static func picture(
        _ photo: URL, of destination: inout Sight, in journal: PersistentContainer
    ) async throws {
        let picture = try await ScaledPicture(contentsOf: photo, maxPixelSize: 2_048, quality: 0.8, thumbnailPixelSize: 256)
        destination.image = picture.image
        destination.imageThumbnail = picture.thumbnail
        try await journal.save(destination)
    }

    static func changes(
        _ journal: PersistentContainer, since savedToken: ContainerToken, show: ([RecordName]) -> Void
    ) async throws {
        for try await change in journal.changes(since: savedToken) {
            show(change.changes.map(\.record))
        }
    }

    static func context(_ journal: PersistentContainer) async throws -> SaveResult {
        let context = journal.newContext()
        var senja = try await context.fetch(Destination.self, named: "senja")!
        senja.caption = "Senja in winter"
        try await context.update(senja)
        let result = try await context.save() // result.conflicts tells what others had changed
        return result
    }

    static func shares(_ journal: PersistentContainer, of trips: [Models.Trip]) async throws -> [RecordName: Share] {
        let shares = try await journal.fetchShares(matching: trips.map { RecordName($0) })
        return shares
    }

    static func container(_ photo: URL) async throws -> [Destination] {
        let journal = try PersistentContainer(named: "Journal")
        try await journal.save(Destination(caption: "Senja", image: Asset(fileURL: photo)))
        let newest = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 10)
        return newest
    }

    static func readOnly(show: ([Destination]) -> Void, reload: (ContainerChange) -> Void) async throws {
        let journal = try ReadOnlyContainer(named: "Journal", at: .group("group.com.example.journal"))
        let newest = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 3)
        for try await change in journal.changes() { reload(change) }
        show(newest)
    }

    static func predicates(_ journal: PersistentContainer, lastWeek: Date) async throws -> [[Destination]] {
        let recent = try await journal.fetchAll(
            Destination.self, where: \.createdAt > lastWeek && .field(\.caption).contains("fjord"))
        let long = try await journal.fetchAll(Destination.self, where: .sql("length(details) > ?", 1000))
        let rated = try await journal.fetchAll(Destination.self, where: .field("rating") >= 4)
        let fjords = try await journal.fetchAll(
            Destination.self, where: .field(\.caption).contains("fjord", options: [.caseInsensitive]))
        return [recent, long, rated, fjords]
    }

    static func orders(_ journal: PersistentContainer) async throws -> [[Destination]] {
        let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
        let byCaption = try await journal.fetchAll(
            Destination.self, sortedBy: [.ascending(\.caption, order: .localizedStandard)])

        let norwegian = TextOrder.localized(Locale(identifier: "nb_NO"))
        let places = try await journal.fetchAll(Destination.self, sortedBy: [.ascending(\.caption, order: norwegian)])
        return [try await journal.fetchAll(Destination.self, sortedBy: newestFirst), byCaption, places]
    }

    static func unreadable(_ journal: PersistentContainer) async throws -> [Destination] {
        let result = try await journal.fetchResult(Destination.self, sortedBy: [.descending(\.createdAt)])
        for it in result.unreadable { print("\(it.record.name) needs a newer version") }
        return result.records
    }

    struct Stay: Record, Identifiable {
        enum CodingKeys: String, CodingKey {
            case id, nights
            case title = "heading"
        }

        static let formerFieldNames = ["heading": ["caption", "name"]]
        static var prototype: Stay? { Stay(title: "") }

        var id = UUID()
        var title: String
        var nights = 1

        static func fieldName(of property: PartialKeyPath<Stay>) -> String? { property == \Stay.title ? "heading" : nil }
    }

    @MainActor
    static func observe(
        _ journal: PersistentContainer, show: ([Destination]) -> Void, reloadRow: (Int) -> Void
    ) async throws -> ([Destination], Destination?, Int, ObservedRecords<Destination>) {
        var (destinations, senja, badge) = ([Destination](), Destination?.none, 0)
        let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
        for try await list in journal.observe(Destination.self, sortedBy: newestFirst) {
            destinations = list.records
        }
        for try await list in journal.observe(Destination.self, where: \.rating >= 4, limit: 10) {
            show(list.records)
        }
        for try await list in journal.observe(Destination.self, named: "senja") {
            senja = list.first
        }
        for try await count in journal.observeCount(Destination.self, where: \.rating >= 4) {
            badge = count
        }
        for try await list in journal.observe(Destination.self, sortedBy: [.ascending(\.caption)]) {
            print(list.count, "destinations,", list.changes.inserted.count, "of them new")
        }
        for try await list in journal.observe(Destination.self) {
            for position in list.changes.changed { reloadRow(position.index) }
        }
        let good = ObservedRecords(journal, Destination.self, where: \.rating >= 4)
        return (destinations, senja, badge, good)
    }

    static func observeJoined(_ journal: PersistentContainer) -> FetchObservation<[Destination]> {
        let visited = journal.observe(changesOf: [Destination.self, Visit.self]) {
            let visited = Set(try await journal.fetchAll(Visit.self).map(\.destination))
            return try await journal.fetchAll(Destination.self).filter { visited.contains(Reference($0)) }
        }
        return visited
    }

    static func signOut(_ journal: PersistentContainer) async throws {
        let setAside = try await journal.signOut()
        print("\(setAside?.records ?? 0) records set aside, \(setAside?.pending ?? 0) changes not in the cloud")
    }

    static func share(_ journal: PersistentContainer, _ senja: Destination, in databases: CloudDatabases) async throws {
        let both = try await journal.sync(with: databases)
        Task { try await both.run() }

        let share = try await journal.share(senja, title: senja.caption, in: databases)
        let ben = UserLookUp.emailAddress("ben@example.org")
        try await journal.updateParticipants(of: share, [.invite(ben, role: .privateUser, permission: .readWrite)], in: databases)
        let link = try await journal.makeLink(to: share, in: databases)
        print(link.token)
    }

    static func synchronise(
        _ journal: PersistentContainer, with database: any CloudDatabase, show: (ContainerEvent) -> Void
    ) async throws {
        let engine = try await journal.syncEngine(with: database)
        Task { try await engine.run() }
        for await event in engine.events { show(event) }
    }

    static func several(_ journal: PersistentContainer) async throws {
        let senja = Destination(caption: "Senja")
        try await journal.save([senja, Visit(destination: Reference(senja))])
    }

    static func saveAndFetch(_ journal: PersistentContainer) async throws -> Bool {
        let senja = try await journal.saveAndFetch(Destination(caption: "Senja"))
        let fetched = try await journal.fetch(Destination.self, id: senja.id) // is equal to `senja`
        return fetched?.caption == senja.caption
    }

    static func inBatches(_ journal: PersistentContainer, _ destinations: [Destination]) async throws {
        try await journal.saveInBatches(destinations) { saved in print("\(saved) of \(destinations.count)") }
    }

    static func rounded(_ destination: inout Destination) {
        destination.createdAt = Date().stored
    }
}
