import NIOHTTP1
import Testing
import Tidemark

@testable import webjournal

/// Goal: a person signs in to an account with a second factor by its code. Method: accounts of the test's own, and a browser without scripts.
@Suite(.timeLimit(.minutes(30))) struct SignInTests {
    /// The people of the demonstration, with a password and a second factor.
    private struct GuardedAccounts: Accounts {
        let demo: DemoAccounts
        var demonstrators: [Person] { [] }

        func signIn(email: String, password: String, code: String?) async throws -> Member {
            guard password == "correct horse" else { throw CloudError(.notAuthenticated, "wrong") }
            guard code == "123456" else { throw CloudError(.secondFactorRequired, "give a code") }
            return try await demo.signIn(email: email, password: "", code: nil)
        }
    }

    @Test func `the page asks for a code once the password was right`() async throws {
        try await TestSite.run(accounts: GuardedAccounts.init(demo:)) { site, _ in
            let browser = site.browser()
            #expect(try await !browser.get("/sign-in").text.contains("name=\"code\""))
            // Of another account: an address has three attempts a minute to one.
            let wrong = ["email": "ben@example.org", "password": "wrong horse"]
            let refused = try await browser.post("/sign-in", wrong)
            #expect(refused.status == .forbidden && !refused.text.contains("name=\"code\""))
            var form = ["email": "ada@example.org", "password": "correct horse"]
            let asked = try await browser.post("/sign-in", form)
            #expect(asked.status == .forbidden && asked.text.contains("name=\"code\""))
            #expect(asked.text.contains("value=\"ada@example.org\"") && !asked.text.contains("correct horse"))
            form["code"] = "000000"
            #expect(try await browser.post("/sign-in", form).text.contains("The code is wrong"))
            form["code"] = "123456"
            #expect(try await browser.post("/sign-in", form).status == .seeOther)
            #expect(try await browser.get("/").status == .ok)
        }
    }
}
