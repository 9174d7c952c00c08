import Foundation
import TestSupport
import Testing

/// Goal: the audit log has every change by a command of administration, with the values before and after. Method: the tool, and
/// what `tidemark admin audit --json` says of each of its commands.
@Suite(.timeLimit(.minutes(30))) struct AdminAuditTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws { (scratch, tool) = (try Scratch(), try Tool()) }

    @discardableResult
    private func admin(_ arguments: String..., input: String? = nil, expecting status: Int32 = 0) async throws -> Tool.Result {
        let file = try input.map { try scratch.write($0, to: "input-\(UUID().uuidString)") }
        let result = try await tool.run(["admin"] + arguments + ["--data", scratch["cloud"].path], input: file)
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    /// The parts of an entry of the log that are compared.
    private struct Entry: Decodable, Equatable {
        let action: String
        var subject, before, after: String?
    }

    private func log(_ action: String) async throws -> [Entry] {
        try await admin("audit", "--json").output.split(separator: "\n").map {
            try JSONDecoder().decode(Entry.self, from: Data($0.utf8))
        }.filter { $0.action == "admin.\(action)" }
    }

    @Test(arguments: ["600s", "30m", "24h", "7d"])
    func `the start of the log can be given in seconds, minutes, hours and days`(since: String) async throws {
        try await admin("container", "add", "journal")
        #expect(try await admin("audit", "--since", since).output.contains("admin.container.add"))
        try await admin("sync-errors", "--since", since)
        for command in ["audit", "sync-errors"] { try await admin(command, "--since", "30x", expecting: 64) }
    }

    @Test func `changes of containers and accounts are in the log`() async throws {
        try await admin("container", "add", "journal")
        // The container is served already, so nothing changes.
        try await admin("container", "add", "journal")
        try await admin("container", "remove", "journal")
        #expect(try await log("container.add") == [Entry(action: "admin.container.add", after: "served")])
        #expect(try await log("container.remove") == [Entry(action: "admin.container.remove", before: "served")])

        try await admin("account", "add", "anna@example.org", "--name", "Anna", "--password-stdin", input: "correct horse\n")
        let added = try #require(try await log("account.add").first)
        #expect(added.before == nil && added.after?.contains(#""name":"Anna""#) == true)
        try await admin("account", "set", "anna@example.org", "--quota", "7GB", "--status", "restricted")
        // A value that stays the same is no change.
        try await admin("account", "set", "anna@example.org", "--quota", "7GB")
        let set = try await log("account.set")
        try #require(set.count == 1)
        #expect(set[0].before?.contains("5000000000") == true && set[0].before?.contains("available") == true)
        #expect(set[0].after?.contains("7000000000") == true && set[0].after?.contains("restricted") == true)
        try await admin("account", "password", "anna@example.org", "--password-stdin", input: "battery staple\n")
        try await admin("account", "password", "anna@example.org", "--remove")
        #expect(
            try await log("account.password") == [
                Entry(action: "admin.account.password", before: "set", after: "set"),
                Entry(action: "admin.account.password", subject: "removed", before: "set", after: "none"),
            ])
        #expect(try await !admin("audit", "--json").output.contains("battery"))
        try await admin("account", "export", "anna@example.org", "--to", scratch["anna"].path)
        #expect(try await log("account.export").map(\.subject) == ["0 records"])
        try await admin("account", "remove", "anna@example.org")
        #expect(try await log("account.remove").first?.before?.contains("restricted") == true)
    }

    @Test func `changes of sessions, tokens and keys are in the log`() async throws {
        try await admin("container", "add", "journal")
        try await admin("account", "add", "anna@example.org", "--no-password")
        try await admin("session", "end", "--account", "anna@example.org")
        try await admin("session", "end", "--all")
        #expect(
            try await log("session.end") == [
                Entry(action: "admin.session.end", subject: "all of the account", before: "0 sessions"),
                Entry(action: "admin.session.end", subject: "all", before: "0 sessions"),
            ])
        try await admin("token", "add", "--container", "journal", "--name", "Web", "--callback", "https://example.org/in")
        // A token can be found and revoked though its container is no longer served.
        try await admin("container", "remove", "journal")
        let listed = try await admin("token", "list", "--json").json()
        let token = try #require(listed["id"] as? String)
        try await admin("token", "revoke", token)
        #expect(try await log("token.add") == [Entry(action: "admin.token.add", subject: token, after: "Web")])
        #expect(try await log("token.revoke") == [Entry(action: "admin.token.revoke", subject: token, before: "Web")])
        try await admin("secrets", "rotate")
        #expect(try await log("secrets.rotate") == [Entry(action: "admin.secrets.rotate", subject: "grace of 0 days")])
    }

    @Test func `changes of schemas are in the log`() async throws {
        try await admin("container", "add", "journal")
        try await admin("records", "set", "oslo", "title=Oslo", "--type", "City", "--container", "journal")
        try await admin("schema", "index", "--container", "journal", "--type", "City", "--field", "title", "--queryable")
        try await admin("schema", "index", "--container", "journal", "--type", "City", "--field", "title", "--sortable")
        #expect(
            try await log("schema.index") == [
                Entry(action: "admin.schema.index", subject: "City.title", after: "queryable"),
                Entry(action: "admin.schema.index", subject: "City.title", before: "queryable", after: "sortable"),
            ])
        try await admin("schema", "freeze", "--container", "journal")
        try await admin("schema", "freeze", "--container", "journal", "--off")
        #expect(
            try await log("schema.freeze") == [
                Entry(action: "admin.schema.freeze", before: "grows", after: "frozen"),
                Entry(action: "admin.schema.freeze", before: "frozen", after: "grows"),
            ])
        try await admin("schema", "deploy", "--container", "journal")
        #expect(try await log("schema.deploy").first?.after?.contains("City is new") == true)
        try await admin("schema", "remove", "--container", "journal", "--type", "City", "--field", "title", expecting: 64)
        try await admin("schema", "remove", "--container", "journal", "--type", "City", "--field", "title", "--force")
        #expect(
            try await log("schema.remove") == [
                Entry(
                    action: "admin.schema.remove", subject: "City.title", before: "City (title string: sortable); 1 record")
            ])
    }
}
