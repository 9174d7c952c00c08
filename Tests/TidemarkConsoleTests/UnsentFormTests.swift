import Foundation
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkConsole

/// Goal: a form that comes too late is not lost and does nothing, and another site can't use it to have a person send its values.
/// Method: forms with the token of another session, without a session, and from other places, and the pages that answer.
@Suite(.timeLimit(.minutes(30))) struct UnsentFormTests {
    private static let c = ["c": ConsoleFixture.journal]
    private static let typed = "<b>\"Hammerfest\" & more</b>"
    private static let shown = "&lt;b&gt;&quot;Hammerfest&quot; &amp; more&lt;/b&gt;"
    private static let secret = "a secret of mine"
    /// A form of the schema, with a value that no page may show again.
    private static let add = c.merging([
        "action": "add", "type": "City", "field": typed, "kind": "list<double>", "password": secret, "code": secret,
    ]) { $1 }

    @Test func `a form of an earlier session comes back with what was typed and a new token, and does nothing`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let tag = try #require(try await fixture.record("oslo").changeTag)
        let browser = try await fixture.browser(fixture.anna)
        let earlier = try await fixture.browser(fixture.anna).token()
        let own = try await browser.token()
        let place = Self.c.merging(["db": "public", "zone": "_defaultZone", "type": "City"]) { $1 }
        let forms: [(String, [String: String], [String])] = [
            ("schema", Self.add, ["value=\"\(Self.shown)\"", "<option value=\"list&lt;double&gt;\" selected>"]),
            (
                "schema", Self.c.merging(["action": "import", "file": "{\r\n\(Self.typed)"]) { $1 },
                ["<details open>", "\n{\n\(Self.shown)</textarea>"]
            ),
            (
                "record", place.merging(["tag": "", "name": "north", "is.title": Self.typed, "was.title": ""]) { $1 },
                ["<h1>New City</h1>", "value=\"north\"", "\n\(Self.shown)</textarea>"]
            ),
            (
                "record", place.merging(["tag": tag, "name": "oslo", "is.title": Self.typed, "was.title": "Oslo"]) { $1 },
                ["<h1>Edit oslo</h1>", "\n\(Self.shown)</textarea>"]
            ),
        ]
        for (page, form, parts) in forms {
            let reply = try await browser.post(page, form, token: earlier)
            #expect(reply.status == 403, "\(form)")
            for part in parts { #expect(reply.text.contains(part), "\(form): no \(part)") }
            #expect(reply.text.matches(of: /id="refused"/).count == 1, "\(form)")
            #expect(reply.text.contains("was not sent"), "\(form)")
            #expect(reply.text.contains("name=\"token\" value=\"\(own)\"") && !reply.text.contains(earlier), "\(form)")
            #expect(!reply.text.contains(Self.secret), "\(form)")
        }
        #expect(try await fixture.record("oslo").changeTag == tag)
        let fields = try await fixture.cloud.schema(of: ConsoleFixture.journal).types["City"]?.fields ?? [:]
        #expect(fields["title"] != nil && fields[Self.typed] == nil)
    }

    @Test func `a form is shown again only if the browser says that a page of this server sent it`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        func answer(_ cookies: String, origin: String?, site: String?) async -> String {
            let reply = await fixture.console.reply(
                to: ConsoleRequest(
                    isPost: true, page: "schema", form: Self.add, cookies: cookies, origin: origin, fetchSite: site,
                    baseURL: browser.baseURL))
            #expect(reply.status == 403)
            return reply.text
        }
        let places: [(String?, String?)] = [
            (nil, nil), (nil, "none"), (nil, "same-site"), (nil, "cross-site"), ("null", nil), ("https://evil.example.org", nil),
            ("https://evil.example.org", "cross-site"),
        ]
        for cookies in [browser.cookie, ""] {
            for (origin, site) in places {
                let text = await answer(cookies, origin: origin, site: site)
                #expect(!text.contains("Hammerfest"), "\(origin ?? "no origin"), \(site ?? "no site")")
            }
            #expect(await answer(cookies, origin: browser.baseURL, site: nil).contains("Hammerfest"))
            #expect(await answer(cookies, origin: nil, site: "same-origin").contains("Hammerfest"))
        }
    }

    @Test func `a form that is sent after the session has ended is shown after the sign-in, and the server does not store it`()
        async throws
    {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.anna)
        fixture.advance(minutes: 31)
        let ended = try await browser.post("schema", Self.add, token: "x")
        #expect(ended.status == 403 && ended.text.contains("Your session has ended, and the form was not sent."))
        #expect(ended.text.contains("name=\"kept.field\" value=\"\(Self.shown)\""))
        #expect(!ended.text.contains(Self.secret))
        // The page's address contains nothing that was typed.
        let to = "schema?c=\(ConsoleFixture.journal)"
        #expect(ended.text.contains("name=\"to\" value=\"\(to)\""))
        var form = ["email": fixture.anna.email, "password": "wrong horse", "to": to]
        for (name, value) in Self.add { form["kept.\(name)"] = value }
        func signIn(origin: String?) async -> ConsoleReply {
            await fixture.console.reply(
                to: ConsoleRequest(isPost: true, page: "sign-in", form: form, origin: origin, baseURL: browser.baseURL))
        }
        let wrong = await signIn(origin: browser.baseURL)
        #expect(wrong.status == 403 && wrong.text.contains("name=\"kept.field\" value=\"\(Self.shown)\""))
        form["password"] = ConsoleFixture.password
        let shown = await signIn(origin: browser.baseURL)
        #expect(shown.status == 200 && shown.header("Set-Cookie")?.hasPrefix("tidemark-console=") == true)
        #expect(shown.text.contains("the form was not sent yet") && shown.text.contains("value=\"\(Self.shown)\""))
        #expect(!shown.text.contains(Self.secret) && !shown.text.contains("name=\"kept."))
        #expect(try await fixture.cloud.schema(of: ConsoleFixture.journal).types["City"]?.fields[Self.typed] == nil)
        // If the request does not say where the form comes from, the sign-in leads to the form's page.
        let led = await signIn(origin: nil)
        #expect(led.status == 303 && led.header("Location") == "/console/\(to)")
    }

    @Test func `a form that a sign-in has carried keeps its version, and makes a deleted record anew`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo"), "note": .string("old")])
        let browser = try await fixture.browser(fixture.anna)
        let begun = try #require(try await fixture.record("oslo").changeTag)
        let form = Self.c.merging([
            "db": "public", "zone": "_defaultZone", "type": "City", "tag": begun, "name": "oslo", "is.title": "Hammerfest",
            "was.title": "Oslo", "is.note": "old", "was.note": "old",
        ]) { $1 }
        // Another person saves another version in the meantime.
        let other = form.merging(["is.title": "Kristiania", "is.note": "of Cleo"]) { $1 }
        #expect(try await browser.post("record", other).status == 303)
        let current = try #require(try await fixture.record("oslo").changeTag)
        var signIn = [
            "email": fixture.anna.email, "password": ConsoleFixture.password, "to": "record?c=\(ConsoleFixture.journal)",
        ]
        for (name, value) in form { signIn["kept.\(name)"] = value }
        let request = ConsoleRequest(
            isPost: true, page: "sign-in", form: signIn, origin: browser.baseURL, baseURL: browser.baseURL)
        let shown = await fixture.console.reply(to: request).text
        #expect(shown.contains("<h1>Edit oslo</h1>") && shown.contains("\nHammerfest</textarea>"))
        #expect(shown.contains("name=\"tag\" value=\"\(begun)\"") && !shown.contains("value=\"\(current)\""))
        #expect(shown.contains("name=\"was.title\" value=\"Oslo\"") && shown.contains("name=\"was.note\" value=\"old\""))
        // Sending it as shown asks first, and does not overwrite the other version.
        let asked = try await browser.post("record", form)
        #expect(asked.status == 409 && asked.text.contains("<strong>Kristiania</strong>"))
        #expect(try await fixture.record("oslo").fields["title"] == .string("Kristiania"))

        let deletion = form.merging(["action": "delete", "tag": current]) { $1 }
        #expect(try await browser.postConfirmed("record", deletion).status == 303)
        let gone = await fixture.console.reply(to: request).text
        #expect(gone.contains("<h1>New City</h1>") && gone.contains("The record was deleted meanwhile."))
        #expect(gone.contains("\nHammerfest</textarea>") && gone.contains("\nold</textarea>"))
        #expect(gone.contains("name=\"tag\" value=\"\"") && gone.contains("value=\"oslo\""))
    }

    @Test func `a form that is too large to be carried is reported as lost, and the way back stays`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        fixture.advance(minutes: 31)
        let large = ["action": "import", "file": String(repeating: "é", count: 10_000)]
        let lost = try await browser.post("schema", Self.c.merging(large) { $1 }, token: "x")
        #expect(lost.status == 403 && lost.text.contains("What you have typed can&#39;t be kept here"))
        #expect(!lost.text.contains("name=\"kept.") && lost.text.contains("value=\"schema?c=\(ConsoleFixture.journal)\""))
        // The address does not contain a typed name.
        let record = ["db": "public", "type": "City", "tag": "", "name": "Hammerfest", "is.title": "x"]
        let new = try await browser.post("record", Self.c.merging(record) { $1 }, token: "x")
        let to = try #require(new.text.firstMatch(of: /name="to" value="([^"]+)"/)).1
        #expect(to.hasPrefix("record?") && to.contains("new=1") && !to.contains("Hammerfest"))
    }

    @Test func `signing out works after the session has ended, and with the form of an earlier session`() async throws {
        let fixture = try await PeopleFixture()
        let console = fixture.console
        let browser = try await console.browser(console.anna)
        let earlier = try await console.browser(console.anna).token()
        // Another site can't sign a person out.
        let foreign = await console.console.reply(
            to: ConsoleRequest(
                isPost: true, page: "sign-out", form: ["token": earlier], cookies: browser.cookie, baseURL: browser.baseURL))
        #expect(foreign.status == 403)
        #expect(await browser.get("").status == 200)
        #expect(try await browser.post("sign-out", [:], token: earlier).header("Location") == "/console/sign-in")
        #expect(await browser.get("").status == 303)
        let again = try await browser.post("sign-out", [:], token: earlier)
        #expect(again.status == 303 && again.header("Location") == "/console/sign-in")

        let person = try await fixture.browser(console.cleo)
        let old = try await fixture.browser(console.cleo).token()
        #expect(try await person.post("sign-out", [:], token: old).header("Location") == "/account/sign-in")
        #expect(await person.get().status == 303)
        let late = try await person.post("sign-out", [:], token: old)
        #expect(late.status == 303 && late.header("Location") == "/account/sign-in")
    }

    @Test
    func `the form of an earlier session that leaves a share keeps the name and the address in their fields`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        let earlier = try await fixture.browser(cleo).token()
        for action in ["leave", "unknown"] {
            let reply = try await browser.post("", ["action": action, "share": "a/b"], token: earlier)
            #expect(reply.status == 403 && reply.text.contains("was not sent"), "\(action)")
            #expect(reply.text.contains("value=\"\(cleo.email)\"") && reply.text.contains("value=\"Cleo\""), "\(action)")
        }
        let left = try await browser.post("", ["action": "leave", "share": "a/b"], token: earlier).text
        let alert = try #require(left.range(of: "was not sent"))
        let heading = try #require(left.range(of: "<h2>Shares</h2>"))
        #expect(heading.lowerBound < alert.lowerBound)
    }

    @Test func `a person's form of an earlier session, or of one that has ended, is shown again and does nothing`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        let earlier = try await fixture.browser(cleo).token()
        let profile = ["action": "profile", "name": Self.typed, "email": "new@example.org", "password": ConsoleFixture.password]
        let expired = try await browser.post("", profile, token: earlier)
        #expect(expired.status == 403 && expired.text.contains("was not sent"))
        #expect(expired.text.contains("value=\"\(Self.shown)\"") && expired.text.contains("value=\"new@example.org\""))
        #expect(!expired.text.contains(earlier) && !expired.text.contains(ConsoleFixture.password))
        let deletion = try await browser.post("delete", ["password": ConsoleFixture.password], token: earlier)
        #expect(deletion.status == 403 && deletion.text.contains("was not sent"))
        #expect(deletion.text.contains("Delete the account and its data"))

        let ended = try await PersonBrowser(fixture: fixture, cookie: "").post("", profile, token: "x")
        #expect(ended.status == 403 && ended.text.contains("Your session has ended, and the form was not sent."))
        #expect(ended.text.contains("name=\"kept.name\" value=\"\(Self.shown)\""))
        #expect(!ended.text.contains(ConsoleFixture.password))
        var form = ["email": cleo.email, "password": ConsoleFixture.password]
        for (name, value) in profile { form["kept.\(name)"] = value }
        func signIn(origin: String?) async -> ConsoleReply {
            await fixture.pages.reply(
                to: ConsoleRequest(isPost: true, page: "sign-in", form: form, origin: origin, baseURL: PeopleFixture.baseURL))
        }
        let shown = await signIn(origin: PeopleFixture.baseURL)
        #expect(shown.status == 200 && shown.header("Set-Cookie") != nil)
        #expect(shown.text.contains("the form was not sent yet") && shown.text.contains("value=\"\(Self.shown)\""))
        #expect(await signIn(origin: nil).status == 303)
        let account = try #require(try await fixture.cloud.account(id: cleo.id))
        #expect(account.email == cleo.email && account.name == cleo.name)
    }
}
