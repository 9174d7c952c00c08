import Foundation
import NIOHTTP1
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole
@testable import TidemarkServer

/// Goal: the pages of people reach a browser unchanged, over a directory and over PostgreSQL. Method: requests over a connection,
/// and one flow over each storage.
@Suite(.timeLimit(.minutes(30))) struct ServedPeopleTests {
    private static let container = "iCloud.org.example.journal"
    private static let form: HTTPHeaders = ["Content-Type": "application/x-www-form-urlencoded"]

    private func signIn(_ server: StubbedServer, _ password: String = "correct horse") async throws -> StubbedServer.Answer {
        let body = "email=anna%40example.org&password=\(PercentCoding.encoded(password))"
        return try await server.send(.POST, "/account/sign-in", headers: Self.form, body: Array(body.utf8))
    }

    @Test func `a person signs in, sees their account, and downloads the archive`() async throws {
        try await StubbedServer.with { server in
            #expect(try await server.send(.GET, "/account").status == 303)
            let reply = try await signIn(server)
            #expect(reply.status == 303 && reply.headers.first(name: "Location") == "/account")
            let cookie = try #require(reply.headers.first(name: "Set-Cookie"))
            #expect(cookie.hasSuffix("; Path=/; HttpOnly; SameSite=Lax"))
            var headers = Self.form
            headers.add(name: "Cookie", value: String(cookie.prefix { $0 != ";" }))
            let page = try await server.send(.GET, "/account", headers: headers)
            #expect(page.status == 200 && page.headers.first(name: "X-Frame-Options") == "DENY")
            #expect(page.headers["Content-Security-Policy"].count == 1)
            let text = String(decoding: page.body, as: UTF8.self)
            let token = String(try #require(text.firstMatch(of: /name="token" value="([^"]+)"/)).1)
            let archive = try await server.send(
                .POST, "/account/export", headers: headers, body: Array("token=\(token)&password=correct%20horse".utf8))
            #expect(archive.status == 200 && archive.headers.first(name: "Content-Type") == "application/x-tar")
            #expect(archive.body.count % 512 == 0 && String(decoding: archive.body, as: UTF8.self).contains("anna@example.org"))
            #expect(!server.logged.contains("correct horse") && !server.logged.contains(token))
            // The cookie opens neither the protocol nor the console.
            #expect(try await server.send(.GET, "/console", headers: headers).status == 303)
        }
    }

    @Test func `an unreadable container is named on an account's page, and in the log with the reason`() async throws {
        try await StubbedServer.with { server in
            let cookie = try #require(try await signIn(server).headers.first(name: "Set-Cookie"))
            let headers: HTTPHeaders = ["Cookie": String(cookie.prefix { $0 != ";" })]
            func page() async throws -> String {
                let reply = try await server.send(.GET, "/account", headers: headers)
                #expect(reply.status == 200)
                return reply.text
            }
            func lines() -> [Substring] {
                server.logged.split(separator: "\n").filter { $0.contains("a container can't be read for a person's page") }
            }
            #expect(try await !page().contains("can&#39;t be read now") && lines().isEmpty)
            let damaged = server.directory.appendingPathComponent("containers/iCloud.org.example.other/production")
            try FileManager.default.createDirectory(at: damaged, withIntermediateDirectories: true)
            try Data(repeating: 7, count: 10_000).write(to: damaged.appendingPathComponent("records.sqlite"))
            let text = try await page()
            #expect(text.contains("What is shared in iCloud.org.example.other (production) can&#39;t be read now."))
            #expect(text.contains("What you have in iCloud.org.example.other can&#39;t be read now"))
            // Only the log names the file.
            #expect(!text.contains("records.sqlite") && !text.contains(server.directory.path))
            let logged = lines()
            #expect(logged.count == 2, "\(logged)")
            for (part, line) in zip(["shares", "usage"], logged) {
                #expect(line.contains(" level=error ") && line.contains(" part=\(part)"), "\(line)")
                #expect(line.contains(" container=iCloud.org.example.other environment=production error=\""), "\(line)")
                // The log does not name the account of the page.
                #expect(!line.contains("anna@example.org"))
            }
        }
    }

    @Test func `the server's address leads a browser to the account page, and a program gets 404`() async throws {
        try await StubbedServer.with { server in
            let opened = try await server.send(.GET, "/", headers: ["Accept": "text/html,application/xhtml+xml,*/*;q=0.8"])
            #expect(opened.status == 303 && opened.headers.first(name: "Location") == "/account")
            for headers in [[:], ["Accept": "*/*"], ["Accept": "application/json"]] as [HTTPHeaders] {
                let reply = try await server.send(.GET, "/", headers: headers)
                #expect(reply.status == 404 && String(decoding: reply.body, as: UTF8.self).contains("NOT_FOUND"))
            }
        }
    }

    @Test func `invalid links get the same answer, and their tokens are not logged`() async throws {
        try await StubbedServer.with { server in
            let token = String(repeating: "Z", count: 32)
            var seen: Set<String> = []
            for path in ["\(Self.container)/development", "\(Self.container)/production", "iCloud.nothing/development"] {
                let reply = try await server.send(.GET, "/share/\(path)/\(token)")
                #expect(reply.status == 404)
                seen.insert(String(decoding: reply.body, as: UTF8.self))
            }
            #expect(seen.count == 1)
            #expect(!server.logged.contains(token))
            let foreign = try await server.send(
                .GET, "/share/\(Self.container)/development/\(token)", headers: ["Origin": "https://evil.example.org"])
            #expect(foreign.status == 403 && foreign.headers.first(name: "Access-Control-Allow-Origin") == nil)
        }
    }

    @Test func `attempts are limited, also those in forms`() async throws {
        try await StubbedServer.with(signInTime: StubbedServer.stoppedTime) { server in
            let cookie = try #require(try await signIn(server).headers.first(name: "Set-Cookie"))
            var headers = Self.form
            headers.add(name: "Cookie", value: String(cookie.prefix { $0 != ";" }))
            let page = String(decoding: try await server.send(.GET, "/account", headers: headers).body, as: UTF8.self)
            let token = String(try #require(page.firstMatch(of: /name="token" value="([^"]+)"/)).1)
            var texts: [String] = []
            for _ in 0..<10 {
                let body = "token=\(token)&action=password&password=wrong%20horse&new=another%20horse&again=another%20horse"
                let reply = try await server.send(.POST, "/account", headers: headers, body: Array(body.utf8))
                texts.append(String(decoding: reply.body, as: UTF8.self))
            }
            #expect(texts.count { $0.contains("The password is wrong.") } == 9)
            #expect(texts.last?.contains("Too many attempts") == true)
            #expect(try await signIn(server).status == 429)
        }
    }

    /// Shares, accepts in a browser, changes the account, and deletes it.
    private func flow(_ cloud: EmbeddedCloud, _ credentials: CredentialStore) async throws {
        try await credentials.addContainer(Self.container)
        let (anna, ben) = (try await cloud.addAccount("anna@example.org"), try await cloud.addAccount("ben@example.org"))
        try await credentials.setPassword("correct horse", of: ben.id)
        try await cloud.open(Self.container, environment: .development)
        let database = try cloud.database(.private, of: Self.container, account: anna.id)
        let zone = CloudZoneID("Trips")
        try await database.modifyZones(saving: [zone], deleting: [])
        let share = try await database.createShare(in: zone, coverage: .zone, title: "Trip ä", publicPermission: .none)
        let invited = try await database.changeShare(
            share.id, [.invite(.emailAddress("ben@example.org"), role: .privateUser, permission: .readOnly)])
        let participant = try #require(invited.participants.first { $0.role == .privateUser })
        let token = try await database.makeLink(to: share.id, for: participant.id).token
        let pages = PeoplePages(cloud, credentials) { email, _ in
            Console.Attempt(account: try await cloud.account(email), isKnown: false)
        } report: {
            Issue.record("\($0)")
        }
        let link = PeoplePages.Link(container: Self.container, environment: .development, token: token)
        #expect(await pages.reply(to: ConsoleRequest(page: ""), link: link).text.contains("<h1>Trip ä</h1>"))
        func signIn(_ email: String) async -> ConsoleReply {
            await pages.reply(
                to: ConsoleRequest(isPost: true, page: "sign-in", form: ["email": email, "password": "correct horse"]))
        }
        let cookie = String(try #require(await signIn(ben.email).header("Set-Cookie")).prefix { $0 != ";" })
        let page = await pages.reply(to: ConsoleRequest(page: "", cookies: cookie)).text
        let formToken = String(try #require(page.firstMatch(of: /name="token" value="([^"]+)"/)).1)
        func post(_ page: String, _ form: [String: String], link: PeoplePages.Link? = nil) async -> ConsoleReply {
            await pages.reply(
                to: ConsoleRequest(
                    isPost: true, page: page, form: form.merging(["token": formToken, "password": "correct horse"]) { $1 },
                    cookies: cookie), link: link)
        }
        #expect(await post("", ["action": "accept"], link: link).status == 303)
        #expect(try await cloud.database(.shared, of: Self.container, account: ben.id).zones().count == 1)
        #expect(await post("", ["action": "profile", "name": "Ben ä", "email": "anna@example.org"]).status == 400)
        #expect(await post("", ["action": "profile", "name": "Ben ä", "email": "ben2@example.org"]).status == 303)
        #expect(try await cloud.account("ben2@example.org")?.name?.title == "Ben ä")
        #expect(await signIn(ben.email).status == 403)
        let exported = await post("export", [:])
        #expect(exported.status == 200, "\(exported.text)")
        #expect(await post("delete", [:]).header("Location") == "/account/sign-in?note=deleted")
        #expect(try await cloud.account(id: ben.id) == nil)
        let log = try await credentials.auditLog(account: ben.id).reversed().map { $0.event.action.rawValue }
        #expect(
            log == [
                "account.sign-in", "share.accept", "account.address", "account.name", "account.export", "account.remove",
            ])
    }

    @Test func `over a directory`() async throws { try await StoredClouds.overDirectory(flow) }

    @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"))
    func `over PostgreSQL`() async throws { try await StoredClouds.overPostgreSQL(flow) }
}
