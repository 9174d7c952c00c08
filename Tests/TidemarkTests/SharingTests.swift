import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: people share records, and each container has exactly the records that its person may see, with any edits in between.
/// Method: containers of several people over one real cloud.
@Suite(.timeLimit(.minutes(30))) struct SharingTests {
    private static let senja = RecordName(type: "Destination", name: "senja")

    @Test func `a shared record arrives in the shared store of the person who accepts, and both can edit it`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        var senja = Destination("senja", caption: "Senja")
        senja.image = Asset(data: Picture.png(1))
        try await anna.container.save([senja, Destination("lofoten", caption: "Lofoten")])
        try await anna.sync()
        let (share, link) = try await anna.share(senja, with: ben)
        #expect(share.scope == .private)
        #expect(share.participants.map(\.acceptanceStatus) == [.accepted, .pending])
        #expect(try await anna.sync().isComplete)
        #expect(try await ben.sync().imported == 0)

        let accepted = try await ben.container.acceptInvitation(link, in: ben.databases)
        #expect(accepted.scope == .shared)
        #expect(accepted.title == "Shared")
        try await ben.sync()
        #expect(try await ben.captions() == ["senja": "Senja"])
        #expect(try await ben.container.fetch(Destination.self, named: "senja")?.image?.data() == Picture.png(1))
        let here = try await ben.container.fetchShares(matching: [Self.senja])
        #expect(here[Self.senja]?.owner?.identity.name?.title == "Anna Berg")

        var mine = try #require(try await ben.container.fetch(Destination.self, named: "senja"))
        mine.caption = "Senja, by Ben"
        try await ben.container.save(mine)
        try await ben.sync()
        var hers = try #require(try await anna.container.fetch(Destination.self, named: "senja"))
        hers.details = "an island"
        try await anna.container.save(hers)
        try await anna.sync()
        try await ben.sync()
        for person in [anna, ben] {
            let found = try await person.container.fetch(Destination.self, named: "senja")
            #expect(found?.caption == "Senja, by Ben")
            #expect(found?.details == "an island")
        }
        #expect(try await anna.captions() == ["senja": "Senja, by Ben", "lofoten": "Lofoten"])
        // The owner's store shows by now who has accepted.
        let known = try await anna.container.fetchShares(matching: [Self.senja])
        #expect(known[Self.senja]?.participants.map(\.acceptanceStatus) == [.accepted, .accepted])
    }

    @Test func `a participant who may write adds records to a share`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save(senja)
        let (_, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        let share = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        var beach = Destination("beach", caption: "A beach")
        beach.neighbour = Reference("senja")
        beach.image = Asset(data: Picture.png(2))
        try await ben.container.save([beach], in: share)
        #expect(try await ben.sync().isComplete)
        try await anna.sync()
        #expect(try await anna.captions() == ["senja": "Senja", "beach": "A beach"])
        #expect(try await anna.container.fetch(Destination.self, named: "beach")?.image?.data() == Picture.png(2))
    }

    @Test func `a participant who may only read can't save, edit or delete, and nothing is written`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save(senja)
        let (_, link) = try await anna.share(senja, with: ben, .readOnly)
        try await anna.sync()
        let share = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        var mine = senja
        mine.caption = "of Ben"
        let edited = mine
        let denial = await #expect(throws: PermissionDenied.self) { try await ben.container.save(edited) }
        #expect(denial?.record == Self.senja)
        #expect(denial?.decision.rule == .readOnly)
        #expect(denial?.decision.remedy == .askForReadWrite)
        await #expect(throws: PermissionDenied.self) { try await ben.container.delete(senja) }
        await #expect(throws: PermissionDenied.self) { try await ben.container.deleteAll(Destination.self) }
        await #expect(throws: PermissionDenied.self) {
            try await ben.container.updateAll(Destination.self, set: ["caption": "of Ben"])
        }
        await #expect(throws: PermissionDenied.self) {
            try await ben.container.save([Destination("beach", caption: "A beach")], in: share)
        }
        await #expect(throws: PermissionDenied.self) { try await ben.container.share(senja, in: ben.databases) }
        #expect(try await ben.captions() == ["senja": "Senja"])
        // The share of a record value can be fetched.
        #expect(try await ben.container.fetchShare(of: senja) == share)
        func answers(_ container: PersistentContainer) async throws -> [Bool] {
            [
                try await container.isShared(senja), try await container.isOwner(senja), try await container.canEdit(senja),
                try await container.canDelete(senja), try await container.canShare(senja),
            ]
        }
        #expect(try await answers(ben.container) == [true, false, false, false, false])
        #expect(try await answers(anna.container) == [true, true, true, true, false])
        #expect(try await anna.container.graph(of: senja) == [RecordName(senja)])
        #expect(try await ben.container.fetchShare(of: Destination("none", caption: "")) == nil)
        #expect(try await ben.sync().isComplete)
        // Ben's own records are unaffected.
        try await ben.container.save(Destination("own", caption: "Own"))
    }

    @Test func `an edit that the cloud refuses is reverted and kept, with the reason`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save([senja])
        let (share, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        var mine = try #require(try await ben.container.fetch(Destination.self, named: "senja"))
        mine.caption = "of Ben"
        mine.image = Asset(data: Picture.png(3))
        try await ben.container.save(mine)
        // The permission ends before the edit is sent.
        let fresh = try #require(try await anna.container.fetchShares().first)
        let participant = try #require(fresh.participants.first { $0.role != .owner })
        try await anna.container.updateParticipants(
            of: share, [.setPermission(participant: participant.id, .readOnly)], in: anna.databases)
        try await ben.sync()
        try await ben.sync()
        #expect(try await ben.captions() == ["senja": "Senja"])
        let refused = try #require(try ben.container.refusedSaves().first)
        #expect(refused.record == Self.senja)
        #expect(refused.kind == .update)
        #expect(refused.after["caption"] == .string("of Ben"))
        #expect(refused.before["caption"] == .string("Senja"))
        #expect(refused.code == CloudError.Code.permissionFailure.rawValue)
        #expect(try await ben.sync().isComplete)
        try await ben.container.discard([refused])
        #expect(try ben.container.refusedSaves().isEmpty)
    }

    @Test
    func `a removed participant loses the records at once; unsent edits are kept, and the owner's records stay`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save([senja])
        let (share, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        try await anna.sync()
        var mine = try #require(try await ben.container.fetch(Destination.self, named: "senja"))
        mine.caption = "of Ben"
        try await ben.container.save(mine)
        let participant = try #require(try await anna.container.fetchShares().first?.participants.first { $0.role != .owner })
        try await anna.container.updateParticipants(of: share, [.remove(participant: participant.id)], in: anna.databases)
        try await ben.sync()
        #expect(try await ben.captions().isEmpty)
        #expect(try await ben.container.fetchShares().isEmpty)
        #expect(try ben.container.refusedSaves().map(\.record) == [Self.senja])
        try await anna.sync()
        #expect(try await anna.captions() == ["senja": "Senja"])
        await #expect(throws: CloudError.self) { try await ben.container.acceptInvitation(link, in: ben.databases) }
    }

    @Test func `a participant who leaves loses the copy; an owner who stops keeps the records and can share them again`()
        async throws
    {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let carl = try await place.person("carl")
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save([senja])
        let (_, link) = try await anna.share(senja, with: ben)
        let (share, other) = try await anna.share(senja, with: carl)
        #expect(share.participants.count == 3)
        try await anna.sync()
        for (person, link) in [(ben, link), (carl, other)] {
            try await person.container.acceptInvitation(link, in: person.databases)
            try await person.sync()
            #expect(try await person.captions() == ["senja": "Senja"])
        }
        try await ben.container.leave(try #require(try await ben.container.fetchShares().first), in: ben.databases)
        #expect(try await ben.captions().isEmpty)
        try await ben.sync()
        #expect(try await ben.captions().isEmpty)
        try await anna.container.stopSharing(share, in: anna.databases)
        try await carl.sync()
        #expect(try await carl.captions().isEmpty)
        try await anna.sync()
        #expect(try await anna.captions() == ["senja": "Senja"])
        #expect(try await anna.container.fetchShares().isEmpty)
        let (again, third) = try await anna.share(senja, with: ben)
        #expect(again.zone == share.zone)
        try await ben.container.acceptInvitation(third, in: ben.databases)
        try await ben.sync()
        #expect(try await ben.captions() == ["senja": "Senja"])
    }

    @Test func `pending changes move into the share, and the owner's other devices see no record twice`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, second) = (try await place.person("anna"), try await place.person("anna", device: "2"))
        let ben = try await place.person("ben")
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save([senja, Destination("lofoten", caption: "Lofoten")])
        try await anna.sync()
        try await second.sync()
        // Both devices edit different fields, and neither knows of the share.
        var hers = senja
        hers.caption = "Senja in June"
        try await anna.container.save(hers)
        var other = try #require(try await second.container.fetch(Destination.self, named: "senja"))
        other.rating = 5
        try await second.container.save(other)
        let (_, link) = try await anna.share(senja, with: ben)
        for person in [anna, second, anna, second] { try await person.sync() }
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        for person in [anna, second] {
            #expect(try await person.captions() == ["senja": "Senja in June", "lofoten": "Lofoten"])
        }
        for person in [anna, second, ben] {
            let found = try await person.container.fetchAll(Destination.self).filter { $0.id == "senja" }
            #expect(found.map(\.caption) == ["Senja in June"])
            #expect(found.map(\.rating) == [5])
        }
        let zone = try await anna.databases.private.zoneChanges(
            CloudZoneID("TidemarkZone"), since: nil, limit: nil, desiredKeys: nil)
        #expect(zone.changes.compactMap { if case .saved(let record) = $0 { record.id.recordName } else { nil } } == ["lofoten"])
    }

    @Test func `two devices that share a record at once make one share of it`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, second) = (try await place.person("anna"), try await place.person("anna", device: "2"))
        try await anna.container.save(Destination("senja", caption: "Senja"))
        try await anna.sync()
        try await second.sync()
        let one = try await anna.container.share([Self.senja], title: "One", in: anna.databases)
        let other = try await second.container.share([Self.senja], title: "Other", in: second.databases)
        #expect(one.zone == other.zone)
        #expect(other.title == "One")
        for person in [anna, second, anna, second] { try await person.sync() }
        for person in [anna, second] {
            #expect(try await person.captions() == ["senja": "Senja"])
            #expect(try await person.container.fetchShares().count == 1)
        }
    }

    @Test func `a record's children are shared with it, and no other record is`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        var (beach, hill) = (Destination("beach", caption: "Beach"), Destination("hill", caption: "Hill"))
        beach.neighbour = Reference("senja")
        hill.neighbour = Reference("beach")
        try await anna.container.save([senja, beach, hill, Destination("lofoten", caption: "Lofoten")])
        let (_, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        #expect(try await ben.captions() == ["senja": "Senja", "beach": "Beach", "hill": "Hill"])
        #expect(try await ben.container.fetch(Destination.self, named: "hill")?.neighbour == Reference("beach"))
    }

    @Test func `a record is shared again without its former companions, or with records of other shares`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben, cleo) = (
            try await place.person("anna"), try await place.person("ben"), try await place.person("cleo")
        )
        let (senja, hamn, reine) = (
            Destination("senja", caption: "Senja"), Destination("hamn", caption: "Hamn"), Destination("reine", caption: "Reine")
        )
        try await anna.container.save([senja, hamn, reine])
        let names = [senja, hamn].map { RecordName(type: "Destination", name: $0.id) }
        let both = try await anna.container.share(names, in: anna.databases)
        let other = try await anna.container.share(reine, in: anna.databases)
        await #expect(throws: CloudError(.alreadyShared, "")) {
            try await anna.container.share([names[0], RecordName(type: "Destination", name: "reine")], in: anna.databases)
        }
        await #expect(throws: CloudError(.alreadyShared, "")) {
            try await anna.container.share(names, to: other, in: anna.databases)
        }
        // If all records are in one share, that share is returned; another record joins a named share.
        #expect(try await anna.container.share(names, in: anna.databases).zone == both.zone)
        let more = Destination("tent", caption: "Tent")
        try await anna.container.save(more)
        let tent = RecordName(type: "Destination", name: "tent")
        await #expect(throws: CloudError(.alreadyShared, "")) {
            try await anna.container.share(names + [tent], in: anna.databases)
        }
        #expect(try await anna.container.isShared(tent) == false)
        #expect(try await anna.container.share([tent], to: both, in: anna.databases).zone == both.zone)
        #expect(try await anna.container.isShared(tent))
        try await anna.container.delete(more)
        for share in [both, other] { try await anna.container.stopSharing(share, in: anna.databases) }
        await #expect(throws: CloudError(.unknownItem, "")) {
            try await anna.container.share(names, to: both, in: anna.databases)
        }
        try await anna.sync()

        let (_, link) = try await anna.share(hamn, with: cleo)
        #expect(try await anna.sync().isComplete)
        try await cleo.container.acceptInvitation(link, in: cleo.databases)
        try await cleo.sync()
        #expect(try await cleo.captions() == ["hamn": "Hamn"])
        #expect(try await anna.container.isShared(names[0]) == false)
        // The two records were in different shares.
        let again = try await anna.container.share(
            [names[0], RecordName(type: "Destination", name: "reine")], in: anna.databases)
        let shares = try await anna.container.fetchShares()
        #expect(shares.count == 2 && shares.contains { $0.zone == again.zone })
        let (_, second) = (
            again,
            try await anna.container.makeLink(
                to: try await anna.container.updateParticipants(
                    of: again, [.invite(.emailAddress(ben.email), role: .privateUser, permission: .readOnly)], in: anna.databases),
                in: anna.databases)
        )
        #expect(try await anna.sync().isComplete)
        try await ben.container.acceptInvitation(second.token, in: ben.databases)
        try await ben.sync()
        #expect(try await ben.captions() == ["senja": "Senja", "reine": "Reine"])
        #expect(try await anna.captions() == ["senja": "Senja", "hamn": "Hamn", "reine": "Reine"])
    }

    @Test func `related records get into one share, though several are shared at once`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let anna = try await place.person("anna")
        try await anna.sync()
        for round in 0..<8 {
            let first = Destination("a\(round)", caption: "first")
            var second = Destination("b\(round)", caption: "second")
            second.neighbour = Reference("a\(round)")
            try await anna.container.save([first, second])
            let names = [first, second].map { RecordName(type: "Destination", name: $0.id) }
            let outcomes = await withTaskGroup(of: Bool.self) { group in
                for name in names {
                    group.addTask { (try? await anna.container.share([name], in: anna.databases)) != nil }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.contains(true))
            let shares = try await anna.container.fetchShares(matching: names)
            #expect(shares.count == 2 && Set(shares.values.map(\.zone)).count == 1)
        }
        #expect(try await anna.container.fetchShares().count == 8)
        #expect(try await anna.sync().isComplete)
        var inCloud = 0
        for zone in try await anna.databases.private.zones() {
            inCloud += try await anna.databases.private.shares(in: zone).count
        }
        #expect(inCloud == 8)
    }

    @Test func `with another account no share can be stopped, changed, left or purged`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let cleo = try await place.person("cleo")
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save(senja)
        let (share, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        let theirs = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        let another = StoreError(.anotherAccount, "")
        await #expect(throws: another) { try await anna.container.stopSharing(share, in: cleo.databases) }
        await #expect(throws: another) {
            try await anna.container.updateParticipants(of: share, [.setTitle("x")], in: cleo.databases)
        }
        await #expect(throws: another) { try await anna.container.purgeZone(share.zone, in: cleo.databases) }
        await #expect(throws: another) { try await anna.container.share(senja, in: cleo.databases) }
        await #expect(throws: another) { try await ben.container.leave(theirs, in: cleo.databases) }
        await #expect(throws: another) { try await ben.container.purgeZone(theirs.zone, in: cleo.databases) }
        try await anna.sync()
        try await ben.sync()
        #expect(try await anna.container.isShared(Self.senja))
        #expect(try await ben.captions() == ["senja": "Senja"])
    }

    @Test func `an operation that is impossible for one of the records changes none`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save(senja)
        let (_, link) = try await anna.share(senja, with: ben, .readOnly)
        try await anna.sync()
        let mine = Destination("mine", caption: "mine")
        try await ben.container.save(mine)
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        let before = try await ben.container.fetchAll(Destination.self).map(\.caption).sorted()
        await #expect(throws: PermissionDenied.self) { try await ben.container.deleteAll(Destination.self) }
        await #expect(throws: PermissionDenied.self) {
            try await ben.container.updateAll(Destination.self, set: ["caption": "all"])
        }
        var edited = [mine, senja]
        for index in edited.indices { edited[index].caption = "edited" }
        await #expect(throws: PermissionDenied.self) { try await ben.container.save(edited) }
        #expect(try await ben.container.fetchAll(Destination.self).map(\.caption).sorted() == before)
        // The reason is that of this person.
        let denial = await #expect(throws: PermissionDenied.self) {
            try await ben.container.share(senja, in: ben.databases)
        }
        #expect(denial?.decision.rule == .sharingIsTheOwners)
    }

    @Test func `a preview covers records that others share, and records that another device has shared`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, tablet) = (try await place.person("anna"), try await place.person("anna", device: "2"))
        let ben = try await place.person("ben")
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save(senja)
        for device in [anna, tablet] { try await device.sync() }
        let (_, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        try await ben.container.acceptInvitation(link, in: ben.databases)
        for person in [tablet, ben] {
            let folder = scratch["preview of \(person.container.author) \(person.container.directory.url.lastPathComponent)"]
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let preview = try await SyncPreview(of: person.container.directory, databases: person.databases, in: folder)
            #expect(preview.fetched.last?.record == Self.senja)
            #expect(preview.fetched.last.map { $0.kind != .delete } == true)
            #expect(preview.toSendCount == 0 && preview.deferred == [])
        }
        #expect(try await ben.captions() == [:])
        #expect(try await tablet.captions() == ["senja": "Senja"])
        #expect(try await tablet.container.fetchShares() == [])
    }

    @Test func `a purged zone disappears from all devices`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, second) = (try await place.person("anna"), try await place.person("anna", device: "2"))
        let ben = try await place.person("ben")
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save([senja, Destination("lofoten", caption: "Lofoten")])
        let (share, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        try await second.sync()
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        try await anna.container.purgeZone(share.zone, in: anna.databases)
        for person in [anna, second, ben] { try await person.sync() }
        #expect(try await anna.captions() == ["lofoten": "Lofoten"])
        #expect(try await second.captions() == ["lofoten": "Lofoten"])
        #expect(try await ben.captions().isEmpty)
    }

    @Test func `records of equal names that two people share stay apart`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let carl = try await place.person("carl")
        for (person, caption) in [(anna, "of Anna"), (carl, "of Carl")] {
            let senja = Destination("senja", caption: caption)
            try await person.container.save(senja)
            let (_, link) = try await person.share(senja, with: ben)
            try await person.sync()
            try await ben.container.acceptInvitation(link, in: ben.databases)
        }
        try await ben.sync()
        #expect(try await ben.container.fetchAll(Destination.self).map(\.caption).sorted() == ["of Anna", "of Carl"])
        try await carl.container.delete(Destination.self, named: "senja")
        try await carl.sync()
        try await ben.sync()
        #expect(try await ben.container.fetchAll(Destination.self).map(\.caption) == ["of Anna"])
    }
}
