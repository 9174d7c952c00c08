import Foundation
import TidemarkCloud
import TidemarkModel

/// Checks that no account learns about data that it may not see.
extension CloudContract {
    static let secrets: [Check] = [
        Check("what the root of a hierarchy hangs below is found out by no try") { subject in
            let (owner, ben, theirs, _) = try await tree(subject)
            for kind in [RecordOperation.Kind.forceUpdate, .forceReplace, .update, .replace] {
                var told: Set<String> = []
                for parent in ["above", "secret", "nothing", "leaf"] {
                    var given = child("root", of: parent, in: theirs)
                    given.changeTag = try await lookup("root", in: ben, zone: theirs)?.changeTag
                    let outcome = try await one(RecordOperation(kind, given), to: ben)
                    try denied(.zonesAreTheOwners, outcome)
                    told.insert("\(outcome)")
                }
                try equal(told.count, 1)
            }
            try equal(try await lookup("root", in: owner)?.parent, "above")
        },
        Check("two names are never the same to one and different to another") { subject in
            let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
            let (owner, theirs) = try await sharedJournal(subject, ["root"])
            try await save(child(composed, of: "root"), .create, to: owner)
            for name in [decomposed, "\u{212b}", "\u{212a}"] {
                for kind in RecordOperation.Kind.allCases where kind != .delete && kind != .forceDelete {
                    try failed(try await one(RecordOperation(kind, record(name, tag: "1")), to: owner), .invalidArguments)
                }
            }
            try failed(try await one(RecordOperation(.create, child("x", of: decomposed)), to: owner), .invalidArguments)
            for action in [CloudReference.Action.validate, .deleteSelf] {
                let refers = record("x", ["see": .reference(CloudReference(decomposed, action: action))])
                try failed(try await one(RecordOperation(.create, refers), to: owner), .invalidArguments)
            }
            try equal(try await lookup(decomposed, in: owner), nil)
            let found = try await owner.lookup([composed, decomposed], in: zone, desiredKeys: nil)
            try equal(found.map { (try? $0.get()) != nil }, [true, false])
            try await refused(.unknownItem) {
                try await owner.createShare(
                    in: zone, coverage: .hierarchy(root: decomposed), title: nil, publicPermission: .none)
            }
            let share = try await owner.createShare(
                in: zone, coverage: .hierarchy(root: composed), title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            let answers = try await ben.lookup([decomposed, composed], in: theirs, desiredKeys: nil)
            try equal(answers.map { (try? $0.get()) != nil }, [false, true])
            let tries = [
                RecordOperation(.forceUpdate, record(decomposed, in: theirs)),
                RecordOperation(.create, child(UUID().uuidString, of: composed, in: theirs)),
            ]
            let outcomes = try await ben.modify(ModifyRecordsRequest(zone: theirs, operations: tries))
            try failed(outcomes[0], .invalidArguments)
            guard case .saved = outcomes[1] else { throw Violation(description: "not saved: \(outcomes[1])") }
            _ = try await one(.delete(CloudRecordID(decomposed, in: zone)), to: owner)
            try expect(try await lookup(composed, in: owner) != nil, "the one of another spelling was deleted")
        },
        Check("an address is one, however it is spelled") { subject in
            let (composed, decomposed) = ("b\u{e9}n@example.org", "Be\u{301}n@example.org")
            let one = try await user(try await subject.database(.shared, account: composed))
            try equal(try await user(try await subject.database(.shared, account: decomposed)), one)
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let other = try await sharing(subject, .shared, decomposed)
            let invited = try await owner.changeShare(
                share.id, [.invite(.emailAddress(decomposed), role: .privateUser, permission: .readOnly)])
            try equal(Array(invited.participants[1].identity.lookUp!.value.utf8), Array(composed.utf8))
            _ = try await other.acceptLink(try await owner.makeLink(to: share.id, for: nil).token)
            try equal(try await sharing(subject, .shared, composed).zones(), [theirs])
        },
        Check("what was done to a share is told to its own administrators, and not to those of the next") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let first = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            _ = try await owner.changeShare(first.id, [.setTitle("Divorce")])
            try await owner.deleteShare(first.id)
            let second = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, second, of: owner, ben, as: .administrator)
            let kinds = [ShareAuditEntry.Kind.created, .invited, .linkMade, .accepted]
            try equal(try await ben.shareAudit(in: theirs, after: nil).map(\.kind), kinds)
            let entries = try await owner.shareAudit(in: zone, after: nil)
            try equal(entries.map(\.kind), [.created, .titleChanged, .stopped] + kinds)
            try equal(Set(entries.map(\.share)), [second.id])
        },
        Check("what somebody was invited as is written down, and links that go with who they were for") { subject in
            let (owner, _) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let invited = try await owner.changeShare(
                share.id,
                [
                    .invite(.emailAddress(ben), role: .administrator, permission: .readOnly),
                    .invite(.emailAddress(cleo), role: .privateUser, permission: .readWrite),
                    .invite(.emailAddress(dan), role: .privateUser, permission: .readWrite),
                ])
            var links: [ShareLink] = []
            for participant in invited.participants.dropFirst() {
                links.append(try await owner.makeLink(to: share.id, for: participant.id))
            }
            links.append(try await owner.makeLink(to: share.id, for: nil))
            let entries = try await owner.shareAudit(in: zone, after: nil)
            try equal(
                entries.filter { $0.kind == .invited }.map(\.value),
                ["administrator readOnly", "privateUser readWrite", "privateUser readWrite"])
            func revoked(_ body: () async throws -> Void) async throws -> [String?] {
                let before = try await owner.shareAudit(in: zone, after: nil)
                try await body()
                let news = try await owner.shareAudit(in: zone, after: before.last?.time)
                return news.filter { $0.kind == .linkRevoked }.map(\.subject)
            }
            let first = links[0].participant!
            let one = try await revoked { _ = try await owner.changeShare(share.id, [.remove(participant: first)]) }
            try equal(one, [links[0].id])
            let two = try await revoked { _ = try await owner.changeShare(share.id, [.setPublicPermission(.readOnly)]) }
            try equal(Set(two), [links[1].id, links[2].id])
            try equal(try await revoked { try await owner.deleteShare(share.id) }, [links[3].id])
        },
        Check("addresses and numbers are told to who manages a share, and to nobody else") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .readOnly)
            let id = CloudRecordID(share.id.recordName, in: theirs)
            let ben = try await join(subject, share, of: owner, ben)
            let cleo = try await join(subject, share, of: owner, cleo, as: .administrator)
            _ = try await owner.changeShare(
                share.id, [.invite(.phoneNumber("+46701234567"), role: .privateUser, permission: .readOnly)])
            let stranger = try await sharing(subject, .shared, dan)
            let link = try await owner.makeLink(to: share.id, for: nil)
            try equal(try await stranger.resolveLink(link.token).share.participants.compactMap(\.identity.lookUp), [])
            let metadata = try await stranger.acceptLink(link.token)
            let told = [
                metadata.share, try await current(CloudShare(id, coverage: .zone), stranger),
                try await lookup(id.recordName, in: stranger, zone: theirs)?.share,
            ]
            for share in told {
                try equal(share?.participants.count, 5)
                try equal(share?.participants.compactMap(\.identity.lookUp), [])
            }
            let address = UserLookUp.emailAddress(CloudContract.ben)
            let own = try await current(CloudShare(id, coverage: .zone), ben)
            try equal(own.participants.compactMap(\.identity.lookUp), [address])
            try equal(own.currentUser?.identity.lookUp, address)
            for database in [owner, cleo] {
                let all = try await database.shares(in: database.scope == .private ? zone : theirs)[0]
                try equal(all.participants.compactMap(\.identity.lookUp).count, 3)
            }
        },
        Check("a request that was refused is refused again with the rule that did it") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben, .readOnly)
            let request = ModifyRecordsRequest(
                zone: theirs, operations: [RecordOperation(.forceUpdate, record("a", ["n": .int64(2)], in: theirs))],
                clientToken: "t")
            for _ in 0..<2 {
                let outcomes = try await ben.modify(request)
                try denied(.readOnly, outcomes[0])
                guard case .failed(let error) = outcomes[0] else { return }
                try equal([error.denial?.operation, error.denial?.isAllowed == false ? .update : nil], [.update, .update])
            }
        },
        Check("one call changes no more of a share than one request of records") { subject in
            let (owner, _) = try await sharedJournal(subject)
            let most = try await owner.limits().operationsPerRequest
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            func titles(_ count: Int) -> [ShareChange] { (0..<count).map { .setTitle("\($0)") } }
            try await refused(.limitExceeded) { try await owner.changeShare(share.id, titles(most + 1)) }
            try equal(try await owner.changeShare(share.id, titles(most)).title, "\(most - 1)")
        },
        Check("what was begun and not finished counts until it is, or is long past") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            try await subject.setQuota(100_000, of: anna)
            let contents = (1...2).map { Data(repeating: $0, count: 80_000) }
            let assets = contents.map { AssetDigest.asset(of: $0) }
            _ = try await ben.upload(contents[0][0..<60_000], of: assets[0], at: 0, in: theirs)
            try await refused(.quotaExceeded) {
                try await ben.upload(contents[1][0..<60_000], of: assets[1], at: 0, in: theirs)
            }
            try await refused(.quotaExceeded) {
                try await owner.upload(contents[1][0..<60_000], of: assets[1], at: 0, in: zone)
            }
            try equal(try await ben.upload(contents[0][60_000...], of: assets[0], at: 60_000, in: theirs), 80_000)
        },
    ]
}
