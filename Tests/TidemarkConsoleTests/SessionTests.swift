import Testing
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: only operators, in their own browsers, see or change anything. Method: requests with and without sessions, tokens, and
/// the headers in which browsers say where a request was made.
@Suite(.timeLimit(.minutes(30))) struct SessionTests {
    @Test func `without a session no page is shown, and no form is accepted`() async throws {
        let fixture = try await ConsoleFixture()
        for page in Console.pages where page != "sign-in" && !Console.open.contains(page) {
            let reply = await fixture.console.reply(to: ConsoleRequest(page: page))
            #expect(reply.status == 303, "\(page)")
            #expect(reply.header("Location")?.hasPrefix("/console/sign-in") == true, "\(page)")
            #expect(reply.text.isEmpty)
            for cookie in ["", "tidemark-console=", "tidemark-console=\(String(repeating: "A", count: 43))"] {
                let posted = await fixture.console.reply(to: ConsoleRequest(isPost: true, page: page, cookies: cookie))
                #expect(posted.status == 403, "\(page)")
                #expect(!posted.text.contains("iCloud"), "\(page)")
            }
        }
        #expect(try await fixture.credentials.auditLog().isEmpty)
    }

    @Test func `an account with a role signs in with its password, and a refusal does not say why`() async throws {
        let fixture = try await ConsoleFixture()
        var refused: [String] = []
        for (email, password) in [
            ("anna@example.org", "wrong horse"), ("cleo@example.org", "correct horse"), ("nobody@example.org", "correct horse"),
            ("anna@example.org", ""),
        ] {
            let reply = await fixture.console.reply(
                to: ConsoleRequest(isPost: true, page: "sign-in", form: ["email": email, "password": password]))
            #expect(reply.status == 403)
            #expect(reply.header("Set-Cookie") == nil)
            refused.append(reply.text.replacing(email, with: ""))
        }
        #expect(Set(refused).count == 1)
        let browser = try await fixture.browser(fixture.anna)
        #expect(await browser.get("").status == 200)
        #expect(await browser.get("sign-in").status == 303)
        let log = try await fixture.credentials.auditLog().reversed().map { "\($0.event.action.rawValue) \($0.event.outcome)" }
        #expect(
            log == [
                "console.sign-in wrong password", "console.sign-in the account is no operator", "console.sign-in wrong password",
                "console.sign-in done",
            ])
        #expect(fixture.attempts.withLock { $0 }.count == 5)
    }

    @Test func `after too many attempts the page says how long to wait`() async throws {
        let fixture = try await ConsoleFixture()
        let reply = await fixture.console.reply(
            to: ConsoleRequest(
                isPost: true, page: "sign-in", form: ["email": "crowded@example.org", "password": "correct horse"]))
        #expect(reply.status == 429)
        #expect(reply.header("Retry-After") == "7")
        #expect(reply.text.contains("wait 7 seconds"))
    }

    @Test func `the cookie is for this server's console only, and the storage has only its digest`() async throws {
        let fixture = try await ConsoleFixture()
        func header(_ baseURL: String) async throws -> String {
            let reply = await fixture.console.reply(
                to: ConsoleRequest(
                    isPost: true, page: "sign-in", form: ["email": "anna@example.org", "password": ConsoleFixture.password],
                    baseURL: baseURL))
            return try #require(reply.header("Set-Cookie"))
        }
        let plain = try await header("http://localhost")
        let match = try #require(plain.wholeMatch(of: /tidemark-console=([\w-]{43}); Path=\/console; HttpOnly; SameSite=Strict/))
        let secure = try await header("https://cloud.example.org")
        #expect(
            secure.wholeMatch(of: /__Secure-tidemark-console=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Strict; Secure/) != nil
        )
        let file = try #require(try? String(contentsOf: fixture.scratch["cloud/access.sqlite"], encoding: .isoLatin1))
        #expect(!file.contains(match.1))
        // A cookie of a plain connection does not count over TLS, where the cookie's name shows that it was set over TLS.
        let reply = await fixture.console.reply(
            to: ConsoleRequest(page: "", cookies: "tidemark-console=\(match.1)", baseURL: "https://cloud.example.org"))
        #expect(reply.status == 303)
    }

    @Test func `a session ends after a time without use, after half a day, and by signing out`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        for _ in 0..<4 {
            fixture.advance(minutes: 29)
            #expect(await browser.get("").status == 200)
        }
        fixture.advance(minutes: 31)
        #expect(await browser.get("").status == 303)
        let second = try await fixture.browser(fixture.anna)
        for _ in 0..<24 {
            fixture.advance(minutes: 29)
            #expect(await second.get("").status == 200)
        }
        fixture.advance(minutes: 29)
        #expect(await second.get("").status == 303)
        let third = try await fixture.browser(fixture.anna)
        let reply = try await third.post("sign-out", [:])
        #expect(reply.header("Set-Cookie") == "tidemark-console=; Path=/console; HttpOnly; SameSite=Strict; Max-Age=0")
        #expect(await third.get("").status == 303)
    }

    @Test func `a session ends with a change of the password, the role or the account`() async throws {
        let fixture = try await ConsoleFixture()
        var browser = try await fixture.browser(fixture.anna)
        try await fixture.credentials.setPassword("another horse", of: fixture.anna.id)
        #expect(await browser.get("").status == 303)
        try await fixture.credentials.setPassword(ConsoleFixture.password, of: fixture.anna.id)
        browser = try await fixture.browser(fixture.anna)
        var disabled = fixture.anna
        disabled.status = .restricted
        try await fixture.cloud.update(disabled)
        #expect(await browser.get("").status == 303)
        try await fixture.cloud.update(fixture.anna)
        #expect(await browser.get("").status == 200)
        try await fixture.credentials.removeOperator(fixture.anna.id)
        #expect(await browser.get("").status == 303)
    }

    @Test func `a form without the session's token is refused, and does nothing`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.anna)
        let other = try await fixture.browser(fixture.anna)
        let form = [
            "c": ConsoleFixture.journal, "action": "delete", "name": "oslo", "type": "City", "confirmed": "1",
            "password": ConsoleFixture.password,
        ]
        for token in ["", "x", try await other.token()] {
            #expect(try await browser.post("record", form, token: token).status == 403)
        }
        #expect(try await fixture.record("oslo").type == "City")
        #expect(try await browser.postConfirmed("record", form).status == 303)
        await #expect(throws: (any Error).self) { try await fixture.record("oslo") }
    }

    @Test func `a request that another site's page has made is refused, though it has the cookie`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let token = try await browser.token()
        func status(_ isPost: Bool, origin: String? = nil, site: String? = nil, mode: String? = nil) async -> Int {
            await fixture.console.reply(
                to: ConsoleRequest(
                    isPost: isPost, page: "", form: ["token": token], cookies: browser.cookie, origin: origin, fetchSite: site,
                    fetchMode: mode, baseURL: browser.baseURL)
            ).status
        }
        #expect(await status(true) == 200)
        #expect(await status(true, origin: "http://localhost:8080", site: "same-origin") == 200)
        #expect(await status(true, origin: "http://localhost:8081", site: "same-site") == 403)
        #expect(await status(true, origin: "null") == 403)
        #expect(await status(true, site: "cross-site", mode: "navigate") == 403)
        #expect(await status(true, site: "none") == 403)
        #expect(await status(false, site: "none") == 200)
        #expect(await status(false, site: "cross-site", mode: "navigate") == 200)
        #expect(await status(false, site: "same-site", mode: "cors") == 403)
        #expect(await status(false, origin: "http://localhost:8081") == 403)
    }

    @Test func `every answer has the headers that protect against other sites`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        for reply in [
            await browser.get(""), await browser.get("nothing"), await fixture.console.reply(to: ConsoleRequest(page: "sign-in")),
            await fixture.console.reply(to: ConsoleRequest(page: "records")),
            await fixture.console.reply(to: ConsoleRequest(page: "style.css")),
        ] {
            let policy = try #require(reply.header("Content-Security-Policy"))
            #expect(policy.hasPrefix("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
            #expect(!policy.contains("unsafe") && !policy.contains("*") && !policy.contains("http"))
            #expect(reply.header("X-Frame-Options") == "DENY")
            #expect(reply.header("X-Content-Type-Options") == "nosniff")
            #expect(reply.header("Referrer-Policy") == "same-origin")
            #expect(reply.header("Vary")?.contains("Cookie") == true)
        }
        #expect(await browser.get("").header("Cache-Control") == "no-store")
    }

    @Test func `a form that can't be undone asks first, and asks for the password unless it was entered just now`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.anna)
        let form = ["c": ConsoleFixture.journal, "action": "delete", "name": "oslo", "type": "City"]
        let asked = try await browser.post("record", form)
        #expect(
            asked.status == 200 && asked.text.contains("<h1>Delete the record?</h1>") && !asked.text.contains("type=\"password\"")
        )
        fixture.advance(minutes: 11)
        let again = try await browser.post("record", form)
        #expect(again.text.contains("type=\"password\""))
        var wrong = form
        wrong["confirmed"] = "1"
        wrong["password"] = "wrong horse"
        let refused = try await browser.post("record", wrong)
        #expect(refused.status == 403 && refused.text.contains("The password is wrong."))
        #expect(try await fixture.record("oslo").type == "City")
        #expect(try await browser.postConfirmed("record", form).status == 303)
        await #expect(throws: (any Error).self) { try await fixture.record("oslo") }
    }

    @Test func `a wrong password at a question is in the audit log, and a text that can't be a password is not`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let form = ["id": fixture.cleo.email, "action": "link", "confirmed": "1"]
        func entries() async throws -> [AuditEvent] {
            try await fixture.credentials.auditLog(account: fixture.anna.id).map(\.event).filter { $0.action == .consoleConfirm }
        }
        #expect(try await browser.post("account", form).status == 403)
        #expect(try await entries().isEmpty)
        for guess in ["", "guess", "guess\u{0}horse", "wrong horse"] {
            #expect(try await browser.post("account", form.merging(["password": guess]) { $1 }).status == 403)
        }
        #expect(try await browser.postConfirmed("account", form).status == 200)
        // As for a failed sign-in, the entry names no actor.
        let event = AuditEvent(
            AuditEvent.Action(rawValue: "console.confirm"), account: fixture.anna.id, address: "192.0.2.1",
            subject: "Browser/1.0", outcome: "wrong password")
        #expect(try await entries() == [event])
        let log = await browser.get("activity", ["all": "1"]).text.withoutBreaks
        #expect(log.contains("console.confirm") && log.contains("wrong password"))
    }

    @Test func `an account with a second factor can't sign in with the password alone`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let shown = try await browser.post("me", ["action": "begin", "confirmed": "1"])
        let secret = String(try #require(shown.text.firstMatch(of: /secret=([A-Z2-7]{32})/)).1)
        let pending = String(try #require(shown.text.firstMatch(of: /name="factor" value="([^"]+)"/)).1)
        let wrong = try await browser.post("me", ["action": "set", "factor": pending, "code": "x"])
        #expect(wrong.status == 400 && wrong.text.contains("The code is wrong"))
        func code() -> String { TimeCode.code(Self.bytes(secret), step: fixture.time.withLock { $0 } / 30_000_000) }
        let set = try await browser.post("me", ["action": "set", "factor": pending, "code": code()])
        #expect(set.status == 200)
        let recovery = String(try #require(set.text.firstMatch(of: /<pre tabindex="0">([a-z2-7-]{19})/)).1)
        func signIn(_ code: String?) async -> ConsoleReply {
            var form = ["email": "anna@example.org", "password": ConsoleFixture.password]
            form["code"] = code
            return await fixture.console.reply(to: ConsoleRequest(isPost: true, page: "sign-in", form: form))
        }
        let asked = await signIn(nil)
        #expect(asked.status == 403 && asked.header("Set-Cookie") == nil && asked.text.contains("name=\"code\""))
        // Without the password the page does not say that there is a second factor.
        let guessed = await fixture.console.reply(
            to: ConsoleRequest(isPost: true, page: "sign-in", form: ["email": "anna@example.org", "password": "wrong horse"]))
        #expect(!guessed.text.contains("The account has a second factor"))
        #expect(await signIn(code()).status == 403)
        fixture.advance(minutes: 1)
        #expect(await signIn(code()).status == 303)
        #expect(await signIn(code()).status == 403)
        #expect(await signIn(recovery).status == 303)
        #expect(await signIn(recovery).status == 403)
        #expect(try await browser.postConfirmed("me", ["action": "remove"]).status == 303)
        #expect(await signIn(nil).status == 303)
        let log = try await fixture.credentials.auditLog().map(\.event.action.rawValue)
        #expect(log.contains("admin.second-factor.set") && log.contains("admin.second-factor.remove"))
    }

    /// The bytes of a text in base32.
    private static func bytes(_ text: String) -> [UInt8] {
        var (bytes, kept, bits) = ([UInt8](), 0 as UInt32, 0)
        for character in text.utf8 {
            let value = character >= 65 ? character - 65 : character - 50 + 26
            kept = kept << 5 | UInt32(value)
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: kept >> UInt32(bits)))
            }
        }
        return bytes
    }

    @Test func `signing in leads to the requested page, and to no other place`() {
        for (text, address) in [
            ("records?c=a&type=City", "/console/records?c=a&type=City"), ("", "/console"), ("//evil.example.org", "/console"),
            ("https://evil.example.org", "/console"), ("sign-out", "/console"), ("records/../..", "/console"),
            ("record?name=%22%3E%0d%0aX:y", "/console/record?name=%22%3E%0D%0AX%3Ay"),
        ] {
            #expect(SignInPage.destination(text).text == address, "\(text)")
        }
    }
}
