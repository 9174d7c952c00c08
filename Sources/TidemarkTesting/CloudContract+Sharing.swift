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

    /// Makes the owner's zone with some records.
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

    /// Invites a person, accepts the invitation for them, and returns their shared database.
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

    /// Makes sure that a call is refused by a rule of the policy.
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
            // An invited person has no access before accepting.
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
            // The zone is only in the participant's shared database, and not in the owner's shared database.
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
            // A move is refused, too.
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
            // Only the owner can make or delete zones.
            try await denied(.zonesAreTheOwners) { try await ben.modifyZones(saving: [], deleting: [theirs]) }
            try await denied(.zonesAreTheOwners) { try await ben.modifyZones(saving: [CloudZoneID("x")], deleting: []) }
            try equal(try await owner.zones().count, 2)
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
            // Deleting a zone deletes its share.
            let there = try await ben.databaseChanges(since: nil, limit: nil).token
            try await owner.modifyZones(saving: [], deleting: [zone])
            try equal(try await ben.databaseChanges(since: there, limit: nil).deleted, [theirs])
            try await refused(.zoneNotFound) { try await ben.lookup(["a"], in: theirs, desiredKeys: nil) }
            try await owner.modifyZones(saving: [zone], deleting: [])
            try equal(try await ben.zones(), [])
            try equal(try await owner.account().used, 0)
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
            // Changes without effect, and refused changes, are not logged.
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
