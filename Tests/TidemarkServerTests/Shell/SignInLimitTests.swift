import Foundation
import NIOHTTP1
import Synchronization
import TestSupport
import Testing
import TidemarkAccess
import TidemarkEmbeddedCloud

@testable import TidemarkServer

/// Goal: nobody guesses a password, and nobody keeps others from signing in. Method: attempts from many addresses, at times that are given, and
/// waits that are only counted.
@Suite struct SignInLimitTests {
    private final class Pauses: Sendable {
        private let times = Mutex<[Duration]>([])
        var all: [Duration] { times.withLock { $0 } }
        func add(_ time: Duration) { times.withLock { $0.append(time) } }
    }

    @Test func `an account is counted by the address that attempts come from`() {
        let limits = SignInLimits(perMinute: 3)
        for _ in 0..<3 { #expect(limits.wait(for: "anna", from: "a", at: 0) == nil) }
        #expect(limits.wait(for: "anna", from: "a", at: 0) == 20)
        // Its owner is elsewhere.
        #expect(limits.wait(for: "anna", from: "b", at: 0) == nil)
        #expect(limits.wait(for: "anna", from: "a", at: 20) == nil)
        #expect(SignInLimits(perMinute: 0).wait(for: "anna", from: "a", at: 0) == nil)
    }

    @Test func `an address tries five accounts' worth, whatever the accounts`() {
        let limits = SignInLimits(perMinute: 3)
        for number in 0..<15 { #expect(limits.wait(for: "\(number)", from: "a", at: 0) == nil) }
        #expect(limits.wait(for: "15", from: "a", at: 0) == 4)
        #expect(limits.wait(for: "15", from: "b", at: 0) == nil)
    }

    @Test func `an account that many attempts come to is crowded for as long as they come`() {
        let limits = SignInLimits(perMinute: 3)
        for _ in 0..<15 { #expect(!limits.isCrowded("anna", at: 0)) }
        #expect(limits.isCrowded("anna", at: 0))
        #expect(!limits.isCrowded("ben", at: 0))
        #expect(!limits.isCrowded("anna", at: 60))
        let none = SignInLimits(perMinute: 0)
        for _ in 0..<1000 { #expect(!none.isCrowded("anna", at: 0)) }
    }

    @Test func `ten attempts to an account wait at once`() {
        let limits = SignInLimits(perMinute: 3)
        for _ in 0..<10 { #expect(limits.hold("anna")) }
        #expect(!limits.hold("anna"))
        #expect(limits.hold("ben"))
        limits.release("anna")
        #expect(limits.hold("anna"))
        for _ in 0..<10 { limits.release("anna") }
        for _ in 0..<10 { #expect(limits.hold("anna")) }
    }

    @Test func `while strangers guess, an owner gets in slowly from a new address and at once from a known one`() async throws {
        let scratch = try Scratch()
        let access = try AccessBook(at: scratch.url, now: ServerTime.now, passwordLogN: 4)
        let cloud = try EmbeddedCloud(at: scratch.url)
        try await access.addContainer("journal")
        let anna = try await cloud.addAccount("anna@example.org")
        try await access.setPassword("correct horse", of: anna.id)
        let pauses = Pauses()
        let signIn = SignIn(
            cloud: cloud, access: access, metrics: ServerMetrics(), limits: SignInLimits(perMinute: 2),
            pause: { pauses.add($0) })
        func attempt(
            _ password: String, from address: String, as email: String = "anna@example.org"
        ) async throws -> SessionToken? {
            try await signIn.token(
                email: email, password: password, container: "journal", environment: .development, kind: .device,
                device: "Phone", address: address)
        }
        for number in 0..<10 { #expect(try await attempt("wrong horse", from: "192.0.2.\(number)") == nil) }
        #expect(pauses.all.isEmpty)
        #expect(try await attempt("wrong horse", from: "192.0.2.10", as: "Anna@Example.org") == nil)
        #expect(pauses.all == [SignInLimits.pause])
        let first = try #require(try await attempt("correct horse", from: "198.51.100.1"))
        #expect(pauses.all.count == 2)
        #expect(first.session.device == "Phone" && first.session.address == "198.51.100.1")
        #expect(try await attempt("correct horse", from: "198.51.100.1") != nil)
        #expect(pauses.all.count == 2)
        await #expect {
            _ = try await attempt("correct horse", from: "198.51.100.1")
        } throws: { error in
            (error as? Refusal)?.status.code == 429
        }
    }

    @Test func `whoever is put off is told for how long, and others go on`() async throws {
        var limits = ServerLimits()
        limits.signInAttempts = 2
        try await ShellServer.with(limits: limits, trustsProxy: true) { server in
            let path = "/tidemark/1/\(ShellServer.container)/development/session"
            func attempt(_ password: String, from address: String) async throws -> ShellServer.Answer {
                try await server.send(
                    .POST, path, headers: ["X-Forwarded-For": address],
                    body: Array("{\"email\":\"anna@example.org\",\"password\":\"\(password)\"}".utf8))
            }
            for _ in 0..<2 { #expect(try await attempt("wrong horse", from: "192.0.2.1").status == 401) }
            let refused = try await attempt("correct horse", from: "192.0.2.1")
            #expect(refused.status == 429)
            let seconds = try #require(refused.json["retryAfter"] as? Int)
            #expect((1...30).contains(seconds))
            #expect(refused.headers.first(name: "Retry-After") == "\(seconds)")
            #expect((refused.json["reason"] as? String)?.contains("wait \(seconds) second") == true)
            #expect(try await attempt("correct horse", from: "192.0.2.2").status == 200)
        }
    }

    @Test func `a session has the name that the device gives, or else its user agent, and its uses are noted`() async throws {
        try await ShellServer.with(trustsProxy: true) { server in
            let path = "/tidemark/1/\(ShellServer.container)/development/session"
            for (member, device) in [(",\"device\":\"Annas Laptop\"", "Annas Laptop"), ("", "journal/1.0")] {
                let answer = try await server.send(
                    .POST, path, headers: ["User-Agent": "journal/1.0", "X-Forwarded-For": "192.0.2.9"],
                    body: Array("{\"email\":\"anna@example.org\",\"password\":\"correct horse\"\(member)}".utf8))
                let token = try #require(answer.json["token"] as? String)
                let session = try server.access.session(token).get()
                #expect(session.device == device && session.address == "192.0.2.9")
            }
            let wrong = "{\"email\":\"anna@example.org\",\"password\":\"correct horse\",\"device\":7}"
            #expect(try await server.send(.POST, path, body: Array(wrong.utf8)).status == 400)
        }
    }
}
