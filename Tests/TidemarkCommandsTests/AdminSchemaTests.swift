import Foundation
import TestSupport
import Testing

/// Goal: an administrator changes the schema of a cloud by commands, and that of production only after seeing the differences.
/// Method: the tool over a cloud in a directory, at a terminal and without one.
@Suite(.timeLimit(.minutes(30))) struct AdminSchemaTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    /// Runs words that spaces separate.
    @discardableResult
    private func admin(
        _ words: String, input: URL? = nil, on terminal: PseudoTerminal? = nil, expecting status: Int32 = 0
    ) async throws -> Tool.Result {
        let arguments = ["admin"] + words.split(separator: " ").map(String.init) + ["--data", scratch["cloud"].path]
        let result = try await tool.run(arguments, input: input, on: terminal)
        #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
        return result
    }

    /// The types and fields of an environment, as `Type.field type`.
    private func fields(_ environment: String = "development") async throws -> [String] {
        let shown = try await admin("schema show --container journal --environment \(environment) --json")
        return try shown.output.split(separator: "\n").flatMap { line in
            let type = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let fields = try #require(type["fields"] as? [[String: Any]])
            return ["\(type["type"] ?? "")"] + fields.map { "\(type["type"] ?? "").\($0["name"] ?? "") \($0["type"] ?? "")" }
        }
    }

    @Test func `a type and its fields are added, and a field keeps the type that it has`() async throws {
        try await admin("container add journal")
        #expect(try await admin("schema add --container journal --type Trip").output == "added the type Trip\n")
        let added = try await admin("schema add --container journal --type Trip --field days --kind int").output
        #expect(added == "added Trip.days int64\n")
        let both = try await admin("schema add --container journal --type Note --field tags --kind list<string> --json").json()
        #expect(both["types"] as? [String] == ["Note"])
        #expect(both["fields"] as? [[String: String]] == [["type": "Note", "field": "tags", "kind": "list<string>"]])
        let again = try await admin("schema add --container journal --type Trip --field days --kind int64").output
        #expect(again == "the development schema has all of it: nothing is added\n")
        let refused = try await admin("schema add --container journal --type Trip --field days --kind string", expecting: 64)
        #expect(refused.errors.contains("Trip.days is int64 in the development schema, and can't become string"))
        #expect(
            refused.errors.contains(
                "tidemark admin schema remove --container journal --type Trip --field days --data \(scratch["cloud"].path)"))
        try await admin("schema add --container journal --type Trip --field days", expecting: 64)
        try await admin("schema add --container journal --type Trip --field days --kind nonsense", expecting: 64)
        #expect(try await fields() == ["Note", "Note.tags list<string>", "Trip", "Trip.days int64"])
        #expect(try await fields("production") == [])
    }

    @Test func `a schema file is imported from a file or standard input, whole or not at all`() async throws {
        try await admin("container add journal")
        let made = try await tool.run([
            "records", "set", scratch["hut.tidemark"].path, "one", "--type", "Trip", "title=Senja", "days=3", "done:bool=true",
        ])
        try #require(made.status == 0, "\(made.errors)")
        let shown = try await tool.run(["schema", "show", scratch["hut.tidemark"].path])
        let file = try scratch.write(shown.output, to: "schema.json")
        #expect(
            try await admin("schema import \(file.path) --container journal").output
                == "added the type Trip\nadded Trip.days int64\nadded Trip.done int64\nadded Trip.title string\n")
        let again = try await admin("schema import - --container journal --json", input: file).json()
        #expect(again["types"] as? [String] == [] && (again["fields"] as? [Any])?.isEmpty == true)
        let before = try await fields()

        let wrong = try scratch.write(
            #"{"types": [{"name": "New", "fields": []}, {"name": "Trip", "fields": [{"name": "more", "type": "string"}, {"name": "days", "type": "string"}]}]}"#,
            to: "wrong.json")
        let refused = try await admin("schema import \(wrong.path) --container journal", expecting: 64)
        #expect(
            refused.errors.contains(
                "nothing is added. types[1].fields[1]: Trip.days is string in the file, and int64 in the development schema"))
        #expect(
            refused.errors.contains(
                "tidemark admin schema remove --container journal --type Trip --field days --data \(scratch["cloud"].path)"))
        for (text, place) in [
            (#"{"types": [{"name": "A", "fields": [{"name": "b", "type": "c"}]}]}"#, "types[0].fields[0].type"),
            (#"{"kinds": []}"#, "the file lacks the member 'types'"), ("{", "the file"),
            (
                #"{"types": [{"name": "A", "fields": [{"name": "b", "type": "string"}, {"name": "b", "type": "int64"}]}]}"#,
                "types[0].fields[1] names 'b' of 'A' again"
            ),
        ] {
            let bad = try scratch.write(text, to: "bad.json")
            let refused = try await admin("schema import \(bad.path) --container journal", expecting: 64)
            #expect(refused.errors.contains(place), "\(refused.errors)")
        }
        try await admin("schema import \(scratch["none.json"].path) --container journal", expecting: 66)
        #expect(try await fields() == before)
    }

    @Test func `a container counts once, and production counts as its second environment after a deployment`() async throws {
        try await admin("container add journal")
        try await admin("schema add --container journal --type Trip --field days --kind int64")
        #expect(try await admin("verify").output.hasSuffix("of 1 container, 1 environment: no problem.\n"))
        try await admin("schema deploy --container journal")
        #expect(try await admin("verify").output.hasSuffix("of 1 container, 2 environments: no problem.\n"))
        let report = try await admin("verify --json").json()
        #expect(report["containers"] as? Int == 1 && report["environments"] as? Int == 2)
        #expect(try await admin("resync").output.contains("with those of 1 container, 2 environments, and send"))
        #expect(try await admin("container list").output.split(separator: "\n").filter { $0.contains("journal") }.count == 1)
    }

    @Test func `the export of a schema that devices have used is read by every command that takes a schema file`() async throws {
        let (hut, other, cloud) = (scratch["hut.tidemark"].path, scratch["other.tidemark"].path, scratch["cloud"].path)
        try await admin("container add journal")
        try await admin("account add anna@example.org --no-password")
        for arguments in [
            ["records", "set", hut, "one", "--type", "Trip", "title=Senja", "days=3"],
            ["account", "sign-in", hut, "--cloud", cloud, "--email", "anna@example.org", "--container", "journal"],
            ["sync", hut],
        ] {
            let result = try await tool.run(arguments)
            try #require(result.status == 0, "\(arguments): \(result.errors)")
        }
        #expect(try await fields() == ["Trip", "Trip.days int64", "Trip.tide_edited string", "Trip.title string"])

        let exported = try await admin("schema export --container journal")
        let file = try scratch.write(exported.output, to: "schema.json")
        #expect(!exported.output.contains("tide_"))
        let compact = try await admin("schema export --container journal --json")
        #expect(compact.output.split(separator: "\n").count == 1)
        #expect(compact.output.filter { !$0.isWhitespace } == exported.output.filter { !$0.isWhitespace })
        let rows = try scratch.write("id,title,days\ntwo,Oslo,4\n", to: "trips.csv")
        for (arguments, output) in [
            (["schema", "diff", hut, file.path], "no differences\n"),
            (["schema", "apply", hut, file.path], "the container has all of it: nothing to do\n"),
            (["import", rows.path, "--into", other, "--type", "Trip", "--id", "id", "--schema", file.path], nil),
        ] as [([String], String?)] {
            let result = try await tool.run(arguments)
            #expect(
                result.status == 0 && (output == nil || result.output == output), "\(arguments): \(result.output)\(result.errors)"
            )
        }
        let nothing = try await admin("schema import \(file.path) --container journal").output
        #expect(nothing == "the development schema has all of it: nothing is added\n")
        // Production has none of it yet.
        let production = try await admin("schema export --container journal --environment production").json()
        #expect((production["types"] as? [Any])?.isEmpty == true)
        try await admin("schema export --container none", expecting: 66)

        // A file of an earlier version, with the field of edit times, is still accepted.
        let before = try scratch.write(
            #"{"types": [{"name": "Note", "fields": [{"name": "tide_edited", "type": "string"}]}]}"#, to: "before.json")
        #expect(
            try await admin("schema import \(before.path) --container journal").output
                == "added the type Note\nadded Note.tide_edited string\n")
    }

    @Test func `differences are listed, and deployed when a person says yes`() async throws {
        try await admin("container add journal")
        #expect(try await admin("schema diff --container journal").output == "production has the same schema\n")
        try await admin("schema add --container journal --type Trip --field days --kind int64")
        let list = "Trip is new\nTrip.days is new: int64\n"
        #expect(try await admin("schema diff --container journal").output == list)
        let report = try await admin("schema diff --container journal --json").json()
        #expect(report["equal"] as? Bool == false && report["canBeDeployed"] as? Bool == true)
        #expect(
            report["differences"] as? [[String: String]] == [
                ["type": "Trip", "change": "newType"],
                ["type": "Trip", "field": "days", "change": "newField", "development": "int64"],
            ])

        let dry = try await admin("schema deploy --container journal --dry-run", on: PseudoTerminal(typing: ""))
        #expect(dry.output == list + "production would have 1 type (1 new) and 1 field (1 new)\n")
        let refused = try await admin("schema deploy --container journal", on: PseudoTerminal(typing: "n\n"), expecting: 130)
        #expect(refused.output == list)
        #expect(
            refused.errors.contains(
                "Deploy 2 differences of journal to production, where types and fields can't be removed? [y/N]"))
        #expect(try await fields("production") == [])
        let deployed = try await admin("schema deploy --container journal", on: PseudoTerminal(typing: "y\n"))
        #expect(deployed.output == list + "production has 1 type (1 new) and 1 field (1 new)\n")
        #expect(try await fields("production") == ["Trip", "Trip.days int64"])

        // With --yes the tool does not ask, nor without a terminal.
        for (field, words) in [("a", "--yes"), ("b", "")] {
            try await admin("schema add --container journal --type Trip --field \(field) --kind string")
            let terminal = words.isEmpty ? nil : try PseudoTerminal(typing: "")
            try await admin("schema deploy --container journal \(words)", on: terminal)
        }
        #expect(try await fields("production") == ["Trip", "Trip.a string", "Trip.b string", "Trip.days int64"])
        let nothing = try await admin("schema deploy --container journal", on: PseudoTerminal(typing: ""))
        #expect(nothing.output == "production has 1 type (0 new) and 3 fields (0 new)\n")
    }

    @Test func `the differences are listed before the question, with --json as well`() async throws {
        try await admin("container add journal")
        try await admin("schema add --container journal --type Trip --field days --kind int64")
        let result = try await admin("schema deploy --container journal --json", on: PseudoTerminal(typing: "y\n"))
        #expect(
            result.errors.firstMatch(of: /Trip is new\s+Trip\.days is new: int64\s+Deploy 2 differences/) != nil,
            "\(result.errors)")
        let report = try result.json()
        #expect(report["types"] as? Int == 1 && report["fields"] as? Int == 1 && report["newFields"] as? Int == 1)
        // Without a terminal the differences are in the JSON object only.
        try await admin("schema add --container journal --type Trip --field more --kind string")
        #expect(try await !admin("schema deploy --container journal --json").errors.contains("Trip"))
    }

    @Test func `a difference says which indexes a field gets and loses`() async throws {
        try await admin("container add journal")
        try await admin("schema add --container journal --type Trip --field days --kind int64")
        try await admin("schema deploy --container journal")
        try await admin("schema index --container journal --type Trip --field days --queryable")
        #expect(try await admin("schema diff --container journal").output == "Trip.days gets the index queryable\n")
        try await admin("schema deploy --container journal")
        try await admin("schema index --container journal --type Trip --field days --sortable")
        #expect(
            try await admin("schema diff --container journal").output
                == "Trip.days gets the index sortable and loses the index queryable\n")
    }

    @Test func `a field that is added while the question is open is not deployed`() async throws {
        try await admin("container add journal")
        try await admin("schema add --container journal --type Trip --field days --kind int64")
        let terminal = try PseudoTerminal(typing: "")
        async let deploying = admin("schema deploy --container journal", on: terminal, expecting: 75)
        #expect(try await terminal.shows("[y/N]"))
        try await admin("schema add --container journal --type Trip --field more --kind string")
        #expect(try await terminal.answer([("[y/N]", "y")]))
        let refused = try await deploying
        #expect(refused.errors.contains("the development schema has changed since"), "\(refused.errors)")
        #expect(try await fields("production") == [])
    }

    @Test func `a field with another type in production is reported, and nothing is deployed`() async throws {
        try await admin("container add journal")
        try await admin("schema add --container journal --type Trip --field days --kind string")
        try await admin("schema deploy --container journal")
        try await admin("schema remove --container journal --type Trip --field days")
        try await admin("schema add --container journal --type Trip --field days --kind int64")
        try await admin("schema add --container journal --type Trip --field more --kind string")
        let sentence = "Trip.days is string in production, and int64 in development"
        #expect(try await admin("schema diff --container journal").output == "\(sentence)\nTrip.more is new: string\n")
        #expect(try await admin("schema diff --container journal --json").json()["canBeDeployed"] as? Bool == false)
        for words in ["--dry-run", "--yes", ""] {
            let refused = try await admin("schema deploy --container journal \(words)", expecting: 64)
            #expect(
                refused.errors.contains("nothing is deployed: \(sentence). Give the field another name in development"),
                "\(refused.errors)")
        }
        #expect(try await fields("production") == ["Trip", "Trip.days string"])
    }
}
