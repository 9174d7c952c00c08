import Foundation
import NIOHTTP1
import TestSupport
import Testing
import TidemarkIdentity

@testable import TidemarkServer

/// Goal: only valid credentials are admitted. Method: each kind of credentials with each kind of database, and credentials that
/// are forged, mixed or of another container.
@Suite(.timeLimit(.minutes(30))) struct AdmissionTests {
    @Test func `an API token alone reads public records, and needs a sign-in for the rest`() async throws {
        try await StubbedServer.with { server in
            let open = try await server.send(.POST, server.path("records/query", query: server.api))
            #expect(open.status == 200)
            #expect(open.text.contains("\"user\":false"))
            for path in [
                server.path("changes/database", database: "private", query: server.api),
                server.path("records/query", database: "shared", query: server.api),
            ] {
                let closed = try await server.send(.POST, path)
                #expect(closed.status == 421)
                #expect(closed.code == "AUTHENTICATION_REQUIRED")
                #expect((closed.json["redirectURL"] as? String)?.hasPrefix("http://127.0.0.1:\(server.port)/signin?for=") == true)
            }
            #expect(try await server.send(.GET, server.path("users/current", query: server.api)).status == 421)
        }
    }

    @Test func `a web session reaches each database, and gets a new token with each answer`() async throws {
        try await StubbedServer.with { server in
            for database in ["public", "private", "shared"] {
                let answer = try await server.send(.POST, server.path("records/query", database: database, query: server.web))
                #expect(answer.status == 200)
                #expect(answer.text.contains("\"user\":true"))
                let token = try #require(answer.headers.first(name: "X-Apple-CloudKit-Web-Auth-Token"))
                #expect(try await server.access.session(token).get().kind == .web(staysSignedIn: false))
            }
            // The web session counts only together with the program's API token.
            let alone = try await server.send(.POST, server.path("records/query", query: "ckWebAuthToken=\(server.webToken)"))
            #expect(alone.status == 401)
        }
    }

    @Test func `a session of a device needs no API token`() async throws {
        try await StubbedServer.with { server in
            for path in [
                server.path("records/query", database: "private"),
                server.path("records/query", database: "private", query: server.api),
            ] {
                let answer = try await server.send(.POST, path, headers: server.bearer)
                #expect(answer.status == 200)
                #expect(answer.text.contains("\"user\":true"))
                #expect(answer.headers["X-Apple-CloudKit-Web-Auth-Token"].isEmpty)
            }
        }
    }

    @Test func `a key signs for records of the public database`() async throws {
        try await StubbedServer.with { server in
            let (body, path) = (Array("{\"a\":1}".utf8), server.path("records/query"))
            let answer = try await server.send(.POST, path, headers: server.signed(path, body: body), body: body)
            #expect(answer.status == 200)
            #expect(answer.text.contains("\"key\":true"))
            // Without a body a client signs the digest of no bytes, or an empty text in its place.
            let list = server.path("zones/list")
            for hash in [nil, ""] {
                #expect(try await server.send(.GET, list, headers: server.signed(list, body: [], hash: hash)).status == 200)
            }
        }
    }

    @Test func `a key signs no other requests`() async throws {
        try await StubbedServer.with { server in
            for (method, path) in [
                (HTTPMethod.POST, server.path("records/query", database: "private")),
                (.POST, server.path("changes/database", database: "shared")), (.GET, server.path("users/current")),
                (.POST, server.path("echo")), (.POST, server.path("records/query", environment: "production")),
                (.POST, server.path("records/query", container: "iCloud.org.example.other")),
            ] {
                let body = method == .GET ? [] : Array("{}".utf8)
                let answer = try await server.send(
                    method, path, headers: server.signed(path, body: body), body: method == .GET ? nil : body)
                #expect(answer.status == 401, "\(path)")
                #expect(answer.code == "AUTHENTICATION_FAILED")
            }
        }
    }

    @Test func `a signature that is altered, old, of another key or used twice is refused`() async throws {
        try await StubbedServer.with { server in
            let (body, path) = (Array("{\"a\":1}".utf8), server.path("records/modify"))
            let wrong: [(HTTPHeaders, [UInt8])] = [
                (server.signed(path, body: body), Array("{\"a\":2}".utf8)),
                (server.signed(server.path("records/query"), body: body), body),
                (server.signed(path, body: body, at: Date(timeIntervalSinceNow: -700)), body),
                (server.signed(path, body: body, at: Date(timeIntervalSinceNow: 700)), body),
                (server.signed(path, body: body, key: SigningKey()), body),
            ]
            for (headers, body) in wrong {
                let answer = try await server.send(.POST, path, headers: headers, body: body)
                #expect(answer.status == 401)
            }
            // The time is in the next second, because signatures of the second in which the server started are refused.
            let headers = server.signed(path, body: body, at: Date(timeIntervalSinceNow: 1))
            let first = try await server.send(.POST, path, headers: headers, body: body)
            #expect(first.status == 200)
            let second = try await server.send(.POST, path, headers: headers, body: body)
            #expect(second.status == 401)
        }
    }

    @Test func `credentials of two kinds exclude each other`() async throws {
        try await StubbedServer.with { server in
            let (body, path) = (Array("{}".utf8), server.path("records/query"))
            var signed = server.signed(path, body: body)
            let mixed = try await server.send(.POST, "\(path)?\(server.api)", headers: signed, body: body)
            #expect(mixed.status == 401)
            signed.add(contentsOf: server.bearer)
            let three = try await server.send(.POST, path, headers: signed, body: body)
            #expect(three.status == 401)
            let two = try await server.send(.POST, "\(path)?\(server.web)", headers: server.bearer)
            #expect(two.status == 401)
        }
    }

    @Test func `credentials that are forged, of another place or missing get the same refusal`() async throws {
        try await StubbedServer.with { server in
            let altered = String(server.webToken.dropLast()) + (server.webToken.hasSuffix("A") ? "B" : "A")
            let unknown = String(repeating: "0", count: 64)
            for path in [
                server.path("records/query"), server.path("records/query", query: "ckAPIToken=\(unknown)"),
                server.path("records/query", query: "ckAPIToken=x"),
                server.path("records/query", query: "\(server.api)&ckWebAuthToken=\(altered)x"),
                server.path("records/query", query: "\(server.api)&ckWebAuthToken=%00"),
                server.path("records/query", environment: "production", query: server.api),
                server.path("records/query", environment: "production", query: server.web),
                server.path("records/query", container: "iCloud.org.example.other", query: server.web),
                server.path("records/query", container: "iCloud.org.example.unknown", query: server.web),
            ] {
                let answer = try await server.send(.POST, path)
                #expect(answer.status == 401, "\(path)")
                #expect(answer.code == "AUTHENTICATION_FAILED")
                #expect(answer.json["redirectURL"] == nil)
            }
            for value in ["Bearer x", "Bearer", "Basic YTpi", "Bearer \(altered)"] {
                let answer = try await server.send(.POST, server.path("records/query"), headers: ["Authorization": value])
                #expect(answer.status == 401)
            }
            // A session that is valid elsewhere.
            for path in [
                server.path("records/query", environment: "production"),
                server.path("records/query", container: "iCloud.org.example.other"),
            ] {
                let answer = try await server.send(.POST, path, headers: server.bearer)
                #expect(answer.status == 401, "\(path)")
            }
            // A stranger can't tell another container from one that does not exist.
            let one = try await server.send(
                .POST, server.path("records/query", container: "iCloud.org.example.other", query: server.api))
            let none = try await server.send(
                .POST, server.path("records/query", container: "iCloud.org.example.none", query: server.api))
            #expect(one.json["reason"] as? String == none.json["reason"] as? String)
        }
    }

    @Test func `only an account of a container is told that it is no longer served`() async throws {
        try await StubbedServer.with { server in
            try await server.access.removeContainer(StubbedServer.container)
            func reason(_ answer: StubbedServer.Answer) throws -> String {
                #expect(answer.status == 401 && answer.code == "AUTHENTICATION_FAILED")
                return try #require(answer.json["reason"] as? String)
            }
            let told = "the container '\(StubbedServer.container)' is not served here"
            let path = server.path("records/query")
            let members = [
                try await server.send(.POST, path, headers: server.bearer),
                try await server.send(.POST, "\(path)?\(server.web)"), try await server.send(.POST, "\(path)?\(server.api)"),
            ]
            for answer in members { #expect(try reason(answer).hasPrefix(told)) }
            // Requests with only public knowledge: a container's name, a key's identifier.
            let strangers = [
                try await server.send(.POST, path),
                try await server.send(.POST, path, headers: server.signed(path, body: Array("{}".utf8), key: SigningKey())),
                try await server.send(.POST, server.path("records/query", environment: "production"), headers: server.bearer),
            ]
            for answer in strangers { #expect(try !reason(answer).contains("served")) }
            let session = "/tidemark/1/\(StubbedServer.container)/development/session"
            for (password, isTold) in [("correct horse", true), ("wrong horse", false)] {
                let body = Array("{\"email\":\"anna@example.org\",\"password\":\"\(password)\"}".utf8)
                let answer = try await server.send(.POST, session, body: body)
                #expect(try reason(answer).hasPrefix(told) == isTold)
            }
            try await server.access.addContainer(StubbedServer.container)
            #expect(try await server.send(.POST, path, headers: server.bearer).status == 200)
        }
    }

    @Test func `a person who was signed out can sign in again`() async throws {
        try await StubbedServer.with { server in
            let session = try await server.access.session(server.webToken).get()
            try await server.access.endSession(id: session.id)
            let answer = try await server.send(.POST, server.path("records/query", query: server.web))
            #expect(answer.status == 421)
            #expect(answer.json["redirectURL"] != nil)
        }
    }

    @Test func `a device signs in and out`() async throws {
        try await StubbedServer.with { server in
            let path = "/tidemark/1/\(StubbedServer.container)/development/session"
            let answer = try await server.send(
                .POST, path, body: Array("{\"email\":\"anna@example.org\",\"password\":\"correct horse\"}".utf8))
            #expect(answer.status == 200)
            let token = try #require(answer.json["token"] as? String)
            let session = try await server.access.session(token).get()
            #expect(session.kind == .device)
            #expect(answer.json["expires"] as? Int == Int(session.expires / 1_000))
            #expect((answer.json["userRecordName"] as? String)?.count == 33)

            let headers: HTTPHeaders = ["Authorization": "Bearer \(token)"]
            #expect(try await server.send(.POST, "\(path)/end", headers: headers).status == 200)
            #expect(try await server.send(.POST, server.path("records/query"), headers: headers).status == 401)

            for (body, status) in [
                ("{\"email\":\"anna@example.org\",\"password\":\"wrong horse\"}", 401),
                ("{\"email\":\"nobody@example.org\",\"password\":\"wrong horse\"}", 401),
                ("{\"email\":\"anna@example.org\"}", 400), ("[", 400), ("", 400),
            ] {
                #expect(try await server.send(.POST, path, body: Array(body.utf8)).status == status)
            }
        }
    }
}
