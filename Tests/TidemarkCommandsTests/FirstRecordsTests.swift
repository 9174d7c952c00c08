import Foundation
import TestSupport
import Testing

@testable import TidemarkCommands

/// Goal: the first commands that a person tries do what they say, make what is missing, and name misspelt words. Method: real
/// processes.
@Suite(.timeLimit(.minutes(30))) struct FirstRecordsTests {
    private let tool: Tool
    private let scratch: Scratch
    private var notes: String { scratch["Notes.tidemark"].path }

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    private func run(_ arguments: [String], expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(arguments)
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func set(_ arguments: String..., expecting status: Int32 = 0) async throws -> Tool.Result {
        try await run(["records", "set", notes] + arguments, expecting: status)
    }

    @Test func `a container, a type and fields are made with the first record, and the tool says each`() async throws {
        let made = try await set(
            "a", "--type", "Note", "text=hi", "rating:int=3", "when:timestamp=2024-05-01T12:30:00Z", "done=false")
        #expect(
            made.output == """
                made the container \(notes)
                made the record type Note
                made the field text of Note, string
                made the field rating of Note, int64
                made the field when of Note, timestamp
                made the field done of Note, boolean
                Note a: made

                """)
        let more = try await set("b", "--type", "Note", "text=ho", "texts=ho", "done=true")
        #expect(more.output == "made the field texts of Note, string (there is also 'text')\nNote b: made\n")
        let json = try await set("c", "--type", "Nota", "text=x", "--json").json()
        let parts = try #require(json["made"] as? [String: Any])
        #expect(parts["container"] as? Bool == false && parts["type"] as? Bool == true)
        #expect(parts["fields"] as? [String: String] == ["text": "string"])
        #expect(try await set("a", "done=true").output == "Note a: changed\n")
        let got = try await run(["records", "get", notes, "a"]).output
        #expect(got.contains("    done: true\n") && got.contains("    rating: 3\n"))
    }

    @Test func `a record that is refused makes no container, no type and no field`() async throws {
        #expect(
            try await set("a", "--type", "Note", "rating:int=three", expecting: 64).errors.contains(
                "rating: the value is no integer"))
        #expect(!FileManager.default.fileExists(atPath: notes))
        _ = try await set("a", "--type", "Note", "text=hi")
        _ = try await set("a", "when:timestamp=soon", expecting: 64)
        _ = try await set("b", "--type", "Other", "when:timestamp=soon", expecting: 64)
        let types = try await run(["records", notes, "--json"]).output
        let lines = try #require(try JSONSerialization.jsonObject(with: Data(types.utf8)) as? [[String: Any]])
        #expect(lines.map { $0["type"] as? String } == ["Note"])
        #expect((lines[0]["fields"] as? [[String: String]])?.map { $0["name"] } == ["text"])
        #expect(try await set("a", "text:int=3", expecting: 64).errors.contains("'text' of Note is string, not int64"))
        #expect(try await set("a", "x:strin=3", expecting: 64).errors.contains("did you mean 'string'?"))
        #expect(try await set("a", "Text=3", expecting: 64).errors.contains("by the case of letters only"))
    }

    @Test func `a whole container is exported, a folder for each type, with pictures under readable names`() async throws {
        let container = scratch["Trips.tidemark"].path
        for (number, caption) in ["Senja: day 1/2", "senja: day 1/2", "../../etc/passwd", ".hidden", "Senja"].enumerated() {
            try scratch.write(Picture.png(number), to: "in/\(number).png")
            _ = try await run([
                "records", "set", container, "p\(number)", "--type", "Photo", "caption=\(caption)",
                "image:asset=\(scratch["in/\(number).png"].path)",
            ])
        }
        _ = try await run(["records", "set", container, "n", "--type", "Note", "text=hi"])
        let out = scratch["out"].path
        let first = try await run(["export", container, "--to", out + "/"])
        #expect(first.output.contains("of Photo") && first.output.contains("of Note"))
        func files(_ folder: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: out + folder).sorted()
        }
        #expect(try files("") == ["Note", "Photo"])
        #expect(try files("/Note") == ["Note.jsonl"])
        let names = try files("/Photo")
        #expect(names.count == 6 && names.contains("Senja.png") && names.contains("hidden.png") && names.contains("passwd.png"))
        #expect(Set(names.map { $0.lowercased() }).count == 6)
        // The second export finds the copies. A file that another program has put there stays.
        try Data("mine".utf8).write(to: scratch["out/Photo/Senja.png"])
        _ = try await run(["export", container, "--to", out, "--type", "Photo", "--json"])
        #expect(try files("/Photo").filter { !names.contains($0) } == ["Senja-2.png"])
        #expect(try String(contentsOf: scratch["out/Photo/Senja.png"], encoding: .utf8) == "mine")
        // What was exported is what is imported.
        let copy = scratch["Copy.tidemark"].path
        _ = try await run(["import", out + "/Photo/Photo.jsonl", "--into", copy, "--type", "Photo", "--asset", "image"])
        let again = try await run(["import", out + "/Photo/Photo.jsonl", "--into", container, "--type", "Photo"])
        #expect(again.output.contains("0 new, 0 updated, 5 unchanged"))
        _ = try await run(["export", container, "--to", "-"], expecting: 64)
        #expect(
            try await run(["export", container, "--to", out, "--type", "Phoot"], expecting: 64).errors.contains(
                "did you mean 'Photo'?"))
    }

    @Test func `a misspelt path makes no container beside the one that was meant`() async throws {
        _ = try await set("a", "--type", "Note", "text=hi")
        let near = try await run(
            ["records", "set", scratch["Note.tidemark"].path, "a", "--type", "Note", "text=x"], expecting: 66)
        #expect(near.errors.contains("did you mean 'Notes.tidemark'?"))
        let untyped = try await run(["records", "set", scratch["Journal.tidemark"].path, "a", "text=x"], expecting: 66)
        #expect(untyped.errors.contains("to make one with this record, give its --type"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.url.path) == ["Notes.tidemark"])
        // Other similar names make a new container.
        for (name, other) in [("a", "b"), ("Trip2", "Trip1"), ("Journal 2024", "Journal 2025"), ("abc", "abd")] {
            #expect(RecordsSet.misspelt("\(name).tidemark", among: ["\(other).tidemark"]) == nil, "\(name)")
        }
        #expect(RecordsSet.misspelt("Jurnal.tidemark", among: ["x.tidemark", "Journal.tidemark"]) == "Journal.tidemark")
        #expect(RecordsSet.misspelt("Notes", among: ["Notes.tidemark"]) == "Notes.tidemark")
    }

    @Test func `Booleans go in and come out as true and false, from JSON, CSV, schema files and the command line`() async throws {
        try scratch.write("id,flag,mixed\n1,TRUE,1\n2,false,true\n3,,x\n", to: "flags.csv")
        try scratch.write(#"{"id": "4", "flag": true}"# + "\n" + #"{"id": "5", "flag": 2}"# + "\n", to: "more.jsonl")
        let container = scratch["Flags.tidemark"].path
        let first = try await run(["import", scratch["flags.csv"].path, "--into", container, "--type", "Flag", "--id", "id"])
        #expect(first.output.contains("New type Flag: flag boolean, mixed string."))
        let second = try await run(
            ["import", scratch["more.jsonl"].path, "--into", container, "--type", "Flag", "--id", "id"], expecting: 65)
        #expect(second.errors.contains("the field is a Boolean, true or false; the row has 2"))
        let json = try await run(["records", container, "--type", "Flag", "--json", "--sort", "_name"]).output
        let flags = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]]).map {
            $0["flag"] as? Bool
        }
        #expect(flags == [true, false, nil, true])
        #expect(json.contains(#""flag":true"#))
        let csv = try await run(["export", container, "--type", "Flag", "--to", "-", "--format", "csv"]).output
        #expect(csv.hasPrefix("id,flag,mixed\r\n1,true,1\r\n2,false,true\r\n3,,x\r\n4,true,"))
        #expect(try await run(["records", "set", container, "4", "flag=false"]).output == "Flag 4: changed\n")
        #expect(
            try await run(["records", "set", container, "4", "flag=maybe"], expecting: 64).errors.contains("write true or false"))
        #expect(try await run(["records", container, "--type", "Flag", "--where", "flag = 0"]).output.contains("false"))
        try scratch.write(
            #"{"types": [{"name": "S", "nameField": "id", "fields": [{"name": "on", "type": "boolean"}]}]}"#, to: "s.json")
        try scratch.write("id,on\n1,1\n", to: "s.csv")
        _ = try await run(
            ["import", scratch["s.csv"].path, "--into", container, "--type", "S", "--schema", scratch["s.json"].path])
        #expect(try await run(["records", "get", container, "S/1"]).output.contains("on: true"))
    }

    @Test func `the records command alone lists the types, and a misspelt type has a suggestion`() async throws {
        _ = try await set("a", "--type", "Note", "text=hi")
        let listed = try await run(["records", notes]).output
        #expect(listed.contains("Note") && listed.contains("text string") && listed.contains("records"))
        #expect(try await run(["records", notes, "--type", "Noet"], expecting: 64).errors.contains("did you mean 'Note'?"))
        _ = try await run(["records", notes, "--where", "text = 'a'"], expecting: 64)
        let open = try await run(["records", notes, "--type", "Note", "--where", "text = 'a"], expecting: 64)
        #expect(open.errors.contains("is a quote or a parenthesis open?") && !open.errors.contains("ORDER BY"))
    }

    @Test(arguments: [
        ("imprt x", "did you mean 'import'?"), ("recrods list", "did you mean 'records'?"),
        ("share acept", "did you mean 'accept'?"),
        ("records lst", "did you mean 'list'?"), ("nonsense", "there are import, records"),
    ])
    func `a misspelt command has a suggestion`(_ line: String, _ remedy: String) async throws {
        let result = try await run(line.split(separator: " ").map(String.init), expecting: 64)
        #expect(result.errors.contains("there is no command 'tidemark") && result.errors.contains(remedy))
    }

    @Test func `a dry run of a deletion or an undo changes nothing`() async throws {
        for name in ["a", "b", "c"] { _ = try await set(name, "--type", "Note", "text=\(name)") }
        let before = try await run(["history", notes, "--json"]).output
        let matching = try await run(["records", "delete", notes, "--type", "Note", "--where", "text > 'a'", "--dry-run"]).output
        #expect(matching == "would be deleted: Note b\nwould be deleted: Note c\nwould be deleted in all: 2 records\n")
        let named = try await run(["records", "delete", notes, "a", "--dry-run", "--json"]).json()
        #expect(named["dryRun"] as? Bool == true && (named["deleted"] as? [Any])?.count == 1)
        #expect(
            try await run(["undo", notes, "--dry-run"]).output.hasPrefix(
                "Would undo transaction 3: 0 brought back, 0 changed back, 1 deleted"))
        #expect(try await run(["history", notes, "--json"]).output == before)
        #expect(
            try await run(["records", "delete", notes, "--type", "Note", "--where", "text > 'a'", "--yes"]).output
                == "deleted Note b\ndeleted Note c\n")
        #expect(
            try await run(["records", "delete", notes, "--type", "Note", "--where", "text > 'a'"]).output
                == "no record of Note matches: nothing was deleted\n")
        #expect(try await run(["undo", notes, "--yes"]).output.contains("2 brought back"))
    }

    @Test func `a record is renamed by a command, and references follow`() async throws {
        _ = try await set("a", "--type", "Note", "text=hi")
        _ = try await set("b", "--type", "Note", "text=ho", "about:reference=a")
        let renamed = try await run(["records", "rename", notes, "a", "first"])
        #expect(renamed.output == "Note a: renamed to first\nthe references of 1 record name it so as well\n")
        #expect(try await run(["records", "get", notes, "b"]).output.contains("about: first"))
        #expect(
            try await run(["records", "rename", notes, "first", "b"], expecting: 64).errors.contains(
                "a record of type Note has the name 'b'"))
        _ = try await run(["records", "rename", notes, "none", "c"], expecting: 66)
        // A short id of an import stays short.
        try scratch.write("id,total\n1,2\n", to: "orders.csv")
        _ = try await run(["import", scratch["orders.csv"].path, "--into", notes, "--type", "Order", "--id", "id"])
        #expect(try await run(["records", "rename", notes, "1", "7"]).output == "Order 1: renamed to 7\n")
        #expect(try await run(["records", notes, "--type", "Order", "--json"]).output == "[\n{\"id\":\"7\",\"total\":2}\n]\n")
    }

    @Test func `a link gives the server, the container, and the command that signs in there`() {
        let address = ShareAddress("tidemark://share/AbC-_1?server=https%3A%2F%2Fsync.example.org%3A8443&container=my%20trips")
        #expect(address.token == "AbC-_1" && address.server == "https://sync.example.org:8443" && address.container == "my trips")
        #expect(ShareAddress(address.text) == address && address.environment == nil)
        #expect(
            address.signIn("ben's.tidemark")
                == "tidemark account sign-in 'ben'\\''s.tidemark' --server https://sync.example.org:8443 --container 'my trips' --email ADDRESS"
        )
        let page = ShareAddress("https://sync.example.org:8443/cloud/share/my%20trips/production/AbC-_1")
        #expect(page.token == "AbC-_1" && page.server == "https://sync.example.org:8443/cloud" && page.container == "my trips")
        #expect(page.environment == .production && ShareAddress(page.text) == page)
        #expect(page.text == "https://sync.example.org:8443/cloud/share/my%20trips/production/AbC-_1")
        for other in [
            "https://sync.example.org/share/journal/staging/AbC", "https://a b/share/journal/production/AbC",
            "ftp://sync.example.org/share/journal/production/AbC", "/share/journal/production/AbC",
        ] {
            #expect(ShareAddress(other).server == nil, "\(other)")
        }
        let bare = ShareAddress("AbC")
        #expect(bare.token == "AbC" && bare.server == nil && bare.signIn("x") == nil)
        #expect(ShareAddress("tidemark://share/T?server=javascript:alert(1)&container=%00%zz").server == nil)
    }
}
