import Foundation
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkWire

/// Goal: requests and answers mean the same on both sides. Method: messages that one side writes and the other one reads; texts
/// of the protocol.
@Suite(.timeLimit(.minutes(30))) struct WireMessageTests {
    private let zone = CloudZoneID("notes", owner: "_a1")
    private let extended = WireDialect(isExtended: true)

    private func record() -> CloudRecord {
        var record = CloudRecord(
            CloudRecordID("n1", in: zone), type: "Note",
            fields: ["title": .string("Hello"), "when": .timestamp(1_763_712_000_123_456), "tags": .list([], of: .string)],
            changeTag: "l7a")
        record.parent = "folder"
        record.created = .init(time: 1_763_712_000_000_001, userRecordName: "_a1")
        record.modified = .init(time: 1_763_712_000_000_002, userRecordName: "_b2")
        return record
    }

    private func share() -> CloudShare {
        var named = UserIdentity(userRecordName: "_a1", name: PersonName(givenName: "Anna", familyName: "Berg"))
        named.name?.nickname = "A"
        let owner = ShareParticipant(id: "p1", identity: named, role: .owner, permission: .readWrite, acceptanceStatus: .accepted)
        let other = ShareParticipant(
            id: "p2", identity: UserIdentity(lookUp: .emailAddress("b@example.org")), role: .privateUser, permission: .readOnly,
            acceptanceStatus: .pending)
        var share = CloudShare(
            CloudRecordID("Share-1", in: zone), coverage: .hierarchy(root: "n1"), title: "Mine", publicPermission: .none,
            participants: [owner, other], currentUser: owner, changeTag: "9")
        share.shortGUID = "0aBc"
        return share
    }

    private func bytes(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var json = JSONWriter()
        write(&json)
        return json.bytes
    }

    @Test func `a record is read as it was written`() throws {
        var root = record()
        root.shareName = "Share-1"
        var shared = CloudRecord(CloudRecordID("Share-1", in: zone), type: CloudShare.recordType, changeTag: "9")
        shared.share = share()
        for record in [record(), root, shared] {
            let read = try JSONText.read(bytes { record.write(&$0, extended) }) { node throws(CloudError) in
                try CloudRecord(answered: node, in: .default)
            }
            #expect(read == record)
        }
    }

    @Test func `a record has the members that clients demand`() throws {
        try JSONText.read(bytes { record().write(&$0, WireDialect(isExtended: false)) }) { node throws(CloudError) in
            #expect(
                node.members.map(\.name) == [
                    "recordName", "recordType", "recordChangeTag", "fields", "pluginFields", "created", "modified", "deleted",
                    "zoneID",
                    "parent",
                ])
            let created = try node.required("created")
            #expect(created.members.map(\.name) == ["timestamp", "userRecordName", "deviceID"])
            #expect(created["timestamp"]?.integer == 1_763_712_000_000)
            #expect(node["zoneID"]?["ownerRecordName"]?.string == "_a1")
        }
    }

    @Test func `shares, metadata, links and audits are read as they were written`() throws {
        let share = share()
        let read = try JSONText.read(bytes { share.write(&$0, extended) }) { node throws(CloudError) in
            try CloudShare(node, in: .default)
        }
        #expect(read == share)
        let metadata = ShareMetadata(
            share: share, root: "n1", owner: share.participants[0].identity, participant: nil, scope: .shared)
        let opened = try JSONText.read(bytes { metadata.write(&$0, extended) }) { node throws(CloudError) in
            try ShareMetadata(node)
        }
        #expect(opened == metadata)
        let link = ShareLink(id: "i", token: "t", participant: "p2")
        #expect(try JSONText.read(bytes { link.write(&$0) }) { node throws(CloudError) in try ShareLink(node) } == link)
        for kind in ShareAuditEntry.Kind.allCases {
            let entry = ShareAuditEntry(
                time: 1, userRecordName: "_a1", share: share.id, kind: kind, subject: "p2", value: "readOnly")
            #expect(
                try JSONText.read(bytes { entry.write(&$0) }) { node throws(CloudError) in try ShareAuditEntry(node) } == entry)
        }
        let changes: [ShareChange] = [
            .setTitle(nil), .setTitle("x"), .setPublicPermission(.readOnly),
            .invite(.phoneNumber("+4612345"), role: .administrator, permission: .readWrite),
            .setPermission(participant: "p", .none),
            .setRole(participant: "p", .privateUser), .remove(participant: "p"),
        ]
        for change in changes {
            #expect(try JSONText.read(bytes { change.write(&$0) }) { node throws(CloudError) in try ShareChange(node) } == change)
        }
    }

    @Test func `members that belong to answers are refused in a request`() throws {
        func read<Value>(_ text: String, _ body: (JSONNode) throws(CloudError) -> Value) throws -> Value {
            try JSONText.read(Array(text.utf8), body)
        }
        for text in [#"{"lookupInfo":{"handle":"@b"}}"#, #"{"lookupInfo":"b"}"#] {
            #expect(throws: CloudError.self) { try read(text) { node throws(CloudError) in try UserIdentity(node) } }
            #expect(try read(text) { node throws(CloudError) in try UserIdentity(answered: node) } == UserIdentity())
        }
        let change = #"{"change":"setPermission","participantId":"p","permission":"COMMENT"}"#
        #expect(throws: CloudError.self) { try read(change) { node throws(CloudError) in try ShareChange(node) } }
        let entry = #"{"kind":"archived"}"#
        #expect(try read(entry) { node throws(CloudError) in try ShareAuditEntry(answered: node) } == nil)
        #expect(throws: CloudError.self) { try read(entry) { node throws(CloudError) in try ShareAuditEntry(node) } }
    }

    private func modify(_ bytes: [UInt8], schema: [String: FieldType] = [:]) throws -> WireModify {
        try JSONText.read(bytes) { node throws(CloudError) in
            try WireModify(
                node, operations: 3, schema: { _ in schema },
                asset: { claim, _, _, _ in claim.digest.map { CloudAsset(digest: $0, size: claim.size ?? 0) } },
                newName: { "new" })
        }
    }

    @Test func `a request of our client is read as it was written`() throws {
        var changed = record()
        (changed.created, changed.modified) = (nil, nil)
        let operations = [
            RecordOperation(.update, changed, clearing: ["gone"]),
            RecordOperation.delete(CloudRecordID("n2", in: zone)),
            RecordOperation.delete(CloudRecordID("n3", in: zone), changeTag: "4"),
        ]
        let request = ModifyRecordsRequest(
            zone: zone, operations: operations, isAtomic: true, clientToken: "c", desiredKeys: ["title"])
        let read = try modify(bytes { request.write(&$0) })
        #expect(read.items.map(\.operation) == operations)
        #expect(read.zone == zone && read.isAtomic == true && read.clientToken == "c" && read.desiredKeys == ["title"])
    }

    @Test func `optional members get defaults, and a missing required one is named`() throws {
        func reason(_ text: String) -> String {
            do { return "\(try modify(Array(text.utf8)).items.map(\.operation.record.id.recordName))" } catch {
                return (error as? CloudError).map { "\($0.code.rawValue): \($0.reason)" } ?? "\(error)"
            }
        }
        #expect(reason(#"{"operations":[{"operationType":"create","record":{"recordType":"Note"}}]}"#) == #"["new"]"#)
        #expect(reason("{}") == "invalidArguments: the body lacks the member 'operations'")
        #expect(reason("[]") == "invalidArguments: the body is not an object")
        #expect(
            reason(#"{"operations":[{"operationType":"update","record":{"recordName":"a","recordType":"Note"}}]}"#)
                == "invalidArguments: operations[0].record missing required field 'recordChangeTag'")
        #expect(
            reason(#"{"operations":[{"operationType":"eat","record":{}}]}"#)
                == "invalidArguments: operations[0].operationType is not one of create, update, forceUpdate, replace, forceReplace, delete, forceDelete"
        )
        #expect(reason(#"{"operations":[1,2,3,4]}"#) == "limitExceeded: operations has 4 elements, and 3 is the most")
    }

    @Test func `an unknown role is refused in a request, and is unknown in an answer`() throws {
        let error = #expect(throws: CloudError.self) {
            try JSONText.read(Array(#"{"type":"CAPTAIN"}"#.utf8)) { node throws(CloudError) in
                try ShareParticipant.Role(wire: node.required("type"))
            }
        }
        #expect(error?.reason == "type is not one of OWNER, ADMINISTRATOR, USER, PUBLIC_USER")
        let written = String(decoding: bytes { share().participants[1].write(&$0) }, as: UTF8.self)
        let newer = written.replacingOccurrences(of: #""USER""#, with: #""CAPTAIN""#)
        let read = try JSONText.read(Array(newer.utf8)) { node throws(CloudError) in try ShareParticipant(node) }
        #expect(read.role == .unknown)
        #expect(read.permission == .readOnly)
    }

    @Test func `an invalid value fails its item, and not the request`() throws {
        let read = try modify(
            Array(
                #"{"operations":[{"operationType":"create","record":{"recordType":"N","recordName":"a","fields":{"t":{"value":{"x":1}}}}},{"operationType":"forceDelete","record":{"recordName":"b"}}]}"#
                    .utf8))
        #expect(
            read.items[0].failure?.reason == "operations[0].record.fields.t.value is a value of no type that a field can have")
        #expect(read.items[1].failure == nil)
    }

    @Test func `outcomes are read as they were written`() throws {
        var conflict = CloudError(.serverRecordChanged, "client oplock error", serverRecord: record())
        conflict.retryAfter = .seconds(3)
        var denied = CloudError(ShareDecision(operation: .read, rule: .readOnly))
        denied.retryAfter = nil
        let outcomes: [RecordOutcome] = [
            .saved(record()), .deleted(CloudRecordID("n1", in: zone)), .failed(conflict), .failed(denied),
            .failed(CloudError(.userDeletedZone, "x")),
        ]
        for outcome in outcomes {
            let zone = zone
            let read = try JSONText.read(bytes { outcome.write(&$0, of: CloudRecordID("n1", in: zone), extended) }) {
                node throws(CloudError) in try RecordOutcome(answered: node, in: .default)
            }
            #expect(read == outcome)
            guard case .failed(let error) = read, case .failed(let wanted) = outcome else { continue }
            #expect(error.reason == wanted.reason && error.serverRecord == wanted.serverRecord && error.denial == wanted.denial)
            #expect(error.retryAfter == wanted.retryAfter)
        }
    }

    @Test func `our client recognises a container that is not served, and other clients get no member for it`() throws {
        for isServed in [true, false] {
            var error = CloudError(.notAuthenticated, "no")
            error.containerIsServed = isServed
            let read = try JSONText.read(error.answer(uuid: "1", extended)) { node throws(CloudError) in
                try CloudError(answered: node, in: .default)
            }
            #expect(read?.containerIsServed == isServed)
            for dialect in [extended, WireDialect(isExtended: false)] {
                let text = String(decoding: error.answer(uuid: "1", dialect), as: UTF8.self)
                #expect(
                    text.contains(#""tidemark":{"code":"notAuthenticated","containerIsServed":false}"#)
                        == (!isServed && dialect.isExtended))
            }
        }
    }

    @Test func `a remedy is read as it was written, and a client omits one that it does not know`() throws {
        func read(_ bytes: [UInt8]) throws -> CloudError? {
            try JSONText.read(bytes) { node throws(CloudError) in try CloudError(answered: node, in: .default) }
        }
        for remedy in ErrorRemedy.allCases {
            let error = CloudError(.notAuthenticated, "no", remedy: remedy)
            #expect(try read(error.answer(uuid: "1", extended))?.remedy == remedy)
            #expect(try read(error.answer(uuid: "1", WireDialect(isExtended: false)))?.remedy == nil)
        }
        let newer =
            #"{"uuid":"1","serverErrorCode":"AUTHENTICATION_FAILED","reason":"no","tidemark":{"code":"notAuthenticated","remedy":"newer"}}"#
        let error = try read(Array(newer.utf8))
        #expect(error?.code == .notAuthenticated && error?.reason == "no" && error?.remedy == nil)
    }

    @Test func `each code of ours has a code of the protocol, and is read as itself by our client`() throws {
        let codes: [CloudError.Code] = [
            .networkUnavailable, .networkFailure, .serviceUnavailable, .requestRateLimited, .zoneBusy,
            .accountTemporarilyUnavailable,
            .serverRecordChanged, .limitExceeded, .batchRequestFailed, .zoneNotFound, .userDeletedZone, .changeTokenExpired,
            .referenceViolation, .assetNotAvailable, .quotaExceeded, .notAuthenticated, .permissionFailure, .alreadyShared,
            .unknownItem,
            .invalidArguments, .internalError,
        ]
        for code in codes {
            let read = try JSONText.read(CloudError(code, "r").answer(uuid: "u", extended)) { node throws(CloudError) in
                try CloudError(answered: node, in: .default)
            }
            #expect(read?.code == code)
            let plain = try JSONText.read(CloudError(code, "r").answer(uuid: "u", WireDialect(isExtended: false))) {
                node throws(CloudError) in try CloudError(answered: node, in: .default)
            }
            #expect(plain?.code == CloudError.Code(wire: code.wire.name))
        }
        #expect(CloudError.Code(wire: "SOMETHING_NEW") == .internalError)
    }

    @Test func `a storage's failure gets a general reason, unless the error has one for clients`() throws {
        let secret = "cannot connect to 10.0.0.7: /var/lib"
        func reason(_ error: CloudError) throws -> String? {
            try JSONText.read(error.answer(uuid: "u", extended)) { node throws(CloudError) in
                try CloudError(answered: node, in: .default)
            }?.reason
        }
        let internals: Set<CloudError.Code> = [
            .networkUnavailable, .networkFailure, .serviceUnavailable, .zoneBusy, .accountTemporarilyUnavailable, .internalError,
            .init(rawValue: "somethingNew"),
        ]
        for code in internals {
            let told = try #require(try reason(CloudError(code, secret)))
            #expect(!told.isEmpty && !told.contains("10.0.0.7") && !told.contains("/var"), "\(code): \(told)")
            #expect(try reason(CloudError(code, forClients: "later")) == "later")
        }
        for code in [CloudError.Code.invalidArguments, .quotaExceeded, .limitExceeded, .permissionFailure, .zoneNotFound] {
            #expect(try reason(CloudError(code, "why")) == "why")
        }
        var full = CloudError(.quotaExceeded, secret)
        full.publicReason = "no room"
        #expect(try reason(full) == "no room")
    }

    @Test func `queries are read as they were written`() throws {
        let query = CloudQuery(
            recordType: "Note",
            filters: [
                .init(.field("title"), .beginsWith, .string("He")), .init(.recordName, .equals, .string("n1")),
                .init(.created, .greaterThan, .timestamp(1_763_712_000_123_456)),
                .init(.field("n"), .isIn, .list([.int64(1)], of: .int64)),
                .init(.field("place"), .near, .location(Location(latitude: 1, longitude: 2)), distance: 5),
                .init(.modifiedBy, .isIn, .list([.string("_a")], of: .string)),
            ],
            sorts: [
                .init(.field("title"), isAscending: false),
                .init(.field("p"), relativeLocation: Location(latitude: 1, longitude: 2)),
            ])
        let zone = zone
        let text = bytes { json in
            json.object {
                $0.name("query")
                query.write(&$0, zone: zone)
            }
        }
        let read = try JSONText.read(text) { node throws(CloudError) in try CloudQuery(node, zone: zone) { _ in [:] } }
        #expect(read == query)
    }

    @Test(arguments: [
        #"{"query":{"recordType":"N","filterBy":{"fieldName":"t","comparator":"IN","fieldValue":{"value":["a"]}},"sortBy":{"fieldName":"t"}}}"#,
        #"{"query":{"recordType":"N","filterBy":[{"fieldName":"t","comparator":"IN","fieldValue":{"value":["a"],"type":"STRING_LIST"}}],"sortBy":[{"fieldName":"t","ascending":true}]}}"#,
    ])
    func `a single filter or sort may replace a list of them`(text: String) throws {
        let read = try JSONText.read(Array(text.utf8)) { node throws(CloudError) in
            try CloudQuery(node, zone: .default) { _ in [:] }
        }
        #expect(
            read
                == CloudQuery(
                    recordType: "N", filters: [.init(.field("t"), .isIn, .list([.string("a")], of: .string))],
                    sorts: [.init(.field("t"))]))
    }

    @Test func `a list is compared with a list, including its type`() {
        let text =
            #"{"query":{"recordType":"N","filterBy":[{"fieldName":"t","comparator":"IN","fieldValue":{"value":["a"],"type":"STRING"}}]}}"#
        #expect(throws: CloudError.self) {
            try JSONText.read(Array(text.utf8)) { node throws(CloudError) in try CloudQuery(node, zone: .default) { _ in [:] } }
        }
    }

    @Test func `a record's name is compared with a reference, or with the name alone`() throws {
        for value in [#"{"value":{"recordName":"n1"},"type":"REFERENCE"}"#, #"{"value":"n1"}"#] {
            let text =
                #"{"query":{"recordType":"N","filterBy":[{"fieldName":"___recordID","comparator":"EQUALS","fieldValue":\#(value)}]}}"#
            let read = try JSONText.read(Array(text.utf8)) { node throws(CloudError) in
                try CloudQuery(node, zone: .default) { _ in [:] }
            }
            #expect(read.filters == [.init(.recordName, .equals, .string("n1"))])
        }
    }

    @Test func `changes of zones and databases are read as they were written`() throws {
        let (zone, extended) = (zone, extended)
        let changes = ZoneChanges(
            changes: [.saved(record()), .deleted(.init(id: CloudRecordID("n2", in: zone), type: "Note"))],
            token: CloudToken(rawValue: "t"), moreComing: true,
            failed: [
                RecordFailure(
                    id: CloudRecordID("n3", in: zone), changeTag: "k",
                    error: CloudError(.recordDamaged, "what the cloud has is damaged"))
            ], incarnation: "i")
        let read = try JSONText.read(bytes { $0.object { changes.writeMembers(&$0, extended) } }) { node throws(CloudError) in
            try ZoneChanges(answered: node, in: zone)
        }
        #expect(read == changes && read.failed[0].error.reason == "what the cloud has is damaged")
        let plain = String(
            decoding: bytes { $0.object { changes.writeMembers(&$0, WireDialect(isExtended: false)) } }, as: UTF8.self)
        #expect(plain.contains(#""serverErrorCode":"INTERNAL_ERROR""#) && !plain.contains("tidemark"))
        let database = DatabaseChanges(
            changed: [zone], deleted: [CloudZoneID("b", owner: "_a")], purged: [CloudZoneID("c", owner: "_a")],
            token: CloudToken(rawValue: "d"), moreComing: false, incarnation: "i")
        #expect(
            try JSONText.read(bytes { database.write(&$0, extended) }) { node throws(CloudError) in
                try DatabaseChanges(answered: node)
            }
                == database)
    }
}
