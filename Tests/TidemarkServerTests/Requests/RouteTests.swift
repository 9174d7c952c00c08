import Foundation
import HTTPTypes
import NIOHTTP1
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkServer

/// Goal: a path and a method lead to their operation, and other requests get the error that says what is wrong. Method: a server over stub
/// operations; the real operations are tested in `Protocol`.
@Suite(.timeLimit(.minutes(30))) struct RouteTests {
    @Test func `unknown paths, wrong methods and wrong databases get different errors`() async throws {
        try await StubbedServer.with { server in
            let nowhere = try await server.send(.POST, server.path("records/none", query: server.api))
            #expect(nowhere.status == 404)
            #expect(nowhere.code == "NOT_FOUND")
            #expect(nowhere.json["reason"] as? String == "could not find handler for endpoint")
            let otherwise = try await server.send(.GET, server.path("records/query", query: server.api))
            #expect(otherwise.status == 405)
            #expect(otherwise.headers.first(name: "Allow") == "POST, OPTIONS")
            let wrong = try await server.send(.POST, server.path("changes/database", query: server.web))
            #expect(wrong.status == 400)
            #expect(wrong.json["reason"] as? String == "endpoint not applicable in the database type 'publicdb'")
            for path in [
                server.path("records/query", environment: "staging", query: server.api),
                server.path("records/query", database: "secret", query: server.api),
            ] {
                let answer = try await server.send(.POST, path)
                #expect(answer.status == 400)
                #expect(answer.code == "BAD_REQUEST")
            }
            #expect(try await server.send(.HEAD, server.path("zones/list", query: server.api)).status == 200)
        }
    }

    @Test func `names with a meaning in a file system are refused`() async throws {
        try await StubbedServer.with { server in
            for name in [
                "..", "%2e%2e", "a%2Fb", "%00", "a%0Ab", "%ff", "%", "%2", "%zz", "", String(repeating: "a", count: 1_025),
            ] {
                let path = "/database/1/\(name)/development/public/records/query?\(server.api)"
                let connection = try await RawConnection(port: server.port)
                try await connection.write("POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
                try await connection.receive("HTTP/1.1 400 ")
                try await connection.close()
            }
        }
    }

    @Test func `a path is split before its parts are decoded`() {
        let routes = Routes(StubOperations.all)
        guard case .operation(let index, let parameters) = routes.match("/assets/download/a%20b/%C3%A4.jpg", .get) else {
            Issue.record("no match")
            return
        }
        #expect(StubOperations.all[index].id == "download")
        #expect(parameters.others == ["capability": "a b", "name": "ä.jpg"])
        guard case .refused = routes.match("/assets/download/x/a%2fb", .get) else {
            Issue.record("a slash got through")
            return
        }
        for path in [
            "/assets/download/x", "/assets/download/x/y/z", "/assets/download/x/y/", "//assets/download/x/y", "", "*", "assets",
        ] {
            guard case .none = routes.match(path[...], .get) else {
                Issue.record("\(path) matches")
                continue
            }
        }
    }

    @Test func `the first of two equal names in a query counts, and invalid text counts as missing`() {
        #expect(TextCoding.pairs("a=1&a=2&b&=c&d=%ff&e=x%20y+z&f=%") == ["a": "1", "b": "", "": "c", "e": "x y z"])
        #expect(TextCoding.pairs("t=\(PercentCoding.encoded("a+b/ü= &"))"[...]) == ["t": "a+b/ü= &"])
    }

    @Test func `errors have the protocol's codes and statuses`() async throws {
        try await StubbedServer.with { server in
            for (code, name, status) in [
                ("serverRecordChanged", "CONFLICT", 409), ("batchRequestFailed", "ATOMIC_ERROR", 400),
                ("zoneNotFound", "ZONE_NOT_FOUND", 404), ("unknownItem", "NOT_FOUND", 404),
                ("referenceViolation", "VALIDATING_REFERENCE_ERROR", 412), ("quotaExceeded", "QUOTA_EXCEEDED", 413),
                ("notAuthenticated", "AUTHENTICATION_REQUIRED", 421), ("permissionFailure", "ACCESS_DENIED", 403),
                ("alreadyShared", "EXISTS", 409), ("limitExceeded", "BAD_REQUEST", 400),
                ("requestRateLimited", "THROTTLED", 429), ("zoneBusy", "TRY_AGAIN_LATER", 503), ("other", "INTERNAL_ERROR", 500),
            ] {
                let answer = try await server.send(.POST, server.path("cloud/fails", query: "\(server.api)&code=\(code)"))
                #expect(answer.status == status)
                #expect(answer.code == name)
                // A storage's reason is for the log.
                let reason =
                    switch code {
                    case "zoneBusy": "others are using the zone; try again later"
                    case "other": "the server could not do it; its log has more"
                    default: "as asked"
                    }
                #expect(answer.json["reason"] as? String == reason)
                #expect(answer.json["retryAfter"] as? Int == 7)
                #expect(answer.json["uuid"] as? String == answer.headers.first(name: "X-Apple-Request-UUID"))
                #expect(answer.json["tidemark"] == nil)
                #expect((answer.json["redirectURL"] != nil) == (status == 421))
            }
            let extended = try await server.send(
                .POST, server.path("cloud/fails", query: "\(server.api)&code=zoneBusy"), headers: ["X-Tidemark-Extensions": "1"])
            #expect((extended.json["tidemark"] as? [String: String]) == ["code": "zoneBusy"])
            let failed = try await server.send(.POST, server.path("fails", query: server.api))
            #expect(failed.status == 500)
            #expect(failed.code == "INTERNAL_ERROR")
            #expect(!failed.text.contains("Surprise"))
            let uuid = try #require(failed.json["uuid"] as? String)
            #expect(server.logged.split(separator: "\n").contains { $0.contains(uuid) && $0.contains("Surprise") })
        }
    }

    @Test func `every answer has the protocol's headers, and pages of any origin may read it`() async throws {
        try await StubbedServer.with { server in
            let answer = try await server.send(
                .POST, server.path("records/query", query: server.api), headers: ["Origin": "https://a.example.org"])
            #expect(answer.headers.first(name: "Content-Type") == "application/json; charset=UTF-8")
            #expect(answer.headers.first(name: "X-Apple-CloudKit-Version") == "1.0")
            for name in ["X-Apple-Request-UUID", "X-Responding-Instance", "Date"] { #expect(answer.headers[name].count == 1) }
            #expect(answer.headers.first(name: "Access-Control-Allow-Origin") == "https://a.example.org")
            #expect(
                answer.headers.first(name: "Access-Control-Expose-Headers")?.contains("X-Apple-CloudKit-Web-Auth-Token") == true)
        }
    }

    @Test func `only pages of an API token's origins may read answers`() async throws {
        try await StubbedServer.with(origins: ["https://a.example.org"]) { server in
            let path = server.path("records/query", query: server.api)
            for method in [HTTPMethod.POST, .OPTIONS] {
                for (origin, isAllowed) in [("https://a.example.org", true), ("https://b.example.org", false), ("null", false)] {
                    let answer = try await server.send(
                        method, path, headers: ["Origin": origin, "Access-Control-Request-Method": "POST"])
                    #expect(answer.status == (method == .OPTIONS ? 204 : 200))
                    #expect(answer.headers.first(name: "Access-Control-Allow-Origin") == (isAllowed ? origin : nil))
                    guard method == .OPTIONS, isAllowed else { continue }
                    let allowed = answer.headers.first(name: "Access-Control-Allow-Headers") ?? ""
                    for name in ["X-Apple-CloudKit-Request-KeyID", "Content-Type", "Authorization", "Range"] {
                        #expect(allowed.contains(name))
                    }
                    #expect(answer.headers.first(name: "Access-Control-Max-Age") != nil)
                }
            }
            // Any path answers OPTIONS, so that a page may read why its request is refused.
            #expect(try await server.send(.OPTIONS, "/nowhere", headers: ["Origin": "https://a.example.org"]).status == 204)
            let refused = try await server.send(
                .POST, server.path("records/query", query: "ckAPIToken=x"), headers: ["Origin": "https://a.example.org"])
            #expect(refused.headers.first(name: "Access-Control-Allow-Origin") == "https://a.example.org")
        }
    }
}
