import Foundation
import NIOHTTP1
import TestSupport
import Testing
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkServer

/// Goal: people sign in on a page, for a program. Method: requests as a browser without scripts sends them.
@Suite(.timeLimit(.minutes(30))) struct SignInPageTests {
    /// The address of the page, from the answer to a client that has to sign in.
    private func page(_ server: StubbedServer) async throws -> String {
        let answer = try await server.send(.POST, server.path("records/query", database: "private", query: server.api))
        let address = try #require(answer.json["redirectURL"] as? String)
        return String(address.dropFirst("http://127.0.0.1:\(server.port)".count))
    }

    private func field(_ name: String, _ html: String) throws -> String {
        let start = try #require(html.range(of: "name=\"\(name)\" value=\""))
        return String(html[start.upperBound...].prefix { $0 != "\"" })
    }

    private func send(
        _ server: StubbedServer, _ fields: [String: String], headers: HTTPHeaders = [:]
    ) async throws
        -> StubbedServer.Answer
    {
        let body = fields.map { "\($0)=\(PercentCoding.encoded($1))" }.joined(separator: "&")
        return try await server.send(.POST, "/signin", headers: headers, body: Array(body.utf8))
    }

    @Test func `signing in leads back to the program with a token`() async throws {
        try await StubbedServer.with { server in
            let form = try await server.send(.GET, page(server))
            #expect(form.status == 200)
            #expect(form.headers.first(name: "Content-Type") == "text/html; charset=UTF-8")
            #expect(form.headers.first(name: "Cache-Control") == "no-store")
            #expect(form.headers.first(name: "X-Frame-Options") == "DENY")
            #expect(form.headers.first(name: "Referrer-Policy") == "same-origin")
            let policy = try #require(form.headers.first(name: "Content-Security-Policy"))
            #expect(policy.contains("default-src 'none'") && policy.contains("form-action 'self' https://journal.example.org;"))
            #expect(!policy.contains("script-src"))
            let sealed = try field("form", form.text)

            for (stay, kind) in [(nil, Session.Kind.web(staysSignedIn: false)), ("1", .web(staysSignedIn: true))] {
                var fields = ["form": sealed, "email": "anna@example.org", "password": "correct horse"]
                fields["stay"] = stay
                let done = try await send(server, fields)
                #expect(done.status == 303)
                let cookie = try #require(done.headers.first(name: "Set-Cookie"))
                #expect(cookie.hasPrefix("tidemark-device=") && cookie.contains("; HttpOnly; SameSite=Strict"))
                let location = try #require(done.headers.first(name: "Location"))
                let start = "https://journal.example.org/in?x=1&ckWebAuthToken="
                #expect(location.hasPrefix(start))
                #expect(try await server.access.session(String(location.dropFirst(start.count))).get().kind == kind)
            }
        }
    }

    @Test func `a popup posts the token to the registered origin`() async throws {
        try await StubbedServer.with(callback: .popup(origin: "https://journal.example.org")) { server in
            let sealed = try await field("form", server.send(.GET, page(server)).text)
            let done = try await send(server, ["form": sealed, "email": "anna@example.org", "password": "correct horse"])
            #expect(done.status == 200)
            #expect(done.text.contains("postMessage({ckWebAuthToken: \""))
            #expect(done.text.contains("}, \"https://journal.example.org\")"))
            let nonce = try #require(done.text.range(of: "<script nonce=\"")).upperBound
            let policy = try #require(done.headers.first(name: "Content-Security-Policy"))
            #expect(policy.contains("script-src 'nonce-\(done.text[nonce...].prefix { $0 != "\"" })'"))
        }
    }

    @Test func `a wrong password and an unknown account get the same page`() async throws {
        try await StubbedServer.with { server in
            let sealed = try await field("form", server.send(.GET, page(server)).text)
            let wrong = try await send(server, ["form": sealed, "email": "anna@example.org", "password": "wrong horse"])
            let unknown = try await send(server, ["form": sealed, "email": "emma@example.org", "password": "wrong horse"])
            #expect(wrong.status == 403 && unknown.status == 403)
            #expect(wrong.text.contains("role=\"alert\">The e-mail address or the password is wrong."))
            #expect(unknown.text.contains("role=\"alert\">The e-mail address or the password is wrong."))
            #expect(wrong.body.count == unknown.body.count)
        }
    }

    @Test func `a form that is forged, of another page or missing is refused`() async throws {
        try await StubbedServer.with { server in
            let address = try await page(server)
            let sealed = try await field("form", server.send(.GET, address).text)
            let fields = ["form": sealed, "email": "anna@example.org", "password": "correct horse"]
            #expect(try await send(server, fields, headers: ["Sec-Fetch-Site": "cross-site"]).status == 403)
            #expect(try await send(server, fields, headers: ["Sec-Fetch-Site": "same-origin"]).status == 303)
            // The value in the page's address can't be used as the form's, and the other way round.
            let carried = String(address.dropFirst("/signin?for=".count))
            for form in [carried, sealed + "A", ""] {
                #expect(
                    try await send(server, ["form": form, "email": "anna@example.org", "password": "correct horse"]).status == 400
                )
            }
            for path in ["/signin", "/signin?for=", "/signin?for=\(sealed)", "/signin?for=%00"] {
                #expect(try await server.send(.GET, path).status == 400)
            }
        }
    }

    @Test func `typed text comes back escaped`() async throws {
        try await StubbedServer.with { server in
            let sealed = try await field("form", server.send(.GET, page(server)).text)
            let answer = try await send(server, ["form": sealed, "email": "\"><script>x</script>", "password": "wrong horse"])
            #expect(!answer.text.contains("<script"))
            #expect(answer.text.contains("value=\"&quot;&gt;&lt;script&gt;"))
        }
    }

    @Test func `attempts on the page and of devices are limited together`() async throws {
        var limits = ServerLimits()
        limits.signInAttempts = 3
        // The time does not pass: with three a minute, an attempt would be free again after 20 seconds.
        try await StubbedServer.with(limits: limits, signInTime: StubbedServer.stoppedTime) { server in
            let path = "/tidemark/1/\(StubbedServer.container)/development/session"
            let wrong = Array("{\"email\":\"anna@example.org\",\"password\":\"wrong horse\"}".utf8)
            for status in [401, 401, 401, 429] {
                let answer = try await server.send(.POST, path, body: wrong)
                #expect(answer.status == status)
                if status == 429 { #expect(answer.code == "THROTTLED" && (answer.json["retryAfter"] as? Int ?? 0) > 0) }
            }
            let sealed = try await field("form", server.send(.GET, page(server)).text)
            let answer = try await send(server, ["form": sealed, "email": "anna@example.org", "password": "correct horse"])
            #expect(answer.status == 429)
            let seconds = try #require(answer.headers.first(name: "Retry-After"))
            #expect(answer.text.contains("Too many attempts to sign in: wait \(seconds) second"))
        }
    }
}
