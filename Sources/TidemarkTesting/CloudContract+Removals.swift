import Foundation
import TidemarkCloud
import TidemarkModel

/// Checks that a removed participant stays out, and that only the invited person can accept an invitation.
extension CloudContract {
    /// Returns the participants of a share without the owner.
    private static func others(_ share: CloudShare, _ owner: any SharingDatabase) async throws -> [ShareParticipant] {
        try await current(share, owner).participants.filter { $0.role != .owner && $0.acceptanceStatus != .removed }
    }

    private static let number = UserLookUp.phoneNumber("+46701234567")

    static let removals: [Check] = [
        Check("who leaves is out, by however many ways they came") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .readOnly)
            let link = try await owner.makeLink(to: share.id, for: nil)
            let ben = try await sharing(subject, .shared, ben)
            for leaves in [true, false] {
                _ = try await ben.acceptLink(link.token)
                _ = try await owner.changeShare(
                    share.id, [.invite(.emailAddress(CloudContract.ben), role: .privateUser, permission: .readWrite)])
                if leaves {
                    try await ben.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
                } else {
                    try await ben.declineLink(link.token)
                }
                try equal(try await ben.zones(), [])
                try equal(try await others(share, owner), [])
            }
        },
        Check("an invitation to a number is for who has it now, whoever had it before") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let link = try await owner.makeLink(to: share.id, for: nil)
            let (first, second) = (try await sharing(subject, .shared, ben), try await sharing(subject, .shared, cleo))
            let invitation = ShareChange.invite(number, role: .privateUser, permission: .readWrite)
            try await subject.describe(ben, name: PersonName(givenName: "Ben"), phone: "+46701234567")
            let id = try await owner.changeShare(share.id, [invitation]).participants[1].id
            _ = try await first.acceptLink(link.token)
            let token = try await first.databaseChanges(since: nil, limit: nil).token
            _ = try await owner.changeShare(share.id, [.remove(participant: id)])
            try await subject.describe(ben, name: PersonName(givenName: "Ben"), phone: "+46700000001")
            try await subject.describe(cleo, name: PersonName(givenName: "Cleo"), phone: "+46701234567")
            let personal = try await owner.makeLink(
                to: share.id, for: try await owner.changeShare(share.id, [invitation]).participants[1].id)
            for token in [link.token, personal.token] {
                try await refused(.unknownItem) { try await first.resolveLink(token) }
                try await refused(.unknownItem) { try await first.acceptLink(token) }
            }
            let metadata = try await second.acceptLink(personal.token)
            try equal(metadata.participant?.identity.name?.givenName, "Cleo")
            try equal(try await second.zones(), [theirs])
            // The former owner of the phone number loses the zone all the same.
            try equal(try await first.zones(), [])
            try equal(try await first.databaseChanges(since: token, limit: nil).deleted, [theirs])
        },
        Check("of two invitations a link that is limited to one means that one") { subject in
            let (owner, _) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            try await subject.describe(ben, name: PersonName(givenName: "Ben"), phone: "+46701234567")
            let invited = try await owner.changeShare(
                share.id,
                [
                    .invite(.emailAddress(ben), role: .privateUser, permission: .readOnly),
                    .invite(number, role: .privateUser, permission: .readWrite),
                ])
            let (ben, second) = (try await sharing(subject, .shared, ben), invited.participants[2])
            let link = try await owner.makeLink(to: share.id, for: second.id)
            try equal(try await ben.resolveLink(link.token).participant?.id, second.id)
            let metadata = try await ben.acceptLink(link.token)
            try equal([metadata.participant?.id, "\(metadata.participant!.permission)"], [second.id, "readWrite"])
            // A person has one entry in a share.
            try equal(try await others(share, owner).map(\.id), [second.id])
        },
        Check("who was removed comes back by an invitation and by no link; who has left comes back by an open one") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .readOnly)
            let link = try await owner.makeLink(to: share.id, for: nil)
            let (ben, id) = (try await sharing(subject, .shared, ben), CloudRecordID(share.id.recordName, in: theirs))
            let administrator = try await join(subject, share, of: owner, cleo, as: .administrator)
            let benUser = try await user(ben)
            func entry() async throws -> String {
                let found = try await others(share, owner).first { $0.identity.userRecordName == benUser }
                guard let found else { throw Violation(description: "Ben is not in") }
                return found.id
            }
            func isOut() async throws {
                let new = try await owner.makeLink(to: share.id, for: nil)
                for token in [link.token, new.token] {
                    try await refused(.unknownItem) { try await ben.resolveLink(token) }
                    try await refused(.unknownItem) { try await ben.acceptLink(token) }
                    try await refused(.unknownItem) { try await ben.declineLink(token) }
                }
                try equal(try await ben.zones(), [])
            }
            // A participant leaves, or is removed with all that came by the link.
            _ = try await ben.acceptLink(link.token)
            try await ben.deleteShare(id)
            _ = try await ben.acceptLink(link.token)
            _ = try await ben.changeShare(id, [.remove(participant: try await entry())])
            _ = try await ben.acceptLink(link.token)
            _ = try await owner.changeShare(share.id, [.setPublicPermission(.none)])
            try await isOut()
            _ = try await owner.changeShare(share.id, [.setPublicPermission(.readOnly)])
            _ = try await ben.acceptLink(link.token)
            // The owner removes the participant.
            _ = try await owner.changeShare(share.id, [.remove(participant: try await entry())])
            try await isOut()
            let invitation = ShareChange.invite(.emailAddress(CloudContract.ben), role: .privateUser, permission: .readWrite)
            _ = try await owner.changeShare(share.id, [invitation])
            _ = try await ben.acceptLink(link.token)
            try await save(record("a", ["n": .int64(2)], in: theirs), .forceUpdate, to: ben)
            _ = try await administrator.changeShare(id, [.remove(participant: try await entry())])
            try await isOut()
            // A change that drops the invitation does not undo the removal.
            _ = try await owner.changeShare(share.id, [invitation])
            _ = try await owner.changeShare(share.id, [.setPublicPermission(.readWrite)])
            try await isOut()
            _ = try await owner.changeShare(share.id, [invitation])
            _ = try await ben.acceptLink(link.token)
            try await ben.deleteShare(id)
            _ = try await ben.acceptLink(link.token)
            try equal(try await others(share, owner).map(\.role), [.administrator, .publicUser])
            // The removal ends earlier invitations.
            try await subject.describe(CloudContract.ben, name: PersonName(givenName: "Ben"), phone: "+46701234567")
            let second = ShareChange.invite(number, role: .privateUser, permission: .readOnly)
            let (removed, _) = (try await entry(), try await owner.changeShare(share.id, [second]))
            _ = try await owner.changeShare(share.id, [.remove(participant: removed)])
            try await isOut()
            _ = try await owner.changeShare(share.id, [second])
            _ = try await ben.acceptLink(link.token)
            try equal(try await others(share, owner).map(\.role), [.administrator, .privateUser])
        },
        Check("who was put out learns of it, though they were invited again and that was dropped") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            let token = try await ben.databaseChanges(since: nil, limit: nil).token
            let id = try participant(CloudContract.ben, try await current(share, owner)).id
            _ = try await owner.changeShare(share.id, [.remove(participant: id)])
            _ = try await owner.changeShare(
                share.id,
                [
                    .invite(.emailAddress(CloudContract.ben), role: .privateUser, permission: .readWrite),
                    .setPublicPermission(.readOnly),
                ])
            try equal(try await others(share, owner), [])
            try equal(try await ben.databaseChanges(since: token, limit: nil).deleted, [theirs])
        },
        Check("who may do nothing learns nothing by a link") { subject in
            let (owner, _) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: "Norway", publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            let id = try participant(CloudContract.ben, try await current(share, owner)).id
            let link = try await owner.makeLink(to: share.id, for: id)
            _ = try await owner.changeShare(share.id, [.setPermission(participant: id, .none), .setTitle("Sweden")])
            try await refused(.unknownItem) { try await ben.resolveLink(link.token) }
            try await refused(.unknownItem) { try await ben.acceptLink(link.token) }
            _ = try await owner.changeShare(share.id, [.setPermission(participant: id, .readOnly)])
            try equal(try await ben.acceptLink(link.token).share.title, "Sweden")
            _ = try await owner.changeShare(share.id, [.setPermission(participant: id, .none)])
            try await ben.declineLink(link.token)
            try equal(try await others(share, owner), [])
        },
    ]
}
