import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: what becomes of the default zone in the cloud concerns the records in it, and not those that are shared. Method: a container with a
/// shared record and others, with edits that were not sent, whose default zone goes.
@Suite(.timeLimit(.minutes(30))) struct DefaultZoneTests {
    private static let zone = CloudZoneID("TidemarkZone")

    private struct Places {
        let anna, second: Person
        let database: EmbeddedDatabase
        let share: Share
    }

    /// Anna shares `senja` and `old`, has `lofoten` beside it, and has edited and deleted what no cloud knows of.
    ///
    /// - Parameter elsewhere: Whether another device of hers has edited `senja`, too. Else what is shared has no news, and the next that is
    ///   asked for is the default zone.
    private func places(_ scratch: Scratch, elsewhere: Bool) async throws -> Places {
        let place = try TwoUserFixture(scratch)
        let (anna, second) = (try await place.person("anna"), try await place.person("anna", device: "2"))
        let senja = Destination("senja", caption: "Senja")
        var old = Destination("old", caption: "Old")
        old.neighbour = Reference("senja")
        try await anna.container.save([senja, old, Destination("lofoten", caption: "Lofoten")])
        let share = try await anna.container.share(senja, title: "Shared", in: anna.databases)
        for person in [anna, second, anna] { #expect(try await person.sync().isComplete) }
        if elsewhere {
            var hers = try #require(try await second.container.fetch(Destination.self, named: "senja"))
            hers.rating = 5
            try await second.container.save(hers)
            try await second.sync()
        }
        for name in ["senja", "lofoten"] {
            var mine = try #require(try await anna.container.fetch(Destination.self, named: name))
            mine.caption += ", edited"
            try await anna.container.save(mine)
        }
        try await anna.container.delete(Destination.self, named: "old")
        let account = try #require(try await place.cloud.account(anna.email))
        return Places(
            anna: anna, second: second,
            database: try place.cloud.database(.private, of: TwoUserFixture.container, account: account.id), share: share)
    }

    private func names(_ zone: CloudZoneID, _ database: EmbeddedDatabase) async throws -> [String] {
        let page = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        return page.changes.compactMap { change in
            if case .saved(let record) = change, record.type == "Destination" { record.id.recordName } else { nil }
        }.sorted()
    }

    @Test func `a default zone that is gone is made anew with what was in it, and what is shared goes on where it was`()
        async throws
    {
        let scratch = try Scratch()
        let places = try await places(scratch, elsewhere: false)
        try await places.database.modifyZones(saving: [], deleting: [Self.zone])
        let sync = try await places.anna.container.sync(with: places.anna.databases)
        #expect(try await sync.sync(patience: .seconds(600)).isComplete)
        sync.close()
        #expect(try await names(Self.zone, places.database) == ["lofoten"])
        #expect(try await names(places.share.zone.cloudZone, places.database) == ["senja"])
        #expect(try await places.anna.captions() == ["senja": "Senja, edited", "lofoten": "Lofoten, edited"])
        #expect(try await places.anna.container.fetchShares().map(\.zone) == [places.share.zone])
        #expect(try places.anna.container.refusedSaves().isEmpty)
    }

    @Test func `a default zone that was purged empties itself, and not what is shared`() async throws {
        let scratch = try Scratch()
        let places = try await places(scratch, elsewhere: true)
        let anna = places.anna
        try await places.database.purgeZone(Self.zone)
        #expect(try await anna.sync().failure != nil)
        #expect(try await anna.captions() == ["senja": "Senja, edited"])
        #expect(try await anna.container.fetchShares().map(\.zone) == [places.share.zone])
        // What was not sent is kept, but never sent again.
        let refused = try anna.container.refusedSaves()
        #expect(refused.map(\.record.name) == ["lofoten"])
        #expect(refused.first?.after["caption"] == .string("Lofoten, edited"))
        try await anna.container.save(Destination("later", caption: "Later"))
        #expect(try await anna.sync().failure != nil)
        await #expect(throws: CloudError(.userDeletedZone, "")) { _ = try await names(Self.zone, places.database) }
        // Somebody signs in anew: the edits of what is shared have waited, the deletion among them.
        try await RecordStore(container: anna.container.directory).updateSyncState { $0.isPurged = false }
        #expect(try await anna.sync().isComplete)
        #expect(try await names(places.share.zone.cloudZone, places.database) == ["senja"])
        #expect(try await names(Self.zone, places.database) == ["later"])
        #expect(try await anna.container.fetch(Destination.self, named: "senja")?.rating == 5)
    }
}
