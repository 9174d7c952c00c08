import Foundation
import TestSupport
import Testing

/// Goal: sync and sharing keep their promises for two machines that share only a server. Method: the built server and the built
/// tool, as processes; each machine is a folder with containers of its own.
@Suite(.timeLimit(.minutes(30))) struct ServedMachinesTests {
    @Test func `500 records and their pictures arrive, edits go both ways, and a conflict is resolved`() async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        for machine in ["laptop", "phone"] { try await place.signIn(machine, as: "anna") }
        try await place.importRecords("laptop", count: 500, pictureEvery: 5)
        #expect(try await place.run("sync", place.path("laptop"), "--json").json()["exported"] as? Int == 500)
        #expect(try await place.run("sync", place.path("phone"), "--json").json()["imported"] as? Int == 500)
        var expected = try await place.records("laptop")
        #expect(expected.count == 500)
        #expect(try await place.records("phone") == expected)
        let pictures = try place.pictures("laptop")
        #expect(Set(pictures.values) == Set(stride(from: 0, to: 500, by: 5).map { Picture.png($0) }))
        #expect(try place.pictures("phone") == pictures)

        for (machine, numbers) in [("laptop", 0..<3), ("phone", 3..<6)] {
            for number in numbers {
                try await place.run("records", "set", place.path(machine), "r\(number)", "caption=of the \(machine)")
                expected["r\(number)"]?["caption"] = "of the \(machine)"
            }
        }
        for machine in ["laptop", "phone"] {
            try await place.run("records", "set", place.path(machine), "r6", "caption=of the \(machine)")
        }
        try await place.run("records", "delete", place.path("phone"), "r7")
        try await place.sync("laptop", "phone", "laptop")
        expected["r6"]?["caption"] = "of the phone"
        expected["r7"] = nil
        for machine in ["laptop", "phone"] { #expect(try await place.records(machine) == expected, "\(machine)") }
        #expect(
            try await place.run("conflicts", place.path("phone")).output.contains(
                "r6 caption: was \"Place 6\", here \"of the phone\", there \"of the laptop\"; local won"))
        try await place.checkAtRest("laptop", "phone")
    }

    /// The switches of an account, and the codes that say that nothing is synchronised; a sync prints the first code.
    private static let states: [(drive: String, app: String, codes: [Int])] = [
        ("on", "on", []), ("on", "off", [134_400]), ("off", "on", []), ("off", "off", [134_405, 134_400]),
    ]

    @Test
    func `an account that is switched off or away sends nothing and says so, and sends its changes afterwards`() async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        try await place.signIn("laptop", as: "anna")
        try await place.signIn("phone", as: "anna")
        let laptop = place.path("laptop")
        try await place.importRecords("laptop", count: 1, pictureEvery: 1)
        try await place.sync("laptop")
        for (number, state) in Self.states.enumerated() {
            try await place.run("records", "set", laptop, "r0", "caption=\(number)")
            try await place.run("account", "set", laptop, "--drive", state.drive, "--app", state.app)
            let status = try await place.run("account", "status", laptop, "--json", status: state.codes.isEmpty ? 0 : 69).json()
            #expect((status["failures"] as? [[String: Any]] ?? []).compactMap { $0["code"] as? Int } == state.codes)
            if let code = state.codes.first {
                #expect(try await place.run("sync", laptop, status: 69).errors.contains("\(code)"))
                #expect(try await place.run("status", laptop, "--json").json()["pending"] as? Int == 1)
                try await place.run("account", "set", laptop, "--drive", "on", "--app", "on")
            }
            #expect(try await place.run("sync", laptop, "--json").json()["exported"] as? Int == 1)
            try await place.sync("phone")
            #expect(try await place.records("phone")["r0"]?["caption"] == "\(number)")
        }
        for (status, exit) in [("temporarilyUnavailable", 75), ("restricted", 69)] as [(String, Int32)] {
            try await place.administer("anna", "--status", status)
            #expect(try await place.run("account", "status", laptop, status: exit).output.contains(status))
            #expect(try await place.records("laptop").count == 1)
            try await place.administer("anna", "--status", "available")
            try await place.run("account", "status", laptop)
        }
        try await place.sync("laptop")
        try await place.checkAtRest("laptop", "phone")
    }

    @Test func `a refused change stays here, is shown with its reason, and is sent once it is permitted`() async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        for machine in ["laptop", "phone"] { try await place.signIn(machine, as: "anna") }
        let laptop = place.path("laptop")
        // This record exceeds the size limit; the other one is sent.
        try await place.importRecord("laptop", "large", ["caption": String(repeating: "x", count: 2_000_000)])
        try await place.importRecord("laptop", "senja", ["caption": "Senja"])
        #expect(try await place.run("sync", laptop, status: 75).errors.contains("1 change could not be sent"))
        let status = try await place.run("status", laptop).output
        #expect(status.contains("save Destination large: refused since") && status.contains("limitExceeded"))
        try await place.sync("phone")
        #expect(try await place.records("phone") == ["senja": ["caption": "Senja"]])
        try await place.run("records", "set", laptop, "large", "caption=small", "--type", "Destination")
        try await place.sync("laptop")

        // The account is full, and later it is not.
        try await place.administer("anna", "--quota", "1")
        try await place.run(
            "records", "set", laptop, "senja", "caption=\(String(repeating: "s", count: 1_000))", "--type", "Destination")
        try await place.run("sync", laptop, "--patience", "0", status: nil)
        #expect(try await place.run("status", laptop, "--record", "senja").output.contains("quotaExceeded"))
        try await place.administer("anna", "--quota", "none")
        try await place.sync("laptop", "phone")
        let all = try await place.records("laptop")
        #expect(Set(all.keys) == ["large", "senja"] && all["senja"]?["caption"]?.utf8.count == 1_000)
        #expect(try await place.records("phone") == all)
        try await place.checkAtRest("laptop", "phone")
    }

    @Test func `pending changes of an account that signs out are set aside, hidden from others, and restored`() async throws {
        let place = try await ServedMachines.started(people: ["anna", "ben"])
        try await place.signIn("laptop", as: "anna")
        let laptop = place.path("laptop")
        try await place.importRecords("laptop", count: 1, pictureEvery: 1)
        try await place.sync("laptop")
        let picture = try place.write(Picture.png(7), to: "laptop/7.png")
        try await place.run("records", "set", laptop, "r0", "caption=edited", "image=\(picture.path)")
        let edited = try await place.records("laptop")
        try await place.run("account", "sign-out", laptop)
        #expect(try await place.records("laptop") == [:])
        #expect(try await place.run("sync", laptop, status: 69).errors.contains("134400"))
        let aside = try await place.run("quarantine", "list", laptop, "--json").json()
        #expect(aside["records"] as? Int == 1 && aside["pending"] as? Int == 1)
        let id = try #require(aside["identifier"] as? String)

        // Another account signs in on the machine, and gets another session.
        try await place.signIn("laptop", as: "ben")
        try await place.signIn("other", as: "ben")
        try await place.sync("laptop")
        #expect(try await place.run("quarantine", "restore", laptop, id, status: 77).errors.contains("another account"))
        try await place.sync("laptop", "other")
        for machine in ["laptop", "other"] { #expect(try await place.records(machine) == [:]) }
        try await place.run("account", "sign-out", laptop)

        try await place.signIn("laptop", as: "anna")
        try await place.sync("laptop")
        #expect(try await place.records("laptop")["r0"]?["caption"] == "Place 0")
        try await place.run("quarantine", "restore", laptop, id)
        try await place.sync("laptop")
        #expect(try await place.run("quarantine", "list", laptop).output.isEmpty)
        try await place.signIn("phone", as: "anna")
        try await place.sync("phone")
        for machine in ["laptop", "phone"] { #expect(try await place.records(machine) == edited, "\(machine)") }
        #expect(try place.pictures("phone").values.contains(Picture.png(7)))
        try await place.sync("other")
        #expect(try await place.records("other") == [:])
        try await place.checkAtRest("laptop", "phone", "other")
    }

    @Test func `both people edit a shared record, and an edit that comes too late is refused, reverted and kept`() async throws {
        let place = try await ServedMachines.started(people: ["anna", "ben"])
        for (machine, person) in [("laptop", "anna"), ("other", "ben")] { try await place.signIn(machine, as: person) }
        let (laptop, other) = (place.path("laptop"), place.path("other"))
        func invite() async throws -> String {
            let invited = try await place.run("share", "invite", laptop, "r0", "ben@example.org", "--read-write", "--json").json()
            return try #require((invited["links"] as? [[String: Any]])?.first?["link"] as? String)
        }
        /// Both machines have the record with that caption, and the owner has the other record, too.
        func expectShared(_ caption: String) async throws {
            let own = try await place.records("laptop")
            #expect(Set(own.keys) == ["r0", "r1"] && own["r0"]?["caption"] == caption)
            #expect(try await place.records("other", "shared") == own.filter { $0.key == "r0" })
            #expect(try await place.records("other") == [:])
        }
        try await place.importRecords("laptop", count: 2, pictureEvery: 1)
        try await place.sync("laptop")
        try await place.run("share", "create", laptop, "r0")
        let first = try await invite()
        try await place.run("share", "accept", other, first)
        try await expectShared("Place 0")
        #expect(try Array(place.pictures("other").values) == [Picture.png(0)])
        try await place.run("records", "set", other, "r0", "caption=of Ben")
        try await place.sync("other", "laptop")
        try await expectShared("of Ben")

        // The permission is reduced while a change is pending.
        try await place.run("records", "set", other, "r0", "caption=too late")
        try await place.run("share", "set", laptop, "r0", "ben@example.org", "--permission", "read-only")
        try await place.sync("other", "laptop")
        try await expectShared("of Ben")
        let late = try #require(try await place.refused("other").first)
        #expect(late["record"] as? String == "r0" && late["code"] as? String == "permissionFailure")
        #expect((late["after"] as? [String: String])?["caption"] == "too late")
        let denied = try await place.run("records", "set", other, "r0", "caption=again", status: 77)
        #expect(denied.errors.contains("the permission is Read-Only"))
        try await place.run("refused", other, "--discard", try #require(late["identifier"] as? String))

        // The permission to write is given again, and then the participant is removed.
        try await place.run("share", "set", laptop, "r0", "ben@example.org", "--permission", "read-write")
        try await place.sync("other")
        try await place.run("records", "set", other, "r0", "caption=in time")
        try await place.sync("other", "laptop")
        try await expectShared("in time")
        try await place.run("records", "set", other, "r0", "caption=also too late")
        try await place.run("share", "remove", laptop, "r0", "ben@example.org")
        try await place.sync("other", "laptop")
        #expect(try await place.records("other", "shared") == [:])
        #expect(try await place.records("laptop")["r0"]?["caption"] == "in time")
        #expect(try await place.refused("other").map { $0["record"] as? String } == ["r0"])
        try await place.run("share", "accept", other, first, status: 66)

        // The participant is invited again, until the owner stops sharing.
        try await place.run("share", "accept", other, try await invite())
        try await expectShared("in time")
        try await place.run("share", "stop", laptop, "r0")
        try await place.sync("other")
        #expect(try await place.records("other", "shared") == [:])
        #expect(Set(try await place.records("laptop").keys) == ["r0", "r1"])
        #expect(try await place.run("share", "list", laptop).output == "nothing is shared\n")
        try await place.checkAtRest("laptop", "other")
    }

    @Test func `the container that is signed in at a server accepts its link; otherwise the tool says how to sign in`()
        async throws
    {
        let place = try await ServedMachines.started(people: ["anna", "ben"])
        try await place.signIn("laptop", as: "anna")
        try await place.importRecords("laptop", count: 1, pictureEvery: 1)
        try await place.sync("laptop")
        try await place.run("share", "create", place.path("laptop"), "r0")
        let made = try await place.run("share", "invite", place.path("laptop"), "r0", "ben@example.org", "--json").json()
        let link = try #require((made["links"] as? [[String: Any]])?.first?["link"] as? String)
        #expect(
            link.wholeMatch(of: /http:\/\/127\.0\.0\.1:\d+\/share\/iCloud\.org\.example\.journal\/development\/[\w-]{32}/) != nil)
        let folder = try place.write(Data(), to: "phone/.keep").deletingLastPathComponent()
        // There is no terminal for a question.
        let nowhere = try await place.run("share", "accept", link, status: 64, in: folder)
        #expect(nowhere.errors.contains("account sign-in Shared.tidemark --server http://127.0.0.1"), "\(nowhere.errors)")
        #expect(nowhere.errors.contains("--container iCloud.org.example.journal --email ADDRESS"))
        // A container that is signed in at another server is not chosen.
        try await place.run(
            "account", "sign-in", "Elsewhere.tidemark", "--cloud", "cloud", "--email", "ben@example.org", "--create", in: folder)
        try await place.run("share", "accept", link, status: 64, in: folder)
        try await place.signIn("phone", as: "ben")
        let accepted = try await place.run("share", "accept", link, in: folder)
        #expect(accepted.output.contains("into Journal.tidemark: Read-Write"))
        #expect(try await place.records("phone", "shared")["r0"]?["caption"] == "Place 0")
    }

    @Test func `a link alone signs a new container in, given the account and the password`() async throws {
        let place = try await ServedMachines.started(people: ["anna", "ben"])
        try await place.signIn("laptop", as: "anna")
        try await place.importRecords("laptop", count: 1, pictureEvery: 1)
        try await place.sync("laptop")
        try await place.run("share", "create", place.path("laptop"), "r0")
        let made = try await place.run("share", "invite", place.path("laptop"), "r0", "ben@example.org", "--json").json()
        let link = try #require((made["links"] as? [[String: Any]])?.first?["link"] as? String)
        let folder = try place.write(Data(), to: "phone/.keep").deletingLastPathComponent()
        let wrong = try place.write(Data("wrong horse\n".utf8), to: "wrong")
        try await place.run(
            "share", "accept", link, "--email", "ben@example.org", "--password-stdin", status: 77, input: wrong, in: folder)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [".keep"])
        let accepted = try await place.run(
            "share", "accept", link, "--email", "ben@example.org", "--password-stdin", "--device-name", "Ben's laptop", "--json",
            input: place.scratch["password"], in: folder)
        #expect(try accepted.json()["container"] as? String == "Shared.tidemark")
        let sessions = try await place.run(
            "admin", "session", "list", "--account", "ben@example.org", "--data", place.scratch["cloud"].path, "--json")
        #expect(sessions.output.contains("\"Ben's laptop\""), "\(sessions.output)")
        try await place.run("share", "accept", link, "--device-name", "", status: 64, in: folder)
        let records = try await place.run("records", "Shared.tidemark", "--type", "Destination", "--json", in: folder)
        #expect(records.output.contains("Place 0"), "\(records.output)")
        // Over an unencrypted connection the tool asks for no password.
        let open = try await place.run(
            "share", "accept", "http://sync.example.org/share/journal/development/AbC", "--email", "ben@example.org",
            "--password-stdin", status: 64, input: place.scratch["password"], in: folder)
        #expect(open.errors.contains("is not encrypted") && open.errors.contains("--insecure-http"), "\(open.errors)")
    }

    @Test func `a server with JSON output prints its address`() async throws {
        let scratch = try Scratch()
        let cloud = scratch["cloud"].path
        #expect(try await Tool().run(["admin", "container", "add", "journal", "--data", cloud]).status == 0)
        for (program, words) in [("tidemark-server", []), ("tidemark", ["serve"])] {
            let server = try Tool(named: program).start(words + ["--data", cloud, "--port", "0", "--json"])
            let line = try #require(await server.line())
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let port = try #require(object["port"] as? Int)
            #expect(object["done"] as? String == "serve" && object["address"] as? String == "http://127.0.0.1:\(port)")
            await server.kill()
        }
    }
}
