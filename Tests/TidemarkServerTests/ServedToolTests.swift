import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkIdentity

/// Goal: the tool does with a server what it does with a cloud in a directory, and keeps the session to its owner. Method: the tool as a
/// process, and a server of the test's own.
@Suite(.timeLimit(.minutes(30))) struct ServedToolTests {
    private let scratch: Scratch
    private let served: ServedCloudSubject
    private let tool: Tool
    private static let password = "kurz vor Tromsø"

    init() async throws {
        scratch = try Scratch()
        served = try await ServedCloudSubject.started()
        tool = try Tool()
        for email in ["anna@example.org", "ben@example.org"] {
            try await served.access.setPassword(Self.password, of: try #require(try await served.fixture.id(email)))
        }
    }

    @discardableResult
    private func run(_ words: String..., status: Int32 = 0, input: URL? = nil) async throws -> Tool.Result {
        let result = try await tool.run(words, input: input)
        #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
        for text in [result.output, result.errors] { #expect(!text.contains(Self.password)) }
        return result
    }

    private func path(_ name: String) -> String { scratch["\(name).tidemark"].path }

    @discardableResult
    private func signIn(
        _ name: String, as email: String = "anna@example.org", password: String = Self.password, device: String? = nil,
        status: Int32 = 0
    ) async throws -> Tool.Result {
        let input = try scratch.write(password + "\n", to: "password")
        let words = [
            "account", "sign-in", path(name), "--server", served.address.description, "--email", email, "--container",
            FaultyCloudFixture.container, "--password-stdin",
        ]
        let result = try await tool.run(words + (device.map { ["--device-name", $0] } ?? []), input: input)
        #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
        for text in [result.output, result.errors] { #expect(!text.contains(Self.password)) }
        return result
    }

    @Test func `devices of one person get the same records, and people share, through a server`() async throws {
        let records = try scratch.write(#"{"id":"senja","caption":"Senja","visits":3}"# + "\n", to: "records.jsonl")
        try await run("import", records.path, "--into", path("laptop"), "--type", "Destination", "--id", "id", "--plain-ids")
        try await signIn("laptop")
        try await signIn("phone")
        try await signIn("ben", as: "ben@example.org")
        try await run("sync", path("laptop"))
        try await run("sync", path("phone"))
        #expect(try await run("records", "get", path("phone"), "senja").output.contains("Senja"))
        try await run("share", "create", path("laptop"), "senja")
        let invited = try await run("share", "invite", path("laptop"), "senja", "ben@example.org", "--read-write", "--json")
            .json()
        let link = try #require((invited["links"] as? [[String: Any]])?.first?["link"] as? String)
        try await run("share", "accept", path("ben"), link)
        try await run("records", "set", path("ben"), "senja", "visits=4")
        try await run("sync", path("ben"))
        try await run("sync", path("phone"))
        #expect(try await run("records", "get", path("phone"), "senja").output.contains("4"))
        #expect(try await run("account", "status", path("ben"), "--json").json()["canSynchronize"] as? Bool == true)
    }

    @Test func `a wrong password leaves no file, and a right one leaves a session that only its owner can read`() async throws {
        let refused = try await signIn("anna", password: "wrong password", status: 77)
        #expect(!refused.errors.contains("wrong password"))
        #expect(!FileManager.default.fileExists(atPath: path("anna")))
        try await signIn("anna")
        let file = path("anna") + "/cloud-session"
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        // The session that was there before stays if another account fails to sign in.
        let before = try Data(contentsOf: URL(fileURLWithPath: file))
        try await signIn("anna", as: "ben@example.org", password: "wrong password", status: 77)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == before)
        #expect(try await run("account", "status", path("anna"), "--json").json()["email"] as? String == "anna@example.org")
    }

    @Test func `an operator sees which devices are signed in, since when, and from where`() async throws {
        try await signIn("anna")
        let found = try await run("admin", "session", "list", "--data", served.fixture.directory.path, "--json").json()
        #expect(found["kind"] as? String == "device" && found["account"] as? String == "anna@example.org")
        for key in ["device", "system", "address", "until"] { #expect((found[key] as? String)?.isEmpty == false, "\(key)") }
        #expect(found["used"] as? String == found["began"] as? String && found["usedWithin"] as? Int == 3600)
        let table = try await run("admin", "session", "list", "--data", served.fixture.directory.path)
        for column in ["device", "system", "used", "from", "until"] { #expect(table.output.contains(column)) }
        #expect(table.output.contains("within the last hour"))
    }

    @Test func `a device shows the identifier by which the server lists its session`() async throws {
        try await signIn("anna", device: "Laptop")
        try await signIn("other", device: "Laptop")
        let anna = try #require(try await served.fixture.id("anna@example.org"))
        let listed = try await served.access.sessions(of: anna).map(\.id)
        var shown: [String] = []
        for name in ["anna", "other"] {
            let status = try await run("account", "status", path(name), "--json").json()
            let id = try #require(status["session"] as? String)
            let text = try await run("account", "status", path(name)).output
            #expect(text.contains("\nsession:  \(id.prefix(4)), as the server lists it\n"), "\(text)")
            shown.append(id)
        }
        #expect(shown.count == 2 && Set(shown) == Set(listed))
        // The next sign-in begins another session, and a container that is signed out has none.
        try await signIn("anna")
        let renewed = try await run("account", "status", path("anna"), "--json").json()
        let next = try #require(renewed["session"] as? String)
        #expect(!shown.contains(next))
        try await run("account", "sign-out", path("anna"), "--records", "keep")
        let signedOut = try await run("account", "status", path("anna"), "--json", status: 69).json()
        #expect(signedOut["isSignedIn"] as? Bool == false && signedOut["session"] == nil)
    }

    @Test func `a device has the name from its sign-in, and its session can be ended by its entry in the list`() async throws {
        let data = served.fixture.directory.path
        for (name, status) in [("", Int32(64)), (String(repeating: "x", count: 201), 64), ("Anna's laptop", 0)] {
            try await signIn("anna", device: name, status: status)
        }
        try await run(
            "account", "sign-in", path("other"), "--cloud", data, "--email", "anna@example.org", "--device-name", "x", status: 64)
        let found = try await run("admin", "session", "list", "--data", data, "--json").json()
        #expect(found["device"] as? String == "Anna's laptop")
        // Sessions of pages are ended in the same way.
        let anna = try #require(try await served.fixture.id("anna@example.org"))
        _ = try await served.access.signInToPages(Self.password, account: anna, device: "Browser/1.0", address: "", as: "anna")
        let lines = try await run("admin", "session", "list", "--data", data, "--json").output.split(separator: "\n")
        try #require(lines.count == 2 && lines[1].contains(#""kind":"pages""#) && lines[1].contains(#""usedWithin":60"#))
        #expect(!lines[1].contains("container"))
        let page = try #require(try await served.access.pageSessions(of: anna).first).id
        try await run("admin", "session", "end", String(page.prefix(8)), "--data", data)
        #expect(try await served.access.pageSessions(of: nil).isEmpty)
        try await run("admin", "session", "end", try #require(found["id"] as? String), "--data", data)
        let refused = try await run("sync", path("anna"), status: 69)
        #expect(refused.errors.contains("has ended: perhaps it was ended on another device or by the server's operator"))
        #expect(!refused.errors.contains("bad credentials"))
        // The name stays at the next sign-in, and after signing out, until another one is given.
        func device() async throws -> String? {
            try await run("admin", "session", "list", "--data", data, "--json").json()["device"] as? String
        }
        try await signIn("anna")
        #expect(try await device() == "Anna's laptop")
        try await run("account", "sign-out", path("anna"), "--records", "keep")
        try await signIn("anna")
        #expect(try await device() == "Anna's laptop")
        try await signIn("anna", device: "Laptop")
        try await signIn("anna")
        #expect(try await device() == "Laptop")
    }

    @Test func `a device of a removed account learns of the removal`() async throws {
        try await signIn("ben", as: "ben@example.org")
        try await run("sync", path("ben"))
        let data = served.fixture.directory.path
        try await run("admin", "account", "remove", "ben@example.org", "--with-data", "--yes", "--data", data)
        let refused = try await run("sync", path("ben"), status: 69)
        #expect(refused.errors.contains("has ended: the account of the session does not exist any more"), "\(refused.errors)")
        // The sign-in says no more than for an unknown address.
        let unknown = try await signIn("ben", as: "ben@example.org", status: 77)
        #expect(!unknown.errors.contains("does not exist") && unknown.errors.contains("whether the account was deleted"))
    }

    @Test func `a session moves with its container, is in no copy, and is not used if others can read it`() async throws {
        try await signIn("anna")
        try await run("store", "move", path("anna"), path("moved"))
        let names = ["cloud-session", "cloud-session-device"]
        for name in names { #expect(!FileManager.default.fileExists(atPath: path("anna") + "/\(name)")) }
        try await run("sync", path("moved"))
        try await run("store", "backup", path("moved"), path("copy"))
        for name in names {
            #expect(!FileManager.default.fileExists(atPath: path("copy") + "/\(name)"))
            let mode =
                try FileManager.default.attributesOfItem(atPath: path("moved") + "/\(name)")[.posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o600)
        }
        let copy = try await run("sync", path("copy"), status: 69)
        #expect(copy.errors.contains("sign in again with 'tidemark account sign-in"))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path("moved") + "/cloud-session")
        #expect(try await run("sync", path("moved"), status: 69).errors.contains("can be read or written by others (mode 644)"))
        try await signIn("moved")
        try await run("sync", path("moved"))
    }

    @Test func `signing out ends the session on the server, and signing in again ends the previous session`() async throws {
        try await signIn("anna")
        let first = try await served.access.sessions()
        #expect(first.count == 1)
        try await signIn("anna")
        let second = try await served.access.sessions()
        #expect(second.count == 1)
        #expect(second.map(\.id) != first.map(\.id))
        try await run("account", "sign-out", path("anna"))
        #expect(try await served.access.sessions().isEmpty)
        #expect(!FileManager.default.fileExists(atPath: path("anna") + "/cloud-session"))
        // The file by which the device is known at the next sign-in stays.
        #expect(FileManager.default.fileExists(atPath: path("anna") + "/cloud-session-device"))
        try await run("sync", path("anna"), status: 69)
    }

    @Test func `an unreachable server is reported, and nothing is lost`() async throws {
        try await signIn("anna")
        // The server has another address now.
        let dead = try StubServer { _, _ in .broken }.port
        let file = scratch["anna.tidemark/cloud-session"]
        let session = try String(contentsOf: file, encoding: .utf8)
        let input = try scratch.write(Self.password + "\n", to: "password")
        let refused = try await run(
            "account", "sign-in", path("anna"), "--server", "http://127.0.0.1:\(dead)", "--email", "anna@example.org",
            "--password-stdin", status: 75, input: input)
        #expect(refused.errors.contains("can't be reached"))
        #expect(try String(contentsOf: file, encoding: .utf8) == session)
        try await run("sync", path("anna"))
    }

    @Test(
        arguments: [
            (["--server", "http://sync.example.org"], 64), (["--server", "sync.example.org"], 64),
            (["--server", "https://a", "--cloud", "b"], 64), (["--cloud", "https://sync.example.org"], 64),
            (["--server", "http://127.0.0.1:1", "--create"], 64), (["--cloud", "cloud", "--password-stdin"], 64),
            (["--cloud", "cloud", "--code-stdin"], 64), (["--cloud", "cloud", "--code-file", "code"], 64),
            (["--server", "https://a", "--code-stdin", "--code-file", "code"], 64),
        ] as [([String], Int32)])
    func `options that do not fit a server are refused`(words: [String], status: Int32) async throws {
        let result = try await tool.run(["account", "sign-in", path("new"), "--email", "anna@example.org"] + words)
        #expect(result.status == status, "\(result.errors)")
        #expect(!FileManager.default.fileExists(atPath: path("new")))
    }

    @Test func `a code can be given in each way, and without one the sign-in leaves no files`() async throws {
        try await TestFactor.add(to: try #require(try await served.fixture.id("anna@example.org")), served.access)
        func signIn(
            _ name: String, _ words: [String], input: String = "", environment: [String: String] = [:], status: Int32 = 0
        ) async throws -> Tool.Result {
            let input = try scratch.write(Self.password + "\n" + input, to: "password")
            let result = try await tool.run(
                [
                    "account", "sign-in", path(name), "--server", served.address.description, "--email", "anna@example.org",
                    "--container", FaultyCloudFixture.container, "--password-stdin",
                ] + words, input: input, environment: environment)
            #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
            return result
        }
        let asked = try await signIn("anna", [], status: 77)
        #expect(asked.errors.contains("secondFactorRequired: the account has a second factor"))
        #expect(asked.errors.contains("--code-stdin, --code-file or TIDEMARK_CODE"))
        let wrong = try await signIn("anna", ["--code-stdin"], input: "000000\n", status: 77)
        #expect(wrong.errors.contains("wrong, or was used already") && wrong.errors.contains("take the next one"))
        #expect(try await signIn("anna", ["--code-stdin"], status: 64).errors.contains("no code was given"))
        let missing = try await signIn("anna", ["--code-file", scratch["nothing"].path], status: 66)
        #expect(missing.errors.contains("can't be read"))
        #expect(!FileManager.default.fileExists(atPath: path("anna")))
        #expect(try await served.access.sessions().isEmpty)

        _ = try await signIn("anna", ["--code-stdin"], input: TestFactor.code() + "\n")
        // An existing session needs no code.
        try await run("sync", path("anna"))
        let file = try scratch.write(TestFactor.recovery + "\n", to: "code")
        _ = try await signIn("phone", ["--code-file", file.path])
        _ = try await signIn("tablet", [], environment: ["TIDEMARK_CODE": TestFactor.recovery], status: 77)
        _ = try await signIn("tablet", [], environment: ["TIDEMARK_CODE": TestFactor.code(next: true)])
        #expect(try await served.access.sessions().count == 3)
    }

    #if os(Linux)
        @Test func `on a terminal the tool asks for the code, and again after a wrong one`() async throws {
            try await TestFactor.add(to: try #require(try await served.fixture.id("anna@example.org")), served.access)
            let terminal = try PseudoTerminal(typing: "")
            async let result = tool.run(
                [
                    "account", "sign-in", path("anna"), "--server", served.address.description, "--email", "anna@example.org",
                    "--container", FaultyCloudFixture.container,
                ], on: terminal, isControlling: true)
            let answers = [
                ("password of anna@example.org at \(served.address): ", Self.password),
                ("code of anna@example.org at \(served.address): ", "000000"),
                ("code of anna@example.org at \(served.address): ", TestFactor.recovery),
            ]
            #expect(try await terminal.answer(answers))
            let ended = try await result
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(ended.errors.contains("the code of the second factor is wrong, or was used already"))
            #expect(!ended.errors.contains(Self.password) && ended.output.contains("signed in as anna@example.org"))
        }
    #endif

    @Test func `a sign-in without a password on standard input is refused`() async throws {
        let result = try await tool.run([
            "account", "sign-in", path("new"), "--server", served.address.description, "--email", "anna@example.org",
            "--password-stdin",
        ])
        #expect(result.status == 64)
        #expect(result.errors.contains("no password was given"))
    }
}
