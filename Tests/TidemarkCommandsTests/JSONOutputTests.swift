import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import TidemarkCommands

/// Goal: a program can read the output of every command. Method: the tree of commands itself; commands as processes, in an order
/// in which each has something to do. The keys of their output are compared with the page that documents them.
@Suite(.timeLimit(.minutes(30))) struct JSONOutputTests {
    private let tool: Tool
    private let scratch: Scratch
    private let documented: DocumentedKeys
    private var cloud: String { scratch["cloud"].path }
    private var container: String { scratch.container.path }

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
        documented = try DocumentedKeys()
    }

    private func leaves(_ command: any ParsableCommand.Type = Tidemark.self, _ path: [String] = []) -> [[String]] {
        let below = command.configuration.subcommands
        return below.isEmpty ? [path] : below.flatMap { leaves($0, path + [$0._commandName]) }
    }

    private func command(_ path: [String]) throws -> any ParsableCommand.Type {
        try path.reduce(Tidemark.self as any ParsableCommand.Type) { parent, name in
            try #require(parent.configuration.subcommands.first { $0._commandName == name })
        }
    }

    @Test func `every command has --json`() throws {
        let all = leaves()
        #expect(all.count > 60)
        for path in all {
            #expect(
                Tidemark.helpMessage(for: try command(path), columns: 200).contains("--json"),
                "tidemark \(path.joined(separator: " "))")
        }
    }

    @Test func `the page of the JSON output has a row for every command`() {
        for path in leaves() {
            let command = path.joined(separator: " ")
            #expect(documented.rows[command] != nil, "tidemark \(command)")
        }
    }

    /// Runs a command with `--json`, and reads the one object that it prints. Its keys must be those of the page.
    private func run(_ words: [String], input: String?) async throws -> [String: Any] {
        let file = try input.map { try scratch.write($0, to: "input") }
        let result = try await tool.run(words + ["--json"], input: file)
        #expect(result.status == 0, "\(words): \(result.output)\(result.errors)")
        #expect(result.output.hasSuffix("}\n") && result.output.count { $0 == "\n" } == 1, "\(words): \(result.output)")
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any], "\(words): \(result.output)")
        let row = try #require(documented.row(of: words), "\(words)")
        if !row.isEmpty {
            let printed = Set(object.keys)
            #expect(row.always.subtracting(printed).sorted() == [], "\(words): the page says that these are always there")
            #expect(printed.subtracting(row.always).subtracting(row.sometimes).sorted() == [], "\(words): the page lacks these")
        }
        return object
    }

    @discardableResult
    private func run(_ line: String, _ more: String...) async throws -> [String: Any] {
        try await run(line.split(separator: " ").map(String.init) + more, input: nil)
    }

    private func admin(_ line: String, _ more: String..., input: String? = nil) async throws -> [String: Any] {
        try await run(["admin"] + line.split(separator: " ").map(String.init) + more + ["--data", cloud], input: input)
    }

    @Test func `commands of administration print the documented keys`() async throws {
        #expect(
            try await admin("container add journal") as? [String: String] == [
                "done": "admin container add", "container": "journal",
            ])
        let added = try await admin("account add anna@example.org --no-password")
        #expect(added["done"] as? String == "admin account add" && added["hasPassword"] as? Bool == false)
        #expect(added["email"] as? String == "anna@example.org" && (added["account"] as? String)?.isEmpty == false)
        let changed = try await admin("account set anna@example.org --quota none --discoverable on", "--name", "Anna Berg")
        #expect(changed["hasQuota"] as? Bool == false && changed["discoverable"] as? Bool == true)
        #expect(changed["name"] as? String == "Anna Berg" && changed["phone"] == nil)
        #expect(try await admin("account set anna@example.org --quota 5MB")["quota"] as? Int == 5_000_000)
        let password = try await admin("account password anna@example.org --password-stdin", input: "correct horse\n")
        #expect(password["hasPassword"] as? Bool == true)
        #expect(try await admin("account password anna@example.org --remove")["hasPassword"] as? Bool == false)
        #expect(try await admin("session end --all")["sessions"] as? Int == 0)

        let token = try await admin("token add --container journal --callback https://example.org/in")
        let tokenID = try #require(token["id"] as? String)
        #expect(
            try await admin("token revoke", tokenID) as? [String: String] == ["done": "admin token revoke", "token": tokenID])
        let pem = try scratch.write(
            """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
            6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
            -----END PUBLIC KEY-----
            """, to: "public.pem")
        let key = try #require(try await admin("key add --container journal --public-key", pem.path)["id"] as? String)
        #expect(try await admin("key revoke", key)["key"] as? String == key)

        try await run("records set", container, "a", "--type", "Note", "text=hi")
        try await run("account sign-in", container, "--cloud", cloud, "--email", "anna@example.org", "--container", "journal")
        try await run("sync", container)
        #expect(try await admin("schema show --container journal")["type"] as? String == "Note")
        let index = try await admin("schema index --container journal --type Note --field text --queryable")
        #expect(index["indexes"] as? [String] == ["QUERYABLE"] || (index["indexes"] as? [String])?.count == 1)
        let deployed = try await admin("schema deploy --container journal")
        #expect(deployed["newTypes"] as? Int == 1 && deployed["newFields"] as? Int == 2)
        #expect(try await admin("schema freeze --container journal")["isFrozen"] as? Bool == true)
        #expect(try await admin("schema freeze --container journal --off")["isFrozen"] as? Bool == false)
        let removed = try await admin("schema remove --container journal --type Note --field text --force")
        #expect(removed["field"] as? String == "text" && removed["records"] as? Int == 1)
        #expect((try await admin("verify")["problems"] as? [Any])?.isEmpty == true)
        #expect((try await admin("backup", scratch["backup"].path)["problems"] as? [Any])?.isEmpty == true)
        #expect(try await admin("container remove journal")["done"] as? String == "admin container remove")
    }

    @Test func `commands of a container print the documented keys`() async throws {
        try await run("records set", container, "a", "--type", "Note", "text=hi")
        let migrated = try await run("store migrate", container)
        #expect(migrated["done"] as? String == "store migrate" && migrated["container"] as? String == container)
        #expect(migrated["format"] as? Int != nil && migrated["format"] as? Int == migrated["before"] as? Int)
        let signedIn = try await run(
            "account sign-in", container, "--cloud", cloud, "--email", "anna@example.org", "--create")
        #expect(signedIn["done"] as? String == "account sign-in" && signedIn["email"] as? String == "anna@example.org")
        #expect(signedIn["cloud"] as? String == cloud && signedIn["container"] as? String == "default")
        let changed = try await run("account set", container, "--app", "off")
        #expect(changed as? [String: String] == ["done": "account set", "app": "off"])
        try await run("account set", container, "--app", "on")
        let resolved = try await run("conflicts resolve", container, "--merge-policy", "latestEdit")
        #expect((resolved["resolved"] as? [Any])?.isEmpty == true && resolved["policy"] as? String == "latestEdit")

        let signedOut = try await run("account sign-out", container)
        let aside = try #require((signedOut["setAside"] as? [[String: Any]])?.first)
        #expect(aside["records"] as? Int == 1 && aside["pending"] as? Int == 1 && aside["scope"] as? String == "private")
        let identifier = try #require(aside["identifier"] as? String)
        #expect(try await run("quarantine list", container)["identifier"] as? String == identifier)
        #expect(try await run("account sign-out", container)["signedOut"] as? Bool == false)
        let restored = try await run(
            "quarantine restore", container, identifier, "--into-another-account", "--keep")
        #expect(restored["inserted"] as? Int == 1 && restored["isKept"] as? Bool == true)
        let discarded = try await run("quarantine discard", container, identifier)
        #expect(discarded["identifier"] as? String == identifier && discarded["records"] as? Int == 1)
        #expect((try await run("refused", container, "--discard", "all")["discarded"] as? [Any])?.isEmpty == true)
    }

    @Test func `reports of a container print the documented keys`() async throws {
        let notes = try scratch.writeLines([#"{"id": "a", "text": "hi"}"#, #"{"id": "b", "text": "ho"}"#], to: "notes.jsonl")
        #expect(try await run("import", notes.path, "--into", container, "--type", "Note", "--id", "id")["inserted"] as? Int == 2)
        #expect(try await run("records set", container, "a", "text=hello")["updated"] as? Int == 1)
        #expect(try await run("undo", container, "--dry-run")["updated"] as? Int == 1)
        #expect(try await run("records rename", container, "b", "c")["before"] as? String == "Note:b")
        #expect((try await run("records delete", container, "c", "--dry-run")["deleted"] as? [Any])?.count == 1)
        #expect((try await run("history", container)["transactions"] as? [Any])?.isEmpty == false)
        #expect((try await run("history", container, "--record", "a")["changes"] as? [Any])?.isEmpty == false)
        #expect(try await run("history", container, "--transaction", "1")["changes"] != nil)
        #expect(try await run("verify", container)["ok"] as? Bool == true)
        #expect(try await run("store info", container)["format"] as? Int != nil)
        let exported = try await run("export", container, "--type", "Note", "--to", scratch["out.jsonl"].path)
        #expect(exported["records"] as? Int == 2)
        let (copy, back, moved) = (scratch["Copy.tidemark"].path, scratch["Back.tidemark"].path, scratch["Moved.tidemark"].path)
        #expect(try await run("store backup", container, copy)["path"] as? String != nil)
        #expect(try await run("store restore", copy, back)["records"] as? Int == 2)
        #expect(try await run("store move", container, moved, "--dry-run")["state"] as? String == "new")
        #expect(try await run("store move", back, moved)["alreadyMoved"] as? Bool == false)

        try await run("account sign-in", container, "--cloud", cloud, "--email", "anna@example.org", "--create")
        #expect(try await run("account status", container)["isSignedIn"] as? Bool == true)
        #expect(try await run("sync", container, "--dry-run")["toSendCount"] as? Int ?? 0 >= 2)
        #expect(try await run("status", container)["pending"] as? Int ?? 0 >= 2)
        #expect(try await run("sync", container)["exported"] as? Int ?? 0 >= 2)
        #expect((try await run("share create", container, "a", "--dry-run")["records"] as? [Any])?.count == 1)
        #expect(try await run("share create", container, "a")["share"] != nil)
        #expect(try await run("permissions", container, "a")["canEdit"] as? Bool == true)
    }

    @Test func `help and the manual are printed as JSON, too`() async throws {
        let help = try await run("help records list")
        #expect(help["command"] as? String == "tidemark records list")
        #expect((help["text"] as? String)?.contains("--json") == true)
        let manual = try await run("manual")
        #expect(manual["section"] as? Int == 1 && (manual["page"] as? String)?.hasPrefix(".TH") == true)
    }

    @Test func `errors are printed as without --json, and standard output is empty`() async throws {
        for line in ["account sign-out", "quarantine discard", "account set --app on"] {
            let words = line.split(separator: " ").map(String.init) + [scratch["none"].path]
            let result = try await tool.run(words + (line == "quarantine discard" ? ["x"] : []) + ["--json"])
            #expect(result.status == 66 && result.output.isEmpty)
            #expect(result.errors.hasPrefix("tidemark: "))
        }
    }
}

/// The keys of the output of each command, from the tables of `Documentation/Reference/JSONOutput.md`. In the third column, the
/// keys before a semicolon are always there, those behind it may be missing, and those in parentheses are of nested objects.
private struct DocumentedKeys {
    struct Row {
        let always, sometimes: Set<String>
        /// Whether the page describes the output in words and lists no keys.
        var isEmpty: Bool { always.isEmpty && sometimes.isEmpty }
    }

    /// By the command; with an option if the row is for that option only.
    let rows: [String: Row]

    init() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Documentation/Reference/JSONOutput.md")
        var rows: [String: Row] = [:]
        for line in try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n") where line.hasPrefix("| `") {
            let cells = line.components(separatedBy: "|")
            // Nothing comes before the first bar and behind the last.
            guard cells.count == 5 else { throw CocoaError(.fileReadCorruptFile) }
            let keys = Self.withoutParentheses(cells[3]).components(separatedBy: ";")
            let row = Row(always: Self.spans(keys[0]), sometimes: Self.spans(keys.dropFirst().joined(separator: ";")))
            // A row with "into" is for a form of the command that its arguments don't show.
            guard !cells[1].contains("` into ") else { continue }
            for command in Self.spans(cells[1]) { rows[command] = row }
        }
        self.rows = rows
    }

    /// The row of a command line; the row of its option, if there is one.
    func row(of words: [String]) -> Row? {
        rows.filter { command, _ in
            let parts = command.components(separatedBy: " ")
            return words.starts(with: parts.filter { !$0.hasPrefix("--") }) && parts.allSatisfy { words.contains($0) }
        }.max { $0.key.count < $1.key.count }?.value
    }

    /// The code spans in a text.
    private static func spans(_ text: String) -> Set<String> {
        Set(text.components(separatedBy: "`").enumerated().compactMap { $0.offset % 2 == 1 ? $0.element : nil })
    }

    private static func withoutParentheses(_ text: String) -> String {
        var (rest, depth) = ("", 0)
        for character in text {
            if character == "(" { depth += 1 }
            if depth == 0 { rest.append(character) }
            if character == ")" { depth -= 1 }
        }
        return rest
    }
}
