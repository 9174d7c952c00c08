import Foundation
import TestSupport
import Testing

/// Goal: commands do what the console does, and the audit log has it. Method: the tool over a cloud in a directory.
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

    @Test func `records are made, found, changed and deleted, and the log has their values before and after`() async throws {
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

    @Test func `zones and storage are listed, and reading a person's database makes an entry in the log`() async throws {
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
        // With an account, the database is the private one unless it is named.
        let own = try lines(await admin("zones", "--container", "journal", "--account", "anna@example.org", "--json"))
        #expect(own.map { $0["records"] as? Int } == [1])
        try await admin("zones", "--container", "journal", "--scope", "public", "--account", "anna@example.org", expecting: 64)
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

    /// Signs a container in as an account, and shares one of its records.
    private func shareRecord(of container: String) async throws {
        try await admin("container", "add", "journal")
        try await admin("account", "add", "anna@example.org", "--no-password")
        for arguments in [
            ["records", "set", container, "geiranger", "--type", "Trip", "title=Geiranger"],
            [
                "account", "sign-in", container, "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--container",
                "journal",
            ],
            ["share", "create", container, "geiranger"],
            ["records", "set", container, "odda", "--type", "Trip", "title=Odda"],
            ["sync", container],
        ] {
            let result = try await tool.run(arguments)
            try #require(result.status == 0, "\(arguments): \(result.errors)")
        }
    }

    @Test func `the shares of all zones are listed with their zones, unless one zone is named`() async throws {
        try await shareRecord(of: scratch["hut.tidemark"].path)
        let place = ["--container", "journal", "--account", "anna@example.org", "--data", scratch["cloud"].path]
        func shares(_ more: String...) async throws -> [[String: Any]] {
            try lines(try await tool.run(["admin", "shares"] + place + more + ["--json"]))
        }
        let all = try await shares()
        try #require(all.count == 1)
        let zone = try #require(all[0]["zone"] as? String)
        #expect(zone.hasPrefix("TidemarkShare-") && all[0]["owner"] == nil && all[0]["role"] as? String == "Owner")
        #expect(try await shares("--zone", zone).map { $0["zone"] as? String } == [zone])
        for other in ["TidemarkZone", "_defaultZone"] { #expect(try await shares("--zone", other).isEmpty) }
        let table = try await tool.run(["admin", "shares"] + place)
        #expect(table.output.contains("  zone\n") && table.output.hasSuffix("  \(zone)\n"), "\(table.output)")
        let looks = try lines(await admin("audit", "--json")).filter { $0["action"] as? String == "admin.records.read" }
        #expect(looks.contains { ($0["subject"] as? String)?.contains(zone) == true })
        // The public database has no shares.
        let refused = try await admin("shares", "--container", "journal", expecting: 64)
        #expect(refused.errors.contains("nothing in the public database is shared"))
    }

    @Test func `a record that is in another zone is not found, and the zones of the database are named`() async throws {
        try await shareRecord(of: scratch["hut.tidemark"].path)
        let place = ["odda", "--container", "journal", "--account", "anna@example.org", "--data", scratch["cloud"].path]
        for command in ["show", "delete"] {
            let missing = try await tool.run(["admin", "records", command] + place)
            #expect(missing.status == 66 && missing.output.isEmpty, "\(missing.output)\(missing.errors)")
            #expect(
                missing.errors.contains("; the database has other zones: ") && missing.errors.contains("--zone 'TidemarkZone'"),
                "\(missing.errors)")
        }
        let found = try await tool.run(["admin", "records", "show"] + place + ["--zone", "TidemarkZone"])
        #expect(found.status == 0 && found.output.contains("Odda"), "\(found.errors)")
        // The public database has no other zones.
        #expect(
            try await !admin("records", "show", "odda", "--container", "journal", expecting: 66).errors.contains("other zones"))
    }

    @Test func `the field that devices add to records is in JSON and single records, but no column of a list`() async throws {
        try await shareRecord(of: scratch["hut.tidemark"].path)
        try await admin("schema", "index", "--container", "journal", "--type", "Trip", "--field", "recordName", "--queryable")
        let place = [
            "--container", "journal", "--account", "anna@example.org", "--zone", "TidemarkZone", "--data", scratch["cloud"].path,
        ]
        let list = ["admin", "records", "list", "--type", "Trip"] + place
        let listed = try await tool.run(list)
        #expect(listed.output.contains("Odda") && !listed.output.contains("tide_"), "\(listed.output)\(listed.errors)")
        for command in [list + ["--json"], ["admin", "records", "show", "odda"] + place] {
            #expect(try await tool.run(command).output.contains("tide_edited"))
        }
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

    @Test func `removing the role of the last operator asks first, and an account with a role is not removed`() async throws {
        try await admin("container", "add", "journal")
        for name in ["anna", "ben", "cleo"] { try await admin("account", "add", "\(name)@example.org", "--no-password") }
        try await admin("operator", "add", "anna@example.org")
        try await admin("operator", "add", "ben@example.org", "--role", "developer", "--container", "journal")
        let remove = ["admin", "operator", "remove", "anna@example.org", "--data", scratch["cloud"].path]
        let refused = try await tool.run(remove)
        #expect(refused.status == 64 && refused.errors.contains("anna@example.org is the last operator"), "\(refused.errors)")
        #expect(refused.errors.contains("tidemark admin operator add") && refused.errors.contains("--yes"))
        let wrong = try await tool.run(remove, on: PseudoTerminal(typing: "ben@example.org\n"))
        #expect(wrong.status == 64, "\(wrong.errors)")
        // The last operator can't become a developer either.
        let developer = try await admin(
            "operator", "add", "anna@example.org", "--role", "developer", "--container", "journal", expecting: 64)
        #expect(developer.errors.contains("give another account the role first"))
        for (name, more) in [("anna", []), ("ben", ["--with-data", "--yes"])] as [(String, [String])] {
            let kept = try await tool.run(
                ["admin", "account", "remove", "\(name)@example.org", "--data", scratch["cloud"].path] + more)
            #expect(kept.status == 77, "\(kept.errors)")
            #expect(kept.errors.contains("take the role away first: tidemark admin operator remove \(name)@example.org --data"))
        }
        // An operator whose account can't be used does not count.
        try await admin("operator", "add", "cleo@example.org")
        try await admin("account", "set", "cleo@example.org", "--status", "restricted")
        #expect(try await tool.run(remove).status == 64)
        try await admin("account", "set", "cleo@example.org", "--status", "available")
        #expect(try await tool.run(remove).status == 0)
        try await admin("account", "remove", "anna@example.org")
        let last = ["admin", "operator", "remove", "cleo@example.org", "--data", scratch["cloud"].path]
        let typed = try await tool.run(last, on: PseudoTerminal(typing: "cleo@example.org\n"))
        #expect(typed.status == 0 && typed.errors.contains("type the address again"), "\(typed.errors)")
        let roles = try lines(await admin("operator", "list", "--json")).map { $0["email"] as? String }
        #expect(roles == ["ben@example.org"])
    }

    @Test func `a field that the schema lacks gets the given type, and another type is refused`() async throws {
        try await admin("container", "add", "journal")
        let made = try await admin(
            "records", "set", "one", "title=Senja", "days:int64=3", "done:bool=true", #"tags:list<string>=["a"]"#, "--type",
            "Trip",
            "--container", "journal")
        #expect(made.output == "made one\nnew in the schema: Trip.days int64, done int64, tags list<string>, title string\n")
        let shown = try lines(await admin("schema", "show", "--container", "journal", "--json"))
        let fields = (shown.first?["fields"] as? [[String: Any]] ?? []).map { "\($0["name"] ?? "") \($0["type"] ?? "")" }
        #expect(fields == ["days int64", "done int64", "tags list<string>", "title string"])
        #expect(try await admin("records", "set", "one", "days=4", "--container", "journal").output == "changed one\n")
        try await admin("records", "set", "one", "days:int=5", "--container", "journal")
        let refused = try await admin("records", "set", "one", "days:string=x", "--container", "journal", expecting: 64)
        #expect(
            refused.errors.contains("the field 'days' of Trip is int64, not string; leave the type away, or name another field"))
        let unknown = try await admin("records", "set", "one", "n:strin=x", "--container", "journal", expecting: 64)
        #expect(unknown.errors.contains("did you mean 'string'?"))
        #expect(try await admin("records", "show", "one", "--container", "journal").output.contains(/days +int64 +5\n/))
    }

    @Test func `a misspelt name is named, and the suggested command that adds a missing index runs as it is`() async throws {
        try await admin("container", "add", "journal")
        try await admin("records", "set", "a", "rating:int64=4", "caption=A", "--type", "Destination", "--container", "journal")
        let list = ["records", "list", "--container", "journal", "--type"]
        func refusal(_ more: String..., expecting status: Int32) async throws -> String {
            let result = try await tool.run(["admin"] + list + more + ["--data", scratch["cloud"].path])
            #expect(result.status == status, "\(result.output)\(result.errors)")
            return result.errors
        }
        #expect(
            try await refusal("Destinaton", expecting: 66)
                == "tidemark: there is no record type 'Destinaton' in the development schema; did you mean 'Destination'?\n")
        #expect(
            try await refusal("Destination", "--filter", "ratng EQUALS 4", expecting: 64)
                == "tidemark: Destination has no field 'ratng' in the development schema; did you mean 'rating'?\n")
        #expect(try await refusal("Destination", "--sort", "-createdTimstamp", expecting: 64).contains("'createdTimestamp'?"))
        #expect(try await refusal("Destination", "--filter", "rating >= 4", expecting: 64).contains("GREATER_THAN_OR_EQUALS"))
        let hint = try await refusal("Destination", "--database", "private", expecting: 64)
        #expect(hint.contains("the private database is chosen by --scope private --account <address>"), "\(hint)")

        // Each refusal names the command; existing indexes stay.
        for words in [["--filter", "rating EQUALS 4"], ["--filter", "rating EQUALS 4", "--sort", "rating"], []] {
            let result = try await tool.run(["admin"] + list + ["Destination"] + words + ["--data", scratch["cloud"].path])
            #expect(result.status == 64 && result.errors.contains("is not marked"), "\(result.errors)")
            let command = try #require(result.errors.firstMatch(of: /add the index: tidemark (.+)\n/)).1
            let added = try await tool.run(command.split(separator: " ").map(String.init))
            #expect(added.status == 0, "\(added.errors)")
            let found = try await tool.run(["admin"] + list + ["Destination"] + words + ["--data", scratch["cloud"].path])
            #expect(found.status == 0 && found.output.contains("caption"), "\(found.errors)")
        }
        try await admin("schema", "deploy", "--container", "journal")
        try await admin("schema", "index", "--container", "journal", "--type", "Destination", "--field", "rating", "--none")
        try await admin("schema", "deploy", "--container", "journal")
        #expect(
            try await refusal("Destination", "--environment", "production", "--sort", "rating", expecting: 64)
                .contains("--field rating --sortable --data \(scratch["cloud"].path) && tidemark admin schema deploy"))
    }

    @Test func `removing a second factor from an account without one changes nothing, and the tool says so`() async throws {
        try await admin("account", "add", "anna@example.org", "--no-password")
        for command in [
            ["operator", "reset", "anna@example.org"], ["account", "second-factor", "anna@example.org", "--remove"],
        ] {
            let reset = try await tool.run(["admin"] + command + ["--data", scratch["cloud"].path])
            #expect(reset.status == 0 && reset.output == "anna@example.org has no second factor: nothing is changed\n")
        }
    }

    @Test func `the tool says whether an account has a second factor`() async throws {
        try await admin("account", "add", "anna@example.org", "--no-password")
        #expect(
            try await admin("account", "second-factor", "anna@example.org").output
                == "second factor of anna@example.org: none\n")
        let shown = try lines(await admin("account", "second-factor", "anna@example.org", "--json"))[0]
        #expect(shown["hasSecondFactor"] as? Bool == false && shown["recoveryCodes"] == nil)
        #expect(try await admin("account", "show", "anna@example.org").output.contains("\nfactor    none\n"))
        let account = try lines(await admin("account", "show", "anna@example.org", "--json"))[0]
        #expect(account["hasSecondFactor"] as? Bool == false)
        let removed = try lines(await admin("account", "second-factor", "anna@example.org", "--remove", "--json"))[0]
        #expect(removed["done"] as? String == "admin account second-factor" && removed["hadSecondFactor"] as? Bool == false)
        try await admin("account", "second-factor", "nobody@example.org", expecting: 66)
    }
}
