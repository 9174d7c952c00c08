import Foundation
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkIdentity

@testable import TidemarkConsole

/// Goal: a person with a second factor is asked for its code without an alarm, knows how many recovery codes are left, and makes
/// new ones. Method: the pages of people and of operators, with a clock that the test moves.
@Suite(.timeLimit(.minutes(30))) struct SecondFactorPageTests {
    /// Gives an account a second factor.
    ///
    /// - Returns: Its recovery codes.
    private func setUp(_ account: StoredAccount, _ credentials: CredentialStore) async throws -> [String] {
        let made = credentials.newSecondFactor(of: account.id)
        let code = TimeCode.code(try PersonPageTests.bytes(made.secret), step: credentials.time / 30_000_000)
        return try #require(try await credentials.setSecondFactor(of: account.id, to: made.form, code: code))
    }

    private func codes(_ text: String) -> [String] {
        text.matches(of: /[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}/).map { String($0.0) }
    }

    @Test func `the request for a code is shown as a hint, and a wrong code as an error`() async throws {
        let fixture = try await PeopleFixture()
        let (credentials, anna) = (fixture.credentials, fixture.console.anna)
        _ = try await setUp(anna, credentials)
        func console(_ code: String) async -> ConsoleReply {
            await fixture.console.console.reply(
                to: ConsoleRequest(
                    isPost: true, page: "sign-in",
                    form: ["email": anna.email, "password": ConsoleFixture.password, "code": code]))
        }
        for reply in [await fixture.signIn(anna.email), await console("")] {
            #expect(reply.status == 403 && reply.text.contains("name=\"code\""))
            #expect(reply.text.contains("class=\"notice info\"") && reply.text.contains("type the password again"))
            #expect(!reply.text.contains("role=\"alert\"") && !reply.text.contains("aria-invalid"))
        }
        for reply in [await fixture.signIn(anna.email, code: "000000"), await console("000000")] {
            #expect(reply.status == 403 && reply.text.contains("name=\"code\""))
            #expect(reply.text.contains("role=\"alert\"") && reply.text.contains("The code is wrong"))
        }
    }

    @Test
    func `a code can be entered together with the password, and a question says why it asks for the password`() async throws {
        let fixture = try await PeopleFixture()
        let (credentials, anna) = (fixture.credentials, fixture.console.anna)
        let codes = try await setUp(anna, credentials)
        let blank = await fixture.console.console.reply(to: ConsoleRequest(page: "sign-in"))
        #expect(blank.text.contains("only if the account has a second factor") && !blank.text.contains("<details"))
        #expect(blank.text.contains("name=\"code\"") && blank.text.firstMatch(of: /name="code"[^>]*required/) == nil)
        let form = ["email": anna.email, "password": ConsoleFixture.password, "code": codes[0]]
        let reply = await fixture.console.console.reply(to: ConsoleRequest(isPost: true, page: "sign-in", form: form))
        #expect(reply.status == 303)
        let cookie = String(try #require(reply.header("Set-Cookie")).prefix { $0 != ";" })
        let browser = Browser(fixture: fixture.console, cookie: cookie, baseURL: "http://localhost")
        // The password was entered just now; a form that asks for it again says so.
        let link = ["id": fixture.console.cleo.email, "action": "link"]
        #expect(try await browser.post("account", link).text.contains("also right after you have signed in"))
        let out = ["id": fixture.console.cleo.email, "action": "sign-out"]
        #expect(try await !browser.post("account", out).text.contains("type=\"password\""))
        fixture.console.advance(minutes: 11)
        #expect(try await browser.post("account", out).text.contains("you entered it more than 10 minutes ago"))
    }

    @Test func `a new secret is shown as a QR code, as text and as an address, all with the same secret`() async throws {
        let fixture = try await PeopleFixture()
        let (anna, cleo) = (fixture.console.anna, fixture.console.cleo)
        let person = try await fixture.browser(cleo)
        let pages = [
            (anna, try await fixture.console.browser(anna).postConfirmed("me", ["action": "begin"])),
            (cleo, try await person.post("second-factor", ["action": "begin"])),
        ]
        for (account, page) in pages {
            let secret = String(try #require(page.text.firstMatch(of: /secret=([A-Z2-7]+)/)).1)
            let email = account.email.replacing("@", with: "%40")
            let address = "otpauth://totp/Tidemark:\(email)?secret=\(secret)&issuer=Tidemark"
            let symbol = try #require(QRSymbol(address)).picture("QR code of the secret, which follows as text")
            #expect(page.status == 200 && page.text.contains(symbol.text))
            #expect(page.text.replacing(" ", with: "").contains(">\(secret)</pre>"))
            #expect(page.text.contains(">\(HTML(address).text)</pre>"))
        }
        // After a wrong code the QR code can still be scanned.
        let pending = String(try #require(pages[1].1.text.firstMatch(of: /name="factor" value="([^"]+)"/)).1)
        let refused = try await person.post("second-factor", ["action": "set", "factor": pending, "code": "000000"])
        #expect(refused.status == 400 && refused.text.contains("<svg class=\"symbol\""))
    }

    @Test func `people see how many recovery codes are left, and make new ones with the password each time`() async throws {
        let fixture = try await PeopleFixture()
        let (credentials, cleo) = (fixture.credentials, fixture.console.cleo)
        let browser = try await fixture.browser(cleo)
        #expect(await !browser.get().text.contains("Make new recovery codes"))
        let before = try await setUp(cleo, credentials)
        #expect(await fixture.signIn(cleo.email, code: before[0]).status == 303)
        let page = await browser.get().text
        #expect(page.contains("set up, 7 recovery codes left") && page.contains("Make new recovery codes…"))
        let form = ["action": "codes"]
        #expect(try await browser.post("second-factor", form).text.contains("Your password"))
        let wrong = try await browser.post("second-factor", form.merging(["confirmed": "1", "password": "wrong horse"]) { $1 })
        #expect(wrong.status == 403 && codes(wrong.text).isEmpty)
        let confirmed = form.merging(["confirmed": "1", "password": ConsoleFixture.password]) { $1 }
        let made = try await browser.post("second-factor", confirmed)
        let after = codes(made.text)
        #expect(made.status == 200 && after.count == 8 && Set(after).isDisjoint(with: before))
        // The page links to the account.
        #expect(made.text.contains("<a class=\"button\" href=\"/account\">"))
        #expect(await browser.get().text.contains("set up, 8 recovery codes left"))
        #expect(await fixture.signIn(cleo.email, code: before[1]).status == 403)
        #expect(await fixture.signIn(cleo.email, code: after[0]).status == 303)
        #expect(try await fixture.log().contains("account.second-factor.codes done"))
    }

    @Test func `operators make new recovery codes for themselves`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let before = try await setUp(fixture.anna, fixture.credentials)
        #expect(await browser.get("me").text.contains("set up, 8 recovery codes left"))
        // The password is asked for each time.
        let refused = try await browser.post("me", ["action": "codes", "confirmed": "1"])
        #expect(refused.status == 403 && codes(refused.text).isEmpty)
        let made = try await browser.postConfirmed("me", ["action": "codes"])
        #expect(made.status == 200 && codes(made.text).count == 8 && made.text.contains("/console/me?"))
        #expect(try await !fixture.credentials.useSecondFactor(of: fixture.anna.id, code: before[0]))
        #expect(try await fixture.credentials.useSecondFactor(of: fixture.anna.id, code: codes(made.text)[0]))
        let log = try await fixture.credentials.auditLog().map(\.event.action.rawValue)
        #expect(log.contains("admin.second-factor.codes"))
        // Without a second factor there are no recovery codes.
        try await fixture.credentials.removeSecondFactor(of: fixture.anna.id)
        #expect(try await browser.postConfirmed("me", ["action": "codes"]).status == 409)
    }
}
