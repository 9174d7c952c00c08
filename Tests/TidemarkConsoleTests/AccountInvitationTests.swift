import Testing
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: an operator adds an account in the console as the command does, and only the person has its password.
/// Method: the form with addresses that can and can't be, by an operator and a developer, and the link that it shows.
@Suite(.timeLimit(.minutes(30))) struct AccountInvitationTests {
    private static let form = ["action": "add", "email": " Ines@example.org ", "name": "Ines Moe"]

    @Test func `an operator adds an account, and the person sets the password by the link and signs in`() async throws {
        let people = try await PeopleFixture()
        let fixture = people.console
        let browser = try await fixture.browser(fixture.anna)
        #expect(await browser.get("accounts").text.contains("<summary>Add an account</summary>"))
        let asked = try await browser.post("accounts", Self.form)
        #expect(asked.status == 200 && asked.text.contains("<h1>Add the account?</h1>"))
        #expect(asked.text.contains("name=\"name\" value=\"Ines Moe\""))
        let wrong = try await browser.post("accounts", Self.form.merging(["confirmed": "1", "password": "wrong"]) { $1 })
        #expect(wrong.status == 403)
        #expect(try await fixture.cloud.account("ines@example.org") == nil)

        let made = try await browser.postConfirmed("accounts", Self.form)
        #expect(made.status == 200 && made.text.contains("The account is added, without a password"))
        let account = try #require(try await fixture.cloud.account("ines@example.org"))
        #expect(account.name?.title == "Ines Moe" && account.quota == StoredAccount.servedQuota)
        #expect(try await !fixture.credentials.hasPassword(account.id))
        let log = try await fixture.credentials.auditLog(account: account.id).map(\.event)
        #expect(log.map(\.action.rawValue) == ["admin.account.password-link", "admin.account.add"])
        #expect(log.allSatisfy { $0.actor == fixture.anna.id })

        let key = try #require(made.text.firstMatch(of: /http:\/\/localhost:8080\/account\/password\?key=([^<]+)</)).1
        let form = ["key": String(key), "new": "a horse of Ines", "again": "a horse of Ines"]
        let set = await people.pages.reply(to: ConsoleRequest(isPost: true, page: "password", form: form))
        #expect(set.status == 303)
        #expect(await people.signIn("ines@example.org", "a horse of Ines").status == 303)
    }

    @Test
    func `an invalid new account is refused before a password is asked for, and the form keeps what was typed`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let line = "a\u{8}b"
        for (email, name, status, message) in [
            ("CLEO@example.org", "Ines", 409, "There is an account cleo@example.org already"),
            ("\"typed\" & kept", "Ines", 400, "is no address of an account"), ("", "Ines", 400, "is no address of an account"),
            ("ines@example.org", line, 400, "A name has 255 bytes at the most"),
            ("ines@example.org", String(repeating: "x", count: 256), 400, "A name has 255 bytes at the most"),
        ] {
            let form = ["action": "add", "email": email, "name": name]
            let refused = try await browser.post("accounts", form)
            #expect(refused.status == status && refused.text.contains(message), "\(email), \(name)")
            #expect(refused.text.contains("<details open><summary>Add an account"), "\(email), \(name)")
            #expect(
                refused.text.contains(
                    "name=\"email\" inputmode=\"email\" autocomplete=\"off\" required maxlength=\"255\" value=\"\(HTML(email).text)\""
                ))
            #expect(refused.text.contains("value=\"\(HTML(name).text)\""))
            #expect(try await browser.postConfirmed("accounts", form).status == status)
        }
        #expect(try await fixture.cloud.allAccounts().count == 3)
        #expect(try await browser.post("accounts", ["email": "ines@example.org"]).status == 400)
    }

    @Test func `a developer can't add an account`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.ben)
        #expect(try await browser.postConfirmed("accounts", Self.form).status == 403)
        #expect(try await fixture.cloud.account("ines@example.org") == nil)
    }
}
