import Foundation
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: an operator finds and ends the session of a stolen device, and disconnects an account from an identity provider, knowing
/// which ways to sign in are left. Method: the page of an account, its forms, and the credentials afterwards.
@Suite(.timeLimit(.minutes(30))) struct AccountSessionTests {
    private func identity(_ subject: String, of account: StoredAccount, _ fixture: ConsoleFixture) async throws -> String {
        let key = IdentityKey(issuer: "https://id.example.org", subject: subject)
        _ = try await fixture.credentials.connect(key, label: "\(subject) <b>", to: account.id)
        return key.id
    }

    @Test func `each session shows its device, system, place and last use, as exactly as they are known`() async throws {
        let fixture = try await ConsoleFixture()
        for (device, system) in [("Laptop", "Debian <12>"), ("vm", "")] {
            _ = try await fixture.credentials.makeSession(
                account: fixture.cleo.id, container: ConsoleFixture.journal, environment: .production, kind: .device,
                device: device, system: system, address: "192.0.2.7")
        }
        fixture.advance(minutes: 90)
        let browser = try await fixture.browser(fixture.anna)
        let page = await browser.get("account", ["id": fixture.cleo.email]).text
        #expect(page.contains("Laptop") && page.contains("Debian &lt;12&gt;") && page.contains("192.0.2.7"))
        #expect(page.contains("\(ConsoleFixture.journal) (production)"))
        #expect(page.contains("today between 08:00 and 09:00 UTC"))
        for session in try await fixture.credentials.sessions(of: fixture.cleo.id) {
            #expect(page.contains("<code>\(session.id.prefix(4))</code>"))
        }

        // The operator's own session is marked, and can't be ended on this page.
        let own = await browser.get("account", ["id": fixture.anna.email]).text
        #expect(own.contains("this session") && own.contains("the console") && own.contains("within the last minute"))
        #expect(!own.contains("name=\"session\""))
    }

    @Test func `the question before a session ends names the session, and sessions of pages end as well`() async throws {
        let fixture = try await ConsoleFixture()
        let phone = try await fixture.credentials.makeSession(
            account: fixture.cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device,
            device: "Phone", system: "iOS 18.1", address: "192.0.2.7")
        guard
            case .signedIn(let cookie) = try await fixture.credentials.signInToPages(
                ConsoleFixture.password, account: fixture.cleo.id, device: "Browser/2.0", address: "192.0.2.8", as: "cleo")
        else {
            Issue.record("cleo is not signed in")
            return
        }
        let browser = try await fixture.browser(fixture.anna)
        let pages = try #require(try await fixture.credentials.pageSessions(of: fixture.cleo.id).first)
        let form = ["id": fixture.cleo.email, "action": "end"]
        let question = try await browser.post("account", form.merging(["session": phone.session.id]) { $1 }).text
        #expect(question.contains("of Phone (iOS 18.1) ends") && question.contains("began on 2027-01-15 08:00:00 UTC"))
        #expect(question.contains("within the last hour from 192.0.2.7"))
        let other = try await browser.post("account", form.merging(["session": pages.id]) { $1 }).text
        #expect(other.contains("of Browser/2.0 ends") && other.contains("own pages"))
        #expect(try await browser.postConfirmed("account", form.merging(["session": pages.id]) { $1 }).status == 303)
        #expect(try await fixture.credentials.personSession(cookie) == nil)
        let id = ["id": fixture.cleo.email]
        let page = await browser.get("account", id.merging(["done": "end", "session": pages.id]) { $1 }).text
        #expect(page.contains("The session \(pages.id.prefix(4)) of Browser/2.0 has ended, and is refused from now on."))
        #expect(page.contains("change the password too") && page.contains("<a href=\"#password\">"))
        #expect(page.contains("<form id=\"password\""))
        // The page does not repeat other text of the address.
        let unknown = await browser.get("account", id.merging(["done": "end", "session": phone.session.id]) { $1 }).text
        #expect(unknown.contains("<p>The session has ended, and is refused from now on.</p>"))
        #expect(try await browser.postConfirmed("account", form.merging(["session": pages.id]) { $1 }).status == 404)
        #expect(try await fixture.credentials.sessions(of: fixture.cleo.id).count == 1)
        let entry = try #require(try await fixture.credentials.auditLog(account: fixture.cleo.id).first)
        #expect(entry.event.action.rawValue == "admin.session.end" && entry.event.subject == pages.id)
        let last = try await browser.postConfirmed("account", form.merging(["session": phone.session.id]) { $1 })
        #expect(last.header("Location")?.hasSuffix("&done=end&session=\(phone.session.id)") == true)
    }

    @Test func `the page of an account links to its sync errors in the whole cloud`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let page = await browser.get("account", ["id": fixture.cleo.email]).text
        let link = try #require(page.firstMatch(of: /<a href="([^"]+)">Sync errors of this account</)).1
        #expect(link.hasSuffix("&amp;show=failures&amp;account=cleo%40example.org&amp;all=1"))
        let errors = await browser.get("activity", ["show": "failures", "account": fixture.cleo.email, "all": "1"])
        #expect(errors.status == 200 && errors.text.contains("value=\"cleo@example.org\""))
    }

    @Test func `the archive has each session with its device, system and last use`() async throws {
        let fixture = try await ConsoleFixture()
        _ = try await fixture.credentials.makeSession(
            account: fixture.cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device,
            device: "Laptop", system: "macOS 15.1", address: "192.0.2.7")
        let folder = fixture.scratch["archive"]
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        _ = try await PersonArchive.write(all: fixture.cleo, of: fixture.cloud, fixture.credentials, to: folder)
        let file = try Data(contentsOf: folder.appendingPathComponent("sessions.jsonl"))
        let session = try #require(try JSONSerialization.jsonObject(with: file) as? [String: Any])
        #expect(session["device"] as? String == "Laptop" && session["system"] as? String == "macOS 15.1")
        #expect((session["used"] as? String)?.hasPrefix("2027-01-15T08:00:00") == true && session["usedWithin"] as? Int == 3600)
    }

    @Test func `an identity is disconnected after a question that says which ways to sign in are left`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let id = ["id": fixture.cleo.email]
        #expect(await !browser.get("account", id).text.contains("Identity providers"))
        let (one, two) = (
            try await identity("cleo-1", of: fixture.cleo, fixture), try await identity("cleo-2", of: fixture.cleo, fixture)
        )
        let page = await browser.get("account", id).text
        #expect(page.contains("cleo-1 &lt;b&gt;") && page.contains("https://id.example.org") && !page.contains("name=\"last\""))
        func form(_ identity: String, last: Bool = false) -> [String: String] {
            let form = id.merging(["action": "disconnect", "identity": identity]) { $1 }
            return last ? form.merging(["last": "1"]) { $1 } : form
        }
        func left() async throws -> [String] { try await fixture.credentials.identities(of: fixture.cleo.id).map(\.id) }
        let question = try await browser.post("account", form(one)).text
        #expect(question.contains("signs in to cleo@example.org no longer") && question.contains("has a password"))
        #expect(question.contains("Sessions that have begun go on"))
        #expect(try await left().count == 2)
        #expect(try await browser.postConfirmed("account", form(one)).status == 303)
        #expect(try await left() == [two])
        #expect(try await browser.postConfirmed("account", form(one)).status == 404)

        // Without a password, the identity is the last way in. The question that was asked before no longer holds.
        try await fixture.credentials.removePassword(of: fixture.cleo.id)
        #expect(try await browser.postConfirmed("account", form(two)).status == 400)
        #expect(try await left() == [two])
        #expect(await browser.get("account", id).text.contains("name=\"last\""))
        #expect(try await browser.post("account", form(two, last: true)).text.contains("nobody can sign in to it"))
        #expect(try await browser.postConfirmed("account", form(two, last: true)).status == 303)
        #expect(try await left() == [])
        let entries = try await fixture.credentials.auditLog(account: fixture.cleo.id)
            .filter { $0.event.action.rawValue == "admin.account.identity-disconnect" }
        #expect(entries.map(\.event.subject) == ["identity \(two)", "identity \(one)"])
        #expect(entries.allSatisfy { $0.event.actor == fixture.anna.id && $0.event.before.contains("at https://id.example.org") })

        // A developer can't open this page.
        let developer = try await fixture.browser(fixture.ben)
        #expect(try await developer.postConfirmed("account", form(two, last: true)).status == 403)
    }
}
