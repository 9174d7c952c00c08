import Testing
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkIdentity

/// Goal: a code of the second factor is valid once, for a minute and a half, and for its account. Method: the vectors of RFC
/// 6238, and a clock that the test sets.
@Suite(.timeLimit(.minutes(30))) struct SecondFactorTests {
    @Test func `codes are those of RFC 6238`() {
        let secret = Array("12345678901234567890".utf8)
        for (second, code) in [
            (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] as [(Int64, String)] {
            #expect(TimeCode.code(secret, step: TimeCode.step(at: second * 1_000_000)) == code)
        }
        #expect(TimeCode.base32(Array("foobar".utf8)) == "MZXW6YTBOI")
    }

    @Test func `codes use the HMAC-SHA-1 of RFC 2202`() {
        for (key, text, code) in [
            ([UInt8](repeating: 0x0b, count: 20), "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
            (Array("Jefe".utf8), "what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        ] {
            #expect(Hexadecimal.text(Digest.hmacSHA1(Array(text.utf8), key: key)) == code)
        }
    }

    @Test func `a code works once, and so does a recovery code`() async throws {
        let served = try await Served()
        let store = served.credentials
        #expect(try await store.useSecondFactor(of: "anna", code: ""))
        let made = store.newSecondFactor(of: "anna")
        let secret = try #require(try store.pendingSecret(made.form, "anna"))
        func code(_ offset: Int64 = 0) -> String { TimeCode.code(secret, step: TimeCode.step(at: served.clock.now) + offset) }
        #expect(try await store.setSecondFactor(of: "anna", to: made.form, code: "000000" == code() ? "000001" : "000000") == nil)
        #expect(try await store.setSecondFactor(of: "ben", to: made.form, code: code()) == nil)
        let codes = try #require(try await store.setSecondFactor(of: "anna", to: made.form, code: code()))
        #expect(Set(codes).count == 8)
        #expect(try await store.hasSecondFactor("anna"))
        // The code of the set-up is used up.
        #expect(try await !store.useSecondFactor(of: "anna", code: code()))
        #expect(try await !store.useSecondFactor(of: "anna", code: ""))
        // An app's clock may be half a minute ahead.
        #expect(try await !store.useSecondFactor(of: "anna", code: code(2)))
        #expect(try await store.useSecondFactor(of: "anna", code: code(1)))
        #expect(try await !store.useSecondFactor(of: "anna", code: code(1)))
        served.clock.advance(seconds: 300)
        #expect(try await !store.useSecondFactor(of: "anna", code: code(-2)))
        #expect(try await store.useSecondFactor(of: "anna", code: " \(code().prefix(3)) \(code().suffix(3))"))
        #expect(try await store.useSecondFactor(of: "anna", code: codes[3].uppercased()))
        #expect(try await !store.useSecondFactor(of: "anna", code: codes[3]))
        try await store.removeSecondFactor(of: "anna")
        #expect(try await store.useSecondFactor(of: "anna", code: ""))
    }

    @Test func `a device signs in with a code, and its session needs none`() async throws {
        let served = try await Served()
        let store = served.credentials
        try await store.setPassword("correct horse", of: "anna")
        let before = try await served.session("anna")
        let secret = [UInt8](repeating: 7, count: 20)
        try await store.storage.setSecondFactor(
            StoredSecondFactor(account: "anna", secret: secret, recovery: [], step: 0, added: served.clock.now), of: "anna")
        func code() -> String { TimeCode.code(secret, step: TimeCode.step(at: served.clock.now)) }
        func signIn(_ password: String = "correct horse", code: String = "") async throws -> SignInResult<SessionToken> {
            try await store.signIn(
                password, account: "anna", code: code, container: served.container, kind: .device, address: "192.0.2.7")
        }
        #expect(try await signIn() == .needsCode)
        #expect(try await signIn(code: code() == "000000" ? "000001" : "000000") == .needsCode)
        // A wrong password, or a container that is not served, neither uses the code up nor says that one is needed.
        #expect(try await signIn("wrong horse", code: code()) == .refused)
        #expect(try await signIn("wrong horse") == .refused)
        await #expect(throws: CredentialError(.notFound, "")) {
            try await store.signIn(
                "correct horse", account: "anna", code: code(), container: "iCloud.org.other", kind: .device)
        }
        #expect(try await !store.isKnown("192.0.2.7", to: "anna"))
        let token = try #require(try await signIn(code: code()).grant)
        #expect(try await signIn(code: code()) == .needsCode)
        #expect(try await store.isKnown("192.0.2.7", to: "anna"))
        for token in [before, token] { #expect(try await served.failure(token.text) == nil) }
        let log = try await store.auditLog().map(\.event)
        #expect(
            log.map(\.outcome) == [
                "wrong code", "done", "the container is not served", "wrong password", "wrong password", "wrong code", "no code",
            ])
        #expect(log.map(\.actor) == ["", "anna", "anna", "", "", "", ""] && log.allSatisfy { $0.account == "anna" })
    }

    @Test func `codes can't be guessed, and guessing does not lock the owner out`() async throws {
        let served = try await Served()
        let store = served.credentials
        try await store.setPassword("correct horse", of: "anna")
        let (secret, recovery) = ([UInt8](repeating: 7, count: 20), "aaaabbbbccccdddd")
        try await store.storage.setSecondFactor(
            StoredSecondFactor(
                account: "anna", secret: secret, recovery: Digest.sha256(Array(recovery.utf8)), step: 0, added: served.clock.now),
            of: "anna")
        func code() -> String { TimeCode.code(secret, step: TimeCode.step(at: served.clock.now)) }
        func signIn(_ password: String = "correct horse", code: String = "") async throws -> SignInResult<SessionToken> {
            try await store.signIn(password, account: "anna", code: code, container: served.container, kind: .device)
        }
        let wrong = code() == "000000" ? "000001" : "000000"
        // Attempts without the password or without a code do not count.
        for _ in 0..<20 {
            #expect(try await signIn("wrong horse", code: wrong) == .refused)
            #expect(try await signIn() == .needsCode)
        }
        for _ in 0..<10 { #expect(try await signIn(code: wrong) == .needsCode) }
        #expect(try await signIn(code: code()) == .tooManyCodes(wait: 361))
        #expect(try await store.auditLog().first?.event.outcome == "too many codes")
        // The pages count together with devices.
        #expect(
            try await store.signInToPages("correct horse", account: "anna", code: code(), device: "", address: "", as: "anna")
                == .tooManyCodes(wait: 361))
        #expect(try await signIn(code: recovery).grant != nil)
        served.clock.advance(seconds: 361)
        #expect(try await signIn(code: wrong) == .needsCode)
        guard case .tooManyCodes(350...361) = try await signIn(code: code()) else {
            Issue.record("it was not too many")
            return
        }
        served.clock.advance(seconds: 361)
        #expect(try await signIn(code: code()).grant != nil)
        // A right code resets the count.
        for _ in 0..<10 { #expect(try await signIn(code: wrong) == .needsCode) }
    }

    @Test func `ten attempts with codes of an account count, and one is forgotten every six minutes, whatever others do`() {
        var attempts = CodeAttempts()
        func take(_ account: String, _ count: Int, at now: Int64) -> [Int64?] {
            (0..<count).map { _ in attempts.take(account, at: now) }
        }
        let period: Int64 = 6 * 60_000_000
        let allowed = [Int64?](repeating: nil, count: 10)
        let first = take("anna", 11, at: 0)
        #expect(first == allowed + [period + 1])
        // A refused attempt does not count, and a clock that is set back changes no wait.
        let (early, late) = (take("anna", 1, at: -period), take("anna", 1, at: period - 1))
        #expect(early == [period + 1] && late != [nil])
        let next = take("anna", 2, at: period)
        #expect(next == [nil, period + 1])
        // Many others, whose attempts have expired by then: those of the account have not.
        for number in 0..<1100 { _ = attempts.take("other \(number)", at: period) }
        let left = take("anna", 3, at: 3 * period)
        #expect(left == [nil, nil, period + 1])
        attempts.forget("anna")
        let again = take("anna", 11, at: 3 * period)
        #expect(again == first)
    }

    @Test func `of two simultaneous sign-ins with one code only one succeeds`() async throws {
        let served = try await Served()
        let (one, two) = (served.credentials, try served.opening())
        try await one.setPassword("correct horse", of: "anna")
        let secret = [UInt8](repeating: 7, count: 20)
        for _ in 0..<10 {
            served.clock.advance(seconds: 60)
            try await one.storage.setSecondFactor(
                StoredSecondFactor(account: "anna", secret: secret, recovery: [], step: 0, added: served.clock.now), of: "anna")
            let code = TimeCode.code(secret, step: TimeCode.step(at: served.clock.now))
            let results: [Bool] = try await withThrowingTaskGroup(of: Bool.self) { group in
                for store in [one, two] {
                    group.addTask {
                        try await store.signIn(
                            "correct horse", account: "anna", code: code, container: served.container, kind: .device
                        ).grant != nil
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.count { $0 } == 1)
        }
    }

    @Test func `a new secret waits a quarter of an hour for its first code`() async throws {
        let served = try await Served()
        let made = served.credentials.newSecondFactor(of: "anna")
        #expect(try served.credentials.secret(ofSecondFactor: made.form, of: "anna") == made.secret)
        served.clock.advance(seconds: 901)
        #expect(try served.credentials.secret(ofSecondFactor: made.form, of: "anna") == nil)
    }
}

extension CredentialStore {
    fileprivate func pendingSecret(_ form: String, _ account: String) throws -> [UInt8]? {
        try open(form, for: "second-factor").map { Array($0.prefix(20)) }
    }
}
