import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkIdentity

/// Goal: a password signs in its owner until it is replaced, and only its hash is stored. Method: passwords as they are typed, a
/// published vector, and the contents of the file.
@Suite(.timeLimit(.minutes(30))) struct PasswordTests {
    @Test func `a password works for its account only`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        try await served.credentials.setPassword("battery staple", of: "ben")
        #expect(try await served.credentials.checkPassword("correct horse", of: "anna"))
        for (password, account) in [
            ("correct horse", "ben"), ("correct horse", nil), ("correct horse", "cleo"), ("correct horsE", "anna"),
            ("correct horse ", "anna"), ("", "anna"), ("correct horse\0", "anna"),
        ] {
            #expect(try await !served.credentials.checkPassword(password, of: account), "\(password) of \(account ?? "nobody")")
        }
        #expect(try await served.opening().checkPassword("correct horse", of: "anna"))
        #expect(try await served.credentials.accountsWithPassword() == ["anna", "ben"])
    }

    @Test func `a password works however its accents are encoded`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("sommerk\u{e4}se", of: "anna")
        #expect(try await served.credentials.checkPassword("sommerka\u{308}se", of: "anna"))
        #expect(try await !served.credentials.checkPassword("sommerkase", of: "anna"))
    }

    @Test func `a password has 8 to 1,024 bytes`() async throws {
        let served = try await Served()
        for password in [
            "", "1234567", String(repeating: "a", count: 1025), String(repeating: "a", count: 1_000_000), "e\u{301}12345",
            "12345678\0",
        ] {
            let error = await refusal { try await served.credentials.setPassword(password, of: "anna") }
            #expect(error == CredentialError(.invalid, ""))
            #expect(throws: CredentialError(.invalid, "")) { try CredentialStore.check(password: password) }
            #expect(try await !served.credentials.checkPassword(password, of: "anna"))
        }
        for password in [
            "12345678", String(repeating: "a", count: 1024), "e\u{301}123456", String(repeating: "e\u{301}", count: 512),
        ] {
            try await served.credentials.setPassword(password, of: "anna")
            #expect(try await served.credentials.checkPassword(password, of: "anna"))
        }
    }

    @Test func `changing or removing a password ends only that account's sessions`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        let (first, other) = (try await served.session("anna"), try await served.session("ben"))
        try await served.credentials.setPassword("battery staple", of: "anna")
        #expect(try await served.failure(first.text) == .revoked)
        let second = try await served.session("anna")
        try await served.credentials.removePassword(of: "anna")
        #expect(try await served.failure(second.text) == .revoked)
        #expect(try await !served.credentials.checkPassword("battery staple", of: "anna"))
        #expect(try await served.failure(other.text) == nil)
    }

    @Test func `signing in with the password makes a session`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        let token = try #require(
            try await served.credentials.signIn("correct horse", account: "anna", container: served.container, kind: .device)
                .grant)
        #expect(try await served.credentials.session(token.text).get().account == "anna")
        #expect(
            try await served.credentials.signIn("correct horse", account: nil, container: served.container, kind: .device)
                == .refused)
        #expect(
            try await served.credentials.signIn("wrong horse", account: "anna", container: served.container, kind: .device)
                == .refused)
        #expect(try await served.credentials.sessions().count == 1)
    }

    @Test func `a sign-in fails if its password is changed meanwhile`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        let checked = try #require(
            try await served.credentials.writer.read { db in try PasswordHash(of: "anna", db) })
        try await served.credentials.setPassword("battery staple", of: "anna")
        let token = try await served.credentials.makeSession(
            account: "anna", container: served.container, environment: .development, kind: .device, hash: checked)
        #expect(token == nil)
        #expect(try await served.credentials.sessions().isEmpty)
    }

    @Test func `the hash is scrypt`() throws {
        // RFC 7914, section 12.
        let hash = try PasswordHash(
            Array("pleaseletmein".utf8), salt: Array("SodiumChloride".utf8), cost: .init(logN: 14, r: 8, p: 1))
        #expect(Hexadecimal.text(hash.digest) == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2")
        // The least that OWASP's Password Storage Cheat Sheet recommends.
        #expect(PasswordHash.Cost.usual == .init(logN: 17, r: 8, p: 1))
        #expect(PasswordHash.Cost.usual.memory == 128 << 20 && PasswordHash.Cost.usual.isBounded)
    }

    @Test func `equal passwords of two accounts are stored differently, and never in clear`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        try await served.credentials.setPassword("correct horse", of: "ben")
        let hashes = try await served.credentials.writer.read { db in
            [try PasswordHash(of: "anna", db)!, try PasswordHash(of: "ben", db)!]
        }
        #expect(hashes[0].salt != hashes[1].salt && hashes[0].digest != hashes[1].digest)
        #expect(hashes[0].salt.count == 16)
        for name in ["access.sqlite", "access.sqlite-wal"] {
            #expect(try Data(contentsOf: served.scratch["cloud/\(name)"]).range(of: Data("correct horse".utf8)) == nil)
        }
    }

    @Test func `a hash with an excessive cost is refused`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        try await served.credentials.writer.write { db in try db.execute(sql: "UPDATE passwords SET log_n = 40") }
        let error = await refusal { _ = try await served.credentials.checkPassword("correct horse", of: "anna") }
        #expect(error == CredentialError(.storage, ""))
    }

    @Test func `a full queue turns an attempt away, and accepts again when it is shorter`() async throws {
        let cost = PasswordHash.Cost(logN: 4, r: 8, p: 1)
        let error = await refusal { _ = try await PasswordHashers.busy(cost) }
        #expect(error == CredentialError(.busy, ""))
        let hashers = PasswordHashers(room: .init(ofAddress: 1, ofNetwork: 1, ofLane: 1))
        for _ in 0..<10 { _ = try await hashers.hash([1], salt: [2], cost: cost) }
    }

    @Test func `a hash of a lower cost is replaced when its owner signs in, and not after a wrong password`() async throws {
        let served = try await Served()
        try await served.credentials.setPassword("correct horse", of: "anna")
        let session = try await served.session("anna")
        let stronger = try CredentialStore(
            at: served.scratch["cloud"], now: { [clock = served.clock] in clock.now }, passwordLogN: 6)
        func cost() async throws -> Int64? {
            try await served.credentials.writer.read { db in try PasswordHash(of: "anna", db)?.cost.logN }
        }
        #expect(try await !stronger.checkPassword("wrong horse", of: "anna"))
        #expect(try await cost() == 4)
        let before = try await served.credentials.writer.read { db in try PasswordHash(of: "anna", db) }
        // Two sign-ins at once: neither is refused because the other has replaced the hash.
        async let first = stronger.signIn("correct horse", account: "anna", container: served.container, kind: .device)
        async let second = stronger.signIn("correct horse", account: "anna", container: served.container, kind: .device)
        #expect(try await first.grant != nil)
        #expect(try await second.grant != nil)
        #expect(try await cost() == 6)
        let after = try await served.credentials.writer.read { db in try PasswordHash(of: "anna", db) }
        #expect(before?.salt != after?.salt)
        #expect(try await served.failure(session.text) == nil)
        #expect(try await served.credentials.checkPassword("correct horse", of: "anna"))
        // A credential store with a lower cost keeps the hash.
        #expect(try await cost() == 6)
    }
}

extension PasswordHashers {
    /// Asks for a hash while another one is made and none may wait.
    fileprivate static func busy(_ cost: PasswordHash.Cost) async throws(CredentialError) -> PasswordHash {
        let hashers = PasswordHashers(room: .init(ofAddress: 0, ofNetwork: 0, ofLane: 0))
        return try await hashers.withTurn(of: .own) { _ throws(CredentialError) in
            try await hashers.hash([1], salt: [2], cost: cost)
        }
    }
}
