import Foundation
import TestSupport
import Testing

/// Goal: what the console does, commands do, and the audit log has it. Method: the tool over a cloud in a directory.
@Suite(.timeLimit(.minutes(30))) struct AdminRecordsTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    @discardableResult
    private func admin(_ arguments: String..., expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(["admin"] + arguments + ["--data", scratch["cloud"].path])
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func lines(_ result: Tool.Result) throws -> [[String: Any]] {
        try result.output.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    @Test func `records are made, found, changed and deleted, and the log has them before and after`() async throws {
        try await admin("container", "add", "journal")
        for (name, title) in [("oslo", "Oslo"), ("odda", "Odda")] {
            try await admin("records", "set", name, "title=\(title)", "--type", "City", "--container", "journal")
        }
        let refused = try await admin("records", "list", "--type", "City", "--container", "journal", expecting: 64)
        #expect(refused.errors.contains("Field 'recordName' is not marked queryable"))
        try await admin("schema", "index", "--container", "journal", "--type", "City", "--field", "recordName", "--queryable")
        try await admin(
            "schema", "index", "--container", "journal", "--type", "City", "--field", "title", "--queryable", "--sortable")
        let sorted = try lines(
            await admin("records", "list", "--type", "City", "--container", "journal", "--sort", "-title", "--json"))
        #expect(sorted.map { $0["recordName"] as? String } == ["oslo", "odda"])
        let filtered = try await admin(
            "records", "list", "--type", "City", "--container", "journal", "--filter", "title BEGINS_WITH Od")
        #expect(filtered.output.contains("odda") && !filtered.output.contains("oslo"))
        try await admin("records", "set", "oslo", "title=Christiania", "--container", "journal")
        #expect(try await admin("records", "show", "oslo", "--container", "journal").output.contains("Christiania"))
        try await admin("records", "set", "oslo", "title=", "--container", "journal")
        try await admin("records", "delete", "oslo", "--container", "journal")
        try await admin("records", "show", "oslo", "--container", "journal", expecting: 66)
        try await admin("records", "set", "new", "title=x", "--container", "journal", expecting: 66)
        try await admin("records", "show", "oslo", "--container", "none", expecting: 66)
        let log = try lines(await admin("audit", "--container", "journal", "--json")).filter {
            ($0["action"] as? String)?.hasPrefix("admin.records") == true
        }
        #expect(
            log.compactMap { $0["action"] as? String } == [String](repeating: "admin.records.save", count: 4) + [
                "admin.records.delete"
            ])
        try #require(log.count == 5)
        #expect(
            (log[2]["before"] as? String)?.contains("Oslo") == true
                && (log[2]["after"] as? String)?.contains("Christiania") == true)
        #expect(log[0]["before"] == nil && log[4]["after"] == nil && log[4]["before"] != nil)
        #expect((log[0]["actor"] as? String)?.hasPrefix("user:") == true)
    }

    @Test func `zones and what is stored are listed, a person's database with an entry in the log`() async throws {
        try await admin("container", "add", "journal")
        try await admin("account", "add", "anna@example.org", "--no-password")
        try await admin(
            "records", "set", "diary", "text=x", "--type", "Note", "--container", "journal", "--scope", "private", "--account",
            "anna@example.org")
        let zones = try lines(
            await admin("zones", "--container", "journal", "--scope", "private", "--account", "anna@example.org", "--json"))
        try #require(zones.count == 1)
        #expect(zones[0]["records"] as? Int == 1)
        #expect(zones[0]["types"] as? [String: Int] == ["Note": 1])
        try await admin("zones", "--container", "journal", "--scope", "private", expecting: 64)
        let usage = try lines(await admin("usage", "--json"))
        #expect(usage.map { $0["records"] as? Int } == [1])
        let accounts = try lines(await admin("usage", "--container", "journal", "--json"))
        #expect(accounts.map { $0["account"] as? String } == ["anna@example.org"])
        #expect(
            try await admin("shares", "--container", "journal", "--scope", "private", "--account", "anna@example.org").output
                == "nothing is shared there\n")
        let looks = try lines(await admin("audit", "--json")).filter { $0["action"] as? String == "admin.records.read" }
        #expect(looks.allSatisfy { $0["account"] as? String == "anna@example.org" } && looks.count >= 2)
    }

    @Test func `roles are given, listed and taken`() async throws {
        for name in ["journal", "other"] { try await admin("container", "add", name) }
        for name in ["anna", "ben"] { try await admin("account", "add", "\(name)@example.org", "--no-password") }
        #expect(try await admin("operator", "list").output.contains("nobody may use the console"))
        try await admin("operator", "add", "anna@example.org")
        try await admin("operator", "add", "ben@example.org", "--role", "developer", expecting: 64)
        try await admin("operator", "add", "ben@example.org", "--role", "developer", "--container", "none", expecting: 66)
        try await admin(
            "operator", "add", "ben@example.org", "--role", "developer", "--container", "other", "--container", "journal")
        try await admin("operator", "add", "cleo@example.org", expecting: 66)
        let listed = try lines(await admin("operator", "list", "--json"))
        let roles = Dictionary(uniqueKeysWithValues: listed.map { ($0["email"] as? String ?? "", $0["role"] as? String ?? "") })
        #expect(roles == ["anna@example.org": "operator", "ben@example.org": "developer"])
        #expect(listed.first { $0["email"] as? String == "ben@example.org" }?["containers"] as? [String] == ["journal", "other"])
        try await admin("operator", "remove", "ben@example.org")
        try await admin("operator", "remove", "ben@example.org", expecting: 66)
        let log = try lines(await admin("audit", "--json")).filter {
            ($0["action"] as? String)?.hasPrefix("admin.operator") == true
        }
        #expect(log.map { $0["before"] as? String } == [nil, nil, "developer of journal, other"])
        #expect(log.map { $0["after"] as? String } == ["operator", "developer of journal, other", nil])
    }
}
