import Foundation
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity

/// Goal: an operator disconnects an account from an identity provider, and learns which ways to sign in are left. Method: the
/// tool, and the credentials before and after.
@Suite(.timeLimit(.minutes(30))) struct AccountIdentitiesTests {
    private let scratch: Scratch
    private let tool: Tool
    private let credentials: CredentialStore
    private let anna: StoredAccount

    init() async throws {
        (scratch, tool) = (try Scratch(), try Tool())
        anna = try await EmbeddedCloud(at: scratch["cloud"]).addAccount("anna@example.org")
        credentials = try CredentialStore(at: scratch["cloud"])
        for name in ["anna-1", "anna-2"] {
            let key = IdentityKey(issuer: "https://id.example.org", subject: name)
            _ = try await credentials.connect(key, label: "\(name)@example.net", to: anna.id)
        }
    }

    @discardableResult
    private func run(_ words: String..., status: Int32 = 0) async throws -> Tool.Result {
        let place = ["--data", scratch["cloud"].path]
        let result = try await tool.run(["admin", "account", "identities", "anna@example.org"] + words + place)
        #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
        return result
    }

    private func left() async throws -> [String] { try await credentials.identities(of: anna.id).map(\.label) }

    @Test func `identities are listed and disconnected, and the last one only after a warning that it is the last`() async throws
    {
        let lines = try await run("--json").output.split(separator: "\n")
        try #require(lines.count == 2)
        #expect(lines[0].contains(#""subject":"anna-1""#) && lines[0].contains(#""issuer":"https://id.example.org""#))
        let table = try await run().output
        #expect(table.contains("anna-2@example.net") && table.contains("the account has no password"))
        let ids = try await credentials.identities(of: anna.id).map(\.id)

        #expect(
            try await run("--disconnect", "zz", status: 66).errors.contains("tidemark admin account identities anna@example.org"))
        try await run("--yes", status: 64)
        let first = try await run("--disconnect", String(ids[0].prefix(8))).output
        #expect(first.contains("disconnected anna-1@example.net at https://id.example.org from anna@example.org"))
        #expect(first.contains("has no password; who can sign in as anna-2@example.net at https://id.example.org comes in"))
        #expect(first.contains("tidemark admin session end --account anna@example.org"))
        #expect(try await left() == ["anna-2@example.net"])

        let refused = try await run("--disconnect", ids[1], status: 64)
        #expect(refused.errors.contains("nobody can sign in to it") && refused.errors.contains("--yes"))
        #expect(try await left() == ["anna-2@example.net"])
        let last = try await run("--disconnect", ids[1], "--yes", "--json").json()
        #expect(last["identities"] as? Int == 0 && last["hasPassword"] as? Bool == false && last["identity"] as? String == ids[1])
        #expect(try await left() == [])
        #expect(try await run().output.hasPrefix("no identity of an identity provider signs in to anna@example.org\n"))

        let entries = try await credentials.auditLog(account: anna.id).map(\.event)
        #expect(entries.map(\.action.rawValue) == Array(repeating: "admin.account.identity-disconnect", count: 2))
        #expect(entries.first?.subject == "identity \(ids[1])")
        #expect(entries.first?.before == "anna-2@example.net at https://id.example.org")
    }

    @Test
    func `an account with a password loses its last identity without a question, and the tool names the password`() async throws {
        try await credentials.setPassword("correct horse", of: anna.id)
        for identity in try await credentials.identities(of: anna.id) {
            #expect(
                try await run("--disconnect", identity.id).output.contains("The account has a password, which still signs in"))
        }
        #expect(try await left() == [])
    }
}
