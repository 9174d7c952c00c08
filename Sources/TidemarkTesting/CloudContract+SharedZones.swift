import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    static let sharedZones: [Check] = [
        Check("the changes of a shared database tell the zones that came, changed and went") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            try await owner.modifyZones(saving: [CloudZoneID("Private")], deleting: [])
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await sharing(subject, .shared, ben)
            let start = try await ben.databaseChanges(since: nil, limit: nil)
            try equal(start.changed, [])
            try await join(subject, share, of: owner, CloudContract.ben)
            let came = try await ben.databaseChanges(since: start.token, limit: nil)
            try equal([came.changed, came.deleted], [[theirs], []])
            try await save(record("x", in: CloudZoneID("Private")), .create, to: owner)
            let other = try await ben.databaseChanges(since: came.token, limit: nil)
            try equal([other.changed, other.deleted], [[], []])
            try await save(record("a", ["n": .int64(5)]), .forceUpdate, to: owner)
            let changed = try await ben.databaseChanges(since: other.token, limit: nil)
            try equal(changed.changed, [theirs])
            try await ben.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
            let went = try await ben.databaseChanges(since: changed.token, limit: nil)
            try equal([went.changed, went.deleted], [[], [theirs]])
            try equal(try await ben.databaseChanges(since: nil, limit: nil).deleted, [])
            // A token of one database is not valid for another.
            try await refused(.changeTokenExpired) {
                try await subject.database(.private, account: CloudContract.ben).databaseChanges(since: went.token, limit: nil)
            }
            // Page by page.
            for number in 0..<5 {
                let more = CloudZoneID("z\(number)")
                try await owner.modifyZones(saving: [more], deleting: [])
                try await join(
                    subject, try await owner.createShare(in: more, coverage: .zone, title: nil, publicPermission: .none),
                    of: owner, CloudContract.ben)
            }
            var (found, token, more): ([String], CloudToken?, Bool) = ([], went.token, true)
            while more {
                let page = try await ben.databaseChanges(since: token, limit: 2)
                found += page.changed.map(\.zoneName)
                (token, more) = (page.token, page.moreComing)
            }
            try equal(found, ["z0", "z1", "z2", "z3", "z4"])
        },
        Check("who comes later is told nothing of what went before") { subject in
            let (owner, theirs) = try await sharedJournal(subject, (0..<6).map { "n\($0)" })
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            _ = try await one(.delete(CloudRecordID("n3", in: zone)), to: owner)
            let ben = try await join(subject, share, of: owner, ben)
            let all = try await allChanges(in: ben, limit: 1, zone: theirs)
            try equal(Set(names(all.changes)), ["n0", "n1", "n2", "n4", "n5", CloudShare.zoneWideName])
            _ = try await one(.delete(CloudRecordID("n1", in: zone)), to: owner)
            try equal(names(try await allChanges(in: ben, since: all.token, zone: theirs).changes), ["-n1"])
        },
        Check("the owner's storage pays for what participants put there") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            let before = try await owner.account().used ?? 0
            try await subject.setQuota(1, of: CloudContract.ben)
            let text = CloudValue.string(String(repeating: "x", count: 60_000))
            try await save(record("large", ["text": text], in: theirs), .create, to: ben)
            try expect(try await owner.account().used ?? 0 >= before + 60_000, "the owner does not pay")
            try equal(try await ben.account().used, 0)
            try await subject.setQuota(before + 100_000, of: anna)
            try await refused(.quotaExceeded) {
                try await one(RecordOperation(.create, record("more", ["text": text], in: theirs)), to: ben)
            }
            let asset = AssetDigest.asset(of: Data(count: 90_000))
            try await refused(.quotaExceeded) { try await ben.upload(Data(count: 90_000), of: asset, at: 0, in: theirs) }
        },
        Check("a digest gives a participant nobody's bytes but what they have sent or may read") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let hidden = CloudZoneID("Private")
            try await owner.modifyZones(saving: [hidden], deleting: [])
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let (ben, cleo) = (
                try await join(subject, share, of: owner, ben), try await join(subject, share, of: owner, cleo, .readOnly)
            )
            func content(_ seed: UInt8) -> Data { Data((0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 31) ^ seed }) }
            let (secret, begun, seen, sent) = (content(1), content(2), content(3), content(4))
            let assets = [secret, begun, seen, sent].map { AssetDigest.asset(of: $0) }
            _ = try await owner.upload(secret, of: assets[0], at: 0, in: hidden)
            try await save(record("x", ["image": .asset(assets[0])], in: hidden), .create, to: owner)
            _ = try await owner.upload(begun[0..<999], of: assets[1], at: 0, in: zone)
            _ = try await owner.upload(seen, of: assets[2], at: 0, in: zone)
            try await save(record("y", ["image": .asset(assets[2])]), .create, to: owner)
            // Assets of the owner's other zones, and unfinished uploads, count as missing.
            try equal(
                try await ben.missingAssets(Array(assets), in: theirs), [assets[0]: 0, assets[1]: 0, assets[3]: 0])
            for asset in [assets[0], assets[1]] {
                try failed(
                    try await one(RecordOperation(.create, record("z", ["image": .asset(asset)], in: theirs)), to: ben),
                    .assetNotAvailable)
                try await refused(.assetNotAvailable) { try await ben.download(asset, in: theirs, from: 0, count: 10) }
            }
            try await refused(.invalidArguments) { try await ben.upload(begun[999...], of: assets[1], at: 999, in: theirs) }
            // Participants may name and download the assets that they may read.
            try equal(try await cleo.download(assets[2], in: theirs, from: 0, count: 1000), seen)
            try await save(record("z", ["image": .asset(assets[2])], in: theirs), .create, to: ben)
            // They may also name the assets that they have uploaded, which then belong to the owner.
            try await denied(.readOnly) { try await cleo.upload(sent, of: assets[3], at: 0, in: theirs) }
            try equal(try await ben.upload(sent[0..<500], of: assets[3], at: 0, in: theirs), 500)
            try equal(try await ben.missingAssets([assets[3]], in: theirs), [assets[3]: 500])
            try equal(try await ben.upload(sent[500...], of: assets[3], at: 500, in: theirs), 1000)
            try equal(try await cleo.missingAssets([assets[3]], in: theirs), [assets[3]: 0])
            try await save(record("w", ["image": .asset(assets[3])], in: theirs), .create, to: ben)
            try equal(try await owner.download(assets[3], in: zone, from: 0, count: 1000), sent)
            try equal(try await cleo.download(assets[3], in: theirs, from: 0, count: 1000), sent)
            // A participant may upload bytes that the owner has already. They use no more of the quota.
            let used = try await owner.account().used
            try equal(try await ben.upload(secret, of: assets[0], at: 0, in: theirs), 1000)
            try equal(try await owner.account().used, used)
            try await save(record("v", ["image": .asset(assets[0])], in: theirs), .create, to: ben)
            try await ben.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
            try await refused(.zoneNotFound) { try await ben.download(assets[3], in: theirs, from: 0, count: 10) }
            try await refused(.zoneNotFound) { try await ben.missingAssets([assets[3]], in: theirs) }
            try await refused(.zoneNotFound) { try await ben.upload(sent, of: assets[3], at: 0, in: theirs) }
        },
        Check("who listens is woken by what they can see") { subject in
            let (owner, theirs) = try await sharedJournal(subject)
            let hidden = CloudZoneID("Private")
            try await owner.modifyZones(saving: [hidden], deleting: [])
            let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
            let ben = try await join(subject, share, of: owner, ben)
            let start = try await ben.databaseChanges(since: nil, limit: nil).token
            let notifications = try await ben.notifications()
            let listening = Task {
                for await _ in notifications {
                    let changes = try await ben.databaseChanges(since: start, limit: nil)
                    try expect(changes.changed + changes.deleted == [theirs], "woken by nothing that can be seen")
                    return true
                }
                return false
            }
            for number in 0..<20 { try await save(record("n\(number)", in: hidden), .create, to: owner) }
            try await save(record("a", ["n": .int64(7)]), .forceUpdate, to: owner)
            try expect(try await listening.value, "nothing was heard")
            // A participant is also notified of their removal.
            var more = try await ben.notifications().makeAsyncIterator()
            let id = try participant(CloudContract.ben, try await current(share, owner)).id
            _ = try await owner.changeShare(share.id, [.remove(participant: id)])
            try expect(await more.next() != nil, "nothing was heard of the removal")
        },
        Check("nobody changes another's public records") { subject in
            let (mine, theirs) = (
                try await subject.database(.public, account: anna), try await subject.database(.public, account: ben)
            )
            try await save(record("a", ["n": .int64(1)], in: .default), .create, to: mine)
            try denied(
                .publicRecordOfAnother,
                try await one(RecordOperation(.forceUpdate, record("a", ["n": .int64(2)], in: .default)), to: theirs))
            try denied(.publicRecordOfAnother, try await one(.delete(CloudRecordID("a", in: .default)), to: theirs))
            try await save(record("a", ["n": .int64(3)], in: .default), .forceUpdate, to: mine)
            try equal(try await lookup("a", in: theirs, zone: .default)?.fields, ["n": .int64(3)])
        },
    ]
}
