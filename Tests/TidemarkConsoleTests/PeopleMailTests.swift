import Foundation
import TestSupport
import Testing
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: people restore their access by mail, no stranger learns from it who has an account, and no letter leads to another
/// server. Method: the pages over a cloud, with letters that are kept.
@Suite(.timeLimit(.minutes(30))) struct PeopleMailTests {
    private let letters = Shared<[(recipient: String, text: String)]>([])
    private let time = Shared<Int64>(0)

    private func fixture() async throws -> PeopleFixture {
        try await PeopleFixture(
            mail: PeopleMail(serverURL: "https://cloud.example.org", now: { [time] in time.value }) {
                [letters] recipient, _, text in
                letters.change { $0.append((recipient, text)) }
            })
    }

    private func ask(_ fixture: PeopleFixture, _ email: String, host: String = PeopleFixture.baseURL) async -> ConsoleReply {
        await fixture.pages.reply(
            to: ConsoleRequest(
                isPost: true, page: "forgotten", form: ["email": email], origin: host, fetchSite: "same-origin", baseURL: host))
    }

    /// The path and query of the link in the last letter, once there are `count` letters.
    private func link(_ count: Int) async throws -> (page: String, key: String) {
        for _ in 0..<600 where letters.value.count < count { try await Task.sleep(for: .milliseconds(20)) }
        let text = try #require(letters.value.last).text
        let match = try #require(text.firstMatch(of: /https:\/\/cloud\.example\.org\/account\/(\w+)\?key=([^\s]+)/))
        return (String(match.1), String(match.2).removingPercentEncoding ?? "")
    }

    private func post(_ fixture: PeopleFixture, _ page: String, _ form: [String: String]) async -> ConsoleReply {
        await fixture.pages.reply(
            to: ConsoleRequest(
                isPost: true, page: page, form: form, origin: PeopleFixture.baseURL, fetchSite: "same-origin",
                baseURL: PeopleFixture.baseURL))
    }

    @Test
    func `a person without the password gets a link by mail, and the page is the same for unknown addresses`() async throws {
        let fixture = try await fixture()
        let known = await ask(fixture, fixture.console.anna.email)
        let unknown = await ask(fixture, "nobody@example.org")
        #expect(known.status == 200 && unknown.status == 200)
        #expect(
            known.text.replacing(fixture.console.anna.email, with: "•") == unknown.text.replacing("nobody@example.org", with: "•")
        )
        let (page, key) = try await link(1)
        #expect(page == "password")
        #expect(letters.value.map(\.recipient) == [fixture.console.anna.email])
        let set = await post(fixture, page, ["key": key, "new": "another password", "again": "another password"])
        #expect(set.status == 303)
        #expect(await fixture.signIn(fixture.console.anna.email, "another password").status == 303)
        #expect(await post(fixture, page, ["key": key, "new": "a third password", "again": "a third password"]).status == 404)
        #expect(try await fixture.log().contains("account.password-link done"))
    }

    @Test func `the link in a letter does not lead to the host that a request names`() async throws {
        let fixture = try await fixture()
        #expect(await ask(fixture, fixture.console.anna.email, host: "https://evil.example").status == 200)
        _ = try await link(1)
        #expect(!letters.value[0].text.contains("evil"))
    }

    @Test func `requests can't fill a person's mailbox`() async throws {
        let fixture = try await fixture()
        for _ in 0..<3 { _ = await ask(fixture, fixture.console.anna.email) }
        _ = try await link(1)
        time.change { $0 += PeopleMail.pause * 1_000 }
        _ = await ask(fixture, fixture.console.anna.email)
        _ = try await link(2)
        #expect(letters.value.count == 2)
        #expect(await ask(fixture, "crowded@example.org").status == 429)
    }

    @Test func `a new address becomes the account's only when its letter was answered`() async throws {
        let fixture = try await fixture()
        let anna = fixture.console.anna
        let browser = try await fixture.browser(anna)
        let changed = try await browser.post(
            "", ["action": "profile", "name": "Anna Berg", "email": "anna@example.net", "password": ConsoleFixture.password])
        #expect(changed.header("Location") == "/account?done=address", "\(changed.text)")
        #expect(try await fixture.cloud.account(id: anna.id)?.email == anna.email)
        #expect(try await fixture.cloud.account(id: anna.id)?.name?.title == "Anna Berg")
        let (page, key) = try await link(1)
        #expect(page == "address" && letters.value[0].recipient == "anna@example.net")
        // Opening the link changes nothing: a mail program may do so, or a stranger who got the letter.
        let shown = await fixture.pages.reply(
            to: ConsoleRequest(page: page, query: ["key": key], fetchSite: "none", baseURL: PeopleFixture.baseURL))
        #expect(shown.status == 403 && !shown.text.contains(anna.email))
        #expect(await post(fixture, page, ["key": key]).status == 403)
        let cleo = try await fixture.browser(fixture.console.cleo)
        #expect(try await cleo.post(page, ["key": key]).status == 403)
        #expect(try await fixture.cloud.account(id: anna.id)?.email == anna.email)
        // The change needs the link and the account's session; signing in leads back to the link.
        let to = await fixture.signIn(anna.email, to: "address/\(key)").header("Location")
        #expect(to?.hasPrefix("/account/address?key=") == true)
        #expect(await browser.get(page, query: ["key": key]).text.contains("anna@example.net"))
        #expect(try await browser.post(page, ["key": key], token: "none").status == 403)
        #expect(try await browser.post(page, ["key": key]).header("Location") == "/account?done=new-address")
        #expect(try await fixture.cloud.account(id: anna.id)?.email == "anna@example.net")
        #expect(try await browser.post(page, ["key": key]).status == 404)
        #expect(try await browser.post(page, ["key": String(key.reversed())]).status == 404)
        // The old address gets a letter, too.
        for _ in 0..<600 where letters.value.count < 2 { try await Task.sleep(for: .milliseconds(20)) }
        #expect(letters.value.last?.recipient == anna.email)
        #expect(letters.value.last?.text.contains("anna@example.net") == true)
    }

    @Test
    func `a letter that the mail server did not accept is sent again, and the next one may be requested at once`() async throws {
        struct Refused: Error { let isTemporary: Bool }
        let (failures, sent) = (Box([Refused(isTemporary: true), Refused(isTemporary: false)]), Shared(0))
        let fixture = try await PeopleFixture(
            mail: PeopleMail(
                serverURL: "https://cloud.example.org", isTemporary: { ($0 as? Refused)?.isTemporary ?? false },
                pauses: [.milliseconds(1), .milliseconds(1)]
            ) { _, _, _ in
                let failure = failures.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                if let failure { throw failure }
                sent.change { $0 += 1 }
            })
        _ = await ask(fixture, fixture.console.anna.email)
        for _ in 0..<600 where fixture.console.reports.withLock({ $0.isEmpty }) {
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(sent.value == 0)
        _ = await ask(fixture, fixture.console.anna.email)
        for _ in 0..<600 where sent.value == 0 { try await Task.sleep(for: .milliseconds(20)) }
        #expect(sent.value == 1)
        // A letter to an invalid address is not sent.
        let browser = try await fixture.browser(fixture.console.anna)
        let wrong = try await browser.post(
            "", ["action": "profile", "name": "", "email": "foo", "password": ConsoleFixture.password])
        #expect(wrong.status == 400 && wrong.text.contains("no address"))
        #expect(sent.value == 1)
    }

    @Test func `a server that sends no mail says so`() async throws {
        let fixture = try await PeopleFixture()
        #expect(await ask(fixture, fixture.console.anna.email).status == 404)
        let page = await fixture.pages.reply(
            to: ConsoleRequest(page: "sign-in", fetchSite: "none", baseURL: PeopleFixture.baseURL))
        #expect(!page.text.contains("forgotten\""))
    }
}
