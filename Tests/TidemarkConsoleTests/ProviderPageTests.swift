import Foundation
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkOpenID

@testable import TidemarkConsole

/// Goal: people sign in with an identity provider to the account that they have connected; a link, an address or another person's
/// answer signs nobody in. Method: the pages over a cloud, and a provider on a port of this machine.
@Suite(.timeLimit(.minutes(30))) struct ProviderPageTests {
    /// A browser with its cookies.
    private final class Visitor {
        let place: Place
        var cookies: [String: String] = [:]

        init(_ place: Place) { self.place = place }

        func send(
            _ page: String, query: [String: String] = [:], form: [String: String]? = nil, fromOther: Bool = false
        ) async -> ConsoleReply {
            let reply = await place.people.pages.reply(
                to: ConsoleRequest(
                    isPost: form != nil, page: page, query: query, form: form ?? [:],
                    cookies: cookies.map { "\($0)=\($1)" }.joined(separator: "; "),
                    origin: form == nil ? nil : PeopleFixture.baseURL,
                    fetchSite: fromOther ? "cross-site" : form == nil ? "none" : "same-origin", fetchMode: "navigate",
                    userAgent: "Browser/1.0", address: "192.0.2.1", baseURL: PeopleFixture.baseURL))
            for header in reply.headers where header.name == "Set-Cookie" {
                let pair = header.value.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                cookies[String(pair[0])] = header.value.contains("Max-Age=0") ? nil : String(pair[1])
            }
            return reply
        }

        /// Follows the redirect to the provider, and comes back.
        func comeBack(
            _ reply: ConsoleReply, changing change: (inout [String: String]) -> Void = { _ in }
        ) async throws -> ConsoleReply {
            let address = try #require(reply.header("Location") ?? Self.refresh(reply), "\(reply.status) \(reply.text)")
            var query = try await place.host.follow(address).query
            change(&query)
            return await send("callback", query: query, fromOther: true)
        }

        /// The address to which a page refreshes.
        static func refresh(_ reply: ConsoleReply) -> String? {
            reply.text.firstMatch(of: /http-equiv="refresh" content="0; url=([^"]+)"/)
                .map { String($0.1).replacing("&amp;", with: "&") }
        }

        func signIn(to: String? = nil) async throws -> ConsoleReply {
            try await comeBack(await send("provider", query: to.map { ["to": $0] } ?? [:]))
        }

        func signIn(_ email: String) async {
            _ = await send("sign-in", form: ["email": email, "password": ConsoleFixture.password])
        }

        func post(_ action: String, _ form: [String: String] = [:], on page: String = "") async throws -> ConsoleReply {
            let token = String(try #require(await send("").text.firstMatch(of: /name="token" value="([^"]+)"/)).1)
            return await send(page, form: form.merging(["token": token, "action": action]) { $1 })
        }

        /// Connects the identity that the provider has now with the account.
        func connect() async throws -> ConsoleReply {
            try await comeBack(try await post("connect", ["password": ConsoleFixture.password]))
        }
    }

    private struct Place {
        let host: ProviderHost
        let people: PeopleFixture
        var anna: StoredAccount { people.console.anna }

        func log() async throws -> [String] { try await people.log() }
    }

    private func place(
        _ person: ProviderHost.Person = .init("anna-1", email: "anna@example.net"), signsUp: Bool = false
    ) async throws
        -> Place
    {
        var made: ProviderHost?
        let people = try await PeopleFixture { console in
            let now: @Sendable () -> Int64 = { [time = console.time] in time.withLock { $0 } }
            let host = try ProviderHost(person, now: { Int(now() / 1_000_000) })
            made = host
            let provider = try OpenIDProvider(
                host.issuer, clientID: ProviderHost.clientID, clientSecret: ProviderHost.clientSecret, name: "Example & Co",
                signsUp: signsUp)
            return PeopleProvider(
                OpenIDClient(provider, now: now, patience: .seconds(2)), serverURL: PeopleFixture.baseURL)
        }
        return Place(host: try #require(made), people: people)
    }

    @Test func `a connected identity signs in, and the page shows the identity`() async throws {
        let place = try await place()
        let anna = Visitor(place)
        await anna.signIn(place.anna.email)
        #expect(await anna.send("").text.contains("Nobody at Example &amp; Co signs in to this account."))
        #expect(try await anna.post("connect", ["password": "wrong horse"]).text.contains("The password is wrong."))
        let bridge = try await anna.post("connect", ["password": ConsoleFixture.password])
        #expect(bridge.status == 200)
        // A form's redirects may not lead to another server either, so the page refreshes to the provider.
        #expect(bridge.header("Content-Security-Policy")?.contains("form-action 'self';") == true)
        let connected = try await anna.comeBack(bridge)
        #expect(connected.status == 303 && connected.header("Location") == "/account?done=identity", "\(connected.text)")
        #expect(await anna.send("").text.contains("anna@example.net"))

        let browser = Visitor(place)
        #expect(await browser.send("sign-in").text.contains("Sign in with Example &amp; Co"))
        let reply = try await browser.signIn(to: "share/a/production/b")
        #expect(reply.status == 303 && reply.header("Location") == "/share/a/production/b", "\(reply.text)")
        #expect(await browser.send("").text.contains(place.anna.email))
        // The cookie of the sign-in is removed; the session's cookie is hidden from scripts and other sites.
        #expect(browser.cookies["__Host-tidemark-provider"] == nil && browser.cookies.count == 1)
        let begun = await Visitor(place).send("provider")
        let cookie = try #require(begun.header("Set-Cookie"))
        #expect(
            cookie.wholeMatch(
                of: /__Host-tidemark-provider=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure/) != nil, "\(cookie)")
        #expect(place.host.wrongs.isEmpty, "\(place.host.wrongs)")
        let id = IdentityKey(issuer: place.host.issuer, subject: "anna-1").id
        let entries = try await place.people.credentials.auditLog(account: place.anna.id).reversed().map(\.event)
        #expect(
            entries.map(\.action.rawValue) == [
                "account.sign-in", "account.confirm", "account.identity.connect", "account.sign-in",
            ])
        #expect(entries[2].after == "anna@example.net at \(place.host.issuer)" && entries[3].after == "identity \(id)")
    }

    @Test func `an answer of the provider counts only in the browser that began the sign-in`() async throws {
        let place = try await place()
        let anna = Visitor(place)
        await anna.signIn(place.anna.email)
        _ = try await anna.connect()
        let attacker = Visitor(place)
        let begun = await attacker.send("provider")
        let query = try await place.host.follow(try #require(begun.header("Location"))).query
        // A link with the attacker's answer does not sign the victim in.
        let victim = Visitor(place)
        let injected = await victim.send("callback", query: query, fromOther: true)
        #expect(injected.status == 400 && victim.cookies.isEmpty)
        _ = await victim.send("provider")
        #expect(await victim.send("callback", query: query, fromOther: true).status == 400)
        #expect(place.host.count("/token") == 1)
        for change in [{ $0["state"] = nil }, { $0["state"] = "" }, { $0["state"] = "A\($0["state"] ?? "")" }]
            as [(inout [String: String]) -> Void]
        {
            let visitor = Visitor(place)
            #expect(try await visitor.comeBack(await visitor.send("provider"), changing: change).status == 400)
        }
        // If a browser has begun two sign-ins, the last one counts.
        let browser = Visitor(place)
        let first = await browser.send("provider")
        let second = await browser.send("provider")
        #expect(try await browser.comeBack(first).status == 400)
        #expect(try await browser.comeBack(second).status == 303)
    }

    @Test func `an answer of the provider can be used once, within ten minutes`() async throws {
        let place = try await place()
        let anna = Visitor(place)
        await anna.signIn(place.anna.email)
        _ = try await anna.connect()
        let browser = Visitor(place)
        let begun = await browser.send("provider")
        let cookies = browser.cookies
        let query = try await place.host.follow(try #require(begun.header("Location"))).query
        #expect(await browser.send("callback", query: query, fromOther: true).status == 303)
        // An attacker has kept the cookie and the address.
        browser.cookies = cookies
        let again = await browser.send("callback", query: query, fromOther: true)
        #expect(again.status == 403 && again.text.contains("used already") && browser.cookies["__Host-tidemark-account"] == nil)
        let late = Visitor(place)
        let slow = await late.send("provider")
        place.people.console.advance(minutes: 11)
        #expect(try await late.comeBack(slow).status == 400)
        // An altered cookie does not count.
        let forged = Visitor(place)
        let other = await forged.send("provider")
        forged.cookies["__Host-tidemark-provider"]?.append("A")
        #expect(try await forged.comeBack(other).status == 400)
    }

    @Test func `an identity without an account does not sign in, and the page says what to do`() async throws {
        let place = try await place(.init("anna-1", email: "anna@example.org"))
        let visitor = Visitor(place)
        let reply = try await visitor.signIn()
        #expect(reply.status == 403 && reply.text.contains("connect Example &amp; Co on its page"))
        #expect(visitor.cookies.isEmpty)
        #expect(try await place.people.credentials.identities(of: place.anna.id).isEmpty)
        #expect(try await place.log() == ["account.sign-in the identity has no account"])
    }

    @Test func `if the server allows it, an account is made for a verified address that is not in use`() async throws {
        let place = try await place(.init("dora-1", email: "Dora@example.org", name: "Dora\u{7} Dahl"), signsUp: true)
        let dora = Visitor(place)
        let reply = try await dora.signIn()
        #expect(reply.status == 303 && reply.header("Location") == "/account", "\(reply.text)")
        let account = try #require(try await place.people.cloud.account("dora@example.org"))
        #expect(account.name?.title == "Dora Dahl" && account.quota == StoredAccount.servedQuota)
        #expect(try await !place.people.credentials.hasPassword(account.id))
        let again = Visitor(place)
        #expect(try await again.signIn().status == 303)
        #expect(try await place.people.cloud.allAccounts().count == 4)
        #expect(try await place.log() == ["account.sign-up done", "account.sign-in done", "account.sign-in done"])

        // An identity with Anna's address does not get her account.
        place.host.become(.init("anna-9", email: "ANNA@example.org"))
        let taken = try await Visitor(place).signIn()
        #expect(taken.status == 409 && taken.text.contains("has an account here already"))
        #expect(try await place.people.credentials.identities(of: place.anna.id).isEmpty)
        for person in [
            ProviderHost.Person("emil-1", email: "emil@example.org", isVerified: false),
            .init("emil-1", email: "emil@example.org", isVerified: nil),
            .init("emil-1"),
        ] {
            place.host.become(person)
            #expect(try await Visitor(place).signIn().status == 403)
        }
        place.host.become(.init("emil-1", email: "no address"))
        #expect(try await Visitor(place).signIn().status == 400)
        #expect(try await place.people.cloud.allAccounts().count == 4)
        // If the ID token has no address, the server asks the provider for it.
        place.host.change { $0.tellsEmailAtOnce = false }
        place.host.become(.init("emil-1", email: "emil@example.org"))
        #expect(try await Visitor(place).signIn().status == 303)
    }

    @Test func `an identity can't sign in to an account that is switched off`() async throws {
        let place = try await place(.init("dora-1", email: "dora@example.org"), signsUp: true)
        _ = try await Visitor(place).signIn()
        var account = try #require(try await place.people.cloud.account("dora@example.org"))
        account.status = .restricted
        try await place.people.cloud.update(account)
        let visitor = Visitor(place)
        #expect(try await visitor.signIn().status == 403)
        #expect(visitor.cookies.isEmpty)
    }

    @Test func `a second factor is asked for after the provider, and guessing its codes is no easier`() async throws {
        let place = try await place()
        let credentials = place.people.credentials
        let anna = Visitor(place)
        await anna.signIn(place.anna.email)
        _ = try await anna.connect()
        let made = credentials.newSecondFactor(of: place.anna.id)
        let secret = try PersonPageTests.bytes(made.secret)
        func code() -> String { TimeCode.code(secret, step: credentials.time / 30_000_000) }
        let recovery = try #require(try await credentials.setSecondFactor(of: place.anna.id, to: made.form, code: code()))
        let visitor = Visitor(place)
        let asked = try await visitor.signIn(to: "share/a/production/b")
        #expect(asked.status == 200 && asked.text.contains("recovery code") && visitor.cookies.isEmpty)
        let proof = String(try #require(asked.text.firstMatch(of: /name="proof" value="([^"]+)"/)).1)
        for wrong in ["", "000000", "x"] {
            #expect(await visitor.send("provider", form: ["proof": proof, "code": wrong]).status == 403)
        }
        #expect(place.people.console.attempts.withLock { $0.count { $0 == place.anna.email } } == 5)
        let done = await visitor.send("provider", form: ["proof": proof, "code": recovery[0]])
        #expect(done.status == 303 && done.header("Location") == "/share/a/production/b")
        #expect(await visitor.send("").status == 200)
        // The code was used, and the form is valid for five minutes.
        #expect(await Visitor(place).send("provider", form: ["proof": proof, "code": recovery[0]]).status == 403)
        #expect(await Visitor(place).send("provider", form: ["proof": proof + "A", "code": recovery[1]]).status == 400)
        place.people.console.advance(minutes: 6)
        #expect(await Visitor(place).send("provider", form: ["proof": proof, "code": recovery[1]]).status == 400)
    }

    @Test func `a disconnected identity no longer signs in, even if it is disconnected during the sign-in`() async throws {
        let place = try await place()
        let anna = Visitor(place)
        await anna.signIn(place.anna.email)
        _ = try await anna.connect()
        let id = IdentityKey(issuer: place.host.issuer, subject: "anna-1").id
        #expect(try await anna.post("disconnect", ["id": "another"]).status == 404)
        let removed = try await anna.post("disconnect", ["id": id])
        #expect(removed.header("Location") == "/account?done=no-identity")
        #expect(try await Visitor(place).signIn().status == 403)
        #expect(
            try await place.log().suffix(2) == [
                "account.identity.disconnect done", "account.sign-in the identity has no account",
            ])
        let key = IdentityKey(issuer: place.host.issuer, subject: "anna-1")
        #expect(
            try await place.people.credentials.signInToPages(with: key, account: place.anna.id, device: "", address: "")
                == .refused)
    }

    @Test func `an identity belongs to one account, and is connected only in the session that began it`() async throws {
        let place = try await place()
        let (anna, cleo) = (Visitor(place), Visitor(place))
        await anna.signIn(place.anna.email)
        await cleo.signIn("cleo@example.org")
        _ = try await anna.connect()
        #expect(try await anna.connect().status == 303)
        let another = try await cleo.connect()
        #expect(another.status == 409 && another.text.contains("signs in to another account"))
        #expect(try await place.people.credentials.identities(of: place.people.console.cleo.id).isEmpty)
        // An account may have several identities.
        place.host.become(.init("anna-2", email: "work@example.net"))
        #expect(try await anna.connect().status == 303)
        #expect(try await place.people.credentials.identities(of: place.anna.id).map(\.key.subject) == ["anna-1", "anna-2"])
        #expect(try await Visitor(place).signIn().status == 303)
        for number in 3..<11 {
            place.host.become(.init("anna-\(number)"))
            _ = try await anna.connect()
        }
        place.host.become(.init("anna-11"))
        #expect(try await anna.connect().text.contains("10 at the most"))
        // The session ends in the meantime.
        let bridge = try await cleo.post("connect", ["password": ConsoleFixture.password])
        cleo.cookies["__Host-tidemark-account"] = nil
        #expect(try await cleo.comeBack(bridge).status == 403)
    }

    @Test func `an account without a password confirms with a new sign-in at the provider`() async throws {
        let place = try await place(.init("dora-1", email: "dora@example.org"), signsUp: true)
        let dora = Visitor(place)
        _ = try await dora.signIn()
        let page = await dora.send("").text
        #expect(!page.contains("current-password") && page.contains("Confirm with Example &amp; Co first"))
        let profile = ["name": "Dora", "email": "dora@example.org"]
        let refused = try await dora.post("profile", profile)
        #expect(refused.status == 400 && refused.text.contains("Confirm with Example &amp; Co first."))
        #expect(try await dora.post("profile", profile.merging(["password": ""]) { $1 }).status == 400)
        #expect(try await dora.post("delete", on: "delete").status == 403)
        #expect(try await dora.post("export", on: "export").status == 400)

        // A sign-in that is too old, or another identity, confirms nothing.
        place.host.change { $0.claims = { $0["auth_time"] = 1_799_990_000 } }
        #expect(try await dora.comeBack(await dora.send("provider", query: ["confirm": ""])).status == 403)
        place.host.change { $0.claims = nil }
        place.host.become(.init("emil-1", email: "emil@example.org"))
        #expect(try await dora.comeBack(await dora.send("provider", query: ["confirm": ""])).status == 403)
        #expect(try await dora.post("profile", profile).status == 400)

        place.host.become(.init("dora-1"))
        let confirmed = try await dora.comeBack(await dora.send("provider", query: ["confirm": "delete"]))
        #expect(confirmed.status == 303 && confirmed.header("Location") == "/account/delete?done=confirmed", "\(confirmed.text)")
        #expect(try await dora.post("profile", profile).status == 303)
        // The last way to sign in stays until there is a password.
        let id = IdentityKey(issuer: place.host.issuer, subject: "dora-1").id
        let last = try await dora.post("disconnect", ["id": id])
        #expect(last.status == 400 && last.text.contains("set a password first"))
        place.people.console.advance(minutes: 11)
        #expect(try await dora.post("profile", profile).status == 400)
        _ = try await dora.comeBack(await dora.send("provider", query: ["confirm": ""]))
        let set = try await dora.post("password", ["new": ConsoleFixture.password, "again": ConsoleFixture.password])
        #expect(set.status == 303, "\(set.text)")
        // From now on the password is asked for.
        let again = Visitor(place)
        _ = try await again.signIn()
        #expect(await again.send("").text.contains("current-password"))
        #expect(try await again.post("profile", profile).text.contains("The password is wrong."))
        #expect(try await again.post("disconnect", ["id": id]).status == 303)
    }

    @Test func `a sign-in with the provider does not count as entering the password`() async throws {
        let place = try await place()
        let anna = Visitor(place)
        await anna.signIn(place.anna.email)
        _ = try await anna.connect()
        let browser = Visitor(place)
        _ = try await browser.signIn()
        #expect(try await browser.post("begin", on: "second-factor").text.contains("current-password"))
        #expect(try await anna.post("begin", on: "second-factor").text.contains("name=\"code\""))
    }

    @Test func `a failure at the provider is described in this server's words`() async throws {
        let place = try await place()
        for (error, status) in [
            ("access_denied", 403), ("login_required", 403), ("temporarily_unavailable", 503), ("invalid_scope", 502),
            ("<script>alert(1)</script>", 502), ("", 502),
        ] {
            place.host.change { $0.error = error }
            let visitor = Visitor(place)
            let reply = try await visitor.signIn()
            #expect(reply.status == status && reply.text.contains("Example &amp; Co has not signed you in"), "\(error)")
            #expect(!reply.text.contains("script") && !reply.text.contains("alert") && visitor.cookies.isEmpty)
        }
        place.host.change { $0.error = nil }
        let visitor = Visitor(place)
        let reply = try await visitor.comeBack(await visitor.send("provider")) { $0["code"] = nil }
        #expect(reply.status == 400)
        // Only the browser that began the sign-in gets the error.
        #expect(await Visitor(place).send("callback", query: ["error": "access_denied"], fromOther: true).status == 400)
    }

    @Test func `if the provider is down or can't be trusted, a page says so, and the log has the reason`() async throws {
        let place = try await place()
        place.host.change { $0.replies["/token"] = .page("500 Internal Server Error") }
        #expect(try await Visitor(place).signIn().status == 503)
        place.host.change { ($0.replies["/token"], $0.claims) = (nil, { $0["aud"] = "another" }) }
        let untrusted = try await Visitor(place).signIn()
        #expect(untrusted.status == 403 && !untrusted.text.contains("another client"))
        place.host.change { $0.claims = nil }
        let reports = place.people.console.reports.withLock { $0 }
        #expect(
            reports.count == 2 && reports[0].contains("status 500") && reports[1].contains("for another client"), "\(reports)")
        let down = try await self.place()
        down.host.change { $0.replies["/.well-known/openid-configuration"] = .broken }
        let reply = await Visitor(down).send("provider")
        #expect(reply.status == 503 && reply.text.contains("can&#39;t be reached") && reply.header("Set-Cookie") == nil)
        #expect(await Visitor(down).send("sign-in").status == 200)
    }

    @Test func `attempts with answers of the provider are counted, and other methods and addresses are refused`() async throws {
        let place = try await place()
        _ = try await Visitor(place).signIn()
        #expect(place.people.console.attempts.withLock { $0.count { $0.hasPrefix("identity ") } } == 1)
        #expect(await Visitor(place).send("callback", form: ["code": "a"]).status == 404)
        let long = String(repeating: "a", count: 2_000)
        #expect(await Visitor(place).send("provider", query: ["to": long]).status == 400)
        #expect(await Visitor(place).send("provider", query: ["to": "a\0b"]).status == 400)
        // The redirect leads to no other server.
        let visitor = Visitor(place)
        await visitor.signIn(place.anna.email)
        #expect(await visitor.send("provider", query: ["to": "https://evil.example.org"]).header("Location") == "/account")
    }

    @Test func `without a provider the pages do not mention it`() async throws {
        let fixture = try await PeopleFixture()
        let browser = try await fixture.browser(fixture.console.anna)
        #expect(await !browser.get().text.contains("Sign in with"))
        for page in ["provider", "callback"] { #expect(await browser.get(page).status == 404) }
        #expect(try await browser.post("", ["action": "connect"]).status == 404)
    }
}
