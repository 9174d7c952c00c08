import Foundation
import TestSupport
import Testing

/// Goal: the tool does what its help says, for people and for programs. Method: real processes.
@Suite(.timeLimit(.minutes(30))) struct ToolTests {
    private let tool: Tool

    init() throws { tool = try Tool() }

    private func journal(_ scratch: Scratch) throws -> URL {
        try scratch.write(Picture.png(1), to: "1.png")
        return try scratch.writeLines(
            [#"{"id": "a", "caption": "one", "image": "1.png"}"#, #"{"id": "b", "caption": "two"}"#], to: "journal.jsonl")
    }

    private func importing(_ scratch: Scratch, _ source: URL, _ more: [String] = []) -> [String] {
        [
            "import", source.path, "--into", scratch.container.path, "--type", "Destination", "--id", "id", "--plain-ids",
            "--asset", "image",
        ]
            + more
    }

    @Test func `import prints one JSON object with the counts`() async throws {
        let scratch = try Scratch()
        let result = try await tool.run(importing(scratch, try journal(scratch), ["--json"]))
        #expect(result.status == 0, "\(result.errors)")
        let object = try result.json()
        #expect(Set(object.keys) == ["read", "inserted", "updated", "unchanged", "rejected", "dryRun", "seconds", "assets"])
        #expect(object["inserted"] as? Int == 2)
        #expect(object["dryRun"] as? Bool == false)
        let assets = object["assets"] as? [String: Int] ?? [:]
        #expect(Set(assets.keys) == ["referenced", "stored", "deduplicated", "bytes"])
        #expect(result.errors.isEmpty)
    }

    @Test func `refused rows make the import exit with 65, and the other rows are stored`() async throws {
        let scratch = try Scratch()
        let file = try scratch.writeLines([#"{"id": "a", "n": 1}"#, "nonsense"], to: "journal.jsonl")
        let result = try await tool.run(importing(scratch, file, ["--rejects", scratch["rejects.jsonl"].path]))
        #expect(result.status == 65)
        #expect(result.errors.contains("line 2: the row is not a JSON object"))
        #expect(result.output.hasPrefix("Read 2 records in "))
        #expect(result.output.contains(" s: 1 new, 0 updated, 0 unchanged, 1 refused.\n"))
        let rehearsal = try await tool.run(importing(scratch, file, ["--dry-run"]))
        #expect(rehearsal.output.hasSuffix(" s: would be 0 new, 0 updated, 1 unchanged, 1 refused.\n"))
        #expect(try scratch.records("Destination").count == 1)
        #expect(try scratch.rejects().count == 1)
    }

    static let endings: [([String], Int32)] = [
        (["import", "/nowhere/journal.jsonl", "--into", "CONTAINER", "--type", "T"], 66),
        (["import", "SOURCE", "--into", "/proc/nowhere.tidemark", "--type", "T"], 73),
        (["import", "SOURCE", "--into", "CONTAINER", "--type", "no type"], 64),
        (["import", "SOURCE", "--into", "CONTAINER", "--batch", "0"], 64),
        (["import", "SOURCE"], 64), (["import", "SOURCE", "--into", "CONTAINER", "--map", "x"], 64), (["nonsense"], 64),
        (["import", "SOURCE", "--into", "CONTAINER", "--format", "photos"], 66),
        (["import", "SOURCE", "--into", "CONTAINER", "--schema", "/nowhere"], 66),
        (["import", "SOURCE", "--into", "CONTAINER", "--schema", "SOURCE"], 65),
        (["import", "SOURCE", "--into", "CONTAINER", "--rejects", "/nowhere/rejects"], 73),
        (["import", "SOURCE", "--into", "CONTAINER", "--rejects", "SOURCE"], 64),
        (["import", "SOURCE", "--into", "CONTAINER", "--rejects", "-"], 64), (["import", "", "--into", "CONTAINER"], 64),
        (["import", "SOURCE", "--into", ""], 64), (["verify", ""], 64), (["help", "nonsense"], 64), (["help", "import"], 0),
        (["export", "CONTAINER", "--type", "T", "--to", "-", "--json"], 64), (["help"], 0),
        (["import", "SOURCE", "--into", "CONTAINER", "--rejects", "CONTAINER/rejects"], 64),
        (["import", "SOURCE", "--into", "CONTAINER", "--schema", "SCHEMA", "--rejects", "SCHEMA"], 64),
        (["verify", "CONTAINER"], 66), (["records", "CONTAINER", "--type", "T"], 66), (["--help"], 0), (["import", "--help"], 0),
    ]

    @Test(arguments: endings)
    func `exit codes are those of sysexits`(arguments: [String], status: Int32) async throws {
        let scratch = try Scratch()
        let source = try journal(scratch)
        let schema = try scratch.write(#"{"types": []}"#, to: "schema.json")
        let places = ["SOURCE": source.path, "CONTAINER": scratch.container.path, "SCHEMA": schema.path]
        let result = try await tool.run(
            arguments.map { places.reduce($0) { $0.replacingOccurrences(of: $1.key, with: $1.value) } })
        #expect(result.status == status, "\(result.errors)")
        #expect(try String(contentsOf: schema, encoding: .utf8) == #"{"types": []}"#)
        #expect(result.errors.isEmpty == (status == 0))
        #expect(result.errors.isEmpty || result.errors.hasPrefix("tidemark: "))
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
    }

    @Test func `an import reports new types and fields, and options without effect`() async throws {
        let scratch = try Scratch()
        let source = try journal(scratch)
        let first = try await tool.run(importing(scratch, source, ["--asset", "nope", "--map", "from=to", "--asset", "from"]))
        #expect(first.output.hasSuffix("\nNew type Destination: image asset, caption string.\n"))
        #expect(
            first.errors == """
                note: no row has a field 'nope' (--asset)
                note: no row has a field 'from' (--asset); --map calls it 'to'
                note: no row has a field 'from' (--map)

                """)
        let more = try scratch.writeLines([#"{"id": "a", "rating": 1, "at": "2024-05-01T12:30:00Z"}"#], to: "more.jsonl")
        let second = try await tool.run(importing(scratch, more, ["--dry-run"]))
        #expect(second.output.hasSuffix("\nNew fields of Destination: rating int64, at timestamp.\n"))
        let json = try await tool.run(importing(scratch, more, ["--asset", "nope", "--json"]))
        #expect(json.errors.isEmpty)
    }

    @Test func `an import with nothing to resume says so, also with JSON`() async throws {
        let scratch = try Scratch()
        let source = try journal(scratch)
        let text = try await tool.run(importing(scratch, source, ["--resume"]))
        #expect(text.output.hasSuffix("There was no interrupted import to go on with; it began at the beginning.\n"))
        let json = try await tool.run(importing(scratch, source, ["--resume", "--json"]))
        #expect(json.errors == "note: there was no interrupted import to go on with; it began at the beginning.\n")
    }

    @Test func `history reports a missing transaction, and shows one that only inserted`() async throws {
        let scratch = try Scratch()
        _ = try await tool.run(importing(scratch, try journal(scratch)))
        let history = ["history", scratch.container.path, "--transaction"]
        #expect(try await tool.run(history + ["1"]).output == "inserted 2 of type Destination\n")
        let none = try await tool.run(history + ["99"])
        #expect(none.status == 66)
        #expect(none.errors == "tidemark: there is no transaction 99\n")
    }

    @Test func `records, export, history and verify read what import wrote`() async throws {
        let scratch = try Scratch()
        let source = try journal(scratch)
        _ = try await tool.run(importing(scratch, source))
        let container = scratch.container.path
        let records = try await tool.run(["records", container, "--type", "Destination", "--where", "caption = 'two'", "--json"])
        #expect(records.output == "[\n{\"id\":\"b\",\"caption\":\"two\"}\n]\n")
        let export = try await tool.run(["export", container, "--type", "Destination", "--to", "-", "--format", "csv"])
        #expect(export.output.hasPrefix("id,image,caption\r\na,asset:"))
        let history = try await tool.run(["history", container, "--json"]).json()
        #expect((history["transactions"] as? [[String: Any]])?.first?["inserted"] as? Int == 2)
        let verify = try await tool.run(["verify", container, "--json"])
        let counts = #"{"assets":1,"notDownloaded":0,"notDownloadedBytes":0,"ok":true,"problems":[],"records":2}"#
        #expect(verify.output == counts + "\n")
        #expect(verify.status == 0)
    }

    @Test func `verify exits with 1 when something is wrong`() async throws {
        let scratch = try Scratch()
        _ = try await tool.run(importing(scratch, try journal(scratch)))
        try scratch.write("x", to: "Test.tidemark/assets/stray")
        let verify = try await tool.run(["verify", scratch.container.path, "--json"])
        #expect(verify.status == 1)
        #expect(try verify.json()["ok"] as? Bool == false)
    }

    @Test(
        arguments: [
            "1) UNION SELECT 1, 2 --", "nonsense(", "1; DROP TABLE Destination", "zzz = 1",
            // The form of this expression is right: it fails at the first record.
            "abs(-9223372036854775807 - 1) = 1",
        ])
    func `an invalid condition is an error and changes nothing`(condition: String) async throws {
        let scratch = try Scratch()
        _ = try await tool.run(importing(scratch, try journal(scratch)))
        let result = try await tool.run(["records", scratch.container.path, "--type", "Destination", "--where", condition])
        #expect(result.status == 64, "\(result.errors)")
        #expect(result.errors.hasPrefix("tidemark: the condition '\(condition)' can't be used: "))
        #expect(try scratch.records("Destination").count == 2)
    }

    /// Runs a line of shell, in which $0 is the tool and $1 the container; returns its status and standard error.
    private func shell(_ line: String, _ scratch: Scratch) throws -> (Int32, String) {
        try Data().write(to: scratch["errors"])
        let status = try ChildProcess.run(
            "/bin/sh", ["-c", line, tool.executable.path, scratch.container.path], errors: scratch["errors"])
        return (status, try String(contentsOf: scratch["errors"], encoding: .utf8))
    }

    @Test(
        .enabled(if: FileManager.default.fileExists(atPath: "/dev/full")),
        arguments: [
            "records $1 --type Destination", "records $1 --type Destination --json", "history $1", "history $1 --json",
            "history $1 --record a", "verify $1", "verify $1 --json", "export $1 --type Destination --to $1.jsonl",
            "export $1 --type Destination --to -",
        ])
    func `output that can't be written is an error`(command: String) async throws {
        let scratch = try Scratch()
        _ = try await tool.run(importing(scratch, try journal(scratch)))
        let (status, errors) = try shell("$0 \(command) > /dev/full", scratch)
        #expect(status == 74)
        #expect(errors == "tidemark: cannot write to standard output: No space left on device\n")
    }

    @Test(
        arguments: [
            "records $1 --type Destination", "records $1 --type Destination --json", "export $1 --type Destination --to -",
        ], ["", "trap '' PIPE; "])
    func `a command ends silently if its reader ends`(command: String, trap: String) async throws {
        let scratch = try Scratch()
        let caption = String(repeating: "x", count: 1000)
        try await scratch.importing(
            lines: (0..<4000).map { #"{"id": "r\#($0)", "caption": "\#(caption)"}"# }, .destination())
        let (status, errors) = try shell("(\(trap)$0 \(command); echo $? > $1.status) | true; exit $(cat $1.status)", scratch)
        #expect(status == 141)
        #expect(errors.isEmpty)
    }

    @Test func `no stored or refused text reaches the terminal as a control sequence`() async throws {
        let scratch = try Scratch()
        // ESC, C1's CSI, a line end, an override of the direction, DEL.
        let hostile = "a\u{1b}[31mb\u{9b}31mc\nd\u{202e}e\u{2066}f\u{7f}g"
        let escaped = #"a\u001b[31mb\u009b31mc\nd\u202ee\u2066f\u007fg"#
        try await scratch.importing(lines: [#"{"id": "a", "caption": "x"}"#], .destination())
        try await scratch.importing(lines: [#"{"id": "a", "caption": "\#(escaped)"}"#], .destination())
        try scratch.write("x", to: "Test.tidemark/assets/\(hostile)")
        let refused = try scratch.writeLines([#"{"id": "b", "\#(escaped)": 1}"#], to: "refused.jsonl")
        let container = scratch.container.path
        for arguments in [
            ["records", container, "--type", "Destination"], ["history", container, "--record", "a"], ["verify", container],
            ["records", container, "--type", hostile], importing(scratch, refused), ["history", container, "--record", hostile],
            importing(scratch, scratch[hostile]),
        ] {
            let result = try await tool.run(arguments)
            let text = result.output + result.errors
            #expect(text.contains("a [31mb 31mc d e f g"), "\(arguments) \(text)")
            #expect(!text.unicodeScalars.contains { "\u{1b}\u{9b}\u{202e}\u{2066}\u{7f}".unicodeScalars.contains($0) })
        }
    }

    @Test(arguments: [true, false]) func `an import that fails at its beginning leaves no files`(
        isDryRun: Bool
    ) async throws {
        let scratch = try Scratch()
        _ = try await tool.run(importing(scratch, try journal(scratch)))
        try FileManager.default.createDirectory(at: scratch["tmp"], withIntermediateDirectories: true)
        let bad = try scratch.write("id,a b\n", to: "bad.csv")
        let result = try await tool.run(
            importing(scratch, bad, isDryRun ? ["--dry-run"] : []), environment: ["TMPDIR": scratch["tmp"].path])
        #expect(result.status == 65)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["tmp"].path) == [])
        let staging = try FileManager.default.contentsOfDirectory(atPath: scratch["Test.tidemark/staging"].path)
        #expect(staging.filter { $0.hasSuffix(".open") } == [])
    }

    /// Sources that are refused as a whole, with more options.
    static let refusals: [(text: String, more: [String])] = [
        ("{\"id\": \"a\"}", ["--type", "note", "--schema", "SCHEMA"]), ("nonsense", []),
        ("{\"id\": \"a\", \"n\": {}, \"N\": 1}", []),
        ("[1, 2]", ["--format", "json"]),
    ]

    @Test(arguments: refusals.indices, [false, true])
    func `an import that stores nothing leaves no container if there was none`(
        number: Int, hasFolder: Bool
    ) async throws {
        let (text, more) = Self.refusals[number]
        let scratch = try Scratch()
        let schema = try scratch.write(
            #"{"types": [{"name": "Note", "fields": [{"name": "id", "type": "string"}]}]}"#, to: "schema.json")
        let source = try scratch.write(text + "\n", to: "source.jsonl")
        try FileManager.default.createDirectory(at: scratch["there"], withIntermediateDirectories: true)
        let place = hasFolder ? scratch["there"] : scratch["there/new/Test.tidemark"]
        let arguments =
            ["import", source.path, "--into", place.path, "--id", "id"] + more.map { $0 == "SCHEMA" ? schema.path : $0 }
            + (more.contains("--type") ? [] : ["--type", "Note"])
        let result = try await tool.run(arguments)
        #expect([64, 65].contains(result.status), "\(result.status) \(result.output)\(result.errors)")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: scratch["there"].path) == [], "\(result.output)\(result.errors)")
        // A container that existed before stays, even if it is empty.
        let first = try scratch.write("{\"id\": \"z\"}\n", to: "first.jsonl")
        #expect(try await tool.run(["import", first.path, "--into", place.path, "--type", "Other", "--id", "id"]).status == 0)
        let again = try await tool.run(arguments)
        #expect([64, 65].contains(again.status))
        #expect(try await tool.run(["verify", place.path]).output.contains("Verified 1 record"))
    }

    // A description is smaller than each of them; a store, its index and its log are not.
    @Test(arguments: [4, 32, 80, 128])
    func `an import that can't finish making its container leaves none`(limit: Int) async throws {
        let scratch = try Scratch()
        let source = try scratch.write("{\"id\": \"a\"}\n", to: "source.jsonl")
        try FileManager.default.createDirectory(at: scratch["there"], withIntermediateDirectories: true)
        let result = try await tool.run(
            ["import", source.path, "--into", scratch["there/new/Test.tidemark"].path, "--type", "Note", "--id", "id"],
            fileSizeLimit: limit)
        #expect(result.status == 74, "\(result.output)\(result.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["there"].path) == [], "\(result.errors)")
    }

    @Test func `imports that make one container at once all store their records in it, even beside a refused one`() async throws {
        let scratch = try Scratch()
        for round in 0..<6 {
            let place = scratch["Together\(round).tidemark"].path
            var sources: [String] = []
            for number in 0..<3 {
                sources.append(try scratch.write("id,text\n\(number)a,x\n\(number)b,y\n", to: "\(number).csv").path)
            }
            sources.append(try scratch.write("", to: "refused.csv").path)
            let results = try await withThrowingTaskGroup(of: (Int, String).self) { group in
                for source in sources {
                    group.addTask { [tool] in
                        let result = try await tool.run(["import", source, "--into", place, "--type", "Note", "--id", "id"])
                        return (source.hasSuffix("refused.csv") ? -1 : Int(result.status), result.output + result.errors)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for (status, text) in results where status != -1 { #expect(status == 0, "round \(round): \(status) \(text)") }
            #expect(try await tool.run(["verify", place]).output.contains("Verified 6 records"), "round \(round)")
        }
    }

    @Test(arguments: [true, false])
    func `a container that was only partly made is completed by the next writer`(imports: Bool) async throws {
        let scratch = try Scratch()
        let source = try scratch.write("{\"id\": \"z\"}\n", to: "first.jsonl")
        let whole = scratch["Whole.tidemark"].path
        #expect(try await tool.run(["import", source.path, "--into", whole, "--type", "Note", "--id", "id"]).status == 0)
        // The state after a kill while SQLite writes the first page of the store.
        let begun = scratch["Begun.tidemark"].path
        try scratch.write(
            try Data(contentsOf: URL(fileURLWithPath: whole + "/container.json")), to: "Begun.tidemark/container.json")
        try scratch.write(Data(), to: "Begun.tidemark/private.sqlite")
        try scratch.write(Data(count: 512), to: "Begun.tidemark/private.sqlite-journal")
        let arguments =
            imports
            ? ["import", source.path, "--into", begun, "--type", "Note", "--id", "id", "--resume"]
            : ["records", "set", begun, "z", "--type", "Note", "text=hi"]
        let result = try await tool.run(arguments)
        #expect(result.status == 0, "\(result.output)\(result.errors)")
        #expect(try await tool.run(["verify", begun]).output.contains("Verified 1 record"))
    }

    @Test func `an import reads standard input`() async throws {
        let scratch = try Scratch()
        let file = try scratch.writeLines([#"{"id": "a", "n": 1}"#], to: "journal.jsonl")
        let result = try await tool.run(
            ["import", "-", "--into", scratch.container.path, "--type", "Destination", "--id", "id", "--plain-ids", "--json"],
            input: file)
        #expect(try result.json()["inserted"] as? Int == 1)
    }

    @Test(.enabled(if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount")))
    func `a full disk keeps what was committed, and resume finishes on another disk`() async throws {
        let scratch = try Scratch()
        try FileManager.default.createDirectory(at: scratch["disk"], withIntermediateDirectories: true)
        // Not every root process may mount.
        guard try ChildProcess.run("/bin/mount", ["-t", "tmpfs", "-o", "size=12m", "tmpfs", scratch["disk"].path]) == 0 else {
            return
        }
        defer { _ = try? ChildProcess.run("/bin/umount", ["-l", scratch["disk"].path]) }
        let text = String(repeating: "x", count: 1000)
        let file = try scratch.writeLines((0..<12_000).map { #"{"id": "r\#($0)", "caption": "\#(text)"}"# }, to: "journal.jsonl")
        let container = scratch["disk/Test.tidemark"].path
        let arguments = [
            "import", file.path, "--into", container, "--type", "Destination", "--id", "id", "--plain-ids", "--batch", "500",
            "--json",
        ]
        let full = try await tool.run(arguments)
        #expect(full.status == 74, "\(full.errors)")
        #expect(full.errors.contains("full"))
        #expect(full.errors.hasSuffix("; what was committed stays, and --resume goes on from there\n"))
        let verify = try await tool.run(["verify", container, "--json"])
        #expect(try verify.json()["ok"] as? Bool == true, "\(verify.output)\(verify.errors)")
        let kept = try verify.json()["records"] as? Int ?? 0
        #expect(kept > 0 && kept < 12_000)
        #expect(try ChildProcess.run("/bin/mount", ["-o", "remount,size=64m", scratch["disk"].path]) == 0)
        let resumed = try await tool.run(arguments + ["--resume"])
        #expect(resumed.status == 0, "\(resumed.errors)")
        #expect(try resumed.json()["inserted"] as? Int == 12_000)
        #expect(try await tool.run(["verify", container]).status == 0)
    }
}
