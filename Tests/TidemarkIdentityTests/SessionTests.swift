import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkIdentity

/// Goal: a token is valid until it expires or its session ends, and no other text is. Method: a clock that the test sets; every
/// bit of a token inverted; tokens of other clouds.
@Suite(.timeLimit(.minutes(30))) struct SessionTests {
    private let minute = 60 as Int64

    @Test func `a token is valid for as long as its kind says, to the microsecond`() async throws {
        for (kind, minutes) in [
            (Session.Kind.web(staysSignedIn: false), 30), (.web(staysSignedIn: true), 14 * 24 * 60), (.device, 180 * 24 * 60),
        ] {
            let served = try await Served()
            let token = try await served.session("anna", kind)
            #expect(token.expires == served.clock.now + Int64(minutes) * minute * 1_000_000)
            let found = try await served.credentials.session(token.text).get()
            #expect(found == token.session)
            #expect(found.account == "anna" && found.kind == kind)
            #expect(found.isOf(served.container, .development))
            #expect(!found.isOf(served.container, .production) && !found.isOf("other", .development))
            served.clock.advance(seconds: Int64(minutes) * minute)
            served.clock.advance(microseconds: -1)
            #expect(try await served.failure(token.text) == nil)
            served.clock.advance(microseconds: 1)
            #expect(try await served.failure(token.text) == .expired)
        }
    }

    @Test(arguments: [Int64.min, 0, 9_223_372_036_854_775, .max])
    func `sessions and signatures work at both ends of the clock's range`(
        time: Int64
    ) async throws {
        let served = try await Served()
        served.clock.set(microseconds: time)
        for kind in [Session.Kind.web(staysSignedIn: false), .web(staysSignedIn: true), .device] {
            let token = try await served.session("anna", kind)
            let session = try await served.credentials.session(token.text).get()
            #expect(session.account == "anna" && session.kind == kind)
            served.credentials.noteUse(of: session, from: "192.0.2.1")
            let renewed = try await served.credentials.renewed(session)
            #expect(try await served.failure(renewed.text) == nil)
        }
        let text = served.credentials.signedText(Data("x".utf8), for: "upload", until: .max)
        #expect(try served.credentials.open(text, for: "upload") == Data("x".utf8))
        #expect(try served.credentials.open(text, for: "download") == nil)
    }

    @Test func `no bit of a token can be altered`() async throws {
        let served = try await Served()
        let token = try await served.session()
        let bytes = try #require(Base64URL.bytes(token.text))
        #expect(bytes.count == 64)
        for place in 0..<(64 * 8) {
            var altered = bytes
            altered[place / 8] ^= 1 << UInt8(place % 8)
            #expect(try await served.failure(Base64URL.text(altered)) == .unknown, "bit \(place)")
        }
        // Texts of one length have one form each: unused bits are zero.
        for digit in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" where digit != token.text.last {
            #expect(try await served.failure(token.text.dropLast() + String(digit)) != nil)
        }
    }

    @Test func `a text that is shorter, longer or different is reported as no token`() async throws {
        let served = try await Served()
        let text = try await served.session().text
        for count in 0..<text.count { #expect(try await served.failure(String(text.prefix(count))) == .malformed) }
        let wrongs: [String] = [
            text + "A", text + text, "", " ", "\0", "ä" + text.dropFirst(2), text.dropLast() + "!",
            String(repeating: "=", count: 86),
        ]
        for wrong in wrongs { #expect(try await served.failure(wrong) == .malformed, "\(wrong)") }
        #expect(try await served.failure(String(repeating: "A", count: 86)) == .unknown)
        #expect(try await served.failure(String(repeating: "A", count: 10_000_000)) == .malformed)
    }

    @Test func `a token in plain base64, with padding, or with spaces for plus signs is the same`() async throws {
        let served = try await Served()
        // Until a token has all the digits that differ.
        for _ in 0..<1000 {
            let text = try await served.session().text
            guard text.contains("-"), text.contains("_") else { continue }
            let plain = text.replacing("-", with: "+").replacing("_", with: "/") + "=="
            #expect(try await served.failure(plain) == nil)
            #expect(try await served.failure(plain.replacing("+", with: " ")) == nil)
            return
        }
        Issue.record("no token has both digits")
    }

    @Test func `a token of another cloud is unknown`() async throws {
        let (served, other) = (try await Served(), try await Served())
        #expect(try await served.failure(try await other.session().text) == .unknown)
    }

    @Test func `a renewed token is valid at once, and the older one until it expires`() async throws {
        let served = try await Served()
        let first = try await served.session("anna", .web(staysSignedIn: false))
        var latest = first
        // Ten hours, in steps of twenty minutes.
        for step in 1...30 {
            served.clock.advance(seconds: 20 * minute)
            let renewed = try await served.credentials.renewed(try await served.credentials.session(latest.text).get())
            #expect(renewed.expires == served.clock.now + 30 * minute * 1_000_000)
            #expect(renewed.text != latest.text && renewed.session.id == first.session.id)
            #expect(try await served.failure(latest.text) == nil)
            #expect(try await served.failure(first.text) == (step == 1 ? nil : .expired))
            // Other accounts sign in, which removes rows that are not needed any more.
            _ = try await served.session("ben")
            latest = renewed
        }
        try await served.credentials.endSession(id: first.session.id)
        #expect(try await served.failure(latest.text) == .revoked)
    }

    @Test func `in a browser each answer renews the token, on a device only after a tenth of its time`() async throws {
        let served = try await Served()
        let (web, device) = (try await served.session("anna", .web(staysSignedIn: true)), try await served.session())
        #expect(web.session.isDueForRenewal(at: served.clock.now))
        served.clock.advance(seconds: 18 * 24 * 60 * minute)
        served.clock.advance(microseconds: -1)
        #expect(!device.session.isDueForRenewal(at: served.clock.now))
        served.clock.advance(microseconds: 1)
        #expect(device.session.isDueForRenewal(at: served.clock.now))
    }

    @Test func `sessions are listed until they expire, and ended singly, by account, or all`() async throws {
        let served = try await Served()
        let tokens = [
            try await served.session("anna", .web(staysSignedIn: false)), try await served.session("anna"),
            try await served.session("ben"), try await served.session("cleo"),
        ]
        func failures() async throws -> [SessionFailure?] {
            var failures: [SessionFailure?] = []
            for token in tokens { failures.append(try await served.failure(token.text)) }
            return failures
        }
        #expect(Set(try await served.credentials.sessions().map(\.id)) == Set(tokens.map(\.session.id)))
        try await served.credentials.endSession(id: tokens[2].session.id)
        #expect(try await failures() == [nil, nil, .revoked, nil])
        #expect(try await served.credentials.endSessions(of: "anna") == 2)
        #expect(try await failures() == [.revoked, .revoked, .revoked, nil])
        #expect(try await served.credentials.endAllSessions() == 1)
        #expect(try await served.credentials.sessions().isEmpty)
        let error = await refusal { try await served.credentials.endSession(id: tokens[2].session.id) }
        #expect(error == CredentialError(.notFound, ""))
        _ = try await served.session("anna", .web(staysSignedIn: false))
        served.clock.advance(seconds: 46 * minute)
        #expect(try await served.credentials.sessions().isEmpty)
    }

    @Test func `a container that is not served refuses sign-ins`() async throws {
        let served = try await Served()
        let error = await refusal {
            _ = try await served.credentials.makeSession(
                account: "anna", container: "other", environment: .development, kind: .device)
        }
        #expect(error == CredentialError(.notFound, ""))
    }

    @Test func `a token is not shown in a log`() async throws {
        let served = try await Served()
        let token = try await served.session()
        #expect(!"\(token)".contains(token.text.prefix(10)))
    }
}
