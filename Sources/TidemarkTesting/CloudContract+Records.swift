import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    static let records: [Check] = [
        Check("a record comes back with every type of field, its tag and its stamps") { subject in
            let database = try await journal(subject)
            var place = Location(latitude: 69.3, longitude: 17.1)
            place.altitude = 12.5
            place.speed = 0
            let fields: [String: CloudValue] = [
                "caption": .string("Senja 🏔"), "empty": .string(""), "rating": .int64(-5), "least": .int64(.min),
                "elevation": .double(0.1),
                "when": .timestamp(1_700_000_000_123_456), "raw": .bytes(Data([0, 255, 1])), "place": .location(place),
                "neighbour": .reference(CloudReference("tromso")), "tags": .list([.string("fjord"), .string("")], of: .string),
                "numbers": .list([.int64(1), .int64(-1)], of: .int64), "none": .list([], of: .double),
                "moments": .list([.timestamp(0)], of: .timestamp),
            ]
            let saved = try await save(record("senja", fields), .create, to: database)
            try equal(saved.fields, fields)
            try expect(
                saved.changeTag?.isEmpty == false && saved.created == saved.modified && saved.created != nil,
                "no tag or stamps: \(saved)")
            try equal(saved.id.zone.zoneName, zone.zoneName)
            let user = try await database.account().userRecordName
            try equal(saved.created?.userRecordName, user)
            try equal(try await lookup("senja", in: database), saved)
            let some = try await database.lookup(["senja"], in: zone, desiredKeys: ["rating", "unknown"])
            try equal(try some[0].get().fields, ["rating": .int64(-5)])
        },
        Check("what is answered has the order of what was asked") { subject in
            let database = try await journal(subject)
            let names = (0..<50).map { "n\(($0 * 37) % 50)" }
            let operations = names.map { RecordOperation(.create, record($0, ["n": .string($0)])) }
            let outcomes = try await database.modify(ModifyRecordsRequest(zone: zone, operations: operations))
            let saved: [String] = outcomes.compactMap { if case .saved(let it) = $0 { it.id.recordName } else { nil } }
            try equal(saved, names)
            let found = try await database.lookup(names.reversed() + ["missing"], in: zone, desiredKeys: [])
            try equal(found.dropLast().map { try? $0.get().id.recordName }, names.reversed())
            try await refused(.unknownItem) { try found.last!.get() }
        },
        Check("a record that is there can't be created, and is told") { subject in
            let database = try await journal(subject)
            let first = try await save(record("a", ["n": .int64(1)]), .create, to: database)
            guard case .failed(let error) = try await one(RecordOperation(.create, record("a", ["n": .int64(2)])), to: database)
            else {
                throw Violation(description: "created twice")
            }
            try equal(error.code, .serverRecordChanged)
            try equal(error.serverRecord, first)
            try equal(try await lookup("a", in: database), first)
        },
        Check("an update needs the tag that the record has, and is told what is there") { subject in
            let database = try await journal(subject)
            let first = try await save(record("a", ["n": .int64(1), "m": .int64(1)]), .create, to: database)
            let second = try await save(record("a", ["n": .int64(2)], tag: first.changeTag), .update, to: database)
            try equal(second.fields, ["n": .int64(2), "m": .int64(1)])
            try expect(second.changeTag != first.changeTag, "the tag is as before")
            for kind in [RecordOperation.Kind.update, .replace, .delete] {
                guard
                    case .failed(let error) = try await one(
                        RecordOperation(kind, record("a", ["n": .int64(3)], tag: first.changeTag)), to: database)
                else { throw Violation(description: "\(kind) with a stale tag was done") }
                try equal(error.code, .serverRecordChanged)
                try equal(error.serverRecord, second)
            }
            try failed(try await one(RecordOperation(.update, record("a", ["n": .int64(3)])), to: database), .invalidArguments)
            try equal(try await lookup("a", in: database), second)
        },
        Check("an update sets and clears fields, a replacement leaves no others") { subject in
            let database = try await journal(subject)
            try await save(record("a", ["n": .int64(1), "m": .int64(1), "o": .int64(1)]), .forceUpdate, to: database)
            let forced = try await save(record("a", ["n": .int64(2)]), .forceUpdate, to: database, clearing: ["m"])
            try equal(forced.fields, ["n": .int64(2), "o": .int64(1)])
            let replaced = try await save(record("a", ["m": .int64(3)]), .forceReplace, to: database)
            try equal(replaced.fields, ["m": .int64(3)])
            let again = try await save(record("a", [:], tag: replaced.changeTag), .replace, to: database)
            try equal(again.fields, [:])
            try equal(again.created, forced.created)
            try equal(try await save(record("b", ["n": .int64(1)]), .forceReplace, to: database).fields, ["n": .int64(1)])
        },
        Check("what is not there can't be updated or deleted by tag, and is deleted already without one") { subject in
            let database = try await journal(subject)
            for kind in [RecordOperation.Kind.update, .replace, .delete] {
                try failed(try await one(RecordOperation(kind, record("a", tag: "1")), to: database), .unknownItem)
            }
            guard case .deleted = try await one(.delete(CloudRecordID("a", in: zone)), to: database) else {
                throw Violation(description: "a forced deletion of nothing failed")
            }
            try equal(try await allChanges(in: database).changes.count, 0)
        },
        Check("a deleted record is gone, and can be made anew") { subject in
            let database = try await journal(subject)
            let first = try await save(record("a", ["n": .int64(1)]), .create, to: database)
            guard case .deleted = try await one(.delete(first.id, changeTag: first.changeTag), to: database) else {
                throw Violation(description: "not deleted")
            }
            try equal(try await lookup("a", in: database), nil)
            let second = try await save(record("a", ["m": .int64(2)]), .create, to: database)
            try equal(second.fields, ["m": .int64(2)])
            try failed(
                try await one(RecordOperation(.update, record("a", ["n": .int64(9)], tag: first.changeTag)), to: database),
                .serverRecordChanged)
        },
        Check("an atomic request is done whole or not at all, and the innocent are told so") { subject in
            let database = try await journal(subject)
            try await save(record("there"), .create, to: database)
            let before = try await allChanges(in: database)
            let request = ModifyRecordsRequest(
                zone: zone,
                operations: [
                    RecordOperation(.create, record("new")), RecordOperation(.create, record("there")),
                    .delete(CloudRecordID("there", in: zone)),
                ].dropLast() + [RecordOperation(.forceUpdate, record("other", ["n": .int64(1)]))], isAtomic: true)
            let outcomes = try await database.modify(request)
            try failed(outcomes[0], .batchRequestFailed)
            try failed(outcomes[1], .serverRecordChanged)
            try failed(outcomes[2], .batchRequestFailed)
            let after = try await allChanges(in: database)
            try equal(after.changes, before.changes)
            // In a request that is not atomic, the other operations are done.
            var lenient = request
            lenient.isAtomic = false
            let some = try await database.modify(lenient)
            try failed(some[1], .serverRecordChanged)
            let done = [try await lookup("new", in: database), try await lookup("other", in: database)]
            try expect(!done.contains(nil), "the others were not done")
            var inDefault = ModifyRecordsRequest(
                zone: .default, operations: [RecordOperation(.create, record("x", in: .default))])
            inDefault.isAtomic = true
            try await refused(.invalidArguments) { try await database.modify(inDefault) }
        },
        Check("a request that is sent again with its token is answered as before, and does nothing") { subject in
            let database = try await journal(subject)
            let there = try await save(record("there", ["n": .int64(0)]), .create, to: database)
            let request = ModifyRecordsRequest(
                zone: zone,
                operations: [
                    RecordOperation(.create, record("a", ["n": .int64(1)])), RecordOperation(.create, record("there")),
                    .delete(CloudRecordID("gone", in: zone)),
                    RecordOperation(.update, record("there", ["n": .int64(5)], tag: there.changeTag)),
                ].dropLast(), clientToken: "request-1")
            let first = try await database.modify(request)
            let mark = try await allChanges(in: database)
            let second = try await database.modify(request)
            try equal(second, first)
            // Both answers have the present record, with which a client merges.
            for outcomes in [first, second] {
                guard case .failed(let conflict) = outcomes[1] else { throw Violation(description: "not in conflict") }
                try equal(conflict.serverRecord, there)
            }
            try equal(try await allChanges(in: database, since: mark.token).changes.count, 0)
            // The record was changed since, and the repeated answer still has the former tag.
            guard case .saved(let saved) = first[0] else { throw Violation(description: "not saved") }
            let newer = try await save(record("a", ["n": .int64(2)]), .forceUpdate, to: database)
            guard case .saved(let told) = try await database.modify(request)[0] else { throw Violation(description: "not told") }
            try equal(told.changeTag, saved.changeTag)
            try equal(try await lookup("a", in: database), newer)
            var other = request
            other.operations = [RecordOperation(.create, record("b"))]
            try await refused(.invalidArguments) { try await database.modify(other) }
        },
        Check("two operations for one record are refused") { subject in
            let database = try await journal(subject)
            try await refused(.invalidArguments) {
                try await database.modify(
                    ModifyRecordsRequest(
                        zone: zone,
                        operations: [RecordOperation(.create, record("a")), RecordOperation(.forceUpdate, record("a"))]))
            }
        },
        Check("what is more than the limits say is refused whole") { subject in
            let database = try await journal(subject)
            let limits = try await database.limits()
            let many = (0...limits.operationsPerRequest).map { RecordOperation(.create, record("n\($0)")) }
            try await refused(.limitExceeded) { try await database.modify(ModifyRecordsRequest(zone: zone, operations: many)) }
            let half = String(repeating: "x", count: limits.bytesPerRecord * 9 / 10)
            let count = limits.bytesPerRequest / half.utf8.count + 2
            let large = (0..<count).map { RecordOperation(.create, record("l\($0)", ["text": .string(half)])) }
            try await refused(.limitExceeded) { try await database.modify(ModifyRecordsRequest(zone: zone, operations: large)) }
            let huge = record("huge", ["text": .string(String(repeating: "x", count: limits.bytesPerRecord + 1))])
            try failed(try await one(RecordOperation(.create, huge), to: database), .limitExceeded)
            let wide = Dictionary(uniqueKeysWithValues: (0...limits.fieldsPerType).map { ("f\($0)", CloudValue.int64(1)) })
            try failed(try await one(RecordOperation(.create, record("wide", wide)), to: database), .limitExceeded)
            try equal(try await allChanges(in: database).changes.count, 0)
        },
        Check("references delete what hangs on them, and are validated") { subject in
            let database = try await journal(subject)
            func hanging(_ name: String, on other: String, _ action: CloudReference.Action) -> CloudRecord {
                record(name, ["on": .reference(CloudReference(other, action: action))])
            }
            try failed(
                try await one(RecordOperation(.create, hanging("v", on: "a", .validate)), to: database), .referenceViolation)
            let batch = ModifyRecordsRequest(
                zone: zone,
                operations: [
                    record("a"), hanging("b", on: "a", .deleteSelf), hanging("c", on: "b", .deleteSelf),
                    hanging("d", on: "a", .none),
                    hanging("v", on: "a", .validate),
                ].map { RecordOperation(.create, $0) }, isAtomic: true)
            for outcome in try await database.modify(batch) {
                if case .failed(let error) = outcome { throw error }
            }
            let mark = try await allChanges(in: database).token
            guard case .deleted = try await one(.delete(CloudRecordID("a", in: zone)), to: database) else {
                throw Violation(description: "not deleted")
            }
            try equal(Set(names(try await allChanges(in: database, since: mark).changes)), ["-a", "-b", "-c"])
            var child = record("child")
            child.parent = "nobody"
            try failed(try await one(RecordOperation(.create, child), to: database), .referenceViolation)
            child.parent = "d"
            try equal(try await save(child, .create, to: database).parent, "d")
            // No record can be below itself, whether it exists already or is created together with its parent.
            func below(_ parent: String, _ name: String) -> RecordOperation {
                var record = record(name)
                record.parent = parent
                return RecordOperation(.forceUpdate, record)
            }
            for (name, parent) in [("d", "d"), ("d", child.id.recordName), ("new", "new")] {
                try failed(try await one(below(parent, name), to: database), .invalidArguments)
            }
            let circle = try await database.modify(
                ModifyRecordsRequest(zone: zone, operations: [below("two", "one"), below("one", "two")], isAtomic: false))
            let wrong = circle.count { if case .failed = $0 { true } else { false } }
            try expect(wrong > 0, "two records each below the other")
        },
        Check("what goes with a deletion goes in the order of the names, whatever was made first") { subject in
            let database = try await journal(subject)
            try await save(record("root"), .create, to: database)
            for name in ["m", "z", "b", "n5", "00"] {
                let hanging = record(name, ["on": .reference(CloudReference("root", action: .deleteSelf))])
                try await save(hanging, .create, to: database)
            }
            let mark = try await allChanges(in: database).token
            _ = try await one(.delete(CloudRecordID("root", in: zone)), to: database)
            try equal(
                names(try await allChanges(in: database, since: mark).changes), ["-root", "-00", "-b", "-m", "-n5", "-z"])
        },
        Check("what goes with a deletion is what refers to it by then, within one request") { subject in
            let database = try await journal(subject)
            func referring(_ name: String, to target: String?) -> CloudRecord {
                record(name, target.map { ["see": .reference(CloudReference($0, action: .deleteSelf))] } ?? ["n": .int64(1)])
            }
            for name in ["one", "two"] { try await save(record(name), .create, to: database) }
            for (name, target) in [("free", "one"), ("turned", "one"), ("held", "two")] {
                try await save(referring(name, to: target), .create, to: database)
            }
            let outcomes = try await database.modify(
                ModifyRecordsRequest(
                    zone: zone,
                    operations: [
                        RecordOperation(.forceReplace, referring("free", to: nil)),
                        RecordOperation(.forceReplace, referring("turned", to: "two")),
                        RecordOperation(.forceReplace, referring("held", to: "one")),
                        RecordOperation(.create, referring("new", to: "held")), .delete(CloudRecordID("one", in: zone)),
                    ]))
            for case .failed(let error) in outcomes { throw error }
            for (name, isThere) in [("free", true), ("turned", true), ("held", false), ("new", false), ("two", true)] {
                try equal(try await lookup(name, in: database) != nil, isThere)
            }
        },
        Check("a hierarchy has no more steps than can be climbed") { subject in
            let database = try await journal(subject)
            func step(_ number: Int) -> RecordOperation {
                var step = record("n\(number)")
                step.parent = number == 0 ? nil : "n\(number - 1)"
                return RecordOperation(.create, step)
            }
            var (next, refusal): (Int, CloudError?) = (0, nil)
            let most = min(try await database.limits().operationsPerRequest, 400)
            while refusal == nil, next < 1_200 {
                let outcomes = try await database.modify(
                    ModifyRecordsRequest(zone: zone, operations: (next..<(next + most)).map(step)))
                for case .failed(let error) in outcomes where error.code == .limitExceeded { refusal = refusal ?? error }
                next += most
            }
            try expect(next > 1_000, "refused after \(next) steps")
            try expect(refusal?.reason.contains("1000") ?? false, "not refused with the limit: \(String(describing: refusal))")
            try expect(try await lookup("n999", in: database) != nil, "the last of 1,000 steps is not there")
            try equal(try await lookup("n1001", in: database), nil)
        },
        Check("numbers that are none are refused") { subject in
            let database = try await journal(subject)
            var nowhere = Location(latitude: .infinity, longitude: 0)
            nowhere.altitude = 1
            for value in [
                CloudValue.double(.nan), .double(-.infinity), .list([.double(1), .double(.nan)], of: .double), .location(nowhere),
            ] {
                try failed(try await one(RecordOperation(.create, record("a", ["n": value])), to: database), .invalidArguments)
            }
        },
        Check("a schema grows in development, and is fixed in production") { subject in
            let database = try await journal(subject)
            try await save(record("a", ["n": .int64(1)]), .create, to: database)
            try failed(
                try await one(RecordOperation(.create, record("b", ["n": .string("one")])), to: database), .invalidArguments)
            let production = try await subject.deployed(.private, account: anna)
            try await production.modifyZones(saving: [zone], deleting: [])
            try await save(record("a", ["n": .int64(1)]), .create, to: production)
            try failed(try await one(RecordOperation(.create, record("b", ["m": .int64(1)])), to: production), .invalidArguments)
            var other = record("c")
            other.type = "Other"
            try failed(try await one(RecordOperation(.create, other), to: production), .unknownItem)
        },
    ]
}
