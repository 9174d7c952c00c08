import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    static let accounts: [Check] = [
        Check("nobody sees or touches another account's private records") { subject in
            let (mine, theirs) = (try await journal(subject), try await subject.database(.private, account: ben))
            try await save(record("a", ["n": .int64(1)]), .create, to: mine)
            try await refused(.zoneNotFound) { try await theirs.lookup(["a"], in: zone, desiredKeys: nil) }
            let owner = try await mine.account().userRecordName ?? ""
            try expect(owner.wholeMatch(of: #/_[0-9a-f]{32}/#) != nil, "'\(owner)' is no user record name")
            let named = CloudZoneID("Journal", owner: owner)
            try equal(try await mine.lookup(["a"], in: named, desiredKeys: nil).count, 1)
            try await refused(.zoneNotFound) { try await theirs.lookup(["a"], in: named, desiredKeys: nil) }
            try await refused(.zoneNotFound) { try await theirs.zoneChanges(named, since: nil, limit: nil, desiredKeys: nil) }
            try await refused(.zoneNotFound) {
                try await theirs.modify(ModifyRecordsRequest(zone: named, operations: [.delete(CloudRecordID("a", in: named))]))
            }
            try equal(try await theirs.zones().map(\.zoneName), ["_defaultZone"])
            try equal(try await lookup("a", in: mine)?.fields, ["n": .int64(1)])
        },
        Check("the public database is read by all and written by those who are signed in") { subject in
            let (anyone, mine) = (
                try await subject.database(.public, account: nil), try await subject.database(.public, account: anna)
            )
            let hello = record("hello", ["n": .int64(1)], in: .default)
            try await save(hello, .create, to: mine)
            try equal(try await lookup("hello", in: anyone, zone: .default)?.fields, ["n": .int64(1)])
            try await refused(.notAuthenticated) { try await one(RecordOperation(.forceUpdate, hello), to: anyone) }
            try await refused(.permissionFailure) { try await mine.modifyZones(saving: [zone], deleting: []) }
            try await refused(.notAuthenticated) { try await subject.database(.private, account: nil).zones() }
        },
        Check("an account that is not available for the moment is told apart from none") { subject in
            let database = try await journal(subject)
            try equal(try await database.account().status, .available)
            try await subject.setStatus(.temporarilyUnavailable, of: anna)
            try equal(try await database.account().status, .temporarilyUnavailable)
            try await refused(.accountTemporarilyUnavailable) {
                try await one(RecordOperation(.create, record("a")), to: database)
            }
            try await subject.setStatus(.noAccount, of: anna)
            try await refused(.notAuthenticated) { try await one(RecordOperation(.create, record("a")), to: database) }
            try await subject.setStatus(.available, of: anna)
            try await save(record("a"), .create, to: database)
        },
        Check("a full account takes nothing more, and says what it has") { subject in
            let database = try await journal(subject)
            try await subject.setQuota(100_000, of: anna)
            let text = CloudValue.string(String(repeating: "x", count: 60_000))
            try await save(record("a", ["text": text]), .create, to: database)
            let used = try await database.account().used ?? 0
            try expect((60_000...70_000).contains(used), "\(used) bytes are used")
            try await refused(.quotaExceeded) {
                try await one(RecordOperation(.create, record("b", ["text": text])), to: database)
            }
            try equal(try await lookup("b", in: database), nil)
            let asset = CloudAsset(digest: String(repeating: "a", count: 64), size: 50_000)
            try await refused(.quotaExceeded) { try await database.upload(Data(count: 10), of: asset, at: 0, in: zone) }
            // A deletion, which frees space, is always allowed.
            _ = try await one(.delete(CloudRecordID("a", in: zone)), to: database)
            let left = try await database.account().used ?? .max
            try expect(left < 1_000, "\(left) bytes are used by a record that was deleted")
            try await save(record("b", ["text": text]), .create, to: database)
        },
    ]
}
