import AsyncHTTPClient
import Foundation
import NIOHTTP1
import Testing
import Tidemark

@testable import webjournal

/// Goal: a browser is signed in as long as the person's session with the cloud lasts, and what was saved is sent by the next one. Method: a
/// site whose accounts have passwords and sessions that end, and another device of the person's.
@Suite(.timeLimit(.minutes(30))) struct SessionTests {
    private static let ada = "ada@example.org"

    /// Waits until another device of Ada's has got a place.
    private func expect(_ caption: String, in accounts: PasswordAccounts, _ site: TestSite) async throws {
        let device = try await accounts.device(of: Self.ada, in: site.folder.appendingPathComponent("device-\(caption)"))
        let changed = await device.changed()
        func isThere() async throws -> Bool {
            try await device.gallery(after: nil).cards.contains { $0.destination.caption == caption }
        }
        if try await !isThere() { for await _ in changed where try await isThere() { break } }
        try await device.close()
    }

    @Test func `a new password signs out all browsers, and the next sign-in sends what waits`() async throws {
        try await TestSite.run(accounts: PasswordAccounts.init) { site, accounts in
            let laptop = try await site.browser(of: Self.ada, password: "one")
            _ = try await laptop.add("Reine")
            let events = try await laptop.events()
            accounts.setPassword("two")
            // The page that follows the journal is told.
            for try await _ in events {}
            #expect(try await laptop.get("/").status == .seeOther)
            let question = try await laptop.get("/sign-in")
            #expect(question.text.contains("Your sign-in has ended."))
            #expect(try await laptop.signIn(Self.ada, password: "one").status == .forbidden)
            #expect(try await laptop.signIn(Self.ada, password: "two").status == .seeOther)
            _ = try await laptop.add("Uyuni", photo: "uyuni.jpg")
            try await expect("Uyuni", in: accounts, site)
            #expect(accounts.sessionCount == 1)
        }
    }

    @Test func `a sign-in takes the place of a session that has ended unnoticed, and of its browsers`() async throws {
        try await TestSite.run(accounts: PasswordAccounts.init) { site, accounts in
            let stolen = try await site.browser(of: Self.ada, password: "one")
            _ = try await stolen.add("Reine")
            try await expect("Reine", in: accounts, site)
            accounts.setPassword("two", isQuiet: true)
            #expect(try await stolen.get("/").status == .ok)
            let phone = try await site.browser(of: Self.ada, password: "two")
            #expect(try await stolen.get("/").status == .seeOther)
            #expect(accounts.sessionCount == 1)
            #expect(try await phone.get("/").text.contains("Reine"))
            _ = try await phone.add("Uyuni", photo: "uyuni.jpg")
            try await expect("Uyuni", in: accounts, site)
            #expect(try await phone.get("/").status == .ok)
        }
    }

    @Test func `a page that the cloud refuses says so, and the browser is signed out`() async throws {
        try await TestSite.run(accounts: PasswordAccounts.init) { site, accounts in
            let ada = try await site.browser(of: Self.ada, password: "one")
            _ = try await ada.add("Reine")
            try await expect("Reine", in: accounts, site)
            accounts.setPassword("two", isQuiet: true)
            let refused = try await ada.get("/invitations/abc")
            #expect(refused.status == .forbidden)
            #expect(refused.text.contains("The cloud has ended your sign-in"))
            #expect(try await ada.get("/").status == .seeOther)
        }
    }

    @Test func `the page of a browser that is signed out stops following, although others go on`() async throws {
        func configure(_ site: inout Site) { site.pulse = .milliseconds(50) }
        try await TestSite.run(accounts: PasswordAccounts.init, configure) { site, accounts in
            let stolen = try await site.browser(of: Self.ada, password: "one")
            // Until the synchronisation has begun, it asks who is signed in.
            _ = try await stolen.add("Reine")
            try await expect("Reine", in: accounts, site)
            let events = try await stolen.events()
            accounts.setPassword("two", isQuiet: true)
            let phone = try await site.browser(of: Self.ada, password: "two")
            for try await _ in events {}
            #expect(try await phone.get("/").status == .ok)
        }
    }

    @Test func `browsers share a session with the cloud, which the last one ends`() async throws {
        try await TestSite.run(accounts: PasswordAccounts.init) { site, accounts in
            let laptop = try await site.browser(of: Self.ada, password: "one")
            let phone = try await site.browser(of: Self.ada, password: "one")
            #expect(accounts.sessionCount == 1)
            _ = try await laptop.get("/")
            #expect(try await laptop.post("/sign-out", [:]).status == .seeOther)
            #expect(try await phone.get("/").status == .ok)
            #expect(accounts.sessionCount == 1)
            #expect(try await phone.post("/sign-out", [:]).status == .seeOther)
            #expect(accounts.sessionCount == 0)
        }
    }

    @Test func `a journal stays open for a sign-in under way, when the person's last other browser signs out`() async throws {
        try await TestSite.run(accounts: PasswordAccounts.init) { site, accounts in
            let first = try await site.sessions.begin(try await accounts.signIn(email: Self.ada, password: "one"))
            let member = try await accounts.signIn(email: Self.ada, password: "one")
            // The cloud takes its time to end the session that is not needed.
            let slow = Member(person: member.person, databases: member.databases) {
                await site.sessions.end(first.id)
                try await member.end()
            }
            let second = try await site.sessions.begin(slow)
            #expect(await site.sessions.find(second.id) != nil)
            #expect(try await second.journal.gallery(after: nil).cards.isEmpty)
        }
    }
}
