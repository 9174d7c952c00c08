import Foundation
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: people see and change their own accounts, with their passwords, and nobody else can. Method: requests with and without
/// sessions, tokens and passwords.
@Suite(.timeLimit(.minutes(30))) struct PersonPageTests {
    private static let password = ConsoleFixture.password

    @Test func `without a session no page is shown, and no form is accepted`() async throws {
        let fixture = try await PeopleFixture()
        for page in PeoplePages.pages
        where !["sign-in", "password", "forgotten", "address"].contains(page) && !Console.open.contains(page) {
            let reply = await fixture.pages.reply(to: ConsoleRequest(page: page))
            #expect(reply.status == 303 && reply.header("Location") == "/account/sign-in", "\(page)")
            for cookie in ["", "tidemark-account=", "tidemark-account=\(String(repeating: "A", count: 43))"] {
                let posted = await fixture.pages.reply(to: ConsoleRequest(isPost: true, page: page, cookies: cookie))
                #expect(posted.status == 403, "\(page)")
            }
        }
        #expect(try await fixture.log().isEmpty)
    }

    @Test func `every account signs in with its password, and a refusal does not say why`() async throws {
        let fixture = try await PeopleFixture()
        var refused: Set<String> = []
        for (email, password) in [
            ("cleo@example.org", "wrong horse"), ("nobody@example.org", Self.password), ("cleo@example.org", ""),
        ] {
            let reply = await fixture.signIn(email, password)
            #expect(reply.status == 403 && reply.header("Set-Cookie") == nil)
            refused.insert(reply.text.replacing(email, with: ""))
        }
        #expect(refused.count == 1)
        let reply = await fixture.signIn("cleo@example.org")
        let cookie = try #require(reply.header("Set-Cookie"))
        #expect(
            cookie.wholeMatch(of: /__Host-tidemark-account=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure/) != nil,
            "\(cookie)")
        var disabled = fixture.console.cleo
        let browser = try await fixture.browser(disabled)
        #expect(await browser.get().status == 200)
        disabled.status = .restricted
        try await fixture.cloud.update(disabled)
        #expect(await browser.get().status == 303)
        #expect(await fixture.signIn("cleo@example.org").status == 403)
        let crowded = await fixture.signIn("crowded@example.org")
        #expect(crowded.status == 429 && crowded.header("Retry-After") == "7" && crowded.text.contains("wait 7 seconds"))
    }

    @Test func `a session of a person's own pages opens no console, and the other way round`() async throws {
        let fixture = try await PeopleFixture()
        let own = try await fixture.browser(fixture.console.anna)
        let secret = String(own.cookie.drop { $0 != "=" }.dropFirst())
        let console = await fixture.console.console.reply(
            to: ConsoleRequest(page: "", cookies: "tidemark-console=\(secret); __Secure-tidemark-console=\(secret)"))
        #expect(console.status == 303)
        let browser = try await fixture.console.browser(fixture.console.anna)
        let consoleSecret = String(browser.cookie.drop { $0 != "=" }.dropFirst())
        let reply = await fixture.pages.reply(to: ConsoleRequest(page: "", cookies: "tidemark-account=\(consoleSecret)"))
        #expect(reply.status == 303)
        // When the role ends, only the sessions of the console end.
        try await fixture.credentials.removeOperator(fixture.console.anna.id)
        #expect(await browser.get("").status == 303)
        #expect(await own.get().status == 200)
    }

    @Test func `a request that another site's page has made is refused, and so is a form without the session's token`()
        async throws
    {
        let fixture = try await PeopleFixture()
        let browser = try await fixture.browser(fixture.console.cleo)
        let other = try await fixture.browser(fixture.console.cleo)
        let form = ["action": "profile", "name": "Mallory", "email": "cleo@example.org", "password": Self.password]
        for token in ["", "x", try await other.token()] {
            #expect(try await browser.post("", form, token: token).status == 403)
        }
        let token = try await browser.token()
        for (origin, site) in [("https://evil.example.org", nil), (nil, "cross-site"), (nil, "none"), ("null", "same-origin")] {
            let reply = await fixture.pages.reply(
                to: ConsoleRequest(
                    isPost: true, page: "", form: form.merging(["token": token]) { $1 }, cookies: browser.cookie, origin: origin,
                    fetchSite: site, fetchMode: "navigate", baseURL: PeopleFixture.baseURL))
            #expect(reply.status == 403)
        }
        #expect(try await fixture.cloud.account("cleo@example.org")?.name?.title == "Cleo")
        for page in PeoplePages.pages {
            let reply = await browser.get(page)
            #expect(reply.header("X-Frame-Options") == "DENY" && reply.header("X-Content-Type-Options") == "nosniff", "\(page)")
            let policy = try #require(reply.header("Content-Security-Policy"))
            #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "\(page)")
        }
    }

    @Test
    func `a name and an address are changed with the password, and another account's address can't be taken`() async throws {
        let fixture = try await PeopleFixture()
        let browser = try await fixture.browser(fixture.console.cleo)
        var form = [
            "action": "profile", "name": "Cleo <b>Dahl</b>", "email": " Cleo.Dahl@example.org", "password": "wrong horse",
        ]
        let wrong = try await browser.post("", form)
        #expect(wrong.status == 400 && wrong.text.contains("The password is wrong."))
        // What was typed is still there, as text.
        #expect(wrong.text.contains("value=\"Cleo &lt;b&gt;Dahl&lt;/b&gt;\""))
        form["password"] = Self.password
        #expect(try await browser.post("", form).header("Location") == "/account?done=profile")
        let changed = try #require(try await fixture.cloud.account("cleo.dahl@example.org"))
        #expect(changed.id == fixture.console.cleo.id && changed.name?.title == "Cleo <b>Dahl</b>")
        #expect(try await fixture.cloud.account("cleo@example.org") == nil)
        #expect(await browser.get().text.contains("cleo.dahl@example.org"))
        for (email, message) in [
            ("anna@example.org", "Another account has this address."), ("nothing", "is no address of an account"),
        ] {
            let reply = try await browser.post("", form.merging(["email": email, "name": "X"]) { $1 })
            #expect(reply.status == 400 && reply.text.contains(message), "\(email)")
        }
        #expect(try await browser.post("", form.merging(["name": "a\u{0}b"]) { $1 }).status == 400)
        #expect(try await fixture.cloud.account("cleo.dahl@example.org")?.name?.title == "Cleo <b>Dahl</b>")
        #expect(
            try await fixture.log() == [
                "account.sign-in done", "account.confirm wrong password", "account.address done", "account.name done",
            ])
        let entry = try #require(try await fixture.credentials.auditLog().first { $0.event.action.rawValue == "account.address" })
        #expect(entry.event.before == "cleo@example.org" && entry.event.after == "cleo.dahl@example.org")
        #expect(await fixture.signIn("cleo.dahl@example.org").status == 303)
    }

    @Test func `a new password ends all sessions`() async throws {
        let fixture = try await PeopleFixture()
        let browser = try await fixture.browser(fixture.console.cleo)
        let device = try await fixture.credentials.makeSession(
            account: fixture.console.cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device)
        var form = ["action": "password", "password": Self.password, "new": "another horse", "again": "another hors"]
        #expect(try await browser.post("", form).text.contains("The new passwords are not the same."))
        form["again"] = form["new"]
        #expect(try await browser.post("", form.merging(["new": "short", "again": "short"]) { $1 }).status == 400)
        #expect(try await browser.post("", form.merging(["password": "wrong horse"]) { $1 }).status == 400)
        let reply = try await browser.post("", form)
        #expect(reply.header("Location") == "/account/sign-in?note=password")
        #expect(reply.header("Set-Cookie")?.contains("Max-Age=0") == true)
        #expect(await browser.get().status == 303)
        #expect(try await fixture.credentials.session(device.text) == .failure(.revoked))
        #expect(await fixture.signIn("cleo@example.org").status == 403)
        #expect(await fixture.signIn("cleo@example.org", "another horse").status == 303)
        #expect(try await fixture.log().contains("account.password done"))
    }

    @Test func `guessing the password in a form counts like failed sign-ins`() async throws {
        let fixture = try await PeopleFixture()
        let browser = try await fixture.browser(fixture.console.cleo)
        let form = ["action": "password", "password": "wrong horse", "new": "another horse", "again": "another horse"]
        for _ in 0..<19 { #expect(try await browser.post("", form).text.contains("The password is wrong.")) }
        let reply = try await browser.post("", form.merging(["password": Self.password]) { $1 })
        #expect(reply.text.contains("Too many attempts: wait 7 seconds"))
        #expect(await fixture.signIn("cleo@example.org").status == 429)
        // A form without a password does not count.
        #expect(try await fixture.log().filter { $0 == "account.confirm wrong password" }.count == 19)
    }

    @Test func `devices and sessions are shown as text, and can be ended singly or all at once`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        let second = try await fixture.browser(cleo)
        let phone = try await fixture.credentials.makeSession(
            account: cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device,
            device: "Phone \"><script>", system: "Debian <12>", address: "192.0.2.7")
        let foreign = try await fixture.credentials.makeSession(
            account: fixture.console.ben.id, container: ConsoleFixture.journal, environment: .development, kind: .device,
            device: "Ben's phone")
        let page = await browser.get().text
        #expect(page.contains("Phone &quot;&gt;&lt;script&gt;") && !page.contains("<script") && !page.contains("Ben"))
        #expect(page.contains("this session") && page.contains("192.0.2.7"))
        #expect(page.contains("Debian &lt;12&gt;") && page.contains("<code>\(phone.session.id.prefix(4))</code>"))
        #expect(page.contains("\(ConsoleFixture.journal) (development)"))
        #expect(page.contains("within the last hour") && page.contains("within the last minute"))
        // Another account's session counts as unknown.
        #expect(try await browser.post("", ["action": "end", "id": foreign.session.id]).status == 404)
        #expect(try await browser.post("", ["action": "end", "id": phone.session.id]).status == 303)
        #expect(try await fixture.credentials.session(phone.text) == .failure(.revoked))
        // The page offers to end all sessions but its own.
        let others = await browser.get().text.matches(of: /name="id" value="([0-9a-f]{64})"/).map { String($0.1) }
        #expect(others.count == 1)
        #expect(try await browser.post("", ["action": "end", "id": others.first ?? ""]).status == 303)
        #expect(await second.get().status == 303)
        #expect(await browser.get().status == 200)
        let asked = try await browser.post("", ["action": "everywhere"])
        #expect(asked.status == 200 && asked.text.contains("<h1>Sign out everywhere?</h1>"))
        #expect(await browser.get().status == 200)
        let everywhere = try await browser.post("", ["action": "everywhere", "confirmed": "1"])
        #expect(everywhere.header("Location") == "/account/sign-in?note=everywhere")
        #expect(await browser.get().status == 303)
        #expect(try await !fixture.credentials.sessions(of: fixture.console.ben.id).isEmpty)
    }

    @Test func `a person can rename an own device, and not another person's`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        let (phone, foreign) = (
            try await fixture.credentials.makeSession(
                account: cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device, device: "vm"),
            try await fixture.credentials.makeSession(
                account: fixture.console.ben.id, container: ConsoleFixture.journal, environment: .development, kind: .device,
                device: "Ben's phone")
        )
        let rename = ["action": "rename", "id": phone.session.id, "device": "Cleo's <b>phone</b>"]
        #expect(try await browser.post("", rename).header("Location") == "/account?done=renamed")
        let page = await browser.get().text
        #expect(page.contains("Cleo&#39;s &lt;b&gt;phone&lt;/b&gt;") || page.contains("Cleo's &lt;b&gt;phone&lt;/b&gt;"))
        for (id, name, status) in [(foreign.session.id, "Mine", 404), ("", "Mine", 404), (phone.session.id, " ", 400)] {
            let form = ["action": "rename", "id": id, "device": name]
            #expect(try await browser.post("", form).status == status, "\(name)")
        }
        #expect(try await fixture.credentials.sessions(of: fixture.console.ben.id).map(\.device) == ["Ben's phone"])
        let entry = try #require(
            try await fixture.credentials.auditLog().first { $0.event.action.rawValue == "account.session.rename" })
        #expect(entry.event.before == "vm" && entry.event.after == "Cleo's <b>phone</b>" && entry.event.actor == cleo.id)
        #expect(entry.event.subject == "session \(phone.session.id)")
    }

    @Test
    func `a second factor is set up with its first code, asked for at sign-in, and removed with the password`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        let begun = try await browser.post("second-factor", ["action": "begin"])
        let pending = String(try #require(begun.text.firstMatch(of: /name="factor" value="([^"]+)"/)).1)
        let secret = String(try #require(begun.text.firstMatch(of: /secret=([A-Z2-7]+)/)).1)
        func code() throws -> String {
            TimeCode.code(try Self.bytes(secret), step: fixture.console.time.withLock { $0 } / 30_000_000)
        }
        #expect(try await browser.post("second-factor", ["action": "set", "factor": pending, "code": "000000"]).status == 400)
        let set = try await browser.post("second-factor", ["action": "set", "factor": pending, "code": try code()])
        let recovery = set.text.matches(of: /[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}/).map { String($0.0) }
        #expect(set.status == 200 && recovery.count == 8)
        // Another second factor needs the password again, even if it was entered just now.
        let again = try await browser.post("second-factor", ["action": "begin"])
        #expect(again.text.contains("type=\"password\"") && !again.text.contains("name=\"factor\""))
        let confirmed = ["action": "begin", "confirmed": "1", "password": Self.password]
        #expect(try await browser.post("second-factor", confirmed).text.contains("name=\"factor\""))
        let asked = await fixture.signIn(cleo.email)
        #expect(asked.status == 403 && asked.text.contains("name=\"code\""))
        // The code of the set-up can't be used again.
        #expect(await fixture.signIn(cleo.email, code: try code()).status == 403)
        fixture.console.advance(minutes: 1)
        #expect(await fixture.signIn(cleo.email, code: try code()).status == 303)
        #expect(await fixture.signIn(cleo.email, code: recovery[0]).status == 303)
        #expect(await fixture.signIn(cleo.email, code: recovery[0]).status == 403)
        let question = try await browser.post("second-factor", ["action": "remove"])
        #expect(question.text.contains("type=\"password\"") && question.status == 200)
        let wrong = ["action": "remove", "confirmed": "1", "password": "wrong horse"]
        #expect(try await browser.post("second-factor", wrong).status == 403)
        #expect(try await fixture.credentials.hasSecondFactor(cleo.id))
        let right = ["action": "remove", "confirmed": "1", "password": Self.password]
        #expect(try await browser.post("second-factor", right).status == 303)
        #expect(await fixture.signIn(cleo.email).status == 303)
        let log = try await fixture.log()
        #expect(log.contains("account.second-factor.set done") && log.contains("account.second-factor.remove done"))
    }

    /// Bytes of base32.
    static func bytes(_ text: String) throws -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        var (bytes, kept, bits) = ([UInt8](), 0, 0)
        for character in text {
            kept = (kept << 5 | (try #require(alphabet.firstIndex(of: character)))) & 0xfff
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(kept >> bits & 255))
            }
        }
        return bytes
    }

    @Test func `the archive has all data of the person, and tar can read it`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        try await fixture.console.save("oslo", type: "Note", ["text": .string("mine")], by: cleo, scope: .private)
        try await fixture.console.save(
            "secret", type: "Note", ["text": .string("Ben's")], by: fixture.console.ben, scope: .private)
        let refused = [cleo, fixture.console.ben].map { account in
            SyncFailure(
                at: 1_800_000_000_000_000, operation: "records.modify", container: ConsoleFixture.journal,
                environment: "development", account: account.id, scope: .private, record: "of \(account.email)",
                recordType: "Note", zone: "Trips", code: "BAD_REQUEST", reason: "why: `tidemark --container <id>`")
        }
        try await fixture.credentials.record(refused)
        let browser = try await fixture.browser(cleo)
        #expect(try await browser.post("export", ["password": "wrong horse"]).text.contains("The password is wrong."))
        let reply = try await browser.post("export", ["password": Self.password])
        #expect(reply.status == 200 && reply.type == "application/x-tar")
        let name = "tidemark-export-cleo@example.org-2027-01-15"
        #expect(reply.header("Content-Disposition") == "attachment; filename=\"\(name).tar\"")
        guard case .pieces(let count, let read) = reply.body else { throw CocoaError(.fileReadUnknown) }
        var bytes = Data()
        while Int64(bytes.count) < count { bytes += try await read(Int64(bytes.count), 700) }
        #expect(Int64(bytes.count) == count)
        let file = fixture.console.scratch["export.tar"]
        try bytes.write(to: file)
        let folder = fixture.console.scratch["unpacked"]
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let tar = Process()
        tar.executableURL = URL(fileURLWithPath: "/bin/tar")
        tar.arguments = ["xf", file.path, "-C", folder.path]
        try tar.run()
        tar.waitUntilExit()
        #expect(tar.terminationStatus == 0)
        func text(_ path: String) throws -> String {
            try String(contentsOf: folder.appendingPathComponent("\(name)/\(path)"), encoding: .utf8)
        }
        let account = try text("account.json")
        #expect(account.contains("cleo@example.org") && account.contains("\"hasSecondFactor\":false"))
        let records = try text("containers/\(ConsoleFixture.journal)/development/records.jsonl")
        #expect(records.contains("mine") && !records.contains("Ben"))
        #expect(try text("audit.jsonl").contains("account.sign-in"))
        let errors = try text("sync-errors.jsonl")
        #expect(errors.contains("\"record\":\"of cleo@example.org\"") && !errors.contains("ben@example.org"))
        #expect(errors.contains("why: `tidemark --container \(ConsoleFixture.journal)`"))
        #expect(try await fixture.log().last == "account.export done")
    }

    @Test func `a file of the archive with a long name keeps it`() async throws {
        let scratch = try Scratch()
        let long = String(repeating: "long-", count: 30)
        try scratch.write("content", to: "folder/\(long)/\(long).txt")
        let file = try ArchiveFile(of: scratch["folder"], named: "export", at: 1_800_000_000)
        var bytes = Data()
        while Int64(bytes.count) < file.count { bytes += try await file.read(at: Int64(bytes.count), most: 1 << 20) }
        try bytes.write(to: scratch["long.tar"])
        let tar = Process()
        tar.executableURL = URL(fileURLWithPath: "/bin/tar")
        tar.arguments = ["tf", scratch["long.tar"].path]
        let output = Pipe()
        tar.standardOutput = output
        try tar.run()
        tar.waitUntilExit()
        let listed = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(listed == "export/\(long)/\(long).txt\n")
    }

    @Test func `the archive says what was damaged, and archives wait for one another until they are downloaded`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        try await fixture.console.save("oslo", type: "Note", ["text": .string("mine")], by: cleo, scope: .private)
        let browser = try await fixture.browser(cleo)
        var held = Optional(try await browser.post("export", ["password": Self.password]))
        #expect(held?.status == 200)
        #expect(try await browser.post("export", ["password": Self.password]).status == 503)
        held = nil
        #expect(try await browser.post("export", ["password": Self.password]).status == 200)
        // Other people can have two at once.
        let (ben, anna) = (
            try await fixture.browser(fixture.console.ben), try await fixture.browser(fixture.console.anna)
        )
        let two = [
            try await browser.post("export", ["password": Self.password]),
            try await ben.post("export", ["password": Self.password]),
        ]
        #expect(try await anna.post("export", ["password": Self.password]).status == 503)
        withExtendedLifetime(two) {}

        let contents = Data("picture".utf8)
        let asset = AssetDigest.asset(of: contents)
        let database = try fixture.cloud.database(.private, of: ConsoleFixture.journal, account: cleo.id)
        _ = try await database.upload(contents, of: asset, at: 0, in: .default)
        try await fixture.console.save("photo", type: "Note", ["photo": .asset(asset)], by: cleo, scope: .private)
        let cloud = fixture.console.scratch["cloud"]
        let stored = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: cloud.path).first {
                $0.hasSuffix(String(asset.digest.suffix(40)))
            })
        try Data("p1cture".utf8).write(to: cloud.appendingPathComponent(stored))
        let folder = fixture.console.scratch["archive"]
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let summary = try await PersonArchive.write(all: cleo, of: fixture.cloud, fixture.credentials, to: folder)
        #expect(summary.problems.count == 1)
        let named = try String(contentsOf: folder.appendingPathComponent("problems.jsonl"), encoding: .utf8)
        #expect(named.contains(asset.digest))
    }

    @Test func `a link ends when the password is removed, and of two requests with one link one sets a password`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let administration = Administration(fixture.cloud, fixture.credentials, by: .system(name: "root"))
        _ = try await administration.setPassword(nil, of: cleo.email)
        func key() async throws -> String { try await fixture.credentials.passwordLinkKey(of: cleo.id) }
        let old = try await key()
        #expect(try await fixture.credentials.setPassword("a new password", byLink: old) == cleo.id)
        _ = try await administration.setPassword(nil, of: cleo.email)
        #expect(try await fixture.credentials.setPassword("a new password", byLink: old) == nil)
        #expect(try await fixture.credentials.account(ofPasswordLink: old) == nil)
        #expect(await fixture.signIn(cleo.email, "a new password").status == 403)
        let shared = try await key()
        let credentials = fixture.credentials
        async let one = credentials.setPassword("the first password", byLink: shared)
        async let two = credentials.setPassword("the second password", byLink: shared)
        let set = try await [one, two].compactMap(\.self)
        #expect(set == [cleo.id])
    }

    @Test func `a person's new name does not undo what an operator changes at the same time`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        let own = PersonalAccount(fixture.cloud, fixture.credentials, cleo, from: "")
        // The request has read the account before an operator restricts it.
        let administration = Administration(fixture.cloud, fixture.credentials, by: .system(name: "root"))
        _ = try await administration.update(cleo.email) { $0.status = .restricted }
        try await own.set(name: "Cleo Dahl", address: cleo.email)
        let after = try #require(try await fixture.cloud.account(id: cleo.id))
        #expect(after.status == .restricted && after.name?.title == "Cleo Dahl")
        #expect(await browser.get().status == 303)
    }

    @Test func `an account is deleted with its data, by its password, unless it administers the cloud`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        try await fixture.console.save("oslo", type: "Note", ["text": .string("mine")], by: cleo, scope: .private)
        let browser = try await fixture.browser(cleo)
        #expect(await browser.get("delete").text.contains("Everything of cleo@example.org"))
        #expect(try await browser.post("delete", ["password": "wrong horse"]).status == 403)
        #expect(try await fixture.cloud.account(cleo.email) != nil)
        let reply = try await browser.post("delete", ["password": Self.password])
        #expect(reply.header("Location") == "/account/sign-in?note=deleted")
        #expect(try await fixture.cloud.account(cleo.email) == nil)
        #expect(await browser.get().status == 303)
        #expect(await fixture.signIn(cleo.email).status == 403)
        let entry = try #require(try await fixture.credentials.auditLog().first { $0.event.action.rawValue == "account.remove" })
        #expect(entry.event.subject == "with 1 record in 0 zones")
        let operating = try await fixture.browser(fixture.console.anna)
        #expect(try await operating.post("delete", ["password": Self.password]).status == 403)
        #expect(try await fixture.cloud.account("anna@example.org") != nil)
        #expect(await operating.get().status == 200)
    }

    @Test func `an operator's link sets a password once, and for a day`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let administration = Administration(fixture.cloud, fixture.credentials, by: .system(name: "root"))
        func key() async throws -> String {
            String(try await administration.passwordLink(of: cleo.email).path.trimmingPrefix("/account/password?key="))
        }
        func get(_ key: String) async -> ConsoleReply {
            await fixture.pages.reply(to: ConsoleRequest(page: "password", query: ["key": key]))
        }
        func set(_ key: String, _ password: String, again: String? = nil) async -> ConsoleReply {
            await fixture.pages.reply(
                to: ConsoleRequest(
                    isPost: true, page: "password", form: ["key": key, "new": password, "again": again ?? password]))
        }
        let first = try await key()
        let page = await get(first)
        #expect(page.status == 200 && page.text.contains("For cleo@example.org"))
        #expect(await set(first, "another horse", again: "another").text.contains("The passwords are not the same."))
        #expect(await set(first, "short").status == 400)
        let second = try await key()
        #expect(await set(first, "another horse").header("Location") == "/account/sign-in?note=set")
        #expect(await fixture.signIn(cleo.email).status == 403)
        #expect(await fixture.signIn(cleo.email, "another horse").status == 303)
        // A link that was used, made before another password, altered or too old gets the same answer.
        let third = try await key()
        fixture.console.advance(minutes: 24 * 60 + 1)
        var seen: Set<String> = []
        for key in [first, second, third, third.dropLast() + "A", "", "x"] {
            #expect(await set(key, "a third horse").status == 404)
            seen.insert(await get(key).text)
        }
        #expect(seen.count == 1)
        // A new account has no password before.
        let dora = try await fixture.cloud.addAccount("dora@example.org")
        let invited = String(
            try await administration.passwordLink(of: dora.email).path.trimmingPrefix("/account/password?key="))
        #expect(await set(invited, "a new horse").status == 303)
        #expect(await set(invited, "a new horse").status == 404)
        #expect(await fixture.signIn(dora.email, "a new horse").status == 303)
        // A link does not work for an account that is switched off either.
        let fourth = try await key()
        var disabled = cleo
        disabled.status = .restricted
        try await fixture.cloud.update(disabled)
        #expect(await get(fourth).status == 404)
        let log = try await fixture.log()
        #expect(log.count { $0 == "admin.account.password-link done" } == 5 && log.contains("account.password done"))
    }

    @Test func `only operators can make a link in the console`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let reply = try await browser.postConfirmed("account", ["id": "cleo@example.org", "action": "link"])
        #expect(reply.text.contains("http://localhost:8080/account/password?key="))
        let developer = try await fixture.browser(fixture.ben)
        #expect(try await developer.post("account", ["id": "cleo@example.org", "action": "link"]).status == 403)
    }
}
