import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    static let cleo = "cleo@example.org"
    static let dan = "dan@example.org"

    // For the checks

    static func sharing(
        _ subject: any Subject, _ scope: DatabaseScope, _ account: String?
    ) async throws -> any SharingDatabase {
        let database = try await subject.database(scope, account: account)
        guard let sharing = database as? any SharingDatabase else {
            throw Violation(description: "the cloud knows no shares")
        }
        return sharing
    }

    /// The owner's zone, with some records.
    static func sharedJournal(
        _ subject: any Subject, _ names: [String] = ["a", "b"]
    ) async throws -> (owner: any SharingDatabase, zone: CloudZoneID) {
        let owner = try await sharing(subject, .private, anna)
        try await owner.modifyZones(saving: [zone], deleting: [])
        for name in names { try await save(record(name, ["n": .int64(1)]), .create, to: owner) }
        return (owner, CloudZoneID(zone.zoneName, owner: try await user(owner)))
    }

    static func user(_ database: any CloudDatabase) async throws -> String {
        guard let name = try await database.account().userRecordName else {
            throw Violation(description: "the account has no name")
        }
        return name
    }

    /// Invites somebody and has them accept; returns their shared database.
    @discardableResult
    static func join(
        _ subject: any Subject, _ share: CloudShare, of owner: any SharingDatabase, _ account: String,
        _ permission: ShareParticipant.Permission = .readWrite, as role: ShareParticipant.Role = .privateUser
    ) async throws -> any SharingDatabase {
        let theirs = try await sharing(subject, .shared, account)
        _ = try await owner.changeShare(share.id, [.invite(.emailAddress(account), role: role, permission: permission)])
        _ = try await theirs.acceptLink(try await owner.makeLink(to: share.id, for: nil).token)
        return theirs
    }

    static func participant(_ account: String, _ share: CloudShare) throws -> ShareParticipant {
        guard let found = share.participants.first(where: { $0.identity.lookUp == .emailAddress(account) }) else {
            throw Violation(description: "\(account) is not one of \(share.participants.map(\.identity.title))")
        }
        return found
    }

    static func current(_ share: CloudShare, _ database: any SharingDatabase) async throws -> CloudShare {
        guard let found = try await database.shares(in: share.id.zone).first(where: { $0.id == share.id }) else {
            throw Violation(description: "the share is not there")
        }
        return found
    }

    /// That a call is refused, by a rule of the policy.
    static func denied<Value>(
        _ rule: SharePolicy.Rule, _ body: () async throws -> Value, line: Int = #line, file: String = #fileID
    ) async throws {
        let error = await failure(body)
        try expect(
            error?.denial?.rule == rule && error?.denial?.isAllowed == false, "not \(rule), but \(String(describing: error))",
            line: line,
            file: file)
    }

    static func denied(_ rule: SharePolicy.Rule, _ outcome: RecordOutcome, line: Int = #line, file: String = #fileID) throws {
        guard case .failed(let error) = outcome, error.code == .permissionFailure, error.denial?.rule == rule else {
            throw Violation(description: "\(file):\(line): not \(rule), but \(outcome)")
        }
    }

    // The checks

    static let shares: [Check] = [
        Check("a zone that is shared is there for who accepts, with its records and its share") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let ben = try await sharing(subject, .shared, CloudContract.ben)
            try equal(try await ben.zones(), [])
            let share = try await owner.createShare(in: zone, coverage: .zone, title: "Norway", publicPermission: .none)
            try equal(share.id.recordName, CloudShare.zoneWideName)
            try equal([share.title, "\(share.coverage)", "\(share.publicPermission)"], ["Norway", "zone", "none"])
            try equal(share.participants.map(\.role), [.owner])
            try equal(share.currentUser?.identity.userRecordName, theirs.ownerName)
            let invited = try await owner.changeShare(
                share.id, [.invite(.emailAddress("Ben@Example.org"), role: .privateUser, permission: .readWrite)])
            try equal(try participant(CloudContract.ben, invited).acceptanceStatus, .pending)
            // Invited is not in yet.
            try await refused(.zoneNotFound) { try await ben.lookup(["a"], in: theirs, desiredKeys: nil) }
            let link = try await owner.makeLink(to: share.id, for: nil)
            try expect(link.token.utf8.count >= 22, "\(link.token.utf8.count) characters can't hold 128 random bits")
            let metadata = try await ben.resolveLink(link.token)
            try equal(metadata.share.id, CloudRecordID(CloudShare.zoneWideName, in: theirs))
            try equal([metadata.share.title, metadata.owner.userRecordName, metadata.root], ["Norway", theirs.ownerName, nil])
            try equal(metadata.participant?.acceptanceStatus, .pending)
            try equal(metadata.scope, .shared)
            let accepted = try await ben.acceptLink(link.token)
            try equal(accepted.participant?.acceptanceStatus, .accepted)
            try equal(try await ben.acceptLink(link.token), accepted)
            try equal(try await ben.zones(), [theirs])
            let all = try await allChanges(in: ben, zone: theirs)
            try equal(Set(names(all.changes)), ["a", "b", CloudShare.zoneWideName])
            for case .saved(let told) in all.changes where told.id.recordName == CloudShare.zoneWideName {
                try equal(told.type, CloudShare.recordType)
                try equal(told.share?.participants.map(\.acceptanceStatus), [.accepted, .accepted])
                try equal(told.share?.currentUser?.permission, .readWrite)
                try equal(told.changeTag, told.share?.changeTag)
            }
            try equal(try await lookup("a", in: ben, zone: theirs)?.fields, ["n": .int64(1)])
            try equal(try await lookup(CloudShare.zoneWideName, in: owner)?.share?.title, "Norway")
            try equal(try await current(metadata.share, ben).participants.count, 2)
            // It is in the shared database and nowhere else, and the owner's is not in the owner's.
            try await refused(.zoneNotFound) {
                try await subject.database(.private, account: CloudContract.ben).lookup(["a"], in: theirs, desiredKeys: nil)
            }
            try equal(try await sharing(subject, .shared, anna).zones(), [])
            try await refused(.zoneNotFound) {
                try await subject.database(.shared, account: anna).lookup(["a"], in: theirs, desiredKeys: nil)
            }
        },
        Check("the record of a share is changed by way of the share alone") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            for (database, place) in [(owner as any CloudDatabase, zone), (ben, theirs)] {
                for kind in RecordOperation.Kind.allCases {
                    var forged = CloudRecord(
                        CloudRecordID(CloudShare.zoneWideName, in: place), type: CloudShare.recordType,
                        fields: [CloudShare.titleField: .string("forged")])
                    forged.changeTag = try await lookup(CloudShare.zoneWideName, in: database, zone: place)?.changeTag
                    try failed(try await one(RecordOperation(kind, forged), to: database), .invalidArguments)
                }
                let forged = CloudRecord(CloudRecordID("Share-forged", in: place), type: CloudShare.recordType)
                try failed(try await one(RecordOperation(.create, forged), to: database), .invalidArguments)
            }
            let renamed = try await owner.changeShare(share.id, [.setTitle("Norway")])
            try expect(renamed.changeTag != share.changeTag, "the share's tag is as before")
            try equal(
                try await lookup(CloudShare.zoneWideName, in: ben, zone: theirs)?.fields, ["cloudkit.title": .string("Norway")])
        },
        Check("a record is in one share at the most") { subject in
            let (owner, _) = try await sharedJournal(subject, ["root", "other"])
            var child = record("child", ["n": .int64(1)])
            child.parent = "root"
            try await save(child, .create, to: owner)
            func share(_ coverage: CloudShare.Coverage) async throws -> CloudShare {
                try await owner.createShare(in: zone, coverage: coverage, title: nil, publicPermission: .none)
            }
            try await refused(.unknownItem) { try await share(.hierarchy(root: "nothing")) }
            let first = try await share(.hierarchy(root: "root"))
            for coverage in [CloudShare.Coverage.zone, .hierarchy(root: "root"), .hierarchy(root: "child")] {
                try await refused(.alreadyShared) { try await share(coverage) }
            }
            let other = try await share(.hierarchy(root: "other"))
            // Not by moving either.
            var moved = record("other")
            moved.parent = "child"
            try failed(try await one(RecordOperation(.forceUpdate, moved), to: owner), .alreadyShared)
            var above = record("above")
            try await save(above, .create, to: owner)
            moved.parent = "above"
            try await save(moved, .forceUpdate, to: owner)
            try await refused(.alreadyShared) { try await share(.hierarchy(root: "above")) }
            above.parent = "root"
            try failed(try await one(RecordOperation(.forceUpdate, above), to: owner), .alreadyShared)
            try equal(Set(try await owner.shares(in: zone).map(\.id)), [first.id, other.id])
            try await owner.deleteShare(first.id)
            try await owner.deleteShare(other.id)
            let whole = try await share(.zone)
            try await refused(.alreadyShared) { try await share(.hierarchy(root: "root")) }
            try await refused(.alreadyShared) { try await share(.zone) }
            try await owner.deleteShare(whole.id)
            _ = try await share(.hierarchy(root: "root"))
        },
        Check("only who owns a zone shares it, and neither the default zone nor what is public") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben, as: .administrator)
            try await denied(.sharingIsTheOwners) {
                try await ben.createShare(in: theirs, coverage: .hierarchy(root: "a"), title: nil, publicPermission: .none)
            }
            try await refused(.zoneNotFound) {
                try await sharing(subject, .private, CloudContract.ben).createShare(
                    in: theirs, coverage: .zone, title: nil, publicPermission: .none)
            }
            try await refused(.invalidArguments) {
                try await owner.createShare(in: .default, coverage: .zone, title: nil, publicPermission: .none)
            }
            try await denied(.publicIsNotShared) {
                try await sharing(subject, .public, anna).createShare(
                    in: .default, coverage: .zone, title: nil, publicPermission: .none)
            }
            // Nor does anybody else make zones or delete them.
            try await denied(.zonesAreTheOwners) { try await ben.modifyZones(saving: [], deleting: [theirs]) }
            try await denied(.zonesAreTheOwners) { try await ben.modifyZones(saving: [CloudZoneID("x")], deleting: []) }
            try equal(try await owner.zones().count, 2)
        },
        Check("what a participant may do follows the permission, from one request to the next") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben, .readOnly)
            let id = try participant(CloudContract.ben, try await current(share, owner)).id
            func writes() async throws -> [RecordOutcome] {
                [
                    try await one(RecordOperation(.forceUpdate, record("a", ["n": .int64(2)], in: theirs)), to: ben),
                    try await one(RecordOperation(.create, record("new", in: theirs)), to: ben),
                    try await one(.delete(CloudRecordID("new", in: theirs)), to: ben),
                    try await one(.delete(CloudRecordID("b", in: theirs)), to: ben),
                ]
            }
            let refused = try await writes()
            for index in [0, 1, 3] { try denied(.readOnly, refused[index]) }
            try equal(try await lookup("a", in: owner)?.fields, ["n": .int64(1)])
            _ = try await owner.changeShare(share.id, [.setPermission(participant: id, .readWrite)])
            for outcome in try await writes() { if case .failed(let error) = outcome { throw error } }
            try equal(try await lookup("a", in: owner)?.modified?.userRecordName, try await user(ben))
            _ = try await owner.changeShare(share.id, [.setPermission(participant: id, .readOnly)])
            try denied(.readOnly, try await writes()[0])
            _ = try await owner.changeShare(share.id, [.setPermission(participant: id, .none)])
            try await CloudContract.refused(.zoneNotFound) { try await writes() }
            try equal(try await ben.zones(), [])
        },
        Check("who is removed is out at once, with any token, and comes back by another invitation") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            let id = try participant(CloudContract.ben, try await current(share, owner)).id
            let link = try await owner.makeLink(to: share.id, for: nil)
            let own = try await owner.makeLink(to: share.id, for: id)
            let (token, zones) = (
                try await allChanges(in: ben, zone: theirs).token, try await ben.databaseChanges(since: nil, limit: nil).token
            )
            let request = ModifyRecordsRequest(
                zone: theirs, operations: [RecordOperation(.forceUpdate, record("a", ["n": .int64(2)], in: theirs))],
                clientToken: "t")
            _ = try await ben.modify(request)
            let removed = try await owner.changeShare(share.id, [.remove(participant: id)])
            try equal(try participant(CloudContract.ben, removed).acceptanceStatus, .removed)
            try await refused(.zoneNotFound) { try await ben.zoneChanges(theirs, since: token, limit: nil, desiredKeys: nil) }
            try await refused(.zoneNotFound) { try await ben.lookup(["a"], in: theirs, desiredKeys: nil) }
            // Not even an answer that was given before.
            try await refused(.zoneNotFound) { try await ben.modify(request) }
            try await refused(.zoneNotFound) { try await ben.shares(in: theirs) }
            try equal(try await ben.databaseChanges(since: zones, limit: nil).deleted, [theirs])
            for old in [link, own] { try await refused(.unknownItem) { try await ben.acceptLink(old.token) } }
            // What goes meanwhile is not told when they are back.
            _ = try await one(.delete(CloudRecordID("b", in: zone)), to: owner)
            try await join(subject, share, of: owner, CloudContract.ben, .readOnly)
            try await refused(.changeTokenExpired) {
                try await ben.zoneChanges(theirs, since: token, limit: nil, desiredKeys: nil)
            }
            try equal(try participant(CloudContract.ben, try await current(share, owner)).id, id)
            try equal(Set(names(try await allChanges(in: ben, limit: 1, zone: theirs).changes)), ["a", CloudShare.zoneWideName])
        },
        Check("who leaves or declines is out, and can be invited again") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            try await ben.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
            try equal(try await ben.zones(), [])
            try equal(try participant(CloudContract.ben, try await current(share, owner)).acceptanceStatus, .removed)
            // The owner's is as it was.
            try equal(try await lookup("a", in: owner)?.fields, ["n": .int64(1)])
            _ = try await owner.changeShare(
                share.id, [.invite(.emailAddress(CloudContract.ben), role: .privateUser, permission: .readOnly)])
            let link = try await owner.makeLink(to: share.id, for: nil)
            try await ben.declineLink(link.token)
            try await refused(.unknownItem) { try await ben.acceptLink(link.token) }
            try equal(try await ben.zones(), [])
            try await join(subject, share, of: owner, CloudContract.ben, .readWrite)
            try await save(record("a", ["n": .int64(2)], in: theirs), .forceUpdate, to: ben)
            try await denied(.ownerStays) { try await owner.acceptLink(link.token) }
        },
        Check("a share that is stopped is nobody's but the owner's, whose records stay") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben, as: .administrator)
            let link = try await owner.makeLink(to: share.id, for: nil)
            let token = try await ben.databaseChanges(since: nil, limit: nil).token
            let mark = try await allChanges(in: owner).token
            try await owner.deleteShare(share.id)
            try equal(try await ben.zones(), [])
            try equal(try await ben.databaseChanges(since: token, limit: nil).deleted, [theirs])
            try await refused(.unknownItem) { try await ben.resolveLink(link.token) }
            try equal(names(try await allChanges(in: owner, since: mark).changes), ["-\(CloudShare.zoneWideName)"])
            try equal(try await lookup("a", in: owner)?.fields, ["n": .int64(1)])
            try equal(try await owner.shares(in: zone), [])
            try await refused(.unknownItem) { try await owner.changeShare(share.id, [.setTitle("x")]) }
            let again = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            try equal(again.participants.count, 1)
            try equal(try await ben.zones(), [])
            try await join(subject, again, of: owner, CloudContract.ben)
            try equal(try await ben.databaseChanges(since: token, limit: nil).changed, [theirs])
            // A zone takes its share with it.
            let there = try await ben.databaseChanges(since: nil, limit: nil).token
            try await owner.modifyZones(saving: [], deleting: [zone])
            try equal(try await ben.databaseChanges(since: there, limit: nil).deleted, [theirs])
            try await refused(.zoneNotFound) { try await ben.lookup(["a"], in: theirs, desiredKeys: nil) }
            try await owner.modifyZones(saving: [zone], deleting: [])
            try equal(try await ben.zones(), [])
            try equal(try await owner.account().used, 0)
        },
        Check("administrators manage users, and the owner manages administrators") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let id = CloudRecordID(share.id.recordName, in: theirs)
            let ben = try await join(subject, share, of: owner, ben, .readOnly, as: .administrator)
            let cleo = try await join(subject, share, of: owner, cleo)
            try await join(subject, share, of: owner, dan, as: .administrator)
            let now = try await current(share, owner)
            let (first, second, third) = (
                try participant(CloudContract.ben, now), try participant(CloudContract.cleo, now), try participant(dan, now)
            )
            let invitation = ShareChange.invite(.emailAddress("e@example.org"), role: .privateUser, permission: .readOnly)
            // A user manages nobody but themselves.
            for change in [
                invitation, .setPermission(participant: first.id, .none), .remove(participant: first.id),
                .setPermission(participant: second.id, .readWrite), .setRole(participant: second.id, .administrator),
            ] { try await denied(.membersAreManaged) { try await cleo.changeShare(id, [change]) } }
            try await denied(.membersAreManaged) { try await cleo.makeLink(to: id, for: nil) }
            try await denied(.membersAreManaged) { try await cleo.revokeLink("x", to: id) }
            try await denied(.membersAreManaged) { try await cleo.shareAudit(in: theirs, after: nil) }
            try await denied(.sharingIsTheOwners) { try await cleo.changeShare(id, [.setTitle("x")]) }
            // An administrator manages users.
            _ = try await ben.changeShare(id, [invitation, .setTitle("x"), .setPermission(participant: second.id, .readOnly)])
            for change in [
                ShareChange.setPermission(participant: third.id, .readOnly), .remove(participant: third.id),
                .setRole(participant: second.id, .administrator),
                .invite(.emailAddress("f@example.org"), role: .administrator, permission: .readOnly),
            ] { try await denied(.administratorsAreTheOwners) { try await ben.changeShare(id, [change]) } }
            for change in [
                ShareChange.remove(participant: now.participants[0].id),
                .setPermission(participant: now.participants[0].id, .none),
            ] {
                try await denied(.ownerStays) { try await ben.changeShare(id, [change]) }
            }
            try await denied(.sharingIsTheOwners) { try await ben.changeShare(id, [.setPublicPermission(.readOnly)]) }
            try await denied(.membersAreManaged) {
                try await ben.changeShare(id, [.setPermission(participant: first.id, .readWrite)])
            }
            _ = try await ben.changeShare(id, [.remove(participant: second.id)])
            try equal(try await cleo.zones(), [])
            // What is refused is refused whole.
            let before = try await current(share, owner)
            try await denied(.administratorsAreTheOwners) {
                try await ben.changeShare(id, [.setTitle("y"), .remove(participant: third.id)])
            }
            try equal(try await current(share, owner), before)
            try await refused(.unknownItem) { try await owner.changeShare(share.id, [.remove(participant: "nobody")]) }
            let after = try await owner.changeShare(
                share.id, [.setRole(participant: third.id, .privateUser), .setRole(participant: first.id, .privateUser)])
            try equal(after.participants.map(\.role), [.owner, .privateUser, .privateUser, .privateUser, .privateUser])
            try await denied(.sharingIsTheOwners) { try await ben.changeShare(id, [.setTitle("z")]) }
        },
        Check("an invitation is for whoever has the address, and for nobody else") { subject in
            let (owner, _) = try await sharedJournal(subject)
            let name = PersonName(givenName: "Ben", familyName: "Berg")
            try await subject.describe(ben, name: name, phone: "+46 70 123 45 67")
            let (ben, cleo) = (try await sharing(subject, .shared, ben), try await sharing(subject, .shared, cleo))
            let benUser = try await user(ben)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            for lookUp in [
                UserLookUp.emailAddress("BEN@example.org"), .phoneNumber("+46(70)1234567"), .userRecordName(benUser),
            ] {
                let invited = try await owner.changeShare(share.id, [.invite(lookUp, role: .privateUser, permission: .readWrite)])
                guard let added = invited.participants.first(where: { $0.acceptanceStatus == .pending }) else {
                    throw Violation(description: "nobody was invited")
                }
                // Whether there is such an account is not told.
                if added.identity.userRecordName != benUser { try equal(added.identity, UserIdentity(lookUp: lookUp.normalized)) }
                let link = try await owner.makeLink(to: share.id, for: added.id)
                try await refused(.unknownItem) { try await cleo.resolveLink(link.token) }
                try await refused(.unknownItem) { try await cleo.acceptLink(link.token) }
                let metadata = try await ben.acceptLink(link.token)
                try equal(metadata.participant?.identity.name, name)
                try equal(metadata.participant?.identity.userRecordName, benUser)
                _ = try await owner.changeShare(share.id, [.remove(participant: added.id)])
            }
            for lookUp in [UserLookUp.emailAddress("nobody"), .phoneNumber("12"), .userRecordName("")] {
                try await refused(.invalidArguments) {
                    try await owner.changeShare(share.id, [.invite(lookUp, role: .privateUser, permission: .readOnly)])
                }
            }
            for (role, permission) in [
                (ShareParticipant.Role.owner, ShareParticipant.Permission.readOnly), (.publicUser, .readOnly),
                (.unknown, .readOnly),
                (.privateUser, .unknown), (.privateUser, .none),
            ] {
                try await refused(.invalidArguments) {
                    try await owner.changeShare(
                        share.id, [.invite(.emailAddress("d@example.org"), role: role, permission: permission)])
                }
            }
            try await denied(.ownerStays) {
                try await owner.changeShare(share.id, [.invite(.emailAddress(anna), role: .privateUser, permission: .readOnly)])
            }
            // One who is in is changed, and not doubled.
            try await join(subject, share, of: owner, dan)
            let changed = try await owner.changeShare(
                share.id, [.invite(.emailAddress(dan), role: .administrator, permission: .readOnly)])
            let found = try participant(dan, changed)
            try equal(
                [found.role == .administrator, found.permission == .readOnly, found.acceptanceStatus == .accepted],
                [true, true, true])
        },
        Check("people who agreed are found by address, number and name; nobody else is told of") { subject in
            try await subject.describe(ben, name: PersonName(givenName: "Ben"), phone: "+46701234567")
            let mine = try await sharing(subject, .private, anna)
            let ben = try await user(subject.database(.private, account: ben))
            let lookUps: [UserLookUp] = [
                .emailAddress("Ben@Example.org"), .emailAddress("nobody@example.org"), .phoneNumber("+46 70 123 45 67"),
                .phoneNumber("+46"), .userRecordName(ben), .userRecordName("_0"), .emailAddress("x"),
            ]
            try equal(try await mine.users(matching: lookUps), [])
            let his = try await sharing(subject, .private, Self.ben)
            try await his.setDiscoverable(true)
            let found = try await mine.users(matching: lookUps)
            try equal(found.map(\.lookUp), [lookUps[0], lookUps[2], lookUps[4]])
            try equal(Set(found.map(\.userRecordName)), [ben])
            try equal(Set(found.map(\.title)), ["Ben"])
            try await his.setDiscoverable(false)
            try equal(try await mine.users(matching: lookUps), [])
            // Everybody finds themselves.
            try equal(try await his.users(matching: lookUps).count, 3)
            try await refused(.notAuthenticated) { try await sharing(subject, .public, nil).users(matching: lookUps) }
        },
        Check("a share has no more participants than the cloud allows") { subject in
            let (owner, _) = try await sharedJournal(subject)
            let most = try await owner.limits().participantsPerShare
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            func invitation(_ number: Int) -> ShareChange {
                .invite(.emailAddress("p\(number)@example.org"), role: .privateUser, permission: .readOnly)
            }
            let full = try await owner.changeShare(share.id, (1..<most).map(invitation))
            try equal(full.participants.count, most)
            try await refused(.limitExceeded) { try await owner.changeShare(share.id, [invitation(most)]) }
            // Who is out makes room; who is in can be changed.
            _ = try await owner.changeShare(share.id, [.setPermission(participant: full.participants[1].id, .readWrite)])
            _ = try await owner.changeShare(share.id, [.remove(participant: full.participants[1].id), invitation(most)])
            try await refused(.limitExceeded) { try await owner.changeShare(share.id, [invitation(1)]) }
        },
        Check("what is done to a share is written down, in its order") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben, as: .administrator)
            let id = try participant(CloudContract.ben, try await current(share, owner)).id
            _ = try await ben.changeShare(CloudRecordID(share.id.recordName, in: theirs), [.setTitle("Norway")])
            let link = try await owner.makeLink(to: share.id, for: id)
            try await owner.revokeLink(link.id, to: share.id)
            _ = try await owner.changeShare(
                share.id,
                [
                    .setPermission(participant: id, .readOnly), .setPublicPermission(.readOnly),
                    .setRole(participant: id, .privateUser),
                ])
            try await ben.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
            // What changes nothing is not written down, and what is refused neither.
            _ = try await owner.changeShare(share.id, [.setTitle("Norway")])
            _ = await failure { try await owner.changeShare(share.id, [.setTitle("x"), .remove(participant: "nobody")]) }
            try await owner.deleteShare(share.id)
            let entries = try await owner.shareAudit(in: zone, after: nil)
            try equal(
                entries.map(\.kind),
                [
                    .created, .invited, .linkMade, .accepted, .titleChanged, .linkMade, .linkRevoked, .permissionChanged,
                    .publicPermissionChanged, .roleChanged, .left, .linkRevoked, .stopped,
                ])
            let (mine, other) = (try await user(owner), try await user(ben))
            try equal(entries.filter { $0.userRecordName == other }.map(\.kind), [.accepted, .titleChanged, .left])
            try equal(Set(entries.map(\.userRecordName)), [mine, other])
            try equal(entries[4].value, "Norway")
            try equal([entries[7].subject, entries[7].value], [id, "readOnly"])
            try equal([entries[6].subject, entries[5].value], [link.id, id])
            try equal(Set(entries.map(\.time)).count, entries.count)
            try equal(try await owner.shareAudit(in: zone, after: entries[9].time).map(\.kind), [.left, .linkRevoked, .stopped])
        },
    ]
}
