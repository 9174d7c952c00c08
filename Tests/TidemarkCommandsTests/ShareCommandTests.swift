import Foundation
import TestSupport
import Testing
import TidemarkModel

/// Goal: people share records with the tool, and after each step every store and every permission report is right. Method: the
/// tool as separate processes, a container for each person, over one cloud.
@Suite(.timeLimit(.minutes(30))) struct ShareCommandTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    private func path(_ name: String) -> String { scratch["\(name).tidemark"].path }

    @discardableResult
    private func run(_ arguments: String..., expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(arguments)
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func signIn(_ names: String...) async throws {
        for name in names {
            try await run(
                "account", "sign-in", path(name), "--cloud", scratch["cloud"].path, "--email", "\(name)@example.org", "--name",
                "\(name.capitalized) Berg", "--create")
        }
    }

    /// Two destinations with pictures, of which the first is to be shared.
    private func makeJournal(_ name: String) async throws {
        for number in 1...2 { try scratch.write(Picture.png(number), to: "\(number).png") }
        try scratch.writeLines(
            [
                #"{"id":"senja","caption":"Senja","details":"Light until midnight.","createdAt":"2024-07-21T16:40:00Z","image":"1.png"}"#,
                #"{"id":"geysir","caption":"Geysir","details":"Three times.","createdAt":"2024-06-02T09:15:00Z","image":"2.png"}"#,
            ], to: "journal.jsonl")
        try await run(
            "import", scratch["journal.jsonl"].path, "--into", path(name), "--type", "Destination", "--id", "id", "--plain-ids",
            "--asset",
            "image")
        try await run("sync", path(name))
    }

    /// All records of a store, one line each, whichever field has the name.
    private func records(_ name: String, _ scope: String) async throws -> [String] {
        let types = try await tool.run(["records", "list", path(name), "--type", "Destination", "--scope", scope, "--json"])
        // A store without fetched records knows no types.
        guard types.status == 0 else { return [] }
        let all = try JSONSerialization.jsonObject(with: Data(types.output.utf8)) as? [[String: Any]] ?? []
        return all.map { record in
            let fields = record.filter { $0.key != "id" && $0.key != "_name" }.map { "\($0.key)=\($0.value)" }.sorted()
            return "\(record["id"] ?? record["_name"] ?? ""): \(fields.joined(separator: ", "))"
        }.sorted()
    }

    /// The row of each record in the report: shared, role, permission, edit, delete, share.
    private func report(_ name: String) async throws -> [String: String] {
        let lines = try await run("permissions", path(name), "--as", "json").output.split(separator: "\n")
        var report: [String: String] = [:]
        for line in lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
            let may = ["canEdit", "canDelete", "canShare"].map { object[$0] as? Bool == true ? "yes" : "no" }
            let words = ["scope", "role", "permission"].map { "\(object[$0] ?? "")" }
            report["\(object["record"] ?? "")"] =
                (words + [object["shared"] as? Bool == true ? "shared" : "-"] + may).joined(separator: " ")
        }
        return report
    }

    /// Name, status, role and permission of each participant.
    private func participants(_ name: String, _ share: String = "senja") async throws -> [String] {
        let show = try await run("share", "show", path(name), share, "--json").json()
        let all = show["participants"] as? [[String: Any]] ?? []
        return all.map { one in ["name", "status", "role", "permission"].map { "\(one[$0] ?? "")" }.joined(separator: ", ") }
    }

    private func invite(_ email: String, from name: String, _ options: String...) async throws -> String {
        let result = try await tool.run(["share", "invite", path(name), "senja", email, "--json"] + options)
        #expect(result.status == 0, "\(result.errors)")
        let links = try result.json()["links"] as? [[String: Any]]
        return try #require(links?.first?["link"] as? String)
    }

    private func refused(_ name: String) async throws -> [[String: Any]] {
        try await run("refused", path(name), "--json").output.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }
    }

    private static let owns = "private Owner Read-Write shared yes yes no"
    private static let writes = "shared Private User Read-Write shared yes yes no"
    private static let reads = "shared Private User Read-Only shared no no no"

    @Test func `a record that is set goes where its owning record is, also in another user's share`() async throws {
        try await signIn("ada", "ben", "eve")
        let schema = try scratch.write(
            #"""
            {"types": [{"name": "Trip", "fields": [{"name": "title", "type": "string"}]}, {"name": "Stop", "fields":
              [{"name": "trip", "type": "reference", "target": "Trip", "owning": true}, {"name": "title", "type": "string"}]}]}
            """#, to: "schema.json")
        for name in ["ada", "ben", "eve"] { try await run("schema", "apply", path(name), schema.path) }
        try await run("records", "set", path("ada"), "t1", "--type", "Trip", "title=North")
        try await run("share", "create", path("ada"), "t1")
        for (name, option) in [("ben", "--read-write"), ("eve", "--read-only")] {
            let invited = try await run("share", "invite", path("ada"), "t1", "\(name)@example.org", option, "--json").json()
            let link = try #require((invited["links"] as? [[String: Any]])?.first?["link"] as? String)
            try await run("share", "accept", path(name), link)
        }
        try await run("records", "set", path("ben"), "s1", "--type", "Stop", "trip=t1", "title=Senja")
        for name in ["ben", "ada"] { try await run("sync", path(name)) }
        #expect(try await run("records", "get", path("ada"), "s1").output.contains("Senja"))
        #expect(try await run("verify", path("ben")).output.contains("no problem"))
        let denied = try await tool.run(["records", "set", path("eve"), "s2", "--type", "Stop", "trip=t1"])
        #expect(denied.status == 77, "\(denied.output)\(denied.errors)")
        try await run("records", "set", path("ben"), "own", "--type", "Trip", "title=Own")
        try await run("records", "set", path("ben"), "s3", "--type", "Stop", "trip=own")
        let refused = try await tool.run(["records", "set", path("ben"), "s3", "trip=t1"])
        #expect(refused.status != 0 && refused.errors.contains("its owner Trip t1 is in the shared store"), "\(refused.errors)")
    }

    @Test func `a journal is shared, accepted, edited by several people, refused, left and stopped`() async throws {
        try await signIn("ada", "ben", "ida")
        try await makeJournal("ada")
        let (senja, others) = try await (records("ada", "private")[1], [records("ada", "private")[0]])
        let alone = "private Owner Read-Write - yes yes yes"
        #expect(try await report("ada") == ["senja": alone, "geysir": alone])

        // Create: the records are the same, but shared.
        let created = try await run("share", "create", path("ada"), "senja")
        #expect(created.output.contains("shared Destination senja as \"Senja\""))
        #expect(try await records("ada", "private") == others + [senja])
        #expect(try await report("ada") == ["senja": Self.owns, "geysir": alone])
        #expect(try await participants("ada") == ["Ada Berg, Accepted, Owner, Read-Write"])

        // Invite.
        let toBen = try await invite("ben@example.org", from: "ada")
        let toIda = try await invite("ida@example.org", from: "ada", "--read-only")
        #expect(
            try await participants("ada") == [
                "Ada Berg, Accepted, Owner, Read-Write", "ben@example.org, Invited, Private User, Read-Write",
                "ida@example.org, Invited, Private User, Read-Only",
            ])
        try await run("sync", path("ben"))
        #expect(try await records("ben", "shared") == [])

        // Accept.
        let accepted = try await run("share", "accept", path("ben"), toBen)
        #expect(accepted.output.contains("accepted \"Senja\" of Ada Berg: Read-Write"))
        try await run("share", "accept", path("ida"), toIda)
        for name in ["ben", "ida"] {
            #expect(try await records(name, "shared") == [senja])
            #expect(try await records(name, "private") == [])
        }
        #expect(try await report("ben") == ["senja": Self.writes])
        #expect(try await report("ida") == ["senja": Self.reads])
        try await run("sync", path("ada"))
        #expect(
            try await participants("ada") == [
                "Ada Berg, Accepted, Owner, Read-Write", "Ben Berg, Accepted, Private User, Read-Write",
                "Ida Berg, Accepted, Private User, Read-Only",
            ])

        // Edits on both sides at once.
        try scratch.write(Picture.png(3), to: "3.png")
        try await run("records", "set", path("ada"), "senja", "caption=Senja in June")
        try await run("records", "set", path("ben"), "senja", "details=We saw a whale.", "image=\(scratch["3.png"].path)")
        for name in ["ben", "ada", "ben", "ida"] { try await run("sync", path(name)) }
        let edited = try #require(try await records("ada", "private").last)
        #expect(edited.contains("caption=Senja in June") && edited.contains("details=We saw a whale."))
        #expect(edited != senja)
        for name in ["ben", "ida"] { #expect(try await records(name, "shared") == [edited]) }
        #expect(try await records("ada", "private") == others + [edited])

        // A person who may only read is refused before anything is written.
        for arguments in [["set", path("ida"), "senja", "caption=Ida was here"], ["delete", path("ida"), "senja"]] {
            let denied = try await tool.run(["records"] + arguments)
            #expect(denied.status == 77)
            #expect(denied.errors.contains("the permission is Read-Only; ask the owner for the permission Read-Write"))
        }
        #expect(try await records("ida", "shared") == [edited])
        let sharing = try await run("share", "invite", path("ida"), "senja", "eve@example.org", expecting: 77)
        #expect(sharing.errors.contains("ask the owner or an administrator to do it"))

        // With the permission to write she can edit.
        try await run("share", "set", path("ada"), "senja", "ida@example.org", "--permission", "read-write")
        try await run("sync", path("ida"))
        #expect(try await report("ida") == ["senja": Self.writes])
        try await run("records", "set", path("ida"), "senja", "details=Ida saw two.")
        for name in ["ida", "ada", "ben"] { try await run("sync", path(name)) }
        let ofIda = edited.replacing("We saw a whale.", with: "Ida saw two.")
        #expect(try await records("ada", "private") == others + [ofIda])
        #expect(try await records("ben", "shared") == [ofIda])

        // The permission ends while Ben edits: the cloud refuses his edit, and the tool keeps it.
        try await run("records", "set", path("ben"), "senja", "caption=Too late")
        try await run("share", "set", path("ada"), "senja", "Ben Berg", "--permission", "read-only")
        try await run("sync", path("ben"))
        #expect(try await records("ben", "shared") == [ofIda])
        #expect(try await report("ben") == ["senja": Self.reads])
        let late = try #require(try await refused("ben").first)
        #expect(late["record"] as? String == "senja" && late["code"] as? String == "permissionFailure")
        #expect((late["after"] as? [String: String])?["caption"] == "Too late")
        #expect((late["before"] as? [String: String])?["caption"] == "Senja in June")
        #expect(try await run("status", path("ben")).output.contains("refused and reverted: 1"))
        try await run("refused", path("ben"), "--discard", try #require(late["identifier"] as? String))
        #expect(try await refused("ben").isEmpty)
        try await run("records", "set", path("ben"), "senja", "caption=Again", expecting: 77)

        // Ida is removed while she edits: her copy goes.
        try await run("records", "set", path("ida"), "senja", "caption=Also too late")
        try await run("share", "remove", path("ada"), "senja", "Ida Berg")
        try await run("sync", path("ida"))
        #expect(try await records("ida", "shared") == [])
        #expect(try await report("ida") == [:])
        #expect(try await refused("ida").map { $0["record"] as? String } == ["senja"])
        #expect(try await run("share", "list", path("ida")).output == "nothing is shared\n")
        #expect(try await participants("ada").contains("Ida Berg, Removed, Private User, Read-Write"))
        try await run("share", "accept", path("ida"), toIda, expecting: 66)

        // Ben leaves: his copy goes, the owner's stays.
        let ownEnd = try await run("share", "stop", path("ben"), "senja", expecting: 77)
        #expect(ownEnd.errors.contains("only the owner may share, or stop it"))
        try await run("share", "leave", path("ben"), "senja")
        #expect(try await records("ben", "shared") == [])
        #expect(try await report("ben") == [:])
        try await run("sync", path("ada"))
        #expect(try await records("ada", "private") == others + [ofIda])
        #expect(try await participants("ada").contains("Ben Berg, Removed, Private User, Read-Only"))

        // Sharing stops: the owner keeps the records, and all others lose them.
        try await run("share", "accept", path("ben"), try await invite("ben@example.org", from: "ada"))
        #expect(try await records("ben", "shared") == [ofIda])
        #expect(try await report("ben") == ["senja": Self.writes])
        try await run("share", "leave", path("ada"), "senja", expecting: 77)
        try await run("share", "stop", path("ada"), "senja")
        #expect(try await records("ada", "private") == others + [ofIda])
        #expect(try await report("ada") == ["senja": alone, "geysir": alone])
        #expect(try await run("share", "list", path("ada")).output == "nothing is shared\n")
        try await run("sync", path("ben"))
        #expect(try await records("ben", "shared") == [])
        #expect(try await report("ben") == [:])

        // A second device of the owner has the same records, and no container is damaged.
        try await run(
            "account", "sign-in", path("phone"), "--cloud", scratch["cloud"].path, "--email", "ada@example.org")
        try await run("sync", path("phone"))
        #expect(try await records("phone", "private") == others + [ofIda])
        for name in ["ada", "ben", "ida", "phone"] {
            #expect(try await run("verify", path(name)).output.contains("no problem"))
            #expect(try await run("status", path(name), "--json").json()["pending"] as? Int == 0)
        }
    }

    @Test func `a participant adds records to a share, and the owner gets them`() async throws {
        try await signIn("ada", "ben")
        try await makeJournal("ada")
        try await run("share", "create", path("ada"), "--type", "Destination", "senja", "--title", "Our Senja")
        try await run("share", "accept", path("ben"), try await invite("ben@example.org", from: "ada"))
        try scratch.write(Picture.png(7), to: "7.png")
        let set = [
            "records", "set", path("ben"), "hamn", "--type", "Destination", "caption=Hamn", "image=\(scratch["7.png"].path)",
        ]
        let made = try await tool.run(set + ["--share", "Our Senja"])
        #expect(made.output == "Destination hamn: made\n", "\(made.errors)")
        #expect(try await run("records", "get", path("ben"), "hamn").output.contains("caption: Hamn"))
        try await run("sync", path("ben"))
        try await run("sync", path("ada"))
        let all = try await (records("ada", "private"), records("ben", "shared"))
        #expect(all.0.filter { !$0.hasPrefix("geysir") } == all.1)
        #expect(all.1.map { $0.prefix { $0 != ":" } } == ["hamn", "senja"])
        #expect(try await run("share", "show", path("ada"), "hamn", "--json").json()["title"] as? String == "Our Senja")
        try await run("records", "delete", path("ben"), "hamn")
        for name in ["ben", "ada"] { try await run("sync", path(name)) }
        #expect(try await run("records", "get", path("ada"), "hamn", expecting: 66).errors.contains("there is no record 'hamn'"))
    }

    @Test func `a link works for its person until it is revoked, and an open one for all if the share is public`() async throws {
        try await signIn("ada", "ben", "ida")
        try await makeJournal("ada")
        try await run("share", "create", path("ada"), "senja")
        let toBen = try await invite("ben@example.org", from: "ada")
        let stolen = try await run("share", "accept", path("ida"), toBen, expecting: 66)
        let guessed = try await run("share", "accept", path("ida"), "tidemark://share/AAAAAAAAAAAAAAAAAAAAAA", expecting: 66)
        #expect(stolen.errors == guessed.errors)
        #expect(try await records("ida", "shared") == [])

        let second = try await run("share", "link", path("ada"), "senja", "--for", "ben@example.org", "--json").json()
        let link = try #require((second["links"] as? [[String: Any]])?.first)
        let (id, text) = try (#require(link["identifier"] as? String), #require(link["link"] as? String))
        let listed = try await run("share", "link", path("ada"), "senja", "--list", "--json").json()["links"] as? [[String: Any]]
        #expect(listed?.count == 2)
        #expect(listed?.last?["identifier"] as? String == id)
        #expect(listed?.last?["participant"] as? String == "ben@example.org")
        try await run("share", "link", path("ada"), "senja", "--revoke", "xyz", expecting: 66)
        try await run("share", "link", path("ada"), "senja", "--revoke", String(id.prefix(13)))
        #expect(try await run("share", "link", path("ada"), "senja", "--list").output.split(separator: "\n").count == 3)
        try await run("share", "accept", path("ben"), text, expecting: 66)
        try await run("share", "decline", path("ben"), toBen)
        try await run("share", "accept", path("ben"), toBen, expecting: 66)

        for name in ["eva", "cleo"] { _ = try await invite("\(name)@example.org", from: "ada") }
        let opened = try await run("share", "set", path("ada"), "senja", "--public", "read-only", "--title", "For all").output
        #expect(
            opened.contains("\n2 invitations are withdrawn: eva@example.org, cleo@example.org\n")
                || opened.contains("\n2 invitations are withdrawn: cleo@example.org, eva@example.org\n"), "\(opened)")
        let open = try await run("share", "link", path("ada"), "senja", "--json").json()
        let openLink = try #require((open["links"] as? [[String: Any]])?.first?["link"] as? String)
        try await run("share", "accept", path("ida"), openLink)
        #expect(try await report("ida") == ["senja": "shared Public User Read-Only shared no no no"])
        #expect(try await run("share", "list", path("ida")).output.contains("For all"))
        let closed = try await run("share", "set", path("ada"), "senja", "--public", "none", "--json").json()
        #expect((closed["removed"] as? [String])?.count == 1 && closed["withdrawn"] == nil)
        try await run("sync", path("ida"))
        #expect(try await records("ida", "shared") == [])
    }

    @Test func `a share is found by a record, its zone, its number or its title, if only one fits`() async throws {
        try await signIn("ada")
        try await makeJournal("ada")
        try await run("share", "create", path("ada"), "Destination/senja", "--title", "Twice", "--no-sync")
        try await run("share", "create", path("ada"), "geysir", "--title", "Twice", "--no-sync")
        let zones = try await run("share", "list", path("ada"), "--json").output.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }.compactMap { $0["zone"] as? String }
        #expect(zones.count == 2)
        for (number, zone) in zones.enumerated() {
            #expect(try await run("share", "show", path("ada"), zone, "--json").json()["zone"] as? String == zone)
            #expect(try await run("share", "show", path("ada"), "\(number + 1)", "--json").json()["zone"] as? String == zone)
        }
        #expect(try await run("share", "show", path("ada"), "Twice", expecting: 64).errors.contains("1 or 2"))
        #expect(try await run("share", "show", path("ada"), "3", expecting: 66).errors.contains("tidemark share list"))
        try await run("share", "set", path("ada"), "geysir", "--title", "Once")
        #expect(try await run("share", "show", path("ada"), "Once").output.hasPrefix("Once\n"))
        #expect(try await run("share", "create", path("ada"), "senja").output.contains("is shared already as \"Twice\""))
        try await run("share", "create", path("ada"), "senja", "--to", "geysir", expecting: 73)
    }

    @Test func `impossible requests are refused with a remedy`() async throws {
        try await signIn("ada")
        try await makeJournal("ada")
        #expect(
            try await run("share", "create", path("ada"), "lofoten", expecting: 66).errors.contains(
                "there is no record 'lofoten'"))
        #expect(
            try await run("share", "show", path("ada"), "senja", expecting: 66).errors
                .contains("Destination senja is not shared; 'tidemark share create' shares it"))
        try await run("share", "create", path("ada"), "senja")
        #expect(
            try await run("share", "invite", path("ada"), "senja", "ben", expecting: 64).errors
                .contains("nobody can be found by 'ben'"))
        #expect(
            try await run("share", "set", path("ada"), "senja", "ben", "--permission", "none", expecting: 66).errors
                .contains("'ben' is no participant of the share; its participants: Ada Berg"))
        #expect(
            try await run("share", "set", path("ada"), "senja", "--permission", "none", expecting: 64).errors
                .contains("--permission and --role need a participant"))
        #expect(
            try await run("refused", path("ada"), "--discard", "shared:1", expecting: 66).errors
                .contains("there is no refused save 'shared:1'"))
        try await run("account", "set", path("ada"), "--app", "off")
        #expect(try await run("share", "stop", path("ada"), "senja", expecting: 69).errors.contains("134400"))
    }

    @Test func `if another process synchronises the container, that process sends the share`() async throws {
        try await signIn("ada", "ben")
        try await makeJournal("ada")
        let watching = try tool.start(["sync", path("ada"), "--watch", "--json"])
        #expect(await watching.line()?.contains(#""type":"setup""#) == true)
        let created = try await run("share", "create", path("ada"), "senja")
        #expect(created.errors.contains("note: 134410") && created.errors.contains("does so with this, too"))
        let toBen = try await invite("ben@example.org", from: "ada")
        try await run("share", "accept", path("ben"), toBen, "--no-sync")
        var (found, tries) = ([String](), 0)
        while found.isEmpty, tries < 600 {
            try await run("sync", path("ben"))
            found = try await records("ben", "shared")
            tries += 1
        }
        #expect(found == (try await records("ada", "private").suffix(1)))
        await watching.kill()
    }

    @Test func `records with equal names in two stores are told apart, and an ended share is reported`() async throws {
        try await signIn("ada", "ben")
        try await makeJournal("ada")
        try await run("records", "set", path("ada"), "beach", "--type", "Destination", "caption=Beach")
        let preview = try await run("share", "create", path("ada"), "senja", "beach", "--dry-run")
        #expect(preview.output == "would be shared: 2 records\n  Destination senja\n  Destination beach\n")
        try await run("share", "create", path("ada"), "senja")
        // A record that is to join a share needs a command that says so.
        let joining = try await run("share", "create", path("ada"), "senja", "beach", expecting: 73)
        #expect(joining.errors.contains("say that it is to be added"))
        try await run("share", "create", path("ada"), "beach", "--to", "senja")
        let link = try await invite("ben@example.org", from: "ada")
        try await run("share", "accept", path("ben"), " \(link)\n")

        // Ben has a record of his own with the same name.
        let schema = try await run("records", "set", path("ben"), "own", "--type", "Destination", "caption=x", expecting: 64)
        #expect(schema.errors.contains("name the --share"))
        try scratch.writeLines([#"{"id":"senja","caption":"Bens own"}"#], to: "own.jsonl")
        try await run(
            "import", scratch["own.jsonl"].path, "--into", path("ben"), "--type", "Destination", "--id", "id", "--plain-ids")
        try await run("records", "set", path("ben"), "senja", "caption=shared", "--share", "Senja")
        try await run("records", "set", path("ben"), "senja", "caption=mine", "--scope", "private")
        try await run("records", "set", path("ben"), "senja", "caption=shared twice", "--scope", "shared")
        #expect(try await records("ben", "private") == ["senja: caption=mine"])
        #expect(try await records("ben", "shared").contains { $0.contains("caption=shared twice") })
        let export = try await run("export", path("ben"), "--type", "Destination", "--to", "-", "--scope", "shared")
        #expect(export.output.contains("shared twice") && !export.output.contains("mine"))
        try await run("permissions", path("ben"), "Destination/senja")
        try await run("sync", path("ben"))
        #expect(try await run("verify", path("ben")).output == "Verified 3 records and 1 asset: no problem.\n")

        // Damage is reported for either store.
        try SharedPlaces(scratch["ben.tidemark"], .shared).run("UPDATE Destination SET caption = 'x' WHERE _id = 1")
        let verified = try await run("verify", path("ben"), expecting: 1)
        #expect(verified.output.contains("the shared store: the values of Destination"))

        // A participant can't decline, but leaves; an ended share is reported once.
        let declining = try await run("share", "decline", path("ben"), link, expecting: 64)
        #expect(declining.errors.contains("leave the share"))
        try await run("share", "remove", path("ada"), "senja", "ben@example.org")
        let synced = try await run("sync", path("ben"))
        #expect(synced.output.contains("not shared with you any more: \"Senja\" of Ada Berg"))
        #expect(try await !run("sync", path("ben")).output.contains("not shared"))
    }

    @Test func `a link alone finds the container that can accept it`() async throws {
        try await signIn("ada")
        try await makeJournal("ada")
        try await run("share", "create", path("ada"), "senja")
        let link = try await invite("ben@example.org", from: "ada")
        let folder = scratch["ben"]
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        func accept(_ more: String..., environment: [String: String] = [:]) async throws -> Tool.Result {
            try await tool.run(["share", "accept"] + more, environment: environment, in: folder)
        }
        func signInHere(_ name: String) async throws {
            try await run(
                "account", "sign-in", folder.appendingPathComponent(name).path, "--cloud", scratch["cloud"].path, "--email",
                "ben@example.org", "--create")
        }
        let nowhere = try await accept(link)
        #expect(nowhere.status == 66 && nowhere.errors.contains("--into"), "\(nowhere.errors)")

        // A container without an account is not chosen.
        try await run("records", "set", folder.appendingPathComponent("Own.tidemark").path, "a", "--type", "Note", "text=x")
        try scratch.write("{", to: "ben/Broken.tidemark/container.json")
        #expect(try await accept(link).errors.contains("Broken.tidemark can't be read"))
        try await signInHere("Journal.tidemark")
        try await signInHere("Copy.tidemark")
        let several = try await accept(link)
        #expect(several.status == 64 && several.errors.contains("Copy.tidemark, Journal.tidemark are signed in"))
        try FileManager.default.removeItem(at: folder.appendingPathComponent("Copy.tidemark"))
        let accepted = try await accept(link, "--json")
        #expect(accepted.status == 0, "\(accepted.errors)")
        #expect(try accepted.json()["container"] as? String == "Journal.tidemark")

        // The other ways to say which: each is one that takes part already.
        for more in [["--into", "Journal.tidemark", link], [link, "--into", "Journal.tidemark"], ["Journal.tidemark", link]] {
            let named = try await tool.run(["share", "accept", "--no-sync"] + more, in: folder)
            #expect(named.status == 0 && named.output.contains("of Ada Berg: Read-Write"), "\(named.errors)")
        }
        let turned = try await accept(link, "Journal.tidemark", "--no-sync")
        #expect(turned.status == 0, "\(turned.errors)")
        try await signInHere("Other.tidemark")
        let chosen = try await accept(link, "--no-sync", environment: ["TIDEMARK_CONTAINER": "Journal.tidemark"])
        #expect(chosen.output.contains("accepted \"Senja\" of Ada Berg into Journal.tidemark: Read-Write"), "\(chosen.errors)")
        #expect(try await accept("Journal.tidemark").errors.contains("the link is missing"))
        #expect(try await accept("a", "b", "c").status == 64)
        #expect(try await accept("a", link, "--into", "c").status == 64)
    }
}
