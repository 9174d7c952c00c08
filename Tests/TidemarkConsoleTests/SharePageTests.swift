import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: a person with a link learns who shares what, and a person without one learns nothing. Method: links of a share, followed
/// by strangers and by people who are signed in.
@Suite(.timeLimit(.minutes(30))) struct SharePageTests {
    private func address(_ token: String) -> PeoplePages.Link {
        .init(container: ConsoleFixture.journal, environment: .development, token: token)
    }

    @Test func `a link's page says who shares what, in which role, and how to accept it`() async throws {
        let fixture = try await PeopleFixture()
        var anna = fixture.console.anna
        anna.name = PersonName(givenName: "Anna", familyName: "Berg")
        try await fixture.cloud.update(anna)
        let (_, link) = try await fixture.link(to: "cleo@example.org", permission: .readOnly)
        let reply = await fixture.follow(link.token)
        #expect(reply.status == 200)
        #expect(reply.text.contains("<h1>Summer trip</h1>"))
        #expect(reply.text.contains("<strong>Anna Berg</strong> shares “Summer trip” with you."))
        #expect(reply.text.contains("<dd>read</dd>") && reply.text.contains("<dd>participant</dd>"))
        let url = "https://cloud.example.org/share/iCloud.org.example.journal/development/\(link.token)"
        #expect(reply.text.contains("tidemark share accept \(url)</pre>"))
        #expect(
            reply.text.contains(
                "href=\"tidemark://share/\(link.token)?server=https%3A%2F%2Fcloud.example.org&amp;container=iCloud.org.example.journal&amp;environment=development\""
            ))
        // A link alone does not show addresses.
        #expect(!reply.text.contains("cleo@") && !reply.text.contains("anna@"))
        #expect(reply.text.contains("/account/sign-in?to=share%2FiCloud.org.example.journal%2Fdevelopment%2F\(link.token)"))
        #expect(!reply.text.contains("<script") && !reply.text.contains("style="))
        let policy = try #require(reply.header("Content-Security-Policy"))
        #expect(policy.hasPrefix("default-src 'none'") && !policy.contains("unsafe"))
        #expect(reply.header("Cache-Control") == "no-store" && reply.header("Referrer-Policy") == "same-origin")
    }

    @Test func `people see what is shared with them, and leave another's share after a question`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        #expect(await browser.get().text.contains("You share nothing, and nothing is shared with you."))
        let token = try await fixture.link(to: cleo.email, permission: .readOnly).link.token
        let shared = try fixture.cloud.database(.shared, of: ConsoleFixture.journal, account: cleo.id)
        _ = try await shared.acceptLink(token)
        let page = await browser.get().text
        #expect(page.contains("Summer trip") && page.contains("data-column=\"You may\">read</td>"))
        let share = String(try #require(page.firstMatch(of: /name="share" value="([^"]+)"/)).1)
        // The owner can stop sharing only in the app.
        let own = try await fixture.browser(fixture.console.anna).get().text
        #expect(own.contains("Summer trip") && own.contains("you, with 1 other") && !own.contains("name=\"share\""))
        let form = ["action": "leave", "share": share]
        #expect(try await browser.post("", form).text.contains("Leave the share?"))
        #expect(try await shared.zones().count == 1)
        let confirmed = form.merging(["confirmed": "1"]) { $1 }
        #expect(try await browser.post("", confirmed).header("Location") == "/account?done=left")
        #expect(try await shared.zones().isEmpty)
        #expect(try await browser.post("", confirmed).status == 404)
        #expect(try await fixture.log().contains("account.share.leave done"))
        // The log of a person who left does not have the owner's title.
        let left = try await fixture.credentials.auditLog(account: cleo.id).map(\.event)
        #expect(left.allSatisfy { !"\($0.subject) \($0.before) \($0.after)".contains("Summer trip") })
    }

    @Test func `an open link's page says what it permits everybody, or that it depends on the invitation`() async throws {
        let fixture = try await PeopleFixture()
        let (_, open) = try await fixture.link(permission: .readWrite, isPublic: true)
        #expect(await fixture.follow(open.token).text.contains("participant, as everybody who has the link"))
        #expect(await fixture.follow(open.token).text.contains("read, add, change and delete"))
        let other = try await PeopleFixture()
        let (_, invited) = try await other.link()
        #expect(await other.follow(invited.token).text.contains("what your invitation says"))
    }

    @Test func `unknown links, revoked links and other addresses get the same answer`() async throws {
        let fixture = try await PeopleFixture()
        let (share, link) = try await fixture.link(to: "cleo@example.org")
        let (_, other) = try await fixture.link(to: "dora@example.org")
        let database = try fixture.cloud.database(.private, of: ConsoleFixture.journal, account: fixture.console.anna.id)
        let dora = try #require(
            try await database.shares(in: PeopleFixture.zone).first?.participants.first {
                $0.identity.lookUp == .emailAddress("dora@example.org")
            })
        _ = try await database.changeShare(share, [.remove(participant: dora.id)])
        try await fixture.revoke(link, to: share)
        var seen: Set<String> = []
        for reply in [
            await fixture.follow(link.token), await fixture.follow(other.token),
            await fixture.follow(String(repeating: "A", count: 32)),
            await fixture.follow("short"), await fixture.follow(link.token, in: ConsoleFixture.other),
            await fixture.follow(link.token, in: "iCloud.org.example.nothing"), await fixture.follow(link.token, .production),
        ] {
            #expect(reply.status == 404)
            seen.insert(reply.text + "\(reply.headers.map { "\($0.name): \($0.value)" })")
        }
        #expect(seen.count == 1)
        #expect(!seen.joined().contains("Summer"))
        // A request does not make a container that is not served.
        #expect(try fixture.credentials.containers().count == 2)
        try await database.deleteShare(share)
        #expect(await fixture.follow(link.token).status == 404)
    }

    @Test func `a person who is signed in accepts a share with a button, once`() async throws {
        let fixture = try await PeopleFixture()
        let (_, link) = try await fixture.link(to: "cleo@example.org")
        let browser = try await fixture.browser(fixture.console.cleo)
        let page = await browser.get("", address(link.token))
        #expect(page.text.contains("<button>Accept</button>") && page.text.contains("cleo@example.org"))
        // Without the session's token nothing is accepted.
        #expect(try await browser.post("", ["action": "accept"], link: address(link.token), token: "x").status == 403)
        let accepted = try await browser.post("", ["action": "accept"], link: address(link.token))
        #expect(accepted.status == 303)
        #expect(accepted.header("Location") == "/share/iCloud.org.example.journal/development/\(link.token)?done=1")
        let after = await browser.get("", address(link.token))
        #expect(after.text.contains("You take part as cleo@example.org") && !after.text.contains("<button>Accept"))
        let zones = try await fixture.cloud.database(.shared, of: ConsoleFixture.journal, account: fixture.console.cleo.id)
            .zones()
        #expect(zones.map(\.zoneName) == ["Trips"])
        #expect(try await fixture.log() == ["account.sign-in done", "share.accept done"])
    }

    @Test func `a link for another person can't be accepted, and the page says so`() async throws {
        let fixture = try await PeopleFixture()
        let (_, link) = try await fixture.link(to: "dora@example.org")
        let browser = try await fixture.browser(fixture.console.cleo)
        let page = await browser.get("", address(link.token))
        #expect(page.text.contains("The link is not for cleo@example.org") && !page.text.contains("<button>Accept"))
        #expect(!page.text.contains("dora@"))
        #expect(try await browser.post("", ["action": "accept"], link: address(link.token)).status == 403)
        #expect(try await fixture.log().last == "share.accept unknownItem")
        let own = try await fixture.browser(fixture.console.anna)
        #expect(await own.get("", address(link.token)).text.contains("This is your own share."))
    }

    @Test func `a form without a session leads to the sign-in, and from there back to the link only`() async throws {
        let fixture = try await PeopleFixture()
        let (_, link) = try await fixture.link(to: "cleo@example.org")
        let posted = await fixture.pages.reply(
            to: ConsoleRequest(isPost: true, page: "", form: ["action": "accept"], baseURL: PeopleFixture.baseURL),
            link: address(link.token))
        #expect(posted.status == 403 && posted.text.contains("Sign in again"))
        let to = PersonSignInPage.destination(address(link.token))
        #expect(await fixture.signIn("cleo@example.org", to: to).header("Location") == address(link.token).address.text)
        for elsewhere in [
            "https://evil.example.org/", "//evil.example.org", "share/a/b/c", "share//development/x", "/share/a/development/x",
            "share/a/development/x/y", "sign-out",
        ] {
            #expect(await fixture.signIn("cleo@example.org", to: elsewhere).header("Location") == "/account", "\(elsewhere)")
        }
        let hostile = await fixture.signIn("cleo@example.org", to: "share/\"><script>/development/..")
        #expect(hostile.header("Location") == "/share/%22%3E%3Cscript%3E/development/%2E%2E")
    }

    @Test func `the sign-in page names the share to which it leads, also after a wrong password`() async throws {
        let fixture = try await PeopleFixture()
        let (_, link) = try await fixture.link(to: "cleo@example.org")
        let to = PersonSignInPage.destination(address(link.token))
        func page(_ to: String) async -> String {
            await fixture.pages.reply(to: ConsoleRequest(page: "sign-in", query: ["to": to], baseURL: PeopleFixture.baseURL)).text
        }
        for text in [await page(to), await fixture.signIn("cleo@example.org", "wrong horse", to: to).text] {
            #expect(text.contains("shares “Summer trip” with you. Sign in to accept it.</p>"), "\(text)")
        }
        let nowhere = PersonSignInPage.destination(address(String(repeating: "A", count: 32)))
        for elsewhere in ["", "delete", nowhere] { #expect(await !page(elsewhere).contains("with you"), "\(elsewhere)") }
    }

    @Test func `titles and names are shown as text`() async throws {
        let fixture = try await PeopleFixture()
        let hostile = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>"
        var anna = fixture.console.anna
        anna.name = PersonName(givenName: hostile)
        try await fixture.cloud.update(anna)
        let (_, link) = try await fixture.link(to: "cleo@example.org", title: hostile)
        let browser = try await fixture.browser(fixture.console.cleo)
        for reply in [await fixture.follow(link.token), await browser.get("", address(link.token))] {
            #expect(reply.status == 200)
            #expect(!reply.text.contains("<script") && !reply.text.contains("<img"))
            #expect(reply.text.contains("&quot;&gt;&lt;script&gt;alert(1)"))
        }
        let nowhere = await fixture.follow("\"><script>alert(1)</script>")
        #expect(nowhere.status == 404 && !nowhere.text.contains("script"))
    }
}
