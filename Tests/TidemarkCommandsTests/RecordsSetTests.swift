import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: `tidemark records set` stores exactly the values of the command line, and makes what does not exist. If a value is
/// refused it names field and remedy, and makes nothing. Method: real processes; stored values read as SQL values and as JSON.
@Suite(.timeLimit(.minutes(30))) struct RecordsSetTests {
    private let tool: Tool
    private let scratch: Scratch
    private var notes: String { scratch["Notes.tidemark"].path }

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    @discardableResult
    private func set(_ arguments: String..., expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(["records", "set", notes] + arguments, in: scratch.url)
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    /// The fields of a record, as the store has them.
    private func stored(_ name: String, _ scope: StoreScope = .private) throws -> [String: FieldValue] {
        let reader = try StoreReader(container: ContainerDirectory(openingAt: scratch["Notes.tidemark"]), scope: scope)
        let (schema, record) = try #require(try reader.record(named: name))
        return zip(schema.fields, record.values).reduce(into: [:]) { $0[$1.0.name] = $1.1 }
    }

    private func types() throws -> [RecordTypeSchema] {
        try StoreReader(container: ContainerDirectory(openingAt: scratch["Notes.tidemark"])).types()
    }

    @Test func `each type of field accepts text of its form, and stores the value that an import stores`() async throws {
        let fields: [(text: String, value: FieldValue)] = [
            ("text=say \"=1+1\", 'twice'", .string("say \"=1+1\", 'twice'")), ("formula='=1+1", .string("'=1+1")),
            ("digits=007", .string("007")), ("count=-3", .int64(-3)), ("big:int=9007199254740993", .int64(9_007_199_254_740_993)),
            ("ratio=2.50", .double(2.5)), ("whole:double=2", .double(2)), ("done=TRUE", .int64(1)), ("undone:bool=0", .int64(0)),
            ("when=2024-05-01T12:30:00.25+02:00", .timestamp(1_714_559_400_250_000)),
            ("day:date=2024-05-01", .timestamp(1_714_521_600_000_000)),
            ("raw:bytes=aGVsbG8", .bytes(Array("hello".utf8))),
            (
                #"place:location={"longitude": 13.6, "latitude": 68.25}"#,
                .location(Location(latitude: 68.25, longitude: 13.6))
            ),
            ("other:reference=b", .reference("b")),
            (#"tags:list<string>=["north", "a \"b\""]"#, .list([.string("north"), .string("a \"b\"")], of: .string)),
            ("counts:list<int64>=[1, 2]", .list([.int64(1), .int64(2)], of: .int64)),
            ("halves:list<double>=[0.5, 1]", .list([.double(0.5), .double(1)], of: .double)),
            (
                #"times:list<timestamp>=["2024-05-01T12:30:00Z"]"#, .list([.timestamp(1_714_566_600_000_000)], of: .timestamp)
            ), (#"others:list<reference>=["a", "c"]"#, .list([.reference("a"), .reference("c")], of: .reference)),
        ]
        let result = try await tool.run(["records", "set", notes, "a", "--type", "Note"] + fields.map(\.text))
        try #require(result.status == 0, "\(result.errors)")
        let found = try stored("a")
        for field in fields {
            let name = String(field.text.prefix { $0 != "=" && $0 != ":" })
            #expect(found[name] == field.value, "\(field.text)")
        }
        #expect(found.count == fields.count)
        // An import of the same texts gives the same record.
        func cell(_ text: String) -> String { "\"\(text.replacingOccurrences(of: "\"", with: "\"\""))\"" }
        let pairs = fields.map { field -> (name: String, text: String) in
            let equals = field.text.firstIndex(of: "=")!
            let text = String(field.text[field.text.index(after: equals)...])
            // An import removes an apostrophe before a formula, because an export puts it there; so the text gets another one.
            return (String(field.text.prefix { $0 != "=" && $0 != ":" }), text.hasPrefix("'=") ? "'" + text : text)
        }
        let header = (["_name"] + pairs.map(\.name)).joined(separator: ",")
        try scratch.write("\(header)\n\((["a"] + pairs.map { cell($0.text) }).joined(separator: ","))\n", to: "same.csv")
        let again = try await tool.run(["import", scratch["same.csv"].path, "--into", notes, "--type", "Note", "--plain-ids"])
        #expect(again.output.contains("0 new, 0 updated, 1 unchanged"), "\(again.output)\(again.errors)")
    }

    @Test func `assets are stored once, from single paths and lists, and assets that a record has can be named again`()
        async throws
    {
        for number in 1...2 { try scratch.write(Picture.png(number), to: "in/\(number).png") }
        try await set("a", "--type", "Photo", "image:asset=in/1.png", #"more:list<asset>=["in/2.png", "in/1.png"]"#)
        let found = try stored("a")
        guard case .asset(let first) = found["image"], case .list(let elements, of: .asset) = found["more"] else {
            Issue.record("\(found)")
            return
        }
        let list = elements.flatMap(\.assetIDs)
        #expect(list.count == 2 && list[1] == first && list[0] != first)
        let assets = scratch["Notes.tidemark/assets"]
        #expect(try Data(contentsOf: assets.appendingPathComponent("\(first.prefix(2))/\(first)")) == Picture.png(1))
        #expect(try await set("a", "image=asset:\(list[0])").output == "Photo a: changed\n")
        #expect(try stored("a")["image"] == .asset(list[0]))
        let foreign = try await set("a", "image=asset:\(String(repeating: "0", count: 32))-7", expecting: 64)
        #expect(foreign.errors.contains("image: the record does not hold the asset"))
        let none = try await set("a", #"more=["in/none.png"]"#, expecting: 64)
        #expect(none.errors.contains("more: cannot read \(scratch["in/none.png"].path): No such file or directory"))
        #expect(try await tool.run(["verify", notes]).output == "Verified 1 record and 2 assets: no problem.\n")
    }

    @Test(arguments: [
        ("count=three", "count: the value is no integer; write a whole number such as 3"),
        ("count=9223372036854775808", "beyond what 64 bits hold; write a whole number such as 3"),
        ("ratio=1,5", "ratio: the value is no number"), ("done=yes", "done: the value is no Boolean; write true or false"),
        ("when=soon", "when: the value is no time such as 2024-05-01T12:30:00Z"),
        ("raw=%%", "raw: the value is no Base64; write Base64 such as aGVsbG8="),
        (#"place={"latitude": 91, "longitude": 0}"#, "place: the position 91, 0 is not on Earth; write a position such as"),
        ("place=here", "place: "), ("tags=north", #"write a JSON array such as ["a", "b"]"#),
        ("text:int=1", "the field 'text' of Note is string, not int64; leave the type away"),
        ("new:strin=1", "did you mean 'string'?"), ("count", "'count' sets nothing; write field=value"),
        ("none=", "Note has no field 'none' that could be cleared; it has text, count"),
        ("Count=1", "by the case of letters only"),
    ])
    func `a wrong value is refused with its field and the remedy, and nothing is made`(
        _ assignment: String, _ message: String
    ) async throws {
        try await set(
            "a", "--type", "Note", "text=x", "count=1", "ratio=0.5", "done=true", "when=2024-05-01T12:30:00Z",
            "raw:bytes=aGVsbG8=",
            #"place:location={"latitude": 68.2, "longitude": 13.6}"#, #"tags:list<string>=["a"]"#)
        let before = (try types(), try stored("a"), try await tool.run(["history", notes, "--json"]).output)
        let refused = try await set("a", "text=changed", "fresh=1", assignment, expecting: 64)
        #expect(refused.errors.hasPrefix("tidemark: ") && refused.errors.contains(message), "\(refused.errors)")
        let typed = try await set(
            "b", "--type", "Other", "fresh=1", assignment.hasPrefix("count=") ? "n:int=x" : "w:strin=x", expecting: 64)
        #expect(typed.output == "")
        #expect(try types() == before.0)
        #expect(try stored("a") == before.1)
        #expect(try await tool.run(["history", notes, "--json"]).output == before.2)
    }

    @Test func `a refused command makes no container, even if only the store can refuse it`() async throws {
        try scratch.write("x", to: "in/x")
        let refusals = [
            (["", "--type", "Note", "text=x"], "name"),
            ([String(repeating: "n", count: 256), "--type", "Note", "text=x"], "at most 255"),
            (["a", "--type", "No te", "text=x"], "No te"), (["a", "--type", "Note", "te-xt=x"], "te-xt"),
            (["a", "--type", "Note", "text=x", "text=y"], "the field 'text' is set twice"),
            (["a", "--type", "Note", "image:asset=in"], "image: "), (["a", "--type", "Note", "n:int=1.5"], "n: "),
        ]
        for (arguments, message) in refusals {
            let result = try await tool.run(["records", "set", notes] + arguments, in: scratch.url)
            #expect(result.status == 64 && result.errors.contains(message), "\(arguments): \(result.status) \(result.errors)")
            #expect(!FileManager.default.fileExists(atPath: notes), "\(arguments)")
        }
        let missing = try await tool.run(["records", "set", notes, "a", "text=x"])
        #expect(missing.status == 66 && missing.errors.contains("give its --type"))
    }

    @Test func `records with equal unique keys become one, and the command prints its name`() async throws {
        struct Tag: Tidemark.Record {
            static let uniqueKeys = [UniqueKey("word")]
            var id: String
            var word: String?
            var count: Int?
            var recordName: String { id }
        }
        let container = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: scratch["Notes.tidemark"]), author: "test")
        try await container.save(Tag(id: "m", word: "fjord", count: 1))
        #expect(
            try await set("x", "--type", "Tag", "word=fjord").output
                == "Tag x: one record with m now, because of a unique key\n")
        let json = try await set("y", "--type", "Tag", "word=fjord", "count=2", "--json").json()
        #expect(json["record"] as? String == "m" && json["inserted"] as? Int == 0)
        let all = try await container.fetchAll(Tag.self)
        #expect(all.map(\.id) == ["m"] && all.first?.count == 2)
        #expect(try await set("z", "--type", "Tag", "word=sound").output == "Tag z: made\n")
    }

    @Test func `an edit by the command is one transaction, and a program with the container open hears of it`() async throws {
        let container = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: scratch["Notes.tidemark"]), author: "test")
        let token = try container.historyToken()
        try await set("a", "--type", "Note", "text=x", "image:asset=\(try scratch.write(Picture.png(1), to: "1.png").path)")
        var changes = container.changes(since: token).makeAsyncIterator()
        let change = try #require(try await changes.next())
        #expect(change.origin == .anotherProcess && change.transaction.author == "tidemark records set")
        #expect(change.changes.map(\.record.name) == ["a"])
        #expect(try await set("a", "text=x").output == "Note a: unchanged\n")
        #expect(try container.historyToken() == change.token)
    }

    @Test func `in production the schema is fixed, and the message says so`() async throws {
        try scratch.write(#"{"types": [{"name": "Note", "fields": [{"name": "text", "type": "string"}]}]}"#, to: "schema.json")
        try scratch.write("_name,text\na,x\n", to: "a.csv")
        let imported = try await tool.run([
            "import", scratch["a.csv"].path, "--into", notes, "--type", "Note", "--schema", scratch["schema.json"].path,
            "--environment", "production", "--plain-ids",
        ])
        try #require(imported.status == 0, "\(imported.errors)")
        #expect(try await set("a", "fresh=1", expecting: 64).errors.contains("Note has no field 'fresh', and in production"))
        #expect(
            try await set("b", "--type", "Other", "text=1", expecting: 64).errors.contains("In production the schema is fixed"))
        #expect(try await set("a", "text=y").output == "Note a: changed\n")
        #expect(try types().map(\.fields.count) == [1])
    }
}
