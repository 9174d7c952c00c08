import Foundation
import TestSupport
import Testing

/// Goal: wherever a value is shown, a Boolean is `true` or `false`, and a time is a time. Method: two containers of one account
/// that change the same record, and the output of history, of the log of conflicts and of the list of refused saves.
@Suite(.timeLimit(.minutes(30))) struct ConflictValueTests {
    private let tool: Tool
    private let scratch: Scratch

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    @discardableResult
    private func run(_ arguments: String...) async throws -> Tool.Result {
        let result = try await tool.run(arguments)
        #expect(result.status == 0, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func path(_ name: String) -> String { scratch["\(name).tidemark"].path }

    private func objects(_ result: Tool.Result) throws -> [[String: Any]] {
        try result.output.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }
    }

    /// The Boolean of a JSON object; `nil` for a number, also 0 or 1.
    private func boolean(_ value: Any?) -> Bool? {
        guard let value, "\(value)" == "true" || "\(value)" == "false" else { return nil }
        return value as? Bool
    }

    @Test func `history shows Booleans as true and false, in JSON as well`() async throws {
        try await run("records", "set", path("a"), "n", "--type", "Note", "done=true", "count:int=1")
        try await run("records", "set", path("a"), "n", "done=false", "count=0")
        let text = try await run("history", path("a"), "--record", "n").output
        #expect(text.contains("    done: true → false\n") && text.contains("    count: 1 → 0\n"))
        for arguments in [["--record", "n"], ["--transaction", "2"]] {
            let json = try await tool.run(["history", path("a"), "--json"] + arguments).output
            #expect(json.contains(#""done":{"after":false,"before":true}"#), "\(json)")
            #expect(json.contains(#""count":{"after":0,"before":1}"#), "\(json)")
        }
    }

    @Test func `the log of conflicts shows Booleans and times in words, and as JSON values`() async throws {
        for name in ["a", "b"] {
            try await run(
                "account", "sign-in", path(name), "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--create")
        }
        try await run(
            "records", "set", path("a"), "n", "--type", "Note", "done=true", "when:timestamp=2024-05-01T12:30:00Z", "count:int=1",
            "text=x")
        try await run("sync", path("a"))
        try await run("sync", path("b"))
        for (name, hour, done) in [("a", 13, "false"), ("b", 14, "true")] {
            try await run("records", "set", path(name), "n", "done=\(done)")
            try await run(
                "records", "set", path(name), "n", "when=2024-05-01T\(hour):30:00Z", "count=\(hour)", "text=\(name)", "done=false"
            )
        }
        try await run("sync", path("a"))
        // The dry run shows the same.
        let preview = try await run("sync", path("b"), "--dry-run", "--json").json()
        let planned = try #require(preview["conflicts"] as? [[String: Any]])
        #expect(planned.first { $0["field"] as? String == "text" }?["local"] as? String == "b")
        try await run("sync", path("b"))
        let text = try await run("conflicts", path("b")).output
        #expect(
            text.contains(
                #"n when: was "2024-05-01T12:30:00Z", here "2024-05-01T14:30:00Z", there "2024-05-01T13:30:00Z""#), "\(text)")
        let lines = try objects(try await run("conflicts", path("b"), "--json"))
        let count = try #require(lines.first { $0["field"] as? String == "count" })
        #expect(count["ancestor"] as? Int == 1 && count["local"] as? Int == 14 && count["store"] as? Int == 13)
        #expect(lines.first { $0["field"] as? String == "text" }?["store"] as? String == "a")
        #expect(lines.first { $0["field"] as? String == "when" }?["local"] as? String == "2024-05-01T14:30:00Z")
    }

    @Test func `a conflict about a Boolean shows true and false`() async throws {
        for name in ["a", "b"] {
            try await run(
                "account", "sign-in", path(name), "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--create")
        }
        try await run("records", "set", path("a"), "n", "--type", "Note", "text=x")
        try await run("sync", path("a"))
        try await run("sync", path("b"))
        // Both containers add a field, with different values.
        try await run("records", "set", path("a"), "n", "done=true")
        try await run("records", "set", path("b"), "n", "done=false")
        try await run("sync", path("a"))
        try await run("sync", path("b"))
        let text = try await run("conflicts", path("b")).output
        #expect(text.contains("n done: was none, here false, there true"), "\(text)")
        let json = try await run("conflicts", path("b"), "--json").output
        #expect(json.contains(#""local":false"#) && json.contains(#""store":true"#), "\(json)")
    }

    @Test func `a refused save shows Booleans as true and false`() async throws {
        for name in ["ada", "ben"] {
            try await run(
                "account", "sign-in", path(name), "--cloud", scratch["cloud"].path, "--email", "\(name)@example.org", "--create")
        }
        try await run("records", "set", path("ada"), "n", "--type", "Note", "text=x")
        try await run("sync", path("ada"))
        try await run("share", "create", path("ada"), "n")
        let links = try await run("share", "invite", path("ada"), "n", "ben@example.org", "--json").json()["links"]
        let link = try #require((links as? [[String: Any]])?.first?["link"] as? String)
        try await run("share", "accept", path("ben"), link)
        // The cloud has no Booleans: the field is a Boolean only in a container that sets it as one.
        try await run("records", "set", path("ben"), "n", "done=true")
        try await run("sync", path("ben"))
        try await run("records", "set", path("ben"), "n", "done=false")
        try await run("share", "set", path("ada"), "n", "ben@example.org", "--permission", "read-only")
        _ = try await tool.run(["sync", path("ben")])
        #expect(try await run("refused", path("ben")).output.contains("    done: false; it was true\n"))
        let json = try await run("refused", path("ben"), "--json").output
        #expect(json.contains(#""after":{"done":false}"#) && json.contains(#""done":true"#), "\(json)")
    }

    @Test func `every command takes and shows the id of the source as a record's name`() async throws {
        try scratch.writeLines([#"{"id":"senja","text":"x"}"#], to: "notes.jsonl")
        for name in ["a", "b"] {
            try await run(
                "account", "sign-in", path(name), "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--create")
        }
        try await run("import", scratch["notes.jsonl"].path, "--into", path("a"), "--type", "Note", "--id", "id")
        try await run("sync", path("a"))
        try await run("sync", path("b"))
        #expect(try await run("records", "set", path("a"), "senja", "text=of A").output == "Note senja: changed\n")
        #expect(try await run("status", path("a")).output.contains("save Note senja: queued"))
        try await run("sync", path("a"))
        try await run("records", "set", path("b"), "senja", "text=of B")
        try await run("account", "set", path("b"), "--merge-policy", "error")
        _ = try await tool.run(["sync", path("b")])
        #expect(try await run("conflicts", path("b")).output.contains("left: Note senja: changed on both sides"))
        let resolved = try await run("conflicts", "resolve", path("b"), "senja", "--merge-policy", "latestEdit")
        #expect(resolved.output.hasPrefix("resolved Note senja\n"))
        try await run("records", "delete", path("b"), "senja")
        #expect(try await run("history", path("b"), "--record", "senja").output.contains("delete Note senja  (transaction"))
    }
}
