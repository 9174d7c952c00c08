import Foundation
import TestSupport
import Testing
import TidemarkCloudEngine

@testable import TidemarkIdentity

/// Goal: actions can be looked up later, and entries can't be changed; the secret can be replaced while a server runs. Method: a
/// clock that the test sets, and other openings of the same file.
@Suite(.timeLimit(.minutes(30))) struct AuditTests {
    private let day = 24 * 60 * 60 as Int64

    private func signIn(
        _ served: Served, _ password: String, _ account: String?, as name: String = ""
    ) async throws -> SessionToken? {
        try await served.credentials.signIn(
            password, account: account, container: served.container, kind: .device, device: "Phone\u{1b}[31m",
            address: "192.0.2.7",
            as: name
        ).grant
    }

    @Test(arguments: ["", "phone", "phone, identity of mine", "identity card"])
    func `the text of a sign-in has the device's name, also with an identity`(device: String) {
        let key = IdentityKey(issuer: "https://id.example.org", subject: "anna")
        let read = [AuditEvent.text(ofSignInOn: device, with: key), AuditEvent.text(ofSignInOn: device)].map {
            AuditEvent.device(ofSignIn: $0)
        }
        switch device {
        case "", "phone": #expect(read == [device, device])
        // A name that looks like an identity is truncated, because the device chose it.
        case "identity card": #expect(read == ["", ""])
        default: #expect(read == [device, "phone"])
        }
    }

    @Test func `sign-ins are logged with account, address and result`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        #expect(try await signIn(served, "wrong horse", "anna") == nil)
        #expect(try await signIn(served, "correct horse", nil, as: "correct horse") == nil)
        let token = try #require(try await signIn(served, "correct horse", "anna"))
        let log = try await served.opening().auditLog().map(\.event)
        #expect(log.map(\.outcome) == ["done", "wrong password", "wrong password"])
        #expect(log.map(\.actor) == ["anna", "", ""] && log.allSatisfy { $0.action == .signIn && $0.address == "192.0.2.7" })
        #expect(log[0].subject == "session \(token.session.id)")
        // The text that was typed as the account may be a password.
        #expect(log[1].account.hasPrefix("unknown:") && !log[1].account.contains("horse"))
        #expect(log[2].account == "anna" && log[2].subject == "Phone [31m")
        #expect(try await served.credentials.auditLog(account: "anna").count == 2)
        #expect(try await served.credentials.auditLog(since: served.clock.now + 1).isEmpty)
        #expect(try await served.credentials.auditLog(limit: 1).count == 1)
    }

    @Test func `an attempt with an impossible password makes no entry`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        for password in ["", "horse", String(repeating: "x", count: 1_025), "correct horse\0"] {
            #expect(try await signIn(served, password, "anna") == nil)
            #expect(try await signIn(served, password, nil, as: "ben") == nil)
        }
        #expect(try await served.credentials.auditLog().isEmpty)
    }

    @Test func `a sign-in to a container that is not served is logged`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        let error = await refusal {
            _ = try await served.credentials.signIn(
                "correct horse", account: "anna", container: "iCloud.org.other", kind: .device)
        }
        #expect(error == CredentialError(.notFound, ""))
        #expect(try await served.credentials.auditLog().map(\.event.outcome) == ["the container is not served"])
    }

    @Test func `entries can't be changed, and are removed only by age`() async throws {
        let served = try await Served()
        try await served.credentials.audit(AuditEvent(.shareChange, actor: "anna"))
        for sql in ["UPDATE audit SET actor = ''", "DELETE FROM audit"] {
            let error = await refusal { try await served.credentials.writer.write { db in try db.execute(sql: sql) } }
            #expect(error?.message.contains("append-only") == true, "\(sql)")
        }
        served.clock.advance(seconds: 179 * day)
        try await served.credentials.audit(AuditEvent(.shareChange, actor: "ben"))
        #expect(try await served.credentials.auditLog().count == 2)
        served.clock.advance(seconds: 2 * day)
        try await served.credentials.audit(AuditEvent(.shareChange, actor: "cleo"))
        #expect(try await served.credentials.auditLog().map(\.event.actor) == ["cleo", "ben"])
    }

    @Test func `the oldest entries beyond the limit are removed, but none of the last day`() async throws {
        let served = try await Served()
        let first = served.clock.now
        for (number, days) in [(1, 3), (2, 2), (3, 0)] as [(Int64, Int64)] {
            let at = first - days * day * 1_000_000
            try await served.credentials.writer.write { db in
                try db.execute(
                    sql: """
                        INSERT INTO audit (number, at, action, actor, account, address, container, subject, outcome)
                        VALUES (\(number), \(at), 'sign-out', '', '', '', '', '', 'done')
                        """)
            }
        }
        // The next entry gets a number that puts only the first one beyond the limit.
        try await served.credentials.writer.write { db in
            try db.execute(sql: "UPDATE sqlite_sequence SET seq = \(CredentialLimits.auditEntries) WHERE name = 'audit'")
        }
        try await served.credentials.audit(AuditEvent(.signOut))
        #expect(try await served.credentials.auditLog().map(\.id) == [CredentialLimits.auditEntries + 1, 3, 2])
    }

    @Test func `the consents of an account are found alone, the newest first, without those of others`() async throws {
        let served = try await Served()
        let store = served.credentials
        for (action, account) in [
            (AuditEvent.Action.own("consent"), "anna"), (.own("password"), "anna"), (.own("consent"), "ben"), (.signIn, "anna"),
            (.own("consent"), "anna"), (.accountSignOut, "anna"),
        ] {
            served.clock.advance(seconds: 1)
            try await store.audit(AuditEvent(action, actor: account, account: account))
        }
        let now = served.clock.now
        let found = try await store.consentLog(of: "anna", since: 0)
        #expect(found.map(\.event.action) == [.own("consent"), .own("consent")])
        #expect(found.map { now - $0.at } == [1_000_000, 5_000_000])
        #expect(try await store.consentLog(of: "anna", since: now - 1_000_000).count == 1)
    }

    @Test func `the log keeps 4,000 bytes of a changed value, with a mark if it was longer`() async throws {
        let served = try await Served()
        let (most, umlauts) = (String(repeating: "x", count: 4_000), String(repeating: "ä", count: 2_000))
        // No character is cut in two.
        for (value, kept) in [
            ("", ""), ("a\0b", "ab"), (most, most), ("\(most)x", "\(most)…"), ("x\(umlauts)", "x\(umlauts.dropLast())…"),
            ("\(umlauts)\0", umlauts),
        ] as [(String, String)] {
            try await served.credentials.audit(AuditEvent(.shareChange, before: value, after: value))
            let event = try #require(try await served.credentials.auditLog(limit: 1).first).event
            #expect(event.before == kept && event.after == kept, "\(value.prefix(9))")
        }
    }

    @Test func `a file of an earlier version gets the tables when it is opened`() async throws {
        let served = try await Served()
        try await served.credentials.writer.write { db in
            try db.execute(sql: "DROP TABLE audit; DROP TABLE known_addresses; DROP TABLE sync_failures")
        }
        let opened = try served.opening()
        try await opened.audit(AuditEvent(.signOut, actor: "anna"))
        #expect(try await opened.auditLog().count == 1)
        #expect(try await opened.syncFailures(.init()).isEmpty)
    }

    @Test func `an address is known once an account has signed in from it, even after the session has ended`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        #expect(try await !served.credentials.isKnown("192.0.2.7", to: "anna"))
        _ = try await signIn(served, "wrong horse", "anna")
        #expect(try await !served.credentials.isKnown("192.0.2.7", to: "anna"))
        let token = try #require(try await signIn(served, "correct horse", "anna"))
        try await served.credentials.endSession(id: token.session.id)
        #expect(try await served.credentials.isKnown("192.0.2.7", to: "anna"))
        #expect(try await !served.credentials.isKnown("192.0.2.7", to: "ben"))
        served.clock.advance(seconds: 401 * day)
        #expect(try await !served.credentials.isKnown("192.0.2.7", to: "anna"))
        // The oldest addresses are removed.
        for number in 0..<25 {
            served.clock.advance(seconds: 1)
            let now = served.clock.now
            try await served.credentials.writer.write { db in
                try SQLiteCredentialStorage.keepKnown("10.0.0.\(number)", to: "anna", at: now, db)
            }
        }
        #expect(try await !served.credentials.isKnown("10.0.0.4", to: "anna"))
        #expect(try await served.credentials.isKnown("10.0.0.5", to: "anna"))
    }

    @Test func `a device's token is valid for its account only, and expires`() async throws {
        let served = try await Served()
        let token = served.credentials.deviceToken(of: "anna")
        #expect(try served.credentials.device(token, of: "anna") != nil)
        #expect(
            try served.credentials.device(token, of: "ben") == nil && served.credentials.device(token + "A", of: "anna") == nil)
        #expect(
            try served.credentials.device(token, of: "anna")
                != served.credentials.device(served.credentials.deviceToken(of: "anna"), of: "anna"))
        served.clock.advance(seconds: 401 * day)
        #expect(try served.credentials.device(token, of: "anna") == nil)
    }

    @Test func `replacing the secret ends all sessions and signatures, in all processes at once`() async throws {
        let served = try await Served()
        let other = try served.opening()
        let (token, address) = (try await served.session("anna"), other.signedText(Data("x".utf8), for: "upload", until: .max))
        #expect(try await served.failure(token.text, in: other) == nil)
        #expect(try await served.credentials.rotateSecret() == 1)
        #expect(try await served.failure(token.text, in: other) == .unknown)
        #expect(try served.credentials.open(address, for: "upload") == nil)
        let next = try await served.session("anna")
        #expect(try await served.failure(next.text, in: other) == nil)
    }

    @Test func `with a grace period sessions continue, and get new tokens`() async throws {
        let served = try await Served()
        let token = try await served.session("anna")
        #expect(try await served.credentials.rotateSecret(grace: 30 * day * 1_000_000) == 0)
        let session = try await served.credentials.session(token.text).get()
        #expect(session.isDueForRenewal(at: served.clock.now))
        let renewed = try await served.credentials.renewed(session)
        served.clock.advance(seconds: 31 * day)
        #expect(try await served.failure(token.text) == .unknown)
        #expect(try await served.credentials.session(renewed.text).get().isDueForRenewal(at: renewed.session.issued) == false)
    }

    @Test func `an admitted request stays valid until its session or key is ended`() async throws {
        let served = try await Served()
        let session = try await served.session("anna")
        let api = try await served.credentials.addAPIToken(
            container: served.container, environment: .development, name: "", callback: .redirect("https://journal.example.org/"))
        for credential in [Credential.none, .session(session.session.id), .apiToken(api.token.id), .key("x")] {
            #expect(Credential(text: credential.text) == credential)
        }
        #expect(Credential(text: "x") == nil)
        #expect(try await served.credentials.isGood(.none))
        #expect(try await served.credentials.isGood(.session(session.session.id)))
        #expect(try await served.credentials.isGood(.apiToken(api.token.id)))
        #expect(try await !served.credentials.isGood(.key("x")))
        try await served.credentials.endSession(id: session.session.id)
        try await served.credentials.revokeAPIToken(id: api.token.id)
        #expect(try await !served.credentials.isGood(.session(session.session.id)))
        #expect(try await !served.credentials.isGood(.apiToken(api.token.id)))
    }
}
