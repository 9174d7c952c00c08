import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: what one account adds to the development schema does not hinder others. Method: an account that saves ever more types;
/// an account that chose a field's type first; several openings of one cloud.
@Suite(.timeLimit(.minutes(30))) struct SchemaGrowthTests {
    private func types(_ numbers: Range<Int>, fields: Int, _ tenants: Tenants) -> [CloudRecord] {
        numbers.map { number in
            let fields = Dictionary(uniqueKeysWithValues: (0..<fields).map { ("field\($0)", CloudValue.int64(1)) })
            return tenants.record("r\(number)", fields, type: "Type\(number)")
        }
    }

    @Test func `an account may add a limited number of types and fields, and other accounts can still add theirs`() async throws {
        let tenants = try Tenants()
        let (anna, ben) = (try await tenants.journal("anna"), try await tenants.journal("ben"))
        let most = SchemaLimits().own
        try await tenants.save(types(0..<most.types, fields: 1, tenants), to: anna)
        let more = try await tenants.outcome(
            RecordOperation(.create, types(most.types..<most.types + 1, fields: 1, tenants)[0]), anna)
        guard case .failed(let error) = more else {
            Issue.record("a type too many was taken")
            return
        }
        #expect(error.code == .limitExceeded && error.reason.contains("250 record types"))
        #expect(error.reason.contains("tidemark admin schema remove"))
        // The refused record is not saved in part, and records of known types can still be saved.
        #expect(try await tenants.cloud.schema(of: Tenants.container).types["Type\(most.types)"] == nil)
        #expect((try? await anna.lookup(["r\(most.types)"], in: Tenants.zone, desiredKeys: nil)[0].get()) == nil)
        try await tenants.save(types(0..<1, fields: 1, tenants), to: anna)
        try await tenants.save([tenants.record("b", ["n": .int64(1)], type: "OfBen")], to: ben)

        // The fields of a few types are limited as well.
        let cleo = try await tenants.journal("cleo")
        let wide = (0..<most.fields / 250 + 1).map { number in
            tenants.record(
                "w\(number)", Dictionary(uniqueKeysWithValues: (0..<250).map { ("field\($0)", CloudValue.int64(1)) }),
                type: "Wide\(number)")
        }
        var outcomes: [RecordOutcome] = []
        for record in wide { outcomes.append(try await tenants.outcome(RecordOperation(.create, record), cleo)) }
        #expect(outcomes.last == .failed(CloudError(.limitExceeded, "")))
        #expect(outcomes.dropLast().allSatisfy { if case .saved = $0 { true } else { false } })
    }

    @Test func `the schema of a container has a limit for all accounts together`() throws {
        var limits = SchemaLimits()
        limits.all = CloudSchema.Use(types: 2, fields: 3, bytes: 1_000)
        let small = CloudSchema.Use(types: 1, fields: 1, bytes: 100)
        #expect(throws: Never.self) { try limits.check(CloudSchema.Use(types: 2, fields: 3, bytes: 1_000), small) }
        for use in [
            CloudSchema.Use(types: 3, fields: 3, bytes: 1), .init(types: 1, fields: 4, bytes: 1),
            .init(types: 1, fields: 1, bytes: 1_001),
        ] { #expect(throws: CloudError(.limitExceeded, "")) { try limits.check(use, small) } }
    }

    @Test func `neither a client nor an operator can declare the field of edit times with another type`() async throws {
        let tenants = try Tenants()
        let (anna, ben) = (try await tenants.journal("anna"), try await tenants.journal("ben"))
        let wrong = RecordOperation(.create, tenants.record("a", [CloudRecord.editedField: .int64(1)], type: "Hut"))
        #expect(try await tenants.outcome(wrong, anna) == .failed(CloudError(.invalidArguments, "")))
        await #expect(throws: CloudError(.invalidArguments, "")) {
            try await tenants.cloud.addToSchema(["Hut": [CloudRecord.editedField: FieldType(.int64)]], of: Tenants.container)
        }
        try await tenants.save([tenants.record("b", [CloudRecord.editedField: .string("{}")], type: "Hut")], to: ben)
    }

    @Test func `a cloud sees a schema that another opening has changed`() async throws {
        let scratch = try Scratch()
        let (one, other) = (try Tenants(scratch), try Tenants(scratch))
        let (anna, again) = (try await one.journal("anna"), try await other.journal("anna"))
        try await one.save([one.record("a", ["n": .int64(1)])], to: anna)
        try await other.save([other.record("b", ["n": .int64(2), "text": .string("x")])], to: again)
        let wrong = RecordOperation(.create, one.record("c", ["text": .int64(1)]))
        #expect(try await one.outcome(wrong, anna) == .failed(CloudError(.invalidArguments, "")))
        #expect(try await one.cloud.schema(of: Tenants.container) == other.cloud.schema(of: Tenants.container))
    }

    @Test func `the refusal of a field with another type names the remedies, and the field can be freed`() async throws {
        let tenants = try Tenants()
        let (anna, ben) = (try await tenants.journal("anna"), try await tenants.journal("ben"))
        try await tenants.save([tenants.record("a", ["stars": .string("five")])], to: ben)
        let wanted = RecordOperation(.create, tenants.record("a", ["stars": .int64(5)]))
        guard case .failed(let error) = try await tenants.outcome(wanted, anna) else {
            Issue.record("a field of another type was taken")
            return
        }
        #expect(error.code == .invalidArguments)
        #expect(error.reason.hasPrefix("Invalid value for 'stars', expected type string, got int64"))
        // The remedy that affects no other account's records comes first.
        let retype = try #require(error.reason.range(of: "`tidemark schema retype <path> --type Note stars string`"))
        let rename = try #require(error.reason.range(of: "`tidemark schema rename <path> --type Note stars <name>`"))
        let remove = try #require(
            error.reason.range(of: "`tidemark admin schema remove --container <id> --type Note --field stars`"))
        #expect(retype.upperBound < rename.lowerBound && rename.upperBound < remove.lowerBound)
        #expect(error.reason[rename.upperBound..<remove.lowerBound].contains("Only while no record has the field"))

        let refused = await #expect(throws: CloudError.self) {
            try await tenants.cloud.removeFromSchema(type: "Note", field: "stars", of: Tenants.container)
        }
        #expect(refused?.reason.contains("1 record has the field 'stars'") == true)
        #expect(
            refused?.reason.contains("With --force") == true && refused?.reason.contains("of the old type are refused") == true)
        #expect(
            try await tenants.cloud.removeFromSchema(type: "Note", field: "stars", of: Tenants.container, isForced: true) == 1)
        guard case .saved = try await tenants.outcome(wanted, anna) else {
            Issue.record("the field is not free")
            return
        }
        // The record of the old type stays, and its other fields can be changed.
        let theirs = try await ben.lookup(["a"], in: Tenants.zone, desiredKeys: nil)[0].get()
        #expect(theirs.fields == ["stars": .string("five")])
        var edit = tenants.record("a", ["text": .string("x")])
        edit.changeTag = theirs.changeTag
        guard case .saved(let edited) = try await tenants.outcome(RecordOperation(.update, edit), ben) else {
            Issue.record("a record of before can't be changed")
            return
        }
        #expect(edited.fields == ["stars": .string("five"), "text": .string("x")])

        await #expect(throws: CloudError(.unknownItem, "")) {
            try await tenants.cloud.removeFromSchema(type: "Note", field: "absent", of: Tenants.container)
        }
        // A type without records is removed without force.
        try await tenants.save([tenants.record("j", ["n": .int64(1)], type: "Junk")], to: ben)
        _ = try await tenants.outcome(.delete(CloudRecordID("j", in: Tenants.zone)), ben)
        #expect(try await tenants.cloud.removeFromSchema(type: "Junk", of: Tenants.container) == 0)
        #expect(try await tenants.cloud.schema(of: Tenants.container).types["Junk"] == nil)
    }

    @Test func `a reason with long names omits a command instead of truncating it`() async throws {
        let tenants = try Tenants()
        let (anna, ben) = (try await tenants.journal("anna"), try await tenants.journal("ben"))
        let (type, field) = (String(repeating: "T", count: 100), String(repeating: "f", count: 100))
        try await tenants.save([tenants.record("a", [field: .string("five")], type: type)], to: ben)
        let wanted = RecordOperation(.create, tenants.record("b", [field: .int64(5)], type: type))
        guard case .failed(let error) = try await tenants.outcome(wanted, anna) else {
            Issue.record("a field of another type was taken")
            return
        }
        #expect(error.reason.utf8.count <= 900)
        #expect(error.reason.hasSuffix("`tidemark schema rename <path> --type \(type) \(field) <name>`."), "\(error.reason)")
    }

    @Test func `a query by an indexed field that was removed is refused`() async throws {
        let tenants = try Tenants()
        let ben = try await tenants.journal("ben")
        try await tenants.save([tenants.record("a", ["stars": .string("five"), "text": .string("x")])], to: ben)
        for field in ["stars", "text"] {
            try await tenants.cloud.setIndexes([.queryable], of: field, in: "Note", container: Tenants.container)
        }
        try await tenants.cloud.removeFromSchema(type: "Note", field: "stars", of: Tenants.container, isForced: true)
        func found(_ field: String, _ text: String) async throws -> Int {
            let query = CloudQuery(recordType: "Note", filters: [.init(.field(field), .equals, .string(text))])
            return try await ben.query(query, in: Tenants.zone, limit: nil, desiredKeys: nil, continuation: nil).records.count
        }
        #expect(try await found("text", "x") == 1)
        await #expect(throws: CloudError(.invalidArguments, "")) { try await found("stars", "five") }
    }

    @Test func `production accepts all that was deployed, and refuses the rest with the command that deploys it`() async throws {
        let tenants = try Tenants()
        let anna = try await tenants.cloud.addAccount("anna@example.org")
        let most = SchemaLimits().all.types
        let types = (0...most).map { ("Type\($0)", ["n": FieldType(.int64)]) }
        try await tenants.cloud.addToSchema(Dictionary(uniqueKeysWithValues: types), of: Tenants.container)
        try await tenants.cloud.deploySchema(of: Tenants.container)
        let production = try tenants.cloud.database(
            .private, of: Tenants.container, environment: .production, account: anna.id)
        try await production.modifyZones(saving: [Tenants.zone], deleting: [])
        // The deployed types lack the field of edit times, which devices add to each record.
        let fields: [String: CloudValue] = ["n": .int64(1), CloudRecord.editedField: .string("{}")]
        try await tenants.save([tenants.record("a", fields, type: "Type0")], to: production)
        let unknown: [(record: CloudRecord, code: CloudError.Code, reason: String)] = [
            (tenants.record("b", type: "Other"), .unknownItem, "there is no record type 'Other' in the production schema"),
            (
                tenants.record("c", ["m": .int64(1)], type: "Type0"), .invalidArguments,
                "'Type0' has no field 'm' in the production schema"
            ),
        ]
        for (record, code, reason) in unknown {
            guard case .failed(let error) = try await tenants.outcome(RecordOperation(.create, record), production) else {
                Issue.record("the schema of production has grown")
                continue
            }
            #expect(error.code == code && error.reason.hasPrefix(reason), "\(error)")
            #expect(error.reason.hasSuffix(": tidemark admin schema deploy --container <id>"), "\(error)")
        }
    }

    @Test func `an error names the part of the schema that a record does not fit, and nothing for other reasons`() async throws {
        let tenants = try Tenants()
        let ben = try await tenants.journal("ben")
        try await tenants.save([tenants.record("a", ["stars": .string("five")])], to: ben)
        try await tenants.cloud.deploySchema(of: Tenants.container)
        let account = try #require(try await tenants.cloud.account("ben@example.org")).id
        let production = try tenants.cloud.database(
            .private, of: Tenants.container, environment: .production, account: account)
        try await production.modifyZones(saving: [Tenants.zone], deleting: [])
        func mismatch(_ record: CloudRecord, _ database: EmbeddedDatabase) async throws -> SchemaMismatch? {
            guard case .failed(let error) = try await tenants.outcome(RecordOperation(.create, record), database) else {
                Issue.record("\(record) was taken")
                return nil
            }
            return error.schemaMismatch
        }
        let wrong = tenants.record("b", ["stars": .int64(5)])
        #expect(try await mismatch(wrong, ben) == SchemaMismatch(field: "stars", fieldType: "int64"))
        #expect(try await mismatch(wrong, production) == SchemaMismatch(field: "stars", fieldType: "int64"))
        let missing = tenants.record("b", ["tags": .list([.string("x")], of: .string)])
        #expect(try await mismatch(missing, production) == SchemaMismatch(field: "tags", fieldType: "list<string>"))
        let type = tenants.record("b", ["n": .int64(1)], type: "Other")
        #expect(try await mismatch(type, production) == SchemaMismatch(field: "recordName", fieldType: ""))
        #expect(try await mismatch(tenants.record("b", ["1": .int64(1)]), ben) == nil)
    }

    @Test func `a frozen schema accepts records of its types and fields, and nothing new`() async throws {
        let tenants = try Tenants()
        let anna = try await tenants.journal("anna")
        try await tenants.save([tenants.record("a", ["n": .int64(1)])], to: anna)
        try await tenants.cloud.setSchemaFrozen(true, of: Tenants.container)
        for record in [tenants.record("b", ["m": .int64(1)]), tenants.record("c", type: "Other")] {
            guard case .failed(let error) = try await tenants.outcome(RecordOperation(.create, record), anna) else {
                Issue.record("a frozen schema has grown")
                continue
            }
            #expect(
                error.code == .invalidArguments
                    && error.reason.contains("tidemark admin schema freeze --off --container <id>"))
        }
        try await tenants.save([tenants.record("b", ["n": .int64(2)])], to: anna)
        try await tenants.cloud.setSchemaFrozen(false, of: Tenants.container)
        try await tenants.save([tenants.record("c", ["m": .int64(1)])], to: anna)
    }

    @Test func `types and fields count once by their names, also if one request adds them one by one`() async throws {
        let tenants = try Tenants()
        let anna = try await tenants.journal("anna")
        #expect(CloudSchema().use(by: nil) == CloudSchema.Use(types: 0, fields: 0, bytes: 0))
        try await tenants.save((0..<250).map { tenants.record("r\($0)", ["field\(1_000 + $0)": .int64(1)]) }, to: anna)
        let schema = try await tenants.cloud.schema(of: Tenants.container)
        // Each name counts its bytes and 64 more.
        let wanted = CloudSchema.Use(types: 1, fields: 250, bytes: (4 + 64) + 250 * (9 + 64))
        let user = try #require(anna.user)
        #expect(schema.use(by: nil) == wanted)
        #expect(schema.use(by: user) == wanted)
        #expect(schema.use(by: "_another") == CloudSchema.Use(types: 0, fields: 0, bytes: 0))
    }

    @Test func `a record that would add to a full schema fails alone`() async throws {
        let tenants = try Tenants()
        let anna = try await tenants.journal("anna")
        // An administrator may declare more types than records may add.
        let types = (0...SchemaLimits().all.types).map { ("Type\($0)", ["n": FieldType(.int64)]) }
        try await tenants.cloud.addToSchema(Dictionary(uniqueKeysWithValues: types), of: Tenants.container)
        let operations = [("a", "Other"), ("b", "Type0")].map { name, type in
            RecordOperation(.create, tenants.record(name, ["n": .int64(1)], type: type))
        }
        let outcomes = try await anna.modify(ModifyRecordsRequest(zone: Tenants.zone, operations: operations))
        #expect(outcomes[0] == .failed(CloudError(.limitExceeded, "")))
        guard case .saved = outcomes[1] else {
            Issue.record("a record of a known type was refused: \(outcomes[1])")
            return
        }
    }
}
