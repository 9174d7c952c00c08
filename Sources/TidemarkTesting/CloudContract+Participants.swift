import Foundation
import TidemarkCloud
import TidemarkModel

/// Checks of participants and their permissions.
extension CloudContract {
    static let participants: [Check] = [
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
            // Not even the answer to a request from before is repeated.
            try await refused(.zoneNotFound) { try await ben.modify(request) }
            try await refused(.zoneNotFound) { try await ben.shares(in: theirs) }
            try equal(try await ben.databaseChanges(since: zones, limit: nil).deleted, [theirs])
            for old in [link, own] { try await refused(.unknownItem) { try await ben.acceptLink(old.token) } }
            // Deletions in the meantime are not reported when the participant is back.
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
            // The owner's record is unchanged.
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
            // A private user can only manage themselves.
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
            // If one change is refused, all of them are.
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
                // The answer does not reveal whether such an account exists.
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
            // Inviting a participant again changes the entry, and adds none.
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
            // Every account finds itself.
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
            // A removed participant makes room for another. Present participants can be changed.
            _ = try await owner.changeShare(share.id, [.setPermission(participant: full.participants[1].id, .readWrite)])
            _ = try await owner.changeShare(share.id, [.remove(participant: full.participants[1].id), invitation(most)])
            try await refused(.limitExceeded) { try await owner.changeShare(share.id, [invitation(1)]) }
        },
    ]
}
