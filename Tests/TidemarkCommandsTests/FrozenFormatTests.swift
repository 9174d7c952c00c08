import Foundation
import TestSupport
import Testing

/// Goal: files of earlier formats open in this version, are whole, and can be used on. Method: archives of real containers and
/// clouds of each format, which never change; the tool.
@Suite(.timeLimit(.minutes(30))) struct FrozenFormatTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    @discardableResult
    private func run(_ arguments: String...) async throws -> Tool.Result {
        let result = try await tool.run(arguments, in: scratch.url)
        #expect(result.status == 0, "\(arguments.joined(separator: " ")): \(result.output)\(result.errors)")
        return result
    }

    private func record(_ name: String, of container: String) async throws -> NSDictionary {
        try await run("records", "get", container, name, "--json").json() as NSDictionary
    }

    @Test(arguments: FrozenFormats.all)
    func `containers and a cloud of a frozen format open, are whole, and synchronise`(frozen: FrozenFormats) async throws {
        try frozen.unpack(into: scratch)
        let hasOldTokens = try #require(frozen.formats["cloud"]) == 4
        // The cloud's directory has another path than when the containers signed in.
        for (container, email) in [
            ("Anna.tidemark", "anna@example.org"), ("Other.tidemark", "anna@example.org"), ("Ben.tidemark", "ben@example.org"),
        ] {
            let migrated = try await run("store", "migrate", container, "--json").json()
            #expect(migrated["done"] as? String == "store migrate" && migrated["before"] as? Int == frozen.formats["store"])
            try await run("verify", container)
            try await run("account", "sign-in", container, "--cloud", "cloud", "--email", email)
        }
        let senja: NSDictionary = [
            "id": "senja", "image": "asset:fc960fbc0282d215d14beb8419150dea-74", "caption": "Senja in May",
            "createdAt": "2024-05-01T12:30:00Z", "rating": 5, "elevation": 12.5, "isSecret": false, "tags": ["sea", "north"],
            "position": ["latitude": 69.3, "longitude": 17.0],
        ]
        #expect(try await record("senja", of: "Anna.tidemark") == senja)
        let lowest: NSDictionary = [
            "id": "4f0de390-0000-4000-8000-000000000001", "caption": "Ålesund", "createdAt": "1969-07-20T20:17:40Z",
            "rating": Int64.min,
            "elevation": -0.5,
        ]
        #expect(try await record("4f0de390-0000-4000-8000-000000000001", of: "Anna.tidemark") == lowest)
        let note: NSDictionary = ["_name": "wet", "text": "Wet", "count": 4, "raw": "AAEC", "place": "senja"]
        #expect(try await record("wet", of: "Anna.tidemark") == note)
        // The pending edit is sent; the open conflict is resolved; Ben sees what is shared with him, and changes it.
        #expect(try await run("sync", "Anna.tidemark").output == "fetched 0 records, sent 1\n")
        #expect(try await run("conflicts", "Other.tidemark").output.contains("left: Destination senja: changed on both sides"))
        // Clouds of format 4 made tokens and tags with another cipher, so all records are fetched again for their new tags
        // (decision 048).
        let resolved = try await run("sync", "Other.tidemark", "--merge-policy", "overwrite").output
        #expect(resolved == "fetched \(hasOldTokens ? "3 records" : "1 record"), sent 1, resolved 1 conflict\n")
        try await run("records", "set", "Ben.tidemark", "lofoten", "caption=Lofoten by Ben")
        let changed = try await run("sync", "Ben.tidemark").output
        #expect(changed == "fetched \(hasOldTokens ? 2 : 0) records, sent 1\n")
        #expect(try await run("sync", "Anna.tidemark").output == "fetched 2 records, sent 0\n")
        #expect(try await record("senja", of: "Anna.tidemark")["caption"] as? String == "Senja in June")
        #expect(try await record("lofoten", of: "Anna.tidemark")["caption"] as? String == "Lofoten by Ben")
        #expect(try await record("wet", of: "Other.tidemark") == note)
        // History has the values of the deleted record.
        try await run("undo", "Anna.tidemark", "4")
        #expect(try await record("gone", of: "Anna.tidemark") == ["_name": "gone", "text": "Gone"])
        for container in ["Anna.tidemark", "Other.tidemark", "Ben.tidemark"] { try await run("verify", container) }
        try await run("admin", "verify", "--data", "cloud")
        #expect(try await run("admin", "account", "list", "--data", "cloud").output.contains("ben@example.org"))
        #expect(try await run("admin", "token", "list", "--data", "cloud").output.contains("Web"))
    }

    @Test func `each format that this version writes is frozen`() async throws {
        try scratch.write(#"{"id": "a", "n": 1}"#, to: "a.jsonl")
        try await run("import", "a.jsonl", "--into", "New.tidemark", "--type", "Destination", "--id", "id")
        try await run("account", "sign-in", "New.tidemark", "--cloud", "new", "--email", "anna@example.org", "--create")
        try await run("sync", "New.tidemark")
        try await run("admin", "container", "add", "default", "--data", "new")
        for (kind, file) in [
            ("store", "New.tidemark/private.sqlite"), ("cloud", "new/containers/default/development/records.sqlite"),
            ("accounts", "new/accounts.sqlite"), ("identity", "new/access.sqlite"),
            // Subscriptions are made by a server: PushTests has a frozen format of these.
        ] {
            #expect(
                try FrozenFormats.format(of: scratch[file]) == FrozenFormats.newest(kind),
                "the format of \(kind) has changed: run Tests/Fixtures/make-formats, and commit the archive")
        }
    }
}
