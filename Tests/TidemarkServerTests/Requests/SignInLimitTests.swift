import Foundation
import HTTPTypes
import NIOHTTP1
import TestSupport
import Testing
import TidemarkEmbeddedCloud
import TidemarkModel

@testable import TidemarkIdentity
@testable import TidemarkServer

/// Goal: passwords can't be guessed, and strangers can't keep others from signing in. Method: attempts from many addresses, at
/// given times, and waits that are only counted.
@Suite(.timeLimit(.minutes(30))) struct SignInLimitTests {
    private final class Pauses: Sendable {
        private let times = LockedValue<[Duration]>([])
        var all: [Duration] { times.withLock { $0 } }
        func add(_ time: Duration) { times.withLock { $0.append(time) } }
    }

    /// A cloud where anna@example.org signs in with "correct horse".
    private func cloud() async throws -> (scratch: Scratch, access: CredentialStore, cloud: EmbeddedCloud) {
        let scratch = try Scratch()
        let access = try CredentialStore(at: scratch.url, now: Timestamp.now, passwordLogN: 4)
        let cloud = try EmbeddedCloud(at: scratch.url)
        try await access.addContainer("journal")
        let anna = try await cloud.addAccount("anna@example.org")
        try await access.setPassword("correct horse", of: anna.id)
        return (scratch, access, cloud)
    }

    @Test(arguments: SignInRateStorageContract.checks)
    func `a process counts attempts`(_ check: StorageCheck<SignInRateStorageContract.Subject>) async throws {
        let rates = ProcessSignInRates()
        try await check.run(.init { rates })
    }

    @Test func `attempts to an account are counted by address`() async throws {
        let limits = SignInLimits(perMinute: 3)
        for _ in 0..<3 { #expect(try await limits.wait(for: "anna", from: "a", at: 0) == nil) }
        #expect(try await limits.wait(for: "anna", from: "a", at: 0) == 20)
        // The owner is at another address.
        #expect(try await limits.wait(for: "anna", from: "b", at: 0) == nil)
        #expect(try await limits.wait(for: "anna", from: "a", at: 20) == nil)
        #expect(try await SignInLimits(perMinute: 0).wait(for: "anna", from: "a", at: 0) == nil)
    }

    @Test func `an address may make five times an account's attempts, for any accounts`() async throws {
        let limits = SignInLimits(perMinute: 3)
        for number in 0..<15 { #expect(try await limits.wait(for: "\(number)", from: "a", at: 0) == nil) }
        #expect(try await limits.wait(for: "15", from: "a", at: 0) == 4)
        #expect(try await limits.wait(for: "15", from: "b", at: 0) == nil)
    }

    @Test func `an account with many attempts is crowded while they come`() async throws {
        let limits = SignInLimits(perMinute: 3)
        for _ in 0..<15 { #expect(try await !limits.isCrowded("anna", at: 0)) }
        #expect(try await limits.isCrowded("anna", at: 0))
        #expect(try await !limits.isCrowded("ben", at: 0))
        #expect(try await !limits.isCrowded("anna", at: 60))
        let none = SignInLimits(perMinute: 0)
        for _ in 0..<1000 { #expect(try await !none.isCrowded("anna", at: 0)) }
    }

    @Test func `ten attempts to an account wait at once, and one more replaces another at its time`() async {
        let limits = SignInLimits(perMinute: 3, choice: { count in count - 3 })
        let places = (0..<10).map { limits.hold("anna", from: "\($0)", at: Double($0) / 8) }
        #expect(places.map(\.wait) == [Double](repeating: 5, count: 10))
        #expect(limits.hold("ben", from: "owner", at: 2).wait == 5)
        // The wait of the attempt from 7 ends at 5.875.
        #expect(limits.hold("anna", from: "owner", at: 2).wait == 3.875)
        await places[7].untilTaken()
        // A replaced attempt has no place to give back.
        limits.release(places[7], of: "anna")
        #expect(limits.hold("anna", from: "10", at: 2).wait == 4)
        await places[8].untilTaken()
        // After a place was given back, no attempt is replaced.
        limits.release(places[0], of: "anna")
        #expect(limits.hold("anna", from: "11", at: 2).wait == 5)
        // Attempts whose time is over are gone, even if they have not given back their places.
        #expect(limits.hold("anna", from: "12", at: 6.5).wait == 5)
    }

    @Test func `an address has one waiting attempt, which its next attempt replaces`() async {
        let limits = SignInLimits(perMinute: 3)
        let first = limits.hold("anna", from: "a", at: 0)
        let other = limits.hold("anna", from: "b", at: 0)
        var last = first
        for second in 1...4 {
            let next = limits.hold("anna", from: "a", at: Double(second))
            #expect(next.wait == Double(5 - second))
            await last.untilTaken()
            last = next
        }
        limits.release(last, of: "anna")
        // All other places are free: only the earlier attempt of that address is replaced.
        for number in 0..<9 { #expect(limits.hold("anna", from: "\(number)", at: 4).wait == 5) }
        #expect(limits.hold("anna", from: "b", at: 4).wait == 1)
        await other.untilTaken()
    }

    @Test func `any of the waiting attempts may be replaced`() {
        let limits = SignInLimits(perMinute: 3)
        // The times of their turns identify the places.
        for number in 0..<10 { _ = limits.hold("anna", from: "\(number)", at: Double(number) / 4) }
        var taken: Set<Double> = []
        for number in 10..<1000 { taken.insert(limits.hold("anna", from: "\(number)", at: 4).wait) }
        #expect(taken == Set((0..<10).map { 1 + Double($0) / 4 }))
    }

    @Test func `a replaced attempt is told to try again, and the one that replaces it goes on`() async throws {
        let (scratch, access, cloud) = try await self.cloud()
        defer { withExtendedLifetime(scratch) {} }
        let (pauses, limits) = (Pauses(), SignInLimits(perMinute: 1, choice: { _ in 0 }))
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        defer { end.finish() }
        let signIn = SignIn(
            cloud: cloud, access: access, metrics: ServerMetrics(), limits: limits, now: { 100 },
            pause: { time in
                pauses.add(time)
                guard pauses.all.count == 1 else { return }
                // The first one waits until it is cancelled.
                begin.yield()
                for await _ in never {}
                try Task.checkCancellation()
            })
        @Sendable func attempt(_ password: String, from address: String) async throws -> SessionToken? {
            try await signIn.token(
                email: "anna@example.org", password: password, container: "journal", environment: .development, kind: .device,
                device: "", address: address
            ).grant
        }
        for number in 0..<5 { #expect(try await attempt("wrong horse", from: "192.0.2.\(number)") == nil) }
        let stranger = Task { try await attempt("wrong horse", from: "192.0.2.5") }
        var beginnings = begun.makeAsyncIterator()
        await beginnings.next()
        for number in 6..<15 { _ = limits.hold("anna@example.org", from: "192.0.2.\(number)", at: 100) }
        // All places are taken, and the stranger's attempt is chosen to be replaced.
        #expect(try await attempt("correct horse", from: "198.51.100.1") != nil)
        await #expect {
            _ = try await stranger.value
        } throws: { error in
            guard let refusal = error as? Refusal else { return false }
            return refusal.status.code == 429 && refusal.headers[.retryAfter] == "5"
        }
        #expect(pauses.all == [.seconds(5), .seconds(5)])
        // The attempt that waited has given its place back: nine are left.
        let next = limits.hold("anna@example.org", from: "192.0.2.99", at: 101)
        #expect(next.wait == 5)
    }

    @Test func `while strangers guess, an owner gets in slowly from a new address and at once from a known one`() async throws {
        let (scratch, access, cloud) = try await self.cloud()
        defer { withExtendedLifetime(scratch) {} }
        let pauses = Pauses()
        let signIn = SignIn(
            cloud: cloud, access: access, metrics: ServerMetrics(), limits: SignInLimits(perMinute: 2), now: { 100 },
            pause: { pauses.add($0) })
        func attempt(
            _ password: String, from address: String, as email: String = "anna@example.org"
        ) async throws -> SessionToken? {
            try await signIn.token(
                email: email, password: password, container: "journal", environment: .development, kind: .device,
                device: "Phone", address: address
            ).grant
        }
        for number in 0..<10 { #expect(try await attempt("wrong horse", from: "192.0.2.\(number)") == nil) }
        #expect(pauses.all.isEmpty)
        #expect(try await attempt("wrong horse", from: "192.0.2.10", as: "Anna@Example.org") == nil)
        #expect(pauses.all == [.seconds(5)])
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

    @Test func `a throttled client is told how long to wait, and others sign in`() async throws {
        var limits = ServerLimits()
        limits.signInAttempts = 1
        try await StubbedServer.with(limits: limits, trustsProxy: true, signInTime: StubbedServer.stoppedTime) { server in
            let path = "/tidemark/1/\(StubbedServer.container)/development/session"
            func attempt(_ password: String, from address: String) async throws -> StubbedServer.Answer {
                try await server.send(
                    .POST, path, headers: ["X-Forwarded-For": address],
                    body: Array("{\"email\":\"anna@example.org\",\"password\":\"\(password)\"}".utf8))
            }
            #expect(try await attempt("wrong horse", from: "192.0.2.1").status == 401)
            let refused = try await attempt("correct horse", from: "192.0.2.1")
            #expect(refused.status == 429)
            let seconds = try #require(refused.json["retryAfter"] as? Int)
            #expect(seconds == 60)
            #expect(refused.headers.first(name: "Retry-After") == "\(seconds)")
            #expect(refused.json["reason"] as? String == "too many attempts to sign in")
            #expect(try await attempt("correct horse", from: "192.0.2.2").status == 200)
        }
    }

    @Test func `a session is named by the device, or else by its user agent`() async throws {
        try await StubbedServer.with(trustsProxy: true) { server in
            let path = "/tidemark/1/\(StubbedServer.container)/development/session"
            for (member, device) in [(",\"device\":\"Annas Laptop\"", "Annas Laptop"), ("", "journal/1.0")] {
                let answer = try await server.send(
                    .POST, path, headers: ["User-Agent": "journal/1.0", "X-Forwarded-For": "192.0.2.9"],
                    body: Array("{\"email\":\"anna@example.org\",\"password\":\"correct horse\"\(member)}".utf8))
                let token = try #require(answer.json["token"] as? String)
                let session = try await server.access.session(token).get()
                #expect(session.device == device && session.address == "192.0.2.9")
            }
            let wrong = "{\"email\":\"anna@example.org\",\"password\":\"correct horse\",\"device\":7}"
            #expect(try await server.send(.POST, path, body: Array(wrong.utf8)).status == 400)
        }
    }
    @Test func `a request with a session is recorded as its use, with the address`() async throws {
        try await StubbedServer.with(trustsProxy: true) { server in
            // A use of two hours ago: within one hour no other use is recorded.
            let earlier = try CredentialStore(
                at: server.directory, now: { Timestamp.now() - 2 * 60 * 60_000_000 }, passwordLogN: 4)
            let token = try await earlier.makeSession(
                account: "ben", container: StubbedServer.container, environment: .development, kind: .device,
                address: "192.0.2.9")
            #expect(try await server.access.addresses(of: "ben") == ["192.0.2.9"])
            let answer = try await server.send(
                .POST, server.path("records/query"),
                headers: ["Authorization": "Bearer \(token.text)", "X-Forwarded-For": "192.0.2.77"])
            #expect(answer.status == 200)
            await server.access.usesAreWritten()
            #expect(try await server.access.addresses(of: "ben") == ["192.0.2.77"])
        }
    }
}
