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

/// Goal: a loss of the default zone in the cloud concerns its own records only, and not shared ones. Method: a container with a
/// shared record and others, with unsent edits, whose default zone is deleted.
@Suite(.timeLimit(.minutes(30))) struct DefaultZoneTests {
    private static let zone = CloudZoneID("TidemarkZone")

    private struct Places {
        let anna, second: Person
        let database: EmbeddedDatabase
        let share: Share
    }

    /// Anna shares `senja` and `old`, has `lofoten` in the default zone, and has unsent edits and a deletion.
    ///
    /// - Parameter elsewhere: Whether another device of hers has edited `senja`, too. Otherwise the shared zone has no changes,
    ///   and the default zone is requested next.
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

    @Test func `a default zone that is gone is made again with its records, and shared records are unaffected`() async throws {
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

    @Test func `a purged default zone loses its records, and shared records are unaffected`() async throws {
        let scratch = try Scratch()
        let places = try await places(scratch, elsewhere: true)
        let anna = places.anna
        try await places.database.purgeZone(Self.zone)
        #expect(try await anna.sync().failure != nil)
        #expect(try await anna.captions() == ["senja": "Senja, edited"])
        #expect(try await anna.container.fetchShares().map(\.zone) == [places.share.zone])
        // Unsent edits are kept as refused, and never sent again.
        let refused = try anna.container.refusedSaves()
        #expect(refused.map(\.record.name) == ["lofoten"])
        #expect(refused.first?.after["caption"] == .string("Lofoten, edited"))
        try await anna.container.save(Destination("later", caption: "Later"))
        #expect(try await anna.sync().failure != nil)
        await #expect(throws: CloudError(.userDeletedZone, "")) { _ = try await names(Self.zone, places.database) }
        // After another sign-in the edits of shared records are sent, the deletion included.
        try await RecordStore(container: anna.container.directory).updateSyncState { $0.isPurged = false }
        #expect(try await anna.sync().isComplete)
        #expect(try await names(places.share.zone.cloudZone, places.database) == ["senja"])
        #expect(try await names(Self.zone, places.database) == ["later"])
        #expect(try await anna.container.fetch(Destination.self, named: "senja")?.rating == 5)
    }
}
