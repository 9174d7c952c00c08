import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    static let links: [Check] = [
        Check("a link is for who is invited, until it is revoked; a guess tells nothing") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let (ben, cleo) = (try await sharing(subject, .shared, ben), try await sharing(subject, .shared, cleo))
            let invited = try await owner.changeShare(
                share.id, [.invite(.emailAddress(CloudContract.ben), role: .privateUser, permission: .readOnly)])
            let own = try await owner.makeLink(to: share.id, for: try participant(CloudContract.ben, invited).id)
            let (open, revoked) = (
                try await owner.makeLink(to: share.id, for: nil), try await owner.makeLink(to: share.id, for: nil)
            )
            try equal(Set([own, open, revoked].flatMap { [$0.id, $0.token] }).count, 6)
            try await owner.revokeLink(revoked.id, to: share.id)
            try await refused(.unknownItem) { try await owner.revokeLink(revoked.id, to: share.id) }
            var told: Set<String> = []
            for token in [own.token, open.token, revoked.token, own.id, "", "x", String(own.token.dropLast())] {
                for call in [
                    { _ = try await cleo.resolveLink(token) }, { _ = try await cleo.acceptLink(token) },
                    { try await cleo.declineLink(token) },
                ] as [() async throws -> Void] { told.insert("\(String(describing: await failure(call)))") }
            }
            try equal(told.count, 1)
            try await refused(.unknownItem) { try await cleo.resolveLink(own.token) }
            try await refused(.unknownItem) { try await ben.acceptLink(revoked.token) }
            try equal(try await owner.resolveLink(open.token).scope, .private)
            // A person who is only invited sees the owner and themselves.
            _ = try await owner.changeShare(
                share.id, [.invite(.emailAddress(dan), role: .privateUser, permission: .readOnly)])
            try equal(try await ben.resolveLink(open.token).share.participants.count, 2)
            _ = try await ben.acceptLink(own.token)
            try equal(
                try await current(CloudShare(CloudRecordID(share.id.recordName, in: theirs), coverage: .zone), ben).participants
                    .count, 3)
            try await refused(.notAuthenticated) { try await sharing(subject, .public, nil).resolveLink(open.token) }
            try await refused(.unknownItem) { try await owner.makeLink(to: share.id, for: "nobody") }
        },
        Check("a link is open to everybody while the share is, for as much as it is") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .readOnly)
            let (ben, cleo) = (try await sharing(subject, .shared, ben), try await sharing(subject, .shared, cleo))
            let link = try await owner.makeLink(to: share.id, for: nil)
            try equal(try await ben.resolveLink(link.token).participant, nil)
            let metadata = try await ben.acceptLink(link.token)
            try equal([metadata.participant?.role == .publicUser, metadata.participant?.permission == .readOnly], [true, true])
            let write = RecordOperation(.forceUpdate, record("a", ["n": .int64(2)], in: theirs))
            try denied(.readOnly, try await one(write, to: ben))
            _ = try await owner.changeShare(share.id, [.setPublicPermission(.readWrite)])
            guard case .saved = try await one(write, to: ben) else { throw Violation(description: "not saved") }
            try equal(try await current(share, owner).participants[1].permission, .readWrite)
            // A limited one is not.
            let invited = try await owner.changeShare(
                share.id, [.invite(.emailAddress(dan), role: .privateUser, permission: .readOnly)])
            let own = try await owner.makeLink(to: share.id, for: try participant(dan, invited).id)
            try await refused(.unknownItem) { try await cleo.acceptLink(own.token) }
            // When the public permission changes, people who have not answered are removed; when it becomes `none`, people who
            // came by the link.
            let narrowed = try await owner.changeShare(share.id, [.setPublicPermission(.readOnly)])
            try equal(narrowed.participants.map(\.role), [.owner, .publicUser])
            try denied(.readOnly, try await one(write, to: ben))
            let closed = try await owner.changeShare(share.id, [.setPublicPermission(.none)])
            try equal(closed.participants.filter { $0.acceptanceStatus == .accepted }.map(\.role), [.owner])
            try equal(try await ben.zones(), [])
            for database in [ben, cleo] { try await refused(.unknownItem) { try await database.acceptLink(link.token) } }
            // A person who is invited after that is a private user, with one entry.
            let back = try await join(subject, share, of: owner, CloudContract.ben)
            let benUser = try await user(back)
            try equal(
                try await current(share, owner).participants.filter { $0.identity.userRecordName == benUser }.map(\.role),
                [.privateUser])
            guard case .saved = try await one(write, to: ben) else { throw Violation(description: "not saved") }
        },
        Check("who came by a link can be made a participant of one's own, and then stays") { subject in
            let (owner, _) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .readOnly)
            let ben = try await sharing(subject, .shared, ben)
            _ = try await ben.acceptLink(try await owner.makeLink(to: share.id, for: nil).token)
            let entry = try await current(share, owner).participants[1]
            try await refused(.invalidArguments) {
                try await owner.changeShare(share.id, [.setPermission(participant: entry.id, .readWrite)])
            }
            let benUser = try await user(ben)
            let invited = try await owner.changeShare(
                share.id, [.invite(.userRecordName(benUser), role: .privateUser, permission: .readWrite)])
            try equal(invited.participants.map(\.role), [.owner, .privateUser])
            _ = try await owner.changeShare(share.id, [.setPublicPermission(.none)])
            try equal(try await ben.zones().count, 1)
        },
    ]
}
