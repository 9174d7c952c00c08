import Foundation
import TestSupport
import Testing

/// Goal: a person who runs a cloud admits people, programs and servers with few lines, and a mistake makes nothing. Method: the
/// tool in an empty folder, its output and exit codes, and the files in the folder afterwards.
@Suite(.timeLimit(.minutes(30))) struct AdminCommandTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    @discardableResult
    private func admin(
        _ arguments: String..., input: String? = nil, in cloud: String = "cloud", expecting status: Int32 = 0
    ) async throws -> Tool.Result {
        let file = try input.map { try scratch.write($0, to: "input-\(UUID().uuidString)") }
        let result = try await tool.run(["admin"] + arguments + ["--data", scratch[cloud].path], input: file)
        if let file { try FileManager.default.removeItem(at: file) }
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func lines(_ result: Tool.Result) throws -> [[String: Any]] {
        try result.output.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    private func files() throws -> [String] { try FileManager.default.subpathsOfDirectory(atPath: scratch.url.path).sorted() }

    @Test func `only adding a container or an account makes a cloud, and the tool says so`() async throws {
        for arguments in [["container", "list"], ["account", "list"], ["session", "list"], ["account", "password", "a@b.c"]] {
            let result = try await tool.run(["admin"] + arguments + ["--data", scratch["cloud"].path])
            #expect(result.status == 66, "\(arguments)")
            #expect(result.errors.contains("there is no cloud at \(scratch["cloud"].path)"))
        }
        #expect(try files() == [])
        let made = try await admin("container", "add", "journal")
        #expect(made.errors == "note: made a cloud at \(scratch["cloud"].path)\n")
        #expect(made.output == "journal is served\n")
        #expect(try await admin("container", "add", "journal").errors == "")
        let account = try await admin(
            "account", "add", "anna@example.org", "--password-stdin", input: "correct horse\n", in: "other")
        #expect(account.errors.contains("made a cloud"))
        try scratch.write("mine", to: "full/file")
        #expect(try await admin("container", "add", "journal", in: "full", expecting: 73).errors.contains("holds other files"))
        #expect(
            try await admin("container", "add", "journal", in: "full/file", expecting: 73).errors.contains("cannot make a cloud"))
    }

    @Test func `only its owner can read a cloud, and the tool warns of a cloud that is open to others`() async throws {
        func mode(_ path: String) throws -> Int {
            try #require(try FileManager.default.attributesOfItem(atPath: scratch[path].path)[.posixPermissions] as? Int)
        }
        // This holds for a directory that exists already, too.
        try FileManager.default.createDirectory(
            at: scratch["cloud"], withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        #expect(try await !admin("container", "add", "journal").errors.contains("warning"))
        #expect(try mode("cloud") == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch["cloud"].path) {
            #expect(try mode("cloud/\(name)") == 0o600, "\(name)")
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: scratch["cloud"].path)
        let told = try await admin("container", "list")
        #expect(told.output == "journal\n")
        #expect(told.errors.hasPrefix("warning: ") && told.errors.hasSuffix("'chmod 700 \(scratch["cloud"].path)'\n"))
        #expect(try mode("cloud") == 0o755)
    }

    @Test func `a directory that was prepared for a group stays so, and nothing is changed if no cloud is made`() async throws {
        func mode(_ folder: URL) throws -> Int {
            var status = stat()
            let isRead = stat(folder.path, &status) == 0
            try #require(isRead)
            return Int(status.st_mode & 0o7777)
        }
        // The mode before, and the mode afterwards.
        for (index, (before, after)) in [(0o755, 0o700), (0o2775, 0o2770), (0o750, 0o750), (0o2770, 0o2770)].enumerated() {
            let folder = scratch["cloud-\(index)"]
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try #require(chmod(folder.path, mode_t(before)) == 0)
            try await admin("container", "add", "journal", in: "cloud-\(index)")
            #expect(try mode(folder) == after, "\(String(before, radix: 8))")
        }
        let full = try scratch.write("mine", to: "full/file").deletingLastPathComponent()
        try #require(chmod(full.path, 0o755) == 0)
        try await admin("container", "add", "journal", in: "full", expecting: 73)
        #expect(try mode(full) == 0o755)
    }

    @Test func `invalid names and passwords make nothing`() async throws {
        try await admin("container", "add", "../up", expecting: 64)
        try await admin("account", "add", "anna", "--no-password", expecting: 64)
        for password in ["short\n", "\n", "", String(repeating: "a", count: 2000) + "\n", String(repeating: "a", count: 9000)] {
            try await admin("account", "add", "anna@example.org", "--password-stdin", input: password, expecting: 64)
        }
        let refused = try await admin("account", "add", "anna@example.org", expecting: 64)
        #expect(refused.errors.contains("--password-stdin"))
        try await admin("account", "add", "anna@example.org", "--no-password", "--quota", "much", expecting: 64)
        #expect(try files() == [])
    }

    @Test func `containers are added, listed and removed`() async throws {
        try await admin("container", "add", "b")
        try await admin("container", "add", "a")
        #expect(try await admin("container", "list").output == "a\nb\n")
        #expect(try await admin("container", "list", "--json").output == "{\"name\":\"a\"}\n{\"name\":\"b\"}\n")
        try await admin("container", "remove", "b")
        try await admin("container", "remove", "b", expecting: 66)
        #expect(try await admin("container", "list").output == "a\n")
    }

    @Test func `accounts are added, shown, changed and removed`() async throws {
        try await admin(
            "account", "add", "Anna@example.org", "--name", "Anna Berg", "--phone", "+49 123 45678", "--quota", "7GB",
            "--password-stdin",
            input: "correct horse\r\nmore")
        try await admin("account", "add", "ben@example.org", "--no-password")
        let again = try await admin("account", "add", "anna@example.org", "--no-password", expecting: 73)
        #expect(again.errors.contains("there is an account anna@example.org already"))
        var found = try lines(await admin("account", "list", "--json"))
        #expect(found.map { $0["email"] as? String } == ["anna@example.org", "ben@example.org"])
        #expect(found[0]["name"] as? String == "Anna Berg" && found[0]["phone"] as? String == "+4912345678")
        // An account that is given no quota has the usual one.
        #expect(found[0]["quota"] as? Int == 7_000_000_000 && found[1]["quota"] as? Int == 5_000_000_000)
        #expect(found[0]["used"] as? Int == 0)
        #expect(found.map { $0["hasPassword"] as? Bool } == [true, false])
        #expect(try await admin("account", "list").output.contains("Anna Berg"))

        let changed = try await admin(
            "account", "set", "anna@example.org", "--quota", "none", "--status", "restricted", "--phone", "", "--name", "Anna")
        #expect(changed.output == "changed anna@example.org: name Anna, no phone number, no quota, status restricted\n")
        let link = try await admin("account", "reset-link", "ben@example.org", "--url", "https://cloud.example.org")
        #expect(link.output.hasPrefix("https://cloud.example.org/") && link.output.split(separator: "\n").count == 1)
        #expect(link.errors.contains("good once, and for a day") && link.errors.contains("all sessions of the account end"))
        try await admin("account", "set", "anna@example.org", expecting: 64)
        try await admin("account", "set", "cleo@example.org", "--name", "x", expecting: 66)
        try await admin("account", "password", "ben@example.org", "--password-stdin", input: "battery staple")
        try await admin("account", "password", "anna@example.org", "--remove")
        found = try lines(await admin("account", "list", "--json"))
        #expect(found[0]["quota"] == nil && found[0]["phone"] == nil && found[0]["name"] as? String == "Anna")
        #expect(found[0]["status"] as? String == "restricted")
        #expect(found.map { $0["hasPassword"] as? Bool } == [false, true])

        try await admin("account", "remove", "ben@example.org")
        try await admin("account", "remove", "ben@example.org", expecting: 66)
        #expect(try lines(await admin("account", "list", "--json")).count == 1)
    }

    @Test func `an account is exported with all that is stored for it, and removed with all of it`() async throws {
        let cloud = scratch["cloud"].path
        try scratch.write(Picture.png(1), to: "1.png")
        let source = try scratch.writeLines(
            [#"{"id": "a", "image": "1.png", "caption": "=1+1"}"#, #"{"id": "b"}"#], to: "journal.jsonl")
        let journal = scratch["Journal.tidemark"].path
        for arguments in [
            ["import", source.path, "--into", journal, "--type", "Destination", "--id", "id", "--asset", "image"],
            [
                "account", "sign-in", journal, "--cloud", cloud, "--email", "anna@example.org", "--container", "journal",
                "--create",
            ],
            ["sync", journal], ["account", "set", journal, "--discoverable", "on"],
        ] {
            let result = try await tool.run(arguments)
            #expect(result.status == 0, "\(arguments): \(result.errors)")
        }
        let folder = scratch["anna"].path
        let exported = try await admin("account", "export", "anna@example.org", "--to", folder)
        #expect(exported.output.hasPrefix("Exported 2 records, 0 shares and 1 asset, "))
        try await admin("account", "export", "anna@example.org", "--to", folder, expecting: 73)
        let part = scratch["anna/containers/journal/development"]
        let records = try String(contentsOf: part.appendingPathComponent("records.jsonl"), encoding: .utf8)
        #expect(records.split(separator: "\n").count == 2 && records.contains(#""value":"=1+1""#))
        let assets = part.appendingPathComponent("assets/Destination")
        let copies = try FileManager.default.contentsOfDirectory(atPath: assets.path)
        #expect(copies.allSatisfy { $0.wholeMatch(of: /.+-image-[0-9a-f]{8}\.png/) != nil }, "\(copies)")
        #expect(try copies.map { try Data(contentsOf: assets.appendingPathComponent($0)) } == [Picture.png(1)])
        let table = try String(contentsOf: part.appendingPathComponent("records/Destination.csv"), encoding: .utf8)
        #expect(table.contains(",'=1+1,"), "\(table)")
        let account = try Data(contentsOf: scratch["anna/account.json"])
        let person = try #require(try JSONSerialization.jsonObject(with: account) as? [String: Any])
        #expect(person["email"] as? String == "anna@example.org" && person["discoverable"] as? Bool == true)

        // Without a terminal the tool asks no question.
        try await admin("account", "remove", "anna@example.org", "--with-data", expecting: 64)
        let removed = try await admin("account", "remove", "anna@example.org", "--with-data", "--yes", "--json")
        let counts = try #require(try lines(removed)[0]["removed"] as? [String: Any])
        #expect(counts["records"] as? Int == 2 && counts["zones"] as? Int == 1)
        #expect(try lines(await admin("account", "list", "--json")).isEmpty)
        // No content of it is left, neither as a file nor in a database.
        for file in try files() where file.hasPrefix("cloud/") {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: scratch[file].path, isDirectory: &isFolder), !isFolder.boolValue else {
                continue
            }
            #expect(try Data(contentsOf: scratch[file]) != Picture.png(1), "\(file)")
        }
        let log = try lines(await admin("audit", "--json"))
        #expect(log.map { $0["action"] as? String } == ["admin.account.export", "admin.account.remove"])
        #expect(log.allSatisfy { ($0["actor"] as? String)?.hasPrefix("user:") == true })
    }

    @Test func `an account with damaged records is exported without them, and removed with them`() async throws {
        let cloud = scratch["cloud"].path
        let source = try scratch.writeLines([#"{"id": "a"}"#, #"{"id": "b"}"#, #"{"id": "c"}"#], to: "journal.jsonl")
        let journal = scratch["Journal.tidemark"].path
        for arguments in [
            ["import", source.path, "--into", journal, "--type", "Destination", "--id", "id"],
            [
                "account", "sign-in", journal, "--cloud", cloud, "--email", "anna@example.org", "--container", "journal",
                "--create",
            ],
            ["sync", journal],
        ] {
            let result = try await tool.run(arguments)
            #expect(result.status == 0, "\(arguments): \(result.errors)")
        }
        let file = scratch["cloud/containers/journal/development/records.sqlite"]
        try DamagedRows.flip(in: file, record: "b")
        let exported = try await admin(
            "account", "export", "anna@example.org", "--to", scratch["anna"].path, expecting: 1)
        #expect(exported.output.contains("damaged: ") && exported.output.contains("b' is damaged"))
        #expect(exported.output.contains("Exported 2 records, 0 shares and 0 assets, "))
        let records = try String(
            contentsOf: scratch["anna/containers/journal/development/records.jsonl"], encoding: .utf8)
        #expect(records.split(separator: "\n").count == 2)
        let removed = try await admin("account", "remove", "anna@example.org", "--with-data", "--yes", "--json")
        let counts = try #require(try lines(removed)[0]["removed"] as? [String: Any])
        #expect(counts["records"] as? Int == 3 && counts["zones"] as? Int == 1)
        #expect(try lines(await admin("account", "list", "--json")).isEmpty)
    }

    @Test func `the audit log says what was administered, and a command replaces the secret`() async throws {
        try await admin("container", "add", "journal")
        try await admin("account", "add", "anna@example.org", "--password-stdin", input: "correct horse\n")
        try await admin("account", "set", "anna@example.org", "--quota", "5GB", "--discoverable", "on")
        let rotated = try await admin("secrets", "rotate", "--grace-days", "30")
        #expect(rotated.output == "the secret is another one; what was signed before is good for 30 days\n")
        #expect(try await admin("secrets", "rotate").output == "the secret is another one; 0 sessions ended\n")
        try await admin("secrets", "rotate", "--grace-days", "181", expecting: 64)
        let log = try lines(await admin("audit", "--json"))
        #expect(
            log.map { $0["action"] as? String } == [
                "admin.container.add", "admin.account.add", "admin.account.set", "admin.secrets.rotate", "admin.secrets.rotate",
            ])
        #expect(log[2]["account"] as? String == "anna@example.org")
        #expect((log[2]["before"] as? String)?.contains(#""discoverable":false"#) == true)
        #expect((log[2]["after"] as? String)?.contains(#""discoverable":true"#) == true)
        #expect(try lines(await admin("audit", "--json", "--account", "anna@example.org")).count == 2)
        #expect(try await admin("audit", "--since", "1h").output.split(separator: "\n").count == 7)
        #expect(try await admin("audit", "--since", "2099-01-01").output == "nothing is in the audit log for that\n")
        try await admin("audit", "--since", "yesterday", expecting: 64)
    }

    @Test func `an account that has records is not removed`() async throws {
        let cloud = scratch["cloud"].path
        let source = try scratch.writeLines([#"{"id": "a"}"#], to: "journal.jsonl")
        let journal = scratch["Journal.tidemark"].path
        for arguments in [
            ["import", source.path, "--into", journal, "--type", "Destination", "--id", "id", "--plain-ids"],
            [
                "account", "sign-in", journal, "--cloud", cloud, "--email", "anna@example.org", "--container", "journal",
                "--create",
            ],
            ["sync", journal],
        ] {
            let result = try await tool.run(arguments)
            #expect(result.status == 0, "\(result.errors)")
        }
        // The account's use is shown, and counted again.
        let shown = try lines(await admin("account", "show", "anna@example.org", "--json"))[0]
        let usage = try #require(shown["usage"] as? [[String: Any]])
        #expect(usage.map { $0["container"] as? String } == ["journal"])
        let used = try #require(usage[0]["used"] as? Int)
        #expect(used > 64)
        #expect(try lines(await admin("account", "list", "--json"))[0]["used"] as? Int == used)
        #expect(shown["status"] as? String == "available" && shown["sessions"] as? Int == 0)
        try await admin("operator", "add", "anna@example.org")
        let page = try await admin("account", "show", "anna@example.org").output
        #expect(page.hasPrefix("address   anna@example.org\n"), "\(page)")
        for line in ["status    available", "role      operator", "sessions  0", "journal    development"] {
            #expect(page.contains("\n\(line)"), "\(line): \(page)")
        }
        #expect(try await admin("account", "recount").output == "all numbers were right\n")
        try await admin("account", "show", "nobody@example.org", expecting: 66)
        // A container of a directory is served only once it was added.
        try await admin("container", "add", "journal")
        let frozen = try await admin("schema", "freeze", "--container", "journal")
        #expect(frozen.output == "the development schema of journal is frozen\n")
        try await admin("schema", "freeze", "--container", "journal", "--off")
        let held = try await admin("schema", "remove", "--container", "journal", "--type", "Destination", expecting: 64)
        #expect(held.errors.contains("1 record has the type 'Destination'") && held.errors.contains("With --force it is"))
        try await admin("schema", "remove", "--container", "journal", "--type", "Absent", expecting: 66)
        let removed = try await admin("schema", "remove", "--container", "journal", "--type", "Destination", "--force")
        #expect(removed.output.contains("removed Destination from the development schema of journal; 1 record kept what"))

        let ofRole = try await admin("account", "remove", "anna@example.org", expecting: 77)
        #expect(ofRole.errors.contains("take the role away first: tidemark admin operator remove anna@example.org --data"))
        try await admin("operator", "remove", "anna@example.org", "--yes")
        let refused = try await admin("account", "remove", "anna@example.org", expecting: 77)
        #expect(refused.errors.contains("has zones or records, and stays"))
        #expect(try lines(await admin("account", "list", "--json")).count == 1)
    }

    @Test func `a token is shown once, listed by its identifier, and revoked by the beginning of that`() async throws {
        try await admin("container", "add", "journal")
        let made = try await admin(
            "token", "add", "--container", "journal", "--name", "Web", "--callback", "https://example.org/in")
        let text = made.output.trimmingCharacters(in: .newlines)
        #expect(text.wholeMatch(of: /[0-9a-f]{64}/) != nil)
        let popup = try await admin(
            "token", "add", "--container", "journal", "--popup", "https://example.org", "--origin", "https://example.org",
            "--environment",
            "production", "--json"
        ).json()
        #expect((popup["token"] as? String)?.count == 64 && popup["popup"] as? String == "https://example.org")
        let listed = try await admin("token", "list", "--json")
        #expect(!listed.output.contains(text))
        let found = try lines(listed)
        #expect(Set(found.map { $0["environment"] as? String }) == ["development", "production"])
        for (arguments, status) in [
            (["--container", "other", "--callback", "https://example.org/"], 66 as Int32),
            (["--container", "journal", "--callback", "javascript:x"], 64), (["--container", "journal"], 64),
            (["--container", "journal", "--callback", "https://a.b/", "--popup", "https://a.b"], 64),
        ] {
            let result = try await tool.run(["admin", "token", "add", "--data", scratch["cloud"].path] + arguments)
            #expect(result.status == status, "\(arguments)")
        }
        for line in found {
            let id = try #require(line["id"] as? String)
            try await admin("token", "revoke", String(id.prefix(12)))
            try await admin("token", "revoke", id, expecting: 66)
        }
        #expect(try await admin("token", "list").output.contains("there is no token"))
    }

    @Test func `a server's key is added once from its file, and revoked`() async throws {
        try await admin("container", "add", "journal")
        let key = try scratch.write(
            """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
            6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
            -----END PUBLIC KEY-----
            """, to: "public.pem")
        let id = try await admin("key", "add", "--container", "journal", "--name", "Importer", "--public-key", key.path).output
            .trimmingCharacters(in: .newlines)
        #expect(id.wholeMatch(of: /[0-9a-f]{64}/) != nil)
        try await admin("key", "add", "--container", "journal", "--public-key", key.path, expecting: 73)
        try await admin("key", "add", "--container", "other", "--public-key", key.path, expecting: 66)
        try await admin("key", "add", "--container", "journal", "--public-key", scratch["none"].path, expecting: 66)
        let other = try scratch.write("no key", to: "other.pem")
        #expect(
            try await admin("key", "add", "--container", "journal", "--public-key", other.path, expecting: 65).errors.contains(
                "other.pem"))
        let found = try lines(await admin("key", "list", "--json"))
        #expect(found.count == 1 && found[0]["id"] as? String == id && found[0]["name"] as? String == "Importer")
        // The key acts as an account of its own, which has no password.
        let accounts = try lines(await admin("account", "list", "--json"))
        #expect(accounts.count == 1 && accounts[0]["id"] as? String == found[0]["account"] as? String)
        #expect(accounts[0]["hasPassword"] as? Bool == false)
        try await admin("key", "revoke", String(id.prefix(8)))
        #expect(try lines(await admin("key", "list", "--json")).isEmpty)
    }

    @Test func `sessions are ended by identifier, by account, or all`() async throws {
        try await admin("container", "add", "journal")
        try await admin("account", "add", "anna@example.org", "--no-password")
        #expect(try await admin("session", "list").output == "no account is signed in\n")
        #expect(try await admin("session", "list", "--json").output == "")
        try await admin("session", "end", expecting: 64)
        try await admin("session", "end", "abc", "--all", expecting: 64)
        try await admin("session", "end", "abc", expecting: 66)
        try await admin("session", "end", "--account", "ben@example.org", expecting: 66)
        #expect(try await admin("session", "end", "--account", "anna@example.org").output == "ended 0 sessions\n")
        #expect(try await admin("session", "end", "--all").output == "ended 0 sessions\n")
    }

    @Test func `a schema is shown, given indexes and deployed, for containers that are served`() async throws {
        let cloud = scratch["cloud"].path
        let source = try scratch.writeLines([#"{"id": "a", "title": "Senja"}"#], to: "journal.jsonl")
        let journal = scratch["Journal.tidemark"].path
        for arguments in [
            ["import", source.path, "--into", journal, "--type", "Destination", "--id", "id", "--plain-ids"],
            [
                "account", "sign-in", journal, "--cloud", cloud, "--email", "anna@example.org", "--container", "journal",
                "--create",
            ],
            ["sync", journal],
        ] {
            let result = try await tool.run(arguments)
            #expect(result.status == 0, "\(result.errors)")
        }
        let before = try files()
        try await admin("schema", "show", "--container", "jurnal", expecting: 66)
        #expect(try files().filter { $0.contains("jurnal") }.isEmpty, "\(before)")
        try await admin("container", "add", "journal")
        try await admin(
            "schema", "index", "--container", "journal", "--type", "Destination", "--field", "title", "--queryable", "--sortable")
        try await admin(
            "schema", "index", "--container", "journal", "--type", "Destination", "--field", "recordName", "--queryable")
        try await admin("schema", "index", "--container", "journal", "--type", "Destination", "--field", "title", expecting: 64)
        try await admin(
            "schema", "index", "--container", "journal", "--type", "Destination", "--field", "x", "--none", expecting: 64)
        try await admin("schema", "index", "--container", "journal", "--type", "X", "--field", "title", "--none", expecting: 66)
        let deployed = try await admin("schema", "deploy", "--container", "journal")
        #expect(deployed.output.hasPrefix("Destination is new\n"))
        #expect(deployed.output.contains("\nproduction has 1 type (1 new) and"))
        for environment in ["development", "production"] {
            let types = try lines(await admin("schema", "show", "--container", "journal", "--environment", environment, "--json"))
            #expect(types.count == 1 && types[0]["type"] as? String == "Destination" && types[0]["isQueryable"] as? Bool == true)
            let fields = try #require(types[0]["fields"] as? [[String: Any]])
            let title = try #require(fields.first { $0["name"] as? String == "title" })
            #expect(title["indexes"] as? [String] == ["queryable", "sortable"] && title["type"] as? String == "string")
        }
    }

    @Test func `each command says how it is used, with examples`() async throws {
        for noun in ["container", "account", "token", "key", "session", "schema"] {
            let result = try await tool.run(["admin", noun, "--help"])
            #expect(result.status == 0 && result.output.contains("Examples:"), "\(noun)")
        }
    }
}
