import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkIdentity

/// Goal: an operator sees which devices are signed in, when they were last used and until when they stay signed in, at no cost to
/// requests. Method: a clock that the test sets, and other openings, which know only what is on disk.
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

    @Test func `a list has the device, the last use to the hour, and the end of the last token`() async throws {
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

    @Test func `a browser's use is recorded after a quarter of an hour`() async throws {
        let served = try await Served()
        let token = try await begin(served, .web(staysSignedIn: false))
        #expect(try await listed(served).expires == served.clock.now + 30 * 60 * 1_000_000)
        served.clock.advance(seconds: 15 * 60)
        try await use(token, of: served, from: "192.0.2.2")
        #expect(try await listed(served).used == served.clock.now)
    }

    @Test func `the text that a device sends about itself becomes one short line`() async throws {
        for (said, shown) in [
            ("", ""), (" Phone\n", "Phone"), ("a\u{1b}[31m\u{7}b", "a [31m b"), (String(repeating: "é", count: 5000), nil),
            // Characters that change the direction of text, and other line separators.
            ("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e", "abcde"), ("a\u{2028}b\u{2029}c\u{85}d", "a b c d"),
            // Invisible characters, and names that consist of them.
            ("a\u{ad}b\u{feff}c\u{2060}d", "abcd"), ("\u{200d}\u{200c}\u{fe0f} \u{3164}\u{2800}\u{a0}", ""),
            // Leading space does not count.
            (String(repeating: " ", count: 300).appending("Phone"), "Phone"),
            // The emoji of a family is joined by invisible characters, which stay.
            ("👩\u{200d}👧 phone", "👩\u{200d}👧 phone"),
        ] {
            let served = try await Served()
            _ = try await begin(served, device: said)
            let it = try await listed(served)
            #expect(it.device == shown ?? String(repeating: "é", count: 100))
            #expect(it.system == "")
            _ = try await served.credentials.makeSession(
                account: "ben", container: served.container, environment: .development, kind: .device, system: said)
            let system = try #require(try await served.credentials.sessions(of: "ben").first).system
            #expect(system == shown ?? String(repeating: "é", count: 50))
        }
    }

    @Test func `a device is renamed by its account, with the same limits`() async throws {
        let served = try await Served()
        let id = try await begin(served).session.id
        let renamed = try await served.credentials.renameSession(id: id, of: "anna", to: " Anna's\u{202e} phone\n")
        #expect(renamed.before == "Laptop" && renamed.after == "Anna's phone")
        #expect(try await listed(served).device == "Anna's phone")
        for (account, name, code) in [
            ("ben", "Mine", CredentialError.Code.notFound), ("anna", " \u{202e}\n", .invalid), ("anna", "", .invalid),
            ("anna", "\u{200b}\u{2800}\u{3164}", .invalid), ("anna", String(repeating: "é", count: 101), .invalid),
        ] {
            let error = await refusal { _ = try await served.credentials.renameSession(id: id, of: account, to: name) }
            #expect(error?.code == code, "\(account): \(name)")
        }
        #expect(try await listed(served).device == "Anna's phone")
    }

    @Test func `a list shows the last use only as exactly as it is known`() {
        let (minute, hour) = (60_000_000 as Int64, 3_600_000_000 as Int64)
        // 2027-01-15T08:00:00Z.
        let noted = 1_800_000_000_000_000 as Int64
        func text(_ after: Int64, _ accuracy: Int64 = 60) -> String {
            LastUse(noted: noted, accuracy: accuracy * minute).text(at: noted + after)
        }
        #expect(LastUse(noted: 0, accuracy: hour).text(at: noted) == "")
        #expect(text(-hour) == "within the last hour")
        #expect(text(0) == "within the last hour")
        #expect(text(hour - 1) == "within the last hour")
        #expect(text(hour) == "today between 08:00 and 09:00 UTC")
        #expect(text(16 * hour - 1) == "today between 08:00 and 09:00 UTC")
        #expect(text(16 * hour) == "yesterday between 08:00 and 09:00 UTC")
        #expect(text(40 * hour) == "on 2027-01-15 between 08:00 and 09:00 UTC")
        #expect(text(14 * minute, 15) == "within the last 15 minutes")
        #expect(text(15 * minute, 15) == "today between 08:00 and 08:15 UTC")
        #expect(text(0, 1) == "within the last minute")
        #expect(text(minute, 1) == "today between 08:00 and 08:01 UTC")
        // Any use in the last minute may be meant.
        #expect(LastUse(noted: noted + 1, accuracy: hour).text(at: noted + 2 * hour) == "today between 08:00 and 09:01 UTC")
        // After a recorded use before midnight there may have been another one.
        let late = LastUse(noted: noted + 16 * hour - 30 * minute, accuracy: hour).text(at: noted + 20 * hour)
        #expect(late == "yesterday between 23:30 and 00:30 UTC")
    }

    @Test func `a renewal does not change what other openings know of sessions, and is on disk`() async throws {
        let served = try await Served()
        let (first, other) = (try await begin(served), try await served.session("ben"))
        let id = try #require(Hexadecimal.bytes(first.session.id))
        let before = try #require(try served.credentials.rows.session(id)).kept
        #expect(try await served.failure(other.text) == nil)
        // Without going through the credential store: its cache stays as it is until it has to read again.
        try await served.credentials.writer.write { db in try db.execute(sql: "DELETE FROM sessions WHERE account = 'ben'") }
        served.clock.advance(seconds: 150 * 24 * 60 * 60)
        let renewed = try await served.credentials.renewed(try await served.credentials.session(first.text).get())
        #expect(try await served.failure(other.text) == nil)
        let kept = try #require(try served.opening().rows.session(id)).kept
        #expect(kept > before && kept >= renewed.expires)
        #expect(try served.credentials.rows.session(id)?.kept == kept)
        // Ending a session does make other openings read again.
        try await served.credentials.endSession(id: first.session.id)
        #expect(try await served.failure(other.text) == .revoked)
        #expect(try await served.failure(renewed.text) == .revoked)
    }

    @Test func `a file without recorded uses can be read, and records new ones`() async throws {
        let served = try await Served()
        let token = try await begin(served)
        try await served.credentials.writer.write { db in
            for name in ["device", "system", "used", "address"] {
                try db.execute(sql: "ALTER TABLE sessions DROP COLUMN \(name)")
            }
        }
        let later = try served.opening()
        let it = try #require(try await later.sessions().first)
        #expect(it.id == token.session.id && it.device == "" && it.system == "" && it.used == 0 && it.address == "")
        #expect(it.expires > served.clock.now + 180 * day)
        later.noteUse(of: try await later.session(token.text).get(), from: "192.0.2.2")
        await later.usesAreWritten()
        #expect(try await listed(served).used == served.clock.now)
    }
}
