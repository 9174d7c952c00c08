import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkTransfer

@testable import TidemarkStore

/// Goal: a change of the schema loses no value, and is made as a whole or not at all. Method: a store before and after, its
/// verification, its history, and its pending changes.
@Suite(.timeLimit(.minutes(30))) struct SchemaChangeTests {
    private let scratch: Scratch
    private let store: RecordStore
    private static let author = TransactionAuthor("test", origin: .save)

    init() throws {
        scratch = try Scratch()
        store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container))
    }

    private func set(
        _ name: String, _ values: [String: FieldValue?], type: String = "Place", uniqueKeys: [[String]] = []
    ) async throws {
        let schema = RecordTypeSchema(
            name: type,
            fields: values.sorted { $0.key < $1.key }.compactMap { name, value in value.map { .init(name: name, type: $0.type) }
            },
            uniqueKeys: uniqueKeys)
        let edit = RecordEdit(
            record: RecordName(type: type, name: name), base: .any, values: values.compactMapValues { $0 },
            fields: Set(values.keys))
        _ = try await store.save(
            [edit], schemas: [schema], blobs: [], author: Self.author, policy: { _ in .mergeByPropertyObjectTrump },
            check: { _ in })
    }

    @discardableResult
    private func change(_ changes: SchemaChange..., dryRun: Bool = false) async throws -> SchemaChangePlan {
        try await store.changeSchema(changes, isDryRun: dryRun, author: "test")
    }

    private func fields(_ type: String = "Place") async throws -> [String] {
        try await store.types().first { $0.name == type }?.fields.map { "\($0.name) \($0.typeName)" } ?? []
    }

    /// The records of a type as JSON, in the order of their names, without the given fields.
    private func records(_ type: String) throws -> [String] {
        try scratch.records(type).map { line in
            let start = line.range(of: #""_name":"[^"]*",?"#, options: .regularExpression)
            return start.map { line.replacingCharacters(in: $0, with: "") } ?? line
        }
    }

    /// The whole state of the store except its clocks: a change that is not made leaves it the same.
    private func dump() throws -> [String] {
        try DamagedRows.run(scratch.container.appendingPathComponent("private.sqlite")) { db in
            let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            var lines = try String.fetchAll(db, sql: "SELECT coalesce(sql, name) FROM sqlite_master ORDER BY name")
            for table in tables { lines += try Row.fetchAll(db, sql: "SELECT * FROM \"\(table)\"").map(\.description) }
            return lines
        }
    }

    private func pending(_ name: String, type: String = "Place") throws -> [String]? {
        try scratch.reader().read { db in
            let stored = try #require(try StoredType.fetchAll(db).first { $0.name == type })
            let row = try #require(try PendingRow.fetchOne(db, type: stored, "_key = ?", arguments: [RecordKey(name: name)]))
            #expect(row.isIntact)
            guard row.isPending else { return nil }
            return stored.fields(ofPending: row.pending?.databaseValue ?? Int64(-1).databaseValue)
        }
    }

    /// Marks all records of a type as known to the cloud.
    private func markSynced(_ type: String = "Place") throws {
        try DamagedRows.run(scratch.container.appendingPathComponent("private.sqlite")) { db in
            try db.execute(sql: "UPDATE \"\(type)\" SET _tag = 't', _base = _version, _pending = NULL")
        }
    }

    @Test func `a renamed field keeps its values, its history and its digests`() async throws {
        try await set("a", ["caption": .string("Senja"), "rating": .int64(4)])
        try await set("b", ["caption": .string("Bodø"), "raw": .bytes([0, 255])])
        try await set("c", ["rating": .int64(1)])
        try await set("a", ["caption": .string("Senja in May")])
        let plan = try await change(.renameField("caption", of: "Place", to: "title"))
        #expect(plan.steps.map(\.records) == [2] && plan.steps.map(\.lost) == [0])
        #expect(try await fields() == ["rating int64", "raw bytes", "title string"])
        #expect(
            try records("Place") == [
                #"{"rating":4,"title":"Senja in May"}"#, #"{"raw":"AP8=","title":"Bodø"}"#, #"{"rating":1}"#,
            ])
        #expect(try scratch.verification().isOK)
        let history = try scratch.reader().changes(ofRecord: "a")
        #expect(history.map { $0.fields.map(\.field) } == [[], ["title"], []])
        #expect(history[1].fields[0].before == .string("Senja") && history[1].fields[0].after == .string("Senja in May"))
        // An edit from before the rename is undone under the new name.
        let edit = try #require(try scratch.reader().transactions().first { $0.id == history[1].transaction.id })
        _ = try await store.undo(transaction: edit.id, author: "test")
        #expect(try records("Place")[0] == #"{"rating":4,"title":"Senja"}"#)
        #expect(try await change(.renameField("caption", of: "Place", to: "title")).isDone)
        try await change(.renameField("title", of: "Place", to: "caption"))
        #expect(try records("Place")[0] == #"{"rating":4,"caption":"Senja"}"#)
        #expect(try scratch.reader().changes(ofRecord: "a").flatMap(\.fields).allSatisfy { $0.field == "caption" })
        #expect(try scratch.verification().isOK)
    }

    @Test func `pending changes stay right when a field is dropped`() async throws {
        let names = (0..<20).map { "f\(String(format: "%02d", $0))" }
        try await set("a", Dictionary(uniqueKeysWithValues: names.map { ($0, .int64(1)) }))
        try await set("b", ["f03": .int64(1)])
        try await set("c", ["f05": .int64(1)])
        try markSynced()
        try await set("a", ["f02": .int64(2), "f03": .int64(2), "f17": .int64(2)])
        try await set("b", ["f03": .int64(2)])
        let plan = try await change(.dropField("f03", of: "Place"))
        #expect(plan.steps.map(\.lost) == [2])
        #expect(try pending("a") == ["f02", "f17"])
        // Nothing is pending, and the row is as in the cloud.
        #expect(try pending("b") == nil)
        #expect(try pending("c") == nil)
        #expect(try await store.outbox().pending == 1)
        try await change(.renameField("f17", of: "Place", to: "last"))
        #expect(try pending("a") == ["f02", "last"])
        #expect(try pending("c") == nil)
        #expect(try scratch.verification().isOK)
        #expect(StoreTransaction.shift(Data([0b1000_0011, 0b1]), behind: 1) == Data([0b1100_0001]))
        #expect(StoreTransaction.shift(Data([0b10]), behind: 1).isEmpty)
    }

    @Test func `a dropped field's values are in history, and come back with the field`() async throws {
        try await set("a", ["caption": .string("Senja"), "rating": .int64(4)])
        try await change(.dropField("rating", of: "Place"))
        #expect(try await fields() == ["caption string"])
        let history = try scratch.reader().changes(ofRecord: "a")
        #expect(history[0].fields.map(\.field) == ["rating"] && history[0].fields[0].before == .int64(4))
        let drop = history[0].transaction.id
        let error = await #expect(throws: StoreError.self) { _ = try await store.undo(transaction: drop, author: "test") }
        #expect(error?.message.contains("Add the field again with that type") == true)
        try await change(.add(RecordTypeSchema(name: "Place", fields: [.init(name: "rating", type: .int64)])))
        _ = try await store.undo(transaction: drop, author: "test")
        #expect(try records("Place") == [#"{"caption":"Senja","rating":4}"#])
        #expect(try scratch.verification().isOK)
        #expect(try await change(.dropField("nothing", of: "Place")).isDone)
    }

    @Test func `values that do not convert are listed, and nothing is changed`() async throws {
        try await set("a", ["height": .string("12")])
        try await set("b", ["height": .string("about 12")])
        try await set("c", ["height": .string("")])
        let before = try dump()
        let plan = try await change(
            .renameField("height", of: "Place", to: "h"), .retypeField("h", of: "Place", to: .init(name: "h", type: .int64)))
        #expect(plan.problemCount == 1)
        #expect(plan.problems.map(\.record.name) == ["b"] && plan.problems.map(\.value) == ["\"about 12\""])
        #expect(plan.problems[0].reason.contains("no whole number"))
        #expect(try dump() == before)
        try await set("b", ["height": .string("13")])
        let now = try dump()
        #expect(
            try await change(.retypeField("height", of: "Place", to: .init(name: "height", type: .int64)), dryRun: true).problems
                == [])
        #expect(try dump() == now)
        let done = try await change(.retypeField("height", of: "Place", to: .init(name: "height", type: .int64)))
        #expect(done.steps.map(\.records) == [3] && done.steps.map(\.lost) == [1])
        #expect(try await fields() == ["height int64"])
        #expect(try records("Place") == [#"{"height":12}"#, #"{"height":13}"#, "{}"])
        #expect(try scratch.verification().isOK)
        // History has the values from before.
        let old = try scratch.reader().changes(ofRecord: "b")
        #expect(old.map { $0.fields.map(\.before) } == [[nil], [.string("13")], [.string("about 12")], []])
    }

    @Test func `a field that the cloud has gets another type only with another name`() async throws {
        try await set("a", ["rating": .int64(4)])
        try markSynced()
        let error = await #expect(throws: StoreError.self) {
            try await change(.retypeField("rating", of: "Place", to: .init(name: "rating", type: .double)))
        }
        #expect(error?.message.contains("another name (--name)") == true)
        try await change(.retypeField("rating", of: "Place", to: .init(name: "stars", type: .double)))
        #expect(try records("Place") == [#"{"stars":4.0}"#])
        #expect(try pending("a") == ["stars"])
        // Boolean and int64 are the same type in the cloud.
        try await set("a", ["open": .int64(1)])
        try markSynced()
        try await change(.retypeField("open", of: "Place", to: .init(name: "open", type: .int64, isBoolean: true)))
        #expect(try await fields() == ["stars double", "open boolean"])
        #expect(try pending("a") == nil)
    }

    @Test func `a damaged record prevents a change, and is still reported`() async throws {
        try await set("a", ["caption": .string("Senja"), "rating": .int64(4)])
        try await set("b", ["rating": .int64(4)])
        try DamagedRows.run(scratch.container.appendingPathComponent("private.sqlite")) { db in
            try db.execute(sql: "UPDATE Place SET rating = 5")
        }
        let plan = try await change(.renameField("caption", of: "Place", to: "title"))
        #expect(plan.problems.map(\.record.name) == ["a"])
        #expect(plan.problems[0].reason.contains("damaged"))
        try DamagedRows.run(scratch.container.appendingPathComponent("private.sqlite")) { db in
            try db.execute(sql: "UPDATE Place SET rating = 4 WHERE _key = 'a'")
        }
        try await change(.renameField("caption", of: "Place", to: "title"))
        #expect(try scratch.verification().problems.map(\.record) == ["b"])
    }

    @Test func `unique keys, relationships and indexes follow a field's name`() async throws {
        try await set(
            "a", ["code": .string("1"), "name": .string("Senja"), "home": .reference("b")], uniqueKeys: [["code", "name"]])
        try await set("b", ["code": .string("01"), "name": .string("Senja")])
        let database = scratch.container.appendingPathComponent("private.sqlite")
        var schema = RecordTypeSchema(name: "Place")
        schema.relationships["home"] = RelationshipSchema(field: "home", target: "Place", isOwning: false, deleteRule: .nullify)
        try await store.declare([schema], environment: .development)
        try await store.addIndex(FieldIndex(.values, ["name", "code"]), to: "Place")
        try await store.addIndex(FieldIndex(.fullText, ["name"]), to: "Place")
        let error = await #expect(throws: StoreError.self) { try await change(.dropField("code", of: "Place")) }
        #expect(error?.message.contains("a unique key of Place names 'code'") == true)
        #expect(error?.message.contains("--unique-key code,name") == true)
        try await change(.renameField("name", of: "Place", to: "title"))
        try await change(.renameField("home", of: "Place", to: "near"))
        try await change(.renameType("Place", to: "place"))
        let type = try await store.types()[0]
        #expect(type.uniqueKeys == [["code", "title"]])
        #expect(type.relationships.mapValues { $0?.target } == ["near": "place"])
        let names = try DamagedRows.run(database) { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_master WHERE (name GLOB 'tide_index_*' OR name GLOB 'tide_reference_*' OR name GLOB 'tide_text_*')
                        AND name NOT GLOB '*_config' AND name NOT GLOB '*_content' AND name NOT GLOB '*_data'
                        AND name NOT GLOB '*_docsize' AND name NOT GLOB '*_idx' ORDER BY name
                    """)
        }
        #expect(names == ["tide_index_place.title.code", "tide_reference_place.near", "tide_text_place.title"])
        #expect(try scratch.verification().problems == [])
        let named = await #expect(throws: StoreError.self) {
            try await change(.retypeField("code", of: "place", to: .init(name: "code", type: .int64)))
        }
        #expect(named?.message.contains("an index of place names 'code'") == true)
        try await store.dropIndex(named: "title.code", of: "place")
        // Both records have one key now, and are merged.
        try await change(.retypeField("code", of: "place", to: .init(name: "code", type: .int64)))
        #expect(try records("place").count == 1)
        #expect(try scratch.verification().isOK)
        try await set("c", ["code": .int64(1), "title": .string("Senja")], type: "place", uniqueKeys: [["title"]])
        #expect(try records("place").count == 1)
        try await change(.dropUniqueKey(["code", "title"], of: "place"))
        #expect(try await store.types()[0].uniqueKeys == [["title"]])
        try await set("d", ["code": .int64(1), "title": .string("Bodø")], type: "place")
        try await set("e", ["code": .int64(2), "title": .string("Bodø")], type: "place")
        #expect(try records("place").count == 2)
        #expect(try scratch.verification().isOK)
    }

    @Test func `a type is renamed and dropped as long as no cloud has it`() async throws {
        try await set("a", ["caption": .string("Senja")])
        try await set("b", ["caption": .string("Bodø")])
        try await change(.renameType("Place", to: "Stop"))
        #expect(try await store.types().map(\.name) == ["Stop"])
        try await set("c", ["caption": .string("Narvik")], type: "Stop")
        #expect(try records("Stop").count == 3)
        #expect(try scratch.reader().changes(ofRecord: "a").map(\.type) == ["Stop"])
        #expect(try scratch.verification().isOK)
        try markSynced("Stop")
        for refused in [SchemaChange.renameType("Stop", to: "Place"), .dropType("Stop")] {
            let error = await #expect(throws: StoreError.self) { try await change(refused) }
            #expect(error?.message.contains("the cloud has 3 records of Stop") == true)
        }
        try await set("n", ["text": .string("x")], type: "Note")
        #expect(try await change(.dropType("Note")).steps.map(\.lost) == [1])
        #expect(try await store.types().map(\.name) == ["Stop"])
        #expect(try scratch.reader().changes(ofRecord: "n").isEmpty)
        // A new type of that name starts empty.
        try await set("n", ["number": .int64(1)], type: "Note")
        #expect(try records("Note") == [#"{"number":1}"#])
        #expect(try scratch.verification().isOK)
        #expect(try await change(.dropType("Nothing")).isDone)
    }

    @Test func `conversions keep every value or give a reason`() throws {
        func convert(_ value: FieldValue, _ type: String, boolean: Bool = false) -> String {
            let source = RecordTypeSchema.Field(name: "f", type: value.type, isBoolean: boolean)
            guard let target = RecordTypeSchema.Field(name: "f", typeName: type),
                let conversion = FieldConversion(from: source, to: target)
            else { return "never" }
            do {
                return try conversion.convert(value).map { "\($0)" } ?? "none"
            } catch {
                return "refused"
            }
        }
        let text = FieldValue.string
        for (found, wanted) in [
            (convert(.int64(3), "double"), FieldValue.double(3)), (convert(.double(3), "int64"), .int64(3)),
            (convert(.int64(-7), "string"), text("-7")), (convert(.int64(1), "string", boolean: true), text("true")),
            (convert(text(" 42 "), "int64"), .int64(42)), (convert(text("-2.5e3"), "double"), .double(-2500)),
            (convert(text("TRUE"), "boolean"), .int64(1)), (convert(text("senja"), "reference"), .reference("senja")),
            (convert(text("2024-05-01T12:30:00+02:00"), "timestamp"), .timestamp(1_714_559_400_000_000)),
            (convert(text("2024-02-29"), "timestamp"), .timestamp(1_709_164_800_000_000)),
            (convert(.timestamp(1_709_164_800_250_000), "string"), text("2024-02-29T00:00:00.250Z")),
            (convert(text("a"), "list<string>"), .list([text("a")], of: .string)),
            (convert(text(#"["a","b"]"#), "list<string>"), .list([text("a"), text("b")], of: .string)),
            (convert(.list([text("3")], of: .string), "int64"), .int64(3)),
            (convert(.list([.int64(1), .int64(2)], of: .int64), "list<double>"), .list([.double(1), .double(2)], of: .double)),
        ] {
            #expect(found == "\(wanted)")
        }
        for refused in [
            convert(.double(2.5), "int64"), convert(.double(1e30), "int64"), convert(.int64((1 << 53) + 1), "double"),
            convert(text("ten"), "int64"), convert(text("inf"), "double"), convert(text("0x10"), "double"),
            convert(text("1,5"), "double"),
            convert(text("2023-02-29"), "timestamp"), convert(text("yesterday"), "timestamp"), convert(text("maybe"), "boolean"),
            convert(.int64(2), "boolean"), convert(.list([.int64(1), .int64(2)], of: .int64), "int64"),
            convert(text(String(repeating: "x", count: 256)), "reference"), convert(text("a.png"), "asset"),
        ] {
            #expect(refused == "refused")
        }
        #expect(convert(text(""), "double") == "none")
        #expect(convert(.location(Location(latitude: 1, longitude: 2)), "string") == "never")
        for moment in [0, 1_714_559_400_000_000, -62_167_219_200_000_000, 253_402_300_799_999_999, 951_782_400_123_456] as [Int64]
        {
            #expect(Timestamp.microseconds(Timestamp.text(microseconds: moment)) == moment)
        }
    }

    @Test func `in production only additions are possible`() async throws {
        try await set("a", ["caption": .string("Senja")])
        try markSynced()
        let container = try ContainerDirectory(openingAt: scratch.container).setEnvironment(.production)
        let production = try RecordStore(container: container)
        let error = await #expect(throws: StoreError.self) {
            try await production.changeSchema([.dropField("caption", of: "Place")], author: "test")
        }
        #expect(error?.message.contains("in production the schema is fixed") == true)
        let field = RecordTypeSchema.Field(name: "rating", type: .int64)
        _ = try await production.changeSchema([.add(RecordTypeSchema(name: "Place", fields: [field]))], author: "test")
        #expect(try await production.types()[0].fields.map(\.name) == ["caption", "rating"])
        // A program that has the store open with the old schema gets an error.
        let changed = await #expect(throws: StoreError.self) { try await set("b", ["caption": .string("Bodø")]) }
        #expect(changed?.message.contains("has become a production container") == true)
    }
}
