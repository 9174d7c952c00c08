import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// The pages of people, over the cloud of a ``ConsoleFixture``. Anna shares a zone.
struct PeopleFixture {
    static let baseURL = "https://cloud.example.org"
    static let zone = CloudZoneID("Trips")

    let console: ConsoleFixture
    let pages: PeoplePages

    var cloud: EmbeddedCloud { console.cloud }
    var credentials: CredentialStore { console.credentials }

    init(
        mail: PeopleMail? = nil, provider: (ConsoleFixture) throws -> PeopleProvider? = { _ in nil }
    ) async throws {
        let console = try await ConsoleFixture()
        self.console = console
        pages = PeoplePages(console.cloud, console.credentials, mail: mail, provider: try provider(console)) {
            [cloud = console.cloud, attempts = console.attempts] email, _ in
            let count = attempts.withLock { attempts in
                attempts.append(email)
                return attempts.count { $0 == email }
            }
            if email == "crowded@example.org" || count > 20 { throw Console.Delay(seconds: 7) }
            return Console.Attempt(account: try await cloud.account(email), isKnown: false)
        } report: { [reports = console.reports] reason in
            reports.withLock { $0.append(reason) }
        }
    }

    // Shares

    /// Shares Anna's zone if it is not shared yet, and invites a person.
    ///
    /// - Returns: The share, and a link: for the person alone, or for everybody.
    func link(
        to person: String? = nil, title: String? = "Summer trip", permission: ShareParticipant.Permission = .readWrite,
        isPublic: Bool = false
    ) async throws -> (share: CloudRecordID, link: ShareLink) {
        let database = try cloud.database(.private, of: ConsoleFixture.journal, account: console.anna.id)
        if try await !database.zones().contains(Self.zone) { try await database.modifyZones(saving: [Self.zone], deleting: []) }
        var share = try await database.shares(in: Self.zone).first
        if share == nil {
            share = try await database.createShare(
                in: Self.zone, coverage: .zone, title: title, publicPermission: isPublic ? permission : .none)
        }
        let id = try #require(share).id
        var participant: String?
        if let person {
            let changed = try await database.changeShare(
                id, [.invite(.emailAddress(person), role: .privateUser, permission: permission)])
            participant = changed.participants.first { $0.identity.lookUp == .emailAddress(person) }?.id
        }
        return (id, try await database.makeLink(to: id, for: participant))
    }

    func revoke(_ link: ShareLink, to share: CloudRecordID) async throws {
        try await cloud.database(.private, of: ConsoleFixture.journal, account: console.anna.id).revokeLink(link.id, to: share)
    }

    /// The answer to a stranger who follows a link.
    func follow(
        _ token: String, in container: String = ConsoleFixture.journal, _ environment: StoreEnvironment = .development
    ) async -> ConsoleReply {
        await pages.reply(
            to: ConsoleRequest(page: "", fetchSite: "cross-site", fetchMode: "navigate", baseURL: Self.baseURL),
            link: .init(container: container, environment: environment, token: token))
    }

    // Sessions

    func signIn(
        _ email: String, _ password: String = ConsoleFixture.password, code: String = "", to: String = ""
    ) async -> ConsoleReply {
        await pages.reply(
            to: ConsoleRequest(
                isPost: true, page: "sign-in", form: ["email": email, "password": password, "code": code, "to": to],
                origin: Self.baseURL, fetchSite: "same-origin", userAgent: "Browser/1.0", address: "192.0.2.1",
                baseURL: Self.baseURL))
    }

    /// Signs in as a browser does.
    func browser(_ account: StoredAccount, code: String = "") async throws -> PersonBrowser {
        let reply = await signIn(account.email, code: code)
        try #require(reply.status == 303, "\(reply.text)")
        let cookie = try #require(reply.header("Set-Cookie"))
        return PersonBrowser(fixture: self, cookie: String(cookie.prefix { $0 != ";" }))
    }

    /// The entries of the audit log, the oldest first.
    func log() async throws -> [String] {
        try await credentials.auditLog().reversed().map { "\($0.event.action.rawValue) \($0.event.outcome)" }
    }
}

/// A browser in which a person is signed in to their own pages.
struct PersonBrowser {
    let fixture: PeopleFixture
    let cookie: String

    private func reply(
        _ page: String, _ link: PeoplePages.Link?, _ form: [String: String]?, _ query: [String: String]
    ) async -> ConsoleReply {
        await fixture.pages.reply(
            to: ConsoleRequest(
                isPost: form != nil, page: page, query: query, form: form ?? [:], cookies: "a=b; \(cookie)",
                origin: form == nil ? nil : PeopleFixture.baseURL, fetchSite: form == nil ? "none" : "same-origin",
                fetchMode: "navigate", userAgent: "Browser/1.0", address: "192.0.2.1", baseURL: PeopleFixture.baseURL), link: link
        )
    }

    func get(_ page: String = "", _ link: PeoplePages.Link? = nil, query: [String: String] = [:]) async -> ConsoleReply {
        await reply(page, link, nil, query)
    }

    /// Posts a form with the token that the pages have.
    func post(
        _ page: String = "", _ form: [String: String], link: PeoplePages.Link? = nil, token: String? = nil
    ) async throws -> ConsoleReply {
        let given: String = if let token { token } else { try await self.token() }
        return await reply(page, link, form.merging(["token": given]) { $1 }, [:])
    }

    func token() async throws -> String {
        String(try #require(await get().text.firstMatch(of: /name="token" value="([^"]+)"/)).1)
    }
}
