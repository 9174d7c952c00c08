import Foundation
import NIOHTTP1
import TestServers
import TestSupport
import Testing
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkOpenID

@testable import TidemarkConsole
@testable import TidemarkServer

/// Goal: people sign in with an identity provider to their own pages and for programs, at any of several servers. Method: a
/// server and a provider on ports of this machine, and one flow over each storage.
@Suite(.timeLimit(.minutes(30))) struct ServedProviderTests {
    private static let baseURL = "https://cloud.example.org"

    /// A browser with its cookies.
    private final class Browser {
        let (server, host): (StubbedServer, ProviderHost)
        var cookies: [String: String] = [:]

        init(_ server: StubbedServer, _ host: ProviderHost) { (self.server, self.host) = (server, host) }

        func send(_ path: String, form: [String: String]? = nil, fromOther: Bool = false) async throws -> StubbedServer.Answer {
            var headers: HTTPHeaders = ["Host": "cloud.example.org", "Sec-Fetch-Mode": "navigate"]
            headers.add(name: "Sec-Fetch-Site", value: fromOther ? "cross-site" : form == nil ? "none" : "same-origin")
            if !cookies.isEmpty {
                headers.add(name: "Cookie", value: cookies.map { "\($0)=\($1)" }.joined(separator: "; "))
            }
            var body: [UInt8]?
            if let form {
                headers.add(name: "Origin", value: ServedProviderTests.baseURL)
                headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
                body = Array(form.map { "\($0)=\(PercentCoding.encoded($1))" }.joined(separator: "&").utf8)
            }
            let reply = try await server.send(form == nil ? .GET : .POST, path, headers: headers, body: body)
            for header in reply.headers["Set-Cookie"] {
                let pair = header.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                cookies[String(pair[0])] = header.contains("Max-Age=0") ? nil : String(pair[1])
            }
            return reply
        }

        /// Follows the redirects to the provider and back.
        func comeBack(from address: String) async throws -> StubbedServer.Answer {
            let back = try await host.follow(address).address
            #expect(back.hasPrefix(ProviderHost.redirectURI + "?"))
            return try await send(String(back.dropFirst(ServedProviderTests.baseURL.count)), fromOther: true)
        }

        /// The address to which a page refreshes.
        func refresh(_ reply: StubbedServer.Answer) throws -> String {
            let match = try #require(reply.text.firstMatch(of: /http-equiv="refresh" content="0; url=([^"]+)"/), "\(reply.text)")
            return String(match.1).replacing("&amp;", with: "&")
        }

        /// Signs in with a password, and connects the provider's current identity.
        func connect() async throws {
            _ = try await send("/account/sign-in", form: ["email": "anna@example.org", "password": "correct horse"])
            let token = try field("token", try await send("/account").text)
            let bridge = try await send(
                "/account", form: ["token": token, "action": "connect", "password": "correct horse"])
            let connected = try await comeBack(from: try refresh(bridge))
            #expect(connected.headers.first(name: "Location") == "/account?done=identity", "\(connected.text)")
        }

        func field(_ name: String, _ html: String) throws -> String {
            let start = try #require(html.range(of: "name=\"\(name)\" value=\""))
            return String(html[start.upperBound...].prefix { $0 != "\"" })
        }
    }

    private func with(
        callback: SignInCallback? = nil, signsUp: Bool = false, limits: ServerLimits = ServerLimits(),
        _ body: @escaping @Sendable (StubbedServer, ProviderHost) async throws -> Void
    ) async throws {
        let host = try ProviderHost(.init("anna-1", email: "anna@example.net"))
        let provider = try OpenIDProvider(
            host.issuer, clientID: ProviderHost.clientID, clientSecret: ProviderHost.clientSecret, name: "Example",
            signsUp: signsUp)
        try await StubbedServer.with(
            limits: limits, publicURL: Self.baseURL, identityProvider: provider, callback: callback,
            signInTime: StubbedServer.stoppedTime
        ) { try await body($0, host) }
        #expect(host.wrongs.isEmpty, "\(host.wrongs)")
    }

    @Test func `a person connects an identity, and signs in with it`() async throws {
        try await with { server, host in
            let anna = Browser(server, host)
            try await anna.connect()
            let browser = Browser(server, host)
            #expect(try await browser.send("/account/sign-in").text.contains("Sign in with Example"))
            let begun = try await browser.send("/account/provider?to=share%2Fa%2Fproduction%2Fb")
            #expect(begun.status == 303 && begun.headers.first(name: "Cache-Control") == "no-store")
            let address = try #require(begun.headers.first(name: "Location"))
            #expect(address.hasPrefix("\(host.issuer)/authorize?response_type=code&client_id=tidemark-tests&"))
            let back = try await browser.comeBack(from: address)
            #expect(back.status == 303 && back.headers.first(name: "Location") == "/share/a/production/b", "\(back.text)")
            #expect(back.headers["Set-Cookie"].count == 2)
            #expect(try await browser.send("/account").text.contains("anna@example.org"))
            // No secret is in the log.
            let secrets =
                host.forms("/token").flatMap { [$0["code"], $0["code_verifier"]] }.compactMap { $0 } + [ProviderHost.clientSecret]
            #expect(secrets.count == 5 && secrets.allSatisfy { !server.logged.contains($0) })
        }
    }

    /// The path and query of the sign-in page of a program.
    private func page(_ server: StubbedServer) async throws -> String {
        let answer = try await server.send(
            .POST, server.path("records/query", database: "private", query: server.api), headers: ["Host": "cloud.example.org"])
        return String(try #require(answer.json["redirectURL"] as? String).dropFirst(Self.baseURL.count))
    }

    @Test func `a person who signs in for a program with the provider returns to it with a token`() async throws {
        try await with { server, host in
            try await Browser(server, host).connect()
            for (stay, kind) in [("0", Session.Kind.web(staysSignedIn: false)), ("1", .web(staysSignedIn: true))] {
                let browser = Browser(server, host)
                let form = try await browser.send(try await page(server))
                #expect(form.text.contains("value=\"provider\" formnovalidate>Sign in with Example"))
                let bridge = try await browser.send(
                    "/signin", form: ["form": try browser.field("form", form.text), "with": "provider", "stay": stay])
                let begun = try await browser.send(try browser.refresh(bridge))
                // The window that opened this one can still get its session.
                #expect(begun.headers["Cross-Origin-Opener-Policy"] == ["unsafe-none"])
                let back = try await browser.comeBack(from: try #require(begun.headers.first(name: "Location")))
                #expect(back.status == 303 && back.headers.first(name: "Location") == "/signin/provider", "\(back.text)")
                let kept = browser.cookies
                let done = try await browser.send("/signin/provider", fromOther: true)
                let start = "https://journal.example.org/in?x=1&ckWebAuthToken="
                let location = try #require(done.headers.first(name: "Location"), "\(done.text)")
                #expect(done.status == 303 && location.hasPrefix(start))
                let session = try await server.access.session(String(location.dropFirst(start.count))).get()
                #expect(session.kind == kind)
                // The browser is a known device now, but has no session of pages.
                #expect(browser.cookies.keys.sorted() == ["__Host-tidemark-device"])
                #expect(try await browser.send("/signin/provider").status == 400)
                browser.cookies = kept.mapValues { $0 + "A" }
                #expect(try await browser.send("/signin/provider").status == 400)
            }
            let log = try await server.access.auditLog(limit: 2).map(\.event)
            #expect(log.allSatisfy { $0.action == .signIn && $0.outcome == "done" && $0.after.hasPrefix("identity ") })
        }
    }

    @Test func `a popup gets the token, unless the identity was disconnected meanwhile`() async throws {
        try await with(callback: .popup(origin: "https://journal.example.org"), signsUp: true) { server, host in
            func signIn(_ before: (Browser) async throws -> Void) async throws -> StubbedServer.Answer {
                let browser = Browser(server, host)
                let form = try await browser.send(try await page(server))
                let bridge = try await browser.send(
                    "/signin", form: ["form": try browser.field("form", form.text), "with": "provider"])
                let begun = try await browser.send(try browser.refresh(bridge))
                _ = try await browser.comeBack(from: try #require(begun.headers.first(name: "Location")))
                try await before(browser)
                return try await browser.send("/signin/provider", fromOther: true)
            }
            // The first identity has no account yet.
            let done = try await signIn { _ in }
            #expect(done.status == 200 && done.text.contains("}, \"https://journal.example.org\")"), "\(done.text)")
            let key = IdentityKey(issuer: host.issuer, subject: "anna-1")
            let account = try #require(try await server.access.account(of: key))
            let refused = try await signIn { _ in
                try await server.access.setPassword("correct horse", of: account)
                _ = try await server.access.disconnect(key.id, from: account)
            }
            #expect(refused.status == 403 && refused.text.contains("was disconnected"))
        }
    }

    @Test func `answers of the provider are limited for each address`() async throws {
        var limits = ServerLimits()
        limits.signInAttempts = 2
        try await with(limits: limits) { server, host in
            var statuses: [Int] = []
            for _ in 0..<11 {
                let browser = Browser(server, host)
                let begun = try await browser.send("/account/provider")
                statuses.append(try await browser.comeBack(from: try #require(begun.headers.first(name: "Location"))).status)
            }
            // Five times as many attempts as to one account.
            #expect(statuses == Array(repeating: 403, count: 10) + [429])
            #expect(host.count("/token") == 10)
        }
    }

    /// Connects an identity; the sign-in begins at one server, and comes back to another one.
    private func flow(_ cloud: EmbeddedCloud, _ credentials: CredentialStore, _ others: CredentialStore) async throws {
        let host = try ProviderHost(.init("anna-1", email: "anna@example.net"))
        let provider = try OpenIDProvider(
            host.issuer, clientID: ProviderHost.clientID, clientSecret: ProviderHost.clientSecret, signsUp: true)
        func pages(_ credentials: CredentialStore) -> PeoplePages {
            PeoplePages(
                cloud, credentials, provider: PeopleProvider(OpenIDClient(provider), serverURL: Self.baseURL)
            ) { email, _ in
                Console.Attempt(account: try await cloud.account(email), isKnown: false)
            } report: {
                Issue.record("\($0)")
            }
        }
        let (one, two) = (pages(credentials), pages(others))
        func signIn() async throws -> ConsoleReply {
            let begun = await one.reply(to: ConsoleRequest(page: "provider", baseURL: Self.baseURL))
            let cookie = String(try #require(begun.header("Set-Cookie"), "\(begun.text)").prefix { $0 != ";" })
            let query = try await host.follow(try #require(begun.header("Location"))).query
            return await two.reply(to: ConsoleRequest(page: "callback", query: query, cookies: cookie, baseURL: Self.baseURL))
        }
        let made = try await signIn()
        #expect(made.status == 303 && made.header("Location") == "/account", "\(made.text)")
        let account = try #require(try await cloud.account("anna@example.net"))
        #expect(try await credentials.identities(of: account.id).map(\.label) == ["anna@example.net"])
        let again = try await signIn()
        let cookie = String(try #require(again.header("Set-Cookie")).prefix { $0 != ";" })
        let shown = await one.reply(to: ConsoleRequest(page: "", cookies: cookie, baseURL: Self.baseURL))
        #expect(shown.status == 200 && shown.text.contains("anna@example.net"))
        _ = try await others.removeAccount(account.id)
        #expect(try await credentials.account(of: IdentityKey(issuer: host.issuer, subject: "anna-1")) == nil)
        let log = try await credentials.auditLog(account: account.id).reversed().map { $0.event.action.rawValue }
        #expect(log == ["account.sign-up", "account.sign-in", "account.sign-in"])
    }

    @Test func `over a directory`() async throws {
        try await StoredClouds.overDirectory { cloud, credentials in
            let other = try CredentialStore(at: try #require(credentials.directory), now: Timestamp.now, passwordLogN: 4)
            try await flow(cloud, credentials, other)
        }
    }

    @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"))
    func `over PostgreSQL`() async throws {
        try await StoredClouds.overPostgreSQL { cloud, credentials in try await flow(cloud, credentials, credentials) }
    }
}
