import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: the commands of `tidemark schema` do what they say, and refuse the rest with a remedy. Method: real processes.
@Suite(.timeLimit(.minutes(30))) struct SchemaCommandTests {
    private let tool: Tool
    private let scratch: Scratch

    init() async throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    /// Runs a command in the scratch folder.
    @discardableResult
    private func run(_ line: String, _ more: String..., expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(line.split(separator: " ").map(String.init) + more, in: scratch.url)
        #expect(result.status == status, "\(line): \(result.output)\(result.errors)")
        return result
    }

    @Test func `a schema is shown, compared and applied`() async throws {
        try await run("records set c.tidemark a --type Place caption=Senja rating:int=4 open=true")
        let shown = try await run("schema show c.tidemark")
        #expect(
            shown.output == """
                {"types": [
                  {"name": "Place",
                     "fields": [
                      {"name": "caption", "type": "string"},
                      {"name": "rating", "type": "int64"},
                      {"name": "open", "type": "boolean"}
                    ]}
                ]}

                """)
        try scratch.write(shown.output, to: "schema.json")
        #expect(try await run("schema diff c.tidemark schema.json").output == "no differences\n")
        #expect(try await run("schema apply c.tidemark schema.json").output == "the container has all of it: nothing to do\n")
        try scratch.write(
            #"""
            {"types": [{"name": "Place", "uniqueKeys": [["code"]], "fields": [{"name": "caption", "type": "string"},
              {"name": "rating", "type": "double"}, {"name": "code", "type": "string"}]}, {"name": "Note", "fields": []}]}
            """#, to: "wanted.json")
        #expect(
            try await run("schema diff c.tidemark wanted.json").output == """
                ~ Place.rating: int64 here, double in the file
                + Place.code string
                + Place unique key code
                + Note
                - Place.open boolean

                """)
        let dry = try await run("schema apply c.tidemark wanted.json --dry-run")
        #expect(
            dry.output == """
                would change rating of Place to double; records: 1
                would add Place: code string, the unique key code
                would add Note: no fields

                """)
        #expect(try await run("schema show c.tidemark").output == shown.output)
        try await run("schema apply c.tidemark wanted.json")
        #expect(try await run("schema diff c.tidemark wanted.json").output == "- Place.open boolean\n")
        #expect(try await run("records get c.tidemark a").output.contains("rating: 4.0"))
        #expect(try await run("verify c.tidemark --json").json()["ok"] as? Bool == true)
        let compact = try await run("schema show c.tidemark --json")
        #expect(compact.output.count { $0 == "\n" } == 1)
        #expect(compact.output.contains(#""uniqueKeys": [["code"]]"#))
        // The output of `schema show` can be given to an import.
        try scratch.write(compact.output, to: "compact.json")
        try scratch.write("id,code,rating\nb,7,3\n", to: "p.csv")
        try await run("import p.csv --into d.tidemark --type Place --id id --schema compact.json")
        #expect(try await run("schema diff d.tidemark compact.json").output == "no differences\n")
    }

    @Test func `relationships and indexes of existing fields are compared and applied`() async throws {
        try await run("records set c.tidemark t1 --type Trip title=North")
        try await run("records set c.tidemark s1 --type Stop trip:reference=t1 title=Senja")
        func file(_ trip: String, _ indexes: String) throws {
            try scratch.write(
                #"""
                {"types": [{"name": "Trip", "fields": [{"name": "title", "type": "string"}]},
                  {"name": "Stop", "indexes": [\#(indexes)], "fields": [{"name": "trip", "type": "reference"\#(trip)},
                  {"name": "title", "type": "string"}]}]}
                """#, to: "wanted.json")
        }
        try file(#", "target": "Trip", "owning": true"#, #"{"fields": ["title"]}"#)
        #expect(
            try await run("schema diff c.tidemark wanted.json").output == """
                ~ Stop.trip: none here, relationship to Trip, owned, cascade in the file
                + Stop index title

                """)
        #expect(
            try await run("schema apply c.tidemark wanted.json").output
                == "added Stop: the relationship trip to Trip, owned, cascade, the indexes title\n")
        #expect(try await run("schema diff c.tidemark wanted.json").output == "no differences\n")
        #expect(try await run("index list c.tidemark --json").output.contains(#""declaredBy":"schema""#))
        try file(#", "target": "Trip", "owning": true, "deleteRule": "deny""#, "")
        try await run("schema apply c.tidemark wanted.json")
        #expect(try await run("schema diff c.tidemark wanted.json").output == "no differences\n")
        #expect(try await run("index list c.tidemark --json").output.contains("title") == false)
        #expect(try await run("records delete c.tidemark t1", expecting: 65).errors.contains("delete rule is deny"))
    }

    @Test(arguments: [
        (#""indexes": "t""#, "types[0].indexes: an array is needed here"),
        (#""indexes": [{"fields": "t"}]"#, "types[0].indexes[0].fields: an array is needed here"),
        (#""indexes": [["t"]]"#, "types[0].indexes[0]: an object is needed here"),
        (#""indexes": [{"fields": ["t"], "fullText": "yes"}]"#, "types[0].indexes[0].fullText: true or false is needed here"),
        (#""uniqueKeys": ["t"]"#, "types[0].uniqueKeys[0]: an array is needed here"),
        (#""nameField": 5"#, "types[0].nameField: a text is needed here"),
    ])
    func `a schema file with a value of a wrong shape is refused with the place and the right shape`(
        part: String, message: String
    ) async throws {
        try scratch.write(
            #"{"types": [{"name": "Place", "fields": [{"name": "t", "type": "string"}], \#(part)}]}"#, to: "schema.json")
        try await run("records set c.tidemark p1 --type Place t=a")
        let refused = try await run("schema apply c.tidemark schema.json", expecting: 65).errors
        #expect(refused.contains(message), "\(refused)")
    }

    @Test func `a relationship to an unknown type is reported, and an unknown language is refused`() async throws {
        try scratch.write(
            #"""
            {"types": [{"name": "Trip", "fields": []}, {"name": "Stop", "fields":
              [{"name": "trip", "type": "reference", "target": "Trap", "owning": true}]}]}
            """#, to: "schema.json")
        try await run("records set c.tidemark t1 --type Trip title=North")
        let note =
            "note: Stop.trip refers to 'Trap', a record type that neither the file nor the container has; did you mean 'Trip'?"
        for command in ["diff", "apply"] {
            #expect(try await run("schema \(command) c.tidemark schema.json").errors.contains(note), "\(command)")
        }
        let refused = try await run("index add c.tidemark --type Trip --full-text --language xx title", expecting: 64)
        #expect(refused.errors.contains("'xx' is no language of ISO 639; write a tag such as de or en-GB"), "\(refused.errors)")
    }

    @Test func `a deletion lists the records that are deleted with it, also in a dry run`() async throws {
        try scratch.write(
            #"""
            {"types": [{"name": "Trip", "fields": []}, {"name": "Stop", "fields":
              [{"name": "trip", "type": "reference", "target": "Trip", "owning": true}]}]}
            """#, to: "schema.json")
        try await run("records set c.tidemark t1 --type Trip title=North")
        try await run("schema apply c.tidemark schema.json")
        try await run("records set c.tidemark s1 --type Stop trip=t1")
        for names in [["t1"], ["--type", "Trip", "--where", "TRUE"]] {
            let dry = try await tool.run(["records", "delete", "c.tidemark"] + names + ["--dry-run"], in: scratch.url)
            #expect(
                dry.output == """
                    would be deleted: Trip t1
                    would be deleted: Stop s1, which belongs to a deleted record
                    would be deleted in all: 2 records

                    """, "\(dry.errors)")
        }
        #expect(try await run("records get c.tidemark s1").output.contains("t1"))
        #expect(
            try await run("records delete c.tidemark t1").output == """
                deleted Trip t1
                deleted Stop s1, which belongs to a deleted record

                """)
    }

    @Test func `fields and types are renamed and dropped`() async throws {
        try await run("records set c.tidemark a --type Place caption=Senja rating:int=4")
        #expect(
            try await run("schema rename c.tidemark --type Place caption title").output
                == "renamed caption of Place to title; records: 1\n")
        #expect(try await run("schema rename c.tidemark --type Place Stop").output == "renamed Place to Stop; records: 1\n")
        let misspelt = try await run("schema rename c.tidemark --type Stop titel name", expecting: 64)
        #expect(misspelt.errors.contains("Stop has no field 'titel'; it has rating, title; did you mean 'title'?"))
        #expect(try await run("schema drop c.tidemark --type Stopp", expecting: 64).errors.contains("did you mean 'Stop'?"))
        #expect(
            try await run("schema drop c.tidemark --type Stop rating --dry-run").output
                == "would drop rating of Stop; records: 1; only in history: 1 value\n")
        #expect(
            try await run("schema drop c.tidemark --type Stop rating").output
                == "dropped rating of Stop; records: 1; only in history: 1 value\n")
        #expect(try await run("history c.tidemark --record a").output.contains("rating"))
        #expect(try await run("schema drop c.tidemark --type Stop --yes").output == "dropped Stop; records: 1\n")
        #expect(try await run("schema show c.tidemark --json").output == "{\"types\": []}\n")
    }

    @Test func `values that do not convert are listed with their records, and nothing is changed`() async throws {
        try scratch.write("id,height\n1,twelve\n2,3\n3,x\n", to: "p.csv")
        try await run("import p.csv --into c.tidemark --type Place --id id")
        let refused = try await run("schema retype c.tidemark --type Place height int64", expecting: 65)
        #expect(refused.output.isEmpty)
        #expect(
            refused.errors == """
                  Place 1, field 'height': "twelve": it is no whole number of 64 bits; write one such as 3
                  Place 3, field 'height': "x": it is no whole number of 64 bits; write one such as 3
                tidemark: nothing is changed, because of 2 values

                """, "\(refused.errors)")
        let json = try await run("schema retype c.tidemark --type Place height int64 --json", expecting: 65).json()
        #expect(json["changed"] as? Bool == false && json["problemCount"] as? Int == 2)
        #expect(try await run("schema show c.tidemark").output.contains(#""height", "type": "string""#))
        try await run("records set c.tidemark Place:1 height=12")
        try await run("records set c.tidemark Place:3 height=")
        #expect(
            try await run("schema retype c.tidemark --type Place height int").output
                == "changed height of Place to int64; records: 2\n")
        #expect(try await run("verify c.tidemark --json").json()["ok"] as? Bool == true)
    }

    @Test func `a change that is killed at any moment is made as a whole or not at all`() async throws {
        let lines = ["id,caption,rating"] + (1...3000).map { "\($0),Place \($0),\($0 % 5)" }
        try scratch.writeLines(lines, to: "p.csv")
        try await run("import p.csv --into c.tidemark --type Place --id id")
        var (name, other) = ("caption", "title")
        var changes = 0
        for delay in [40, 90, 150, 220, 300, 400, 550, 800, 60_000] {
            _ = try await tool.run(
                ["schema", "rename", "c.tidemark", "--type", "Place", name, other], killingAfter: .milliseconds(delay),
                in: scratch.url)
            let shown = try await run("schema show c.tidemark --json").output
            let isChanged = shown.contains("\"\(other)\"")
            #expect(shown.contains("\"\(name)\"") != isChanged)
            if isChanged {
                (name, other) = (other, name)
                changes += 1
            }
            #expect(try await run("verify c.tidemark --json").json()["ok"] as? Bool == true)
            let found = try await run("records c.tidemark --type Place --json --where", "\(name) = 'Place ' || substr(_name, 7)")
            #expect(found.output.count { $0 == "\n" } == 3002, "\(found.output.prefix(300))")
        }
        #expect(changes > 0)
    }

    @Test func `paths of files become assets, and no file outside of the folder is read`() async throws {
        try scratch.write(Picture.png(1), to: "bilder/1.png")
        try scratch.write(Picture.png(2), to: "secret.png")
        try scratch.write("id,Foto\n1,bilder/1.png\n2,bilder/1.png\n", to: "reise.csv")
        let imported = try await run("import ./reise.csv --into c.tidemark --type Reise --id id")
        #expect(imported.errors.contains("tidemark schema retype c.tidemark --type Reise Foto asset --base ."))
        #expect(try await run("schema retype c.tidemark --type Reise Foto asset", expecting: 64).errors.contains("--base"))
        let missing = try await run("schema retype c.tidemark --type Reise Foto asset --base bilder", expecting: 65)
        #expect(missing.errors.contains(#"field 'Foto': "bilder/1.png": "#))
        try await run("records set c.tidemark Reise:2 Foto=../secret.png")
        let outside = try await run("schema retype c.tidemark --type Reise Foto asset --base bilder", expecting: 65)
        #expect(outside.errors.contains(#""../secret.png": "#))
        try await run("records set c.tidemark Reise:2 Foto=bilder/1.png")
        #expect(
            try await run("schema retype c.tidemark --type Reise Foto asset --base .").output
                == "changed Foto of Reise to asset; records: 2\n")
        let verified = try await run("verify c.tidemark --json").json()
        #expect(verified["ok"] as? Bool == true && verified["assets"] as? Int == 1)
    }

    @Test func `an import whose rows are all refused leaves no types and fields`() async throws {
        try scratch.write("id,name\n1,Anna\n", to: "users.csv")
        try scratch.write("id,total\n1,5\n", to: "orders.csv")
        try scratch.write(#"{"types": [{"name": "Order", "fields": [{"name": "total", "type": "double"}]}]}"#, to: "schema.json")
        try await run("import users.csv --into c.tidemark --type User --id id --plain-ids")
        let before = try await run("schema show c.tidemark").output
        for more in [["--schema", "schema.json"], []] {
            let refused = try await tool.run(
                ["import", "orders.csv", "--into", "c.tidemark", "--type", "Order", "--id", "id", "--plain-ids"] + more,
                in: scratch.url)
            #expect(refused.status == 65, "\(refused)")
            #expect(try await run("schema show c.tidemark").output == before)
        }
        // The same holds if the source can't be read.
        try await run("import none.csv --into c.tidemark --type Order --id id --schema schema.json", expecting: 66)
        #expect(try await run("schema show c.tidemark").output == before)
        try scratch.write("id,total\n1,5\n2,6\n", to: "orders.csv")
        try await run(
            "import orders.csv --into c.tidemark --type Order --id id --plain-ids --schema schema.json", expecting: 65)
        #expect(try await run("schema show c.tidemark").output.contains(#""total", "type": "double""#))
        // A source without rows makes the types.
        try scratch.write("", to: "empty.jsonl")
        try await run("import empty.jsonl --into d.tidemark --type Order --schema schema.json")
        #expect(try await run("schema show d.tidemark").output.contains("Order"))
        #expect(try await run("verify c.tidemark --json").json()["ok"] as? Bool == true)
    }

    @Test func `renaming a field before all records of the cloud are here prints a note`() async throws {
        try await run("records set c.tidemark a --type Place height:int=4")
        try await run("account sign-in c.tidemark --email anna@example.org --create --cloud", scratch["cloud"].path)
        let early = try await run("schema retype c.tidemark --type Place height double --name altitude --dry-run")
        let missing = "note: not all records of the cloud are here yet; the others keep their values of 'height' in the cloud"
        #expect(early.errors.hasPrefix(missing), "\(early.errors)")
        #expect(early.errors.contains("run `tidemark sync \(scratch["c.tidemark"].path)` first\n"), "\(early.errors)")
        // A field that keeps its name needs no note: a record that comes later is deferred, and 'status' names it.
        #expect(try await run("schema retype c.tidemark --type Place height double --dry-run").errors == "")
        try await run("sync c.tidemark")
        let late = try await run("schema retype c.tidemark --type Place height double --name altitude")
        #expect(late.errors == "" && late.output == "changed height of Place to altitude, double; records: 1\n", "\(late)")
    }

    @Test func `a command makes a container a production container`() async throws {
        try await run("records set c.tidemark a --type Place caption=Senja")
        #expect(try await run("store environment c.tidemark").output == "development\n")
        let cloud = scratch["cloud"].path
        try await run("account sign-in c.tidemark --email anna@example.org --create --cloud", cloud)
        let refused = try await run("store environment c.tidemark production", expecting: 64)
        #expect(refused.errors.contains("tidemark account sign-out"))
        try await run("sync c.tidemark")
        try await run("account sign-out c.tidemark --records keep")
        #expect(try await run("store environment c.tidemark production --dry-run --json").json()["changed"] as? Bool == false)
        #expect(try await run("store environment c.tidemark").output == "development\n")
        try await run("admin container add default --data", cloud)
        try await run("admin schema deploy --container default --data", cloud)
        #expect(
            try await run("store environment c.tidemark production").output
                .hasSuffix("is a production container now; the production environment gets 1 record with the next sync\n"))
        try await run("store environment c.tidemark development", expecting: 64)
        try await run("account sign-in c.tidemark --email anna@example.org --cloud", cloud)
        #expect(try await run("sync c.tidemark --json").json()["exported"] as? Int == 1)
        #expect(
            try await run("schema drop c.tidemark --type Place caption", expecting: 64).errors
                .contains("in production the schema is fixed"))
    }
}
