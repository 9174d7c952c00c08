import Foundation
import NIOHTTP1
import TestSupport
import Testing
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole
@testable import TidemarkServer

/// Goal: an answer of the console reaches a browser unchanged, and pages of other origins can't read it. Method: requests over a
/// connection, as browsers send them.
@Suite(.timeLimit(.minutes(30))) struct ServedConsoleTests {
    private func signIn(_ server: StubbedServer, _ password: String = "correct horse") async throws -> StubbedServer.Answer {
        let body = "email=anna%40example.org&password=\(PercentCoding.encoded(password))"
        return try await server.send(
            .POST, "/console/sign-in", headers: ["Content-Type": "application/x-www-form-urlencoded"], body: Array(body.utf8))
    }

    private func makeOperator(_ server: StubbedServer) async throws {
        let account = try #require(try await EmbeddedCloud(at: server.directory).account("anna@example.org"))
        try await server.access.setOperator(account.id, role: .operator)
    }

    @Test func `an operator signs in and sees pages; nobody else does`() async throws {
        try await StubbedServer.with { server in
            #expect(try await server.send(.GET, "/console").status == 303)
            #expect(try await signIn(server).status == 403)
            try await makeOperator(server)
            let reply = try await signIn(server)
            #expect(reply.status == 303)
            #expect(reply.headers.first(name: "Location") == "/console")
            let cookie = try #require(reply.headers.first(name: "Set-Cookie"))
            #expect(cookie.hasSuffix("; Path=/console; HttpOnly; SameSite=Strict"))
            let headers: HTTPHeaders = ["Cookie": String(cookie.prefix { $0 != ";" })]
            for page in Console.pages
            where page != "sign-in" && page != "sign-out" && page != "record" && page != "account" && page != "asset" {
                let shown = try await server.send(.GET, page.isEmpty ? "/console" : "/console/\(page)", headers: headers)
                #expect(shown.status == 200, "\(page)")
                #expect(shown.headers.first(name: "X-Frame-Options") == "DENY", "\(page)")
                #expect(shown.headers["Content-Security-Policy"].count == 1, "\(page)")
            }
            #expect(try await server.send(.GET, "/console/nothing", headers: headers).status == 404)
        }
    }

    @Test func `a page of another origin can't read an answer, though every token may be used from there`() async throws {
        try await StubbedServer.with { server in
            try await makeOperator(server)
            let cookie = String(try #require(try await signIn(server).headers.first(name: "Set-Cookie")).prefix { $0 != ";" })
            for page in ["/console", "/console/sign-in", "/console/style.css"] {
                let reply = try await server.send(.GET, page, headers: ["Cookie": cookie, "Origin": "https://evil.example.org"])
                #expect(reply.status == 403, "\(page)")
                #expect(reply.headers.first(name: "Access-Control-Allow-Origin") == nil, "\(page)")
                #expect(reply.headers.first(name: "Access-Control-Allow-Credentials") == nil, "\(page)")
            }
            let posted = try await server.send(
                .POST, "/console/sign-out", headers: ["Cookie": cookie, "Origin": "https://evil.example.org"],
                body: Array("token=x".utf8))
            #expect(posted.status == 403)
            #expect(try await server.send(.GET, "/console", headers: ["Cookie": cookie]).status == 200)
        }
    }

    @Test func `a large form is read only from a person who is signed in`() async throws {
        try await StubbedServer.with { server in
            try await makeOperator(server)
            let body = Array(("x=" + String(repeating: "y", count: 100_000)).utf8)
            var headers: HTTPHeaders = ["Content-Type": "application/x-www-form-urlencoded"]
            for page in ["sign-in", "record", "schema"] {
                #expect(try await server.send(.POST, "/console/\(page)", headers: headers, body: body).status == 413, "\(page)")
            }
            let cookie = try #require(try await signIn(server).headers.first(name: "Set-Cookie"))
            headers.add(name: "Cookie", value: String(cookie.prefix { $0 != ";" }))
            // The form is read, and refused because its token is missing.
            #expect(try await server.send(.POST, "/console/record", headers: headers, body: body).status == 403)
            #expect(try await server.send(.POST, "/console/sign-out", headers: headers, body: body).status == 413)
        }
    }

    @Test func `attempts to sign in at the console are limited`() async throws {
        try await StubbedServer.with(signInTime: StubbedServer.stoppedTime) { server in
            try await makeOperator(server)
            var statuses: [Int] = []
            for _ in 0..<11 { statuses.append(Int(try await signIn(server, "wrong horse").status)) }
            #expect(statuses == [Int](repeating: 403, count: 10) + [429])
            let refused = try await signIn(server)
            #expect(refused.status == 429)
            #expect(refused.headers.first(name: "Retry-After") != nil)
        }
    }

    @Test func `passwords and cookies are not logged`() async throws {
        try await StubbedServer.with { server in
            try await makeOperator(server)
            let cookie = try #require(try await signIn(server).headers.first(name: "Set-Cookie"))
            let secret = String(cookie.drop { $0 != "=" }.dropFirst().prefix { $0 != ";" })
            _ = try await server.send(.GET, "/console/records?c=nothing", headers: ["Cookie": "tidemark-console=\(secret)"])
            #expect(!server.logged.contains("correct horse") && !server.logged.contains(secret))
        }
    }
}
