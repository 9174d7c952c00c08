import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkIdentity

/// Goal: whoever runs a cloud sees what is signed in, when it was used last and until when it lasts, at no cost to requests. Method: a clock that
/// is set by hand, and other openings, which know what is on disk only.
@Suite(.timeLimit(.minutes(30))) struct SessionUseTests {
    private let day = 24 * 60 * 60 * 1_000_000 as Int64

    private func begin(_ served: Served, _ kind: Session.Kind = .device, device: String = "Laptop") async throws -> SessionToken {
        try await served.credentials.makeSession(
            account: "anna", container: served.container, environment: .development, kind: kind, device: device,
            address: "192.0.2.1")
    }

    private func use(_ token: SessionToken, of served: Served, from address: String) async throws {
        served.credentials.noteUse(of: try await served.credentials.session(token.text).get(), from: address)
        await served.credentials.usesAreWritten()
    }

    private func listed(_ served: Served) async throws -> Session {
        try #require(try await served.opening().sessions().first)
    }

    @Test func `a list has the device, the last use to the hour, and until when the last token is good`() async throws {
        let served = try await Served()
        let token = try await begin(served)
        var it = try await listed(served)
        #expect(it.device == "Laptop" && it.address == "192.0.2.1")
        #expect(it.used == served.clock.now && it.expires == served.clock.now + 180 * day)
        let began = served.clock.now
        served.clock.advance(seconds: 60 * 60)
        served.clock.advance(microseconds: -1)
        try await use(token, of: served, from: "192.0.2.2")
        it = try await listed(served)
        #expect(it.used == began && it.address == "192.0.2.1")
        served.clock.advance(microseconds: 1)
        try await use(token, of: served, from: "192.0.2.2")
        try await use(token, of: served, from: "192.0.2.3")
        it = try await listed(served)
        #expect(it.used == served.clock.now && it.address == "192.0.2.2" && it.expires == served.clock.now + 180 * day)
        #expect(try await served.credentials.addresses(of: "anna") == ["192.0.2.2"])
        #expect(try await served.credentials.addresses(of: "ben").isEmpty)
    }

    @Test func `a browser's use is noted after a quarter of an hour`() async throws {
        let served = try await Served()
        let token = try await begin(served, .web(staysSignedIn: false))
        #expect(try await listed(served).expires == served.clock.now + 30 * 60 * 1_000_000)
        served.clock.advance(seconds: 15 * 60)
        try await use(token, of: served, from: "192.0.2.2")
        #expect(try await listed(served).used == served.clock.now)
    }

    @Test func `what a device says of itself becomes one short line`() async throws {
        for (said, shown) in [
            ("", ""), (" Phone\n", "Phone"), ("a\u{1b}[31m\u{7}b", "a [31m b"), (String(repeating: "é", count: 5000), nil),
        ] {
            let served = try await Served()
            _ = try await begin(served, device: said)
            let device = try await listed(served).device
            #expect(device == shown ?? String(repeating: "é", count: 100))
        }
    }

    @Test func `a renewal leaves what others know of sessions, and is on disk`() async throws {
        let served = try await Served()
        let (first, other) = (try await begin(served), try await served.session("ben"))
        let id = try #require(Hexadecimal.bytes(first.session.id))
        let before = try #require(try served.credentials.rows.session(id)).kept
        #expect(try await served.failure(other.text) == nil)
        // Behind the credential store's back: its cache stays as it is until it has to read again.
        try await served.credentials.writer.write { db in try db.execute(sql: "DELETE FROM sessions WHERE account = 'ben'") }
        served.clock.advance(seconds: 150 * 24 * 60 * 60)
        let renewed = try await served.credentials.renewed(try await served.credentials.session(first.text).get())
        #expect(try await served.failure(other.text) == nil)
        let kept = try #require(try served.opening().rows.session(id)).kept
        #expect(kept > before && kept >= renewed.expires)
        #expect(try served.credentials.rows.session(id)?.kept == kept)
        // Whatever ends a session does tell.
        try await served.credentials.endSession(id: first.session.id)
        #expect(try await served.failure(other.text) == .revoked)
        #expect(try await served.failure(renewed.text) == .revoked)
    }

    @Test func `a file without uses is understood, and takes them`() async throws {
        let served = try await Served()
        let token = try await begin(served)
        try await served.credentials.writer.write { db in
            for name in ["device", "used", "address"] { try db.execute(sql: "ALTER TABLE sessions DROP COLUMN \(name)") }
        }
        let later = try served.opening()
        let it = try #require(try await later.sessions().first)
        #expect(it.id == token.session.id && it.device == "" && it.used == 0 && it.address == "")
        #expect(it.expires > served.clock.now + 180 * day)
        later.noteUse(of: try await later.session(token.text).get(), from: "192.0.2.2")
        await later.usesAreWritten()
        #expect(try await listed(served).used == served.clock.now)
    }
}
