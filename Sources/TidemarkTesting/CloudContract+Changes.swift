import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    static let changes: [Check] = [
        Check("the changes of a zone tell each record once, as it is now, and deletions since a token") { subject in
            let database = try await journal(subject)
            for name in ["a", "b", "c", "d"] { try await save(record(name, ["n": .int64(0)]), .create, to: database) }
            try await save(record("a", ["n": .int64(1)]), .forceUpdate, to: database)
            _ = try await one(.delete(CloudRecordID("b", in: zone)), to: database)
            let all = try await allChanges(in: database)
            // Without a token, the answer has no deletions.
            try equal(names(all.changes), ["c", "d", "a"])
            try await save(record("c", ["n": .int64(2)]), .forceUpdate, to: database)
            _ = try await one(.delete(CloudRecordID("d", in: zone)), to: database)
            try await save(record("e"), .create, to: database)
            let since = try await allChanges(in: database, since: all.token)
            try equal(names(since.changes), ["c", "-d", "e"])
            guard case .saved(let c) = since.changes[0], case .deleted(let d) = since.changes[1] else {
                throw Violation(description: "\(since)")
            }
            try equal(c.fields, ["n": .int64(2)])
            try equal(d.type, "Destination")
            // A token can be used again.
            try equal(try await allChanges(in: database, since: all.token).changes, since.changes)
            try equal(try await allChanges(in: database, since: since.token).changes.count, 0)
        },
        Check("a long feed of changes comes in pages that miss nothing, also while it is written to") { subject in
            let database = try await journal(subject)
            let wanted = (0..<95).map { "n\($0)" }
            for start in stride(from: 0, to: 95, by: 19) {
                let operations = wanted[start..<(start + 19)].map { RecordOperation(.create, record($0)) }
                _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: operations))
            }
            let first = try await database.zoneChanges(zone, since: nil, limit: 10, desiredKeys: nil)
            try equal(first.changes.count, 10)
            try expect(first.moreComing, "that is not all")
            try await save(record("n3", ["n": .int64(1)]), .forceUpdate, to: database)
            try await save(record("n90", ["n": .int64(1)]), .forceUpdate, to: database)
            _ = try await one(.delete(CloudRecordID("n50", in: zone)), to: database)
            // A client that has fetched the record, and continues from there, gets its deletion.
            _ = try await one(.delete(CloudRecordID("n5", in: zone)), to: database)
            let rest = try await allChanges(in: database, since: first.token, limit: 10)
            var state: [String: CloudRecord] = [:]
            for change in first.changes + rest.changes {
                switch change {
                case .saved(let it): state[it.id.recordName] = it
                case .deleted(let it): state[it.id.recordName] = nil
                }
            }
            try equal(Set(state.keys), Set(wanted).subtracting(["n5", "n50"]))
            try equal(state["n3"]?.fields, ["n": .int64(1)])
            try equal(state["n90"]?.fields, ["n": .int64(1)])
        },
        Check("a zone that was deleted and made anew does not know the tokens of before") { subject in
            let database = try await journal(subject)
            try await save(record("a"), .create, to: database)
            let token = try await allChanges(in: database).token
            try await database.modifyZones(saving: [], deleting: [zone])
            try await refused(.zoneNotFound) { try await database.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil) }
            try await refused(.zoneNotFound) { try await one(RecordOperation(.create, record("b")), to: database) }
            try await database.modifyZones(saving: [zone], deleting: [])
            try await refused(.changeTokenExpired) {
                try await database.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
            }
            try equal(try await allChanges(in: database).changes.count, 0)
            try equal(try await lookup("a", in: database), nil)
        },
        Check("a token that the cloud has not given out is refused") { subject in
            let database = try await journal(subject)
            try await save(record("a"), .create, to: database)
            let token = try await allChanges(in: database).token
            for forged in ["", "x", token.rawValue + "0", String(token.rawValue.dropLast())] {
                try await refused(.invalidArguments) {
                    try await database.zoneChanges(zone, since: CloudToken(rawValue: forged), limit: nil, desiredKeys: nil)
                }
                try await refused(.invalidArguments) {
                    try await database.databaseChanges(since: CloudToken(rawValue: forged), limit: nil)
                }
            }
            try await refused(.invalidArguments) {
                try await database.zoneChanges(.default, since: nil, limit: nil, desiredKeys: nil)
            }
        },
        Check("the changes of a database tell the zones that changed, came and went") { subject in
            let database = try await journal(subject)
            let other = CloudZoneID("Other")
            try await database.modifyZones(saving: [other], deleting: [])
            func told(_ zones: [CloudZoneID]) -> Set<String> { Set(zones.map(\.zoneName)) }
            let all = try await database.databaseChanges(since: nil, limit: nil)
            try equal(told(all.changed), ["Journal", "Other"])
            try equal(try await database.databaseChanges(since: all.token, limit: nil).changed.count, 0)
            try await save(record("a"), .create, to: database)
            let one = try await database.databaseChanges(since: all.token, limit: nil)
            try equal(told(one.changed), ["Journal"])
            try await database.modifyZones(saving: [], deleting: [other])
            try await database.modifyZones(saving: [other], deleting: [other])
            let gone = try await database.databaseChanges(since: one.token, limit: nil)
            try equal([told(gone.changed), told(gone.deleted)], [[], ["Other"]])
            try equal(Set(try await database.zones().map(\.zoneName)), ["Journal", "_defaultZone"])
            // Page by page.
            try await database.modifyZones(saving: (0..<5).map { CloudZoneID("z\($0)") }, deleting: [])
            var (found, token, more): (Set<String>, CloudToken?, Bool) = ([], gone.token, true)
            while more {
                let page = try await database.databaseChanges(since: token, limit: 2)
                try expect(page.changed.count <= 2, "\(page.changed.count) zones on a page of two")
                found.formUnion(told(page.changed))
                (token, more) = (page.token, page.moreComing)
            }
            try equal(found, ["z0", "z1", "z2", "z3", "z4"])
        },
        Check("a zone that its owner has purged says so, until it is made anew") { subject in
            let database = try await journal(subject)
            try await save(record("a"), .create, to: database)
            let token = try await database.databaseChanges(since: nil, limit: nil).token
            try await subject.purge(zone, of: anna)
            try equal(try await database.databaseChanges(since: token, limit: nil).purged.map(\.zoneName), ["Journal"])
            try await refused(.userDeletedZone) { try await one(RecordOperation(.create, record("b")), to: database) }
            try await refused(.userDeletedZone) { try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil) }
            try await database.modifyZones(saving: [zone], deleting: [])
            try await save(record("b"), .create, to: database)
        },
        Check("who listens hears of a change, and of those that come together at least once") { subject in
            let database = try await journal(subject)
            var notifications = try await subject.database(.private, account: anna).notifications().makeAsyncIterator()
            for number in 0..<20 { try await save(record("n\(number)"), .create, to: database) }
            try expect(await notifications.next() != nil, "nothing was heard")
            try await save(record("last"), .create, to: database)
            try expect(await notifications.next() != nil, "nothing more was heard")
        },
    ]
}
