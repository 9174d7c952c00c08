import Testing
import TidemarkModel

@testable import TidemarkIdentity

/// Goal: a code of the second factor is good once, for a minute and a half, and for its account. Method: the vectors of RFC 6238, and a clock that is
/// set by hand.
@Suite(.timeLimit(.minutes(1))) struct SecondFactorTests {
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

    @Test func `a code lets in once, and a recovery code as well`() async throws {
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
        // The code that has set it up is used.
        #expect(try await !store.useSecondFactor(of: "anna", code: code()))
        #expect(try await !store.useSecondFactor(of: "anna", code: ""))
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

    @Test func `a secret waits a quarter of an hour for its first code`() async throws {
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
