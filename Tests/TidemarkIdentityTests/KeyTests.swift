import COpenSSL
import Foundation
import TestSupport
import Testing

@testable import TidemarkIdentity

/// Goal: a server is identified by its signature, each signed change counts once, and no other request passes. Method: keys that
/// are made here sign as servers do; every part of a request, every bit of a signature and every second of the clock is altered.
@Suite(.timeLimit(.minutes(30))) struct KeyTests {
    // The clock begins at this time, a second after the credential store was opened.
    private let date = "2027-01-15T08:00:00Z"

    private func add(_ served: Served, _ pem: String) async throws -> ServerKey {
        try await served.credentials.addKey(
            container: served.container, environment: .development, name: "Importer", publicKeyPEM: pem, account: "importer")
    }

    private func failure(
        _ request: SignedRequest, _ key: ServerKey, _ served: Served, isChanging: Bool = false
    ) async throws -> SignatureFailure? {
        switch try await served.credentials.check(request, by: key, isChanging: isChanging) {
        case .success: nil
        case .failure(let failure): failure
        }
    }

    @Test func `a key is found by its ID, until it is revoked`() async throws {
        let (served, signing) = (try await Served(), SigningKey())
        let key = try await add(served, signing.publicPEM)
        #expect(key.id.wholeMatch(of: /[0-9a-f]{64}/) != nil)
        #expect(key.isOf(served.container, .development) && !key.isOf(served.container, .production))
        let found = try #require(try served.opening().key(key.id.uppercased()))
        #expect(found.id == key.id && found.account == "importer" && found.name == "Importer" && found.made == served.clock.now)
        let data = Data("text".utf8)
        #expect(found.verifies(signature: Data(signing.signature(of: "text")), of: data))
        #expect(!found.verifies(signature: Data(SigningKey().signature(of: "text")), of: data))
        #expect(!found.verifies(signature: Data(), of: data))
        let again = await refusal { _ = try await add(served, signing.publicPEM) }
        #expect(again == CredentialError(.exists, ""))
        // The same key in another container has another ID.
        let elsewhere = try await served.credentials.addKey(
            container: served.container, environment: .production, name: "", publicKeyPEM: signing.publicPEM, account: "importer")
        #expect(elsewhere.id != key.id)
        #expect(try served.credentials.keys().map(\.id).sorted() == [key.id, elsewhere.id].sorted())
        try await served.credentials.revokeKey(id: key.id)
        #expect(try served.credentials.key(key.id) == nil)
        #expect(try served.credentials.key("") == nil)
    }

    @Test func `only public keys of P-256 are accepted, and each other kind is named`() async throws {
        let served = try await Served()
        let good = SigningKey().publicPEM
        var der = try #require(Data(base64Encoded: good.split(separator: "\n").dropFirst().dropLast().joined()))
        let whole = der
        der[60] ^= 1
        for (pem, message) in [
            (SigningKey("P-384").publicPEM, "not one of ECDSA over P-256"),
            (SigningKey("secp256k1").publicPEM, "not one of ECDSA over P-256"),
            (good.replacing("PUBLIC", with: "PRIVATE"), "private key"),
            (good.replacing("PUBLIC", with: "EC PRIVATE"), "private key"),
            (good.replacing("PUBLIC KEY", with: "CERTIFICATE"), "no public key in PEM"), ("", "no public key in PEM"),
            (String(good.prefix(100)), "no public key in PEM"),
            ("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", "damaged"),
            ("-----BEGIN PUBLIC KEY-----\n!!!\n-----END PUBLIC KEY-----\n", "damaged"), (SigningKey.pem(der), "damaged"),
            (SigningKey.pem(whole.dropLast()), "damaged"), (SigningKey.pem(whole + [0]), "damaged"),
            (good + String(repeating: " ", count: 8192), "over 8192 bytes"),
        ] {
            let error = await refusal { _ = try await add(served, pem) }
            #expect(error == CredentialError(.invalid, ""), "\(pem)")
            #expect(error?.message.contains(message) == true, "\(error?.message ?? "none") for \(pem)")
        }
        _ = try await add(served, "A comment before.\r\n" + good.replacing("\n", with: "\r\n"))
    }

    @Test func `a signed request passes, and not with any part altered`() async throws {
        let (served, signing) = (try await Served(), SigningKey())
        let key = try await add(served, signing.publicPEM)
        let request = signing.request(date, #"{"operations":[]}"#)
        #expect(try await failure(request, key, served) == nil)
        var altered = request
        altered.body.append(0x20)
        #expect(try await failure(altered, key, served) == .wrong)
        altered = request
        altered.body = []
        #expect(try await failure(altered, key, served) == .wrong)
        altered = request
        altered.path += "/"
        #expect(try await failure(altered, key, served) == .wrong)
        altered = request
        altered.date = "2027-01-15T08:00:01Z"
        #expect(try await failure(altered, key, served) == .wrong)
        let other = try await add(served, SigningKey().publicPEM)
        #expect(try await failure(request, other, served) == .wrong)
        for wrong in [
            "", "AAAA", "!", Data(repeating: 0x30, count: 70).base64EncodedString(), String(repeating: "A", count: 10_000_000),
        ] {
            altered = request
            altered.signature = wrong
            #expect(try await failure(altered, key, served) == .malformedSignature)
        }
        let bytes = try #require(Data(base64Encoded: request.signature))
        for place in 0..<(bytes.count * 8) {
            var turned = bytes
            turned[place / 8] ^= 1 << UInt8(place % 8)
            altered.signature = turned.base64EncodedString()
            let found = try await failure(altered, key, served)
            #expect([.wrong, .malformedSignature].contains(found), "bit \(place)")
        }
        altered.signature = (bytes + [0]).base64EncodedString()
        #expect(try await failure(altered, key, served) == .malformedSignature)
    }

    @Test func `without a body its digest or nothing is signed, and a path with or without its query`() async throws {
        let (served, signing) = (try await Served(), SigningKey())
        let key = try await add(served, signing.publicPEM)
        let path = "/database/1/c/development/public/users/current"
        for signed in [
            "\(date):47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\(path)", "\(date)::\(path)", "\(date)::\(path)?a=1",
            "\(date):47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\(path)?a=1",
        ] {
            let signature = Data(signing.signature(of: signed)).base64EncodedString()
            #expect(
                try await failure(
                    SignedRequest(date: date, body: [], path: path, query: "a=1", signature: signature), key, served) == nil)
            let without = try await failure(SignedRequest(date: date, body: [], path: path, signature: signature), key, served)
            #expect(without == (signed.hasSuffix("?a=1") ? .wrong : nil))
            #expect(
                try await failure(
                    SignedRequest(date: date, body: [1], path: path, query: "a=1", signature: signature), key, served)
                    == .wrong)
        }
    }

    @Test func `the date of a request is at most ten minutes from now`() async throws {
        let (served, signing) = (try await Served(), SigningKey())
        let key = try await add(served, signing.publicPEM)
        let ahead = signing.request("2027-01-15T08:10:00Z", "")
        #expect(try await failure(ahead, key, served) == nil)
        served.clock.advance(microseconds: -1)
        #expect(try await failure(ahead, key, served) == .tooNew)
        served.clock.advance(microseconds: 1)
        served.clock.advance(seconds: 20 * 60)
        #expect(try await failure(ahead, key, served) == nil)
        served.clock.advance(microseconds: 1)
        #expect(try await failure(ahead, key, served) == .tooOld)
    }

    @Test(arguments: [
        "", "2027-01-15", "2027-01-15T08:00:00", "2027-01-15T08:00:00.000Z", "2027-01-15T08:00:00+00:00", "2027-01-15t08:00:00z",
        "2027-01-15 08:00:00Z", "2027-02-29T08:00:00Z", "2027-13-01T08:00:00Z", "2027-00-01T08:00:00Z", "2027-01-00T08:00:00Z",
        "2027-01-15T24:00:00Z", "2027-01-15T08:60:00Z", "2027-01-15T08:00:60Z", "+027-01-15T08:00:00Z", "२०२७-01-15T08:00:00Z",
        "99999999999999999999",
    ])
    func `an invalid date is refused`(_ text: String) { #expect(SignedRequest.seconds(text) == nil) }

    @Test func `dates are counted by the calendar`() {
        let formatter = ISO8601DateFormatter()
        var random = Randomness("dates of signed requests")
        for _ in 0..<2000 {
            let seconds = Int64.random(in: 0...7_258_118_400, using: &random)
            let text = formatter.string(from: Date(timeIntervalSince1970: TimeInterval(seconds)))
            #expect(SignedRequest.seconds(text) == seconds, "\(text)")
        }
    }

    @Test func `a signed change is accepted once, also with the signature's twin, and a signed read any number of times`()
        async throws
    {
        let (served, signing) = (try await Served(), SigningKey())
        let key = try await add(served, signing.publicPEM)
        let request = signing.request(date, "{}")
        #expect(try await failure(request, key, served) == nil)
        #expect(try await failure(request, key, served) == nil)
        #expect(try await failure(request, key, served, isChanging: true) == nil)
        #expect(try await failure(request, key, served, isChanging: true) == .replayed)
        var twin = request
        twin.signature = Data(SigningKey.twin(Array(Data(base64Encoded: request.signature)!))).base64EncodedString()
        #expect(twin.signature != request.signature)
        #expect(try await failure(twin, key, served) == nil)
        #expect(try await failure(twin, key, served, isChanging: true) == .replayed)
        // With a new signature it is another request, though it says the same in the same second.
        #expect(try await failure(signing.request(date, "{}"), key, served, isChanging: true) == nil)
        // A request that was refused is not remembered.
        var wrong = signing.request(date, "{}")
        wrong.path = "/other"
        #expect(try await failure(wrong, key, served, isChanging: true) == .wrong)
        wrong.path = request.path
        #expect(try await failure(wrong, key, served, isChanging: true) == nil)
        served.clock.advance(seconds: 600)
        #expect(try await failure(request, key, served, isChanging: true) == .replayed)
        served.clock.advance(seconds: 1)
        #expect(try await failure(request, key, served, isChanging: true) == .tooOld)
    }

    @Test func `a server with keys waits until the second of its start is over`() async throws {
        let served = try await Served()
        #expect(try served.opening().waitForKeys() == nil)
        _ = try await add(served, SigningKey().publicPEM)
        let started = try served.opening()
        #expect(try started.waitForKeys() == .seconds(1))
        served.clock.advance(microseconds: 250_000)
        #expect(try started.waitForKeys() == .milliseconds(750))
        served.clock.advance(microseconds: 750_000)
        #expect(try started.waitForKeys() == nil)
        // A clock that is set back makes the wait no longer.
        served.clock.advance(seconds: -3_600)
        #expect(try started.waitForKeys() == .seconds(1))
    }

    @Test func `after a start a change that was signed before it, or in its second, is refused`() async throws {
        let (served, signing) = (try await Served(), SigningKey())
        let key = try await add(served, signing.publicPEM)
        let request = signing.request(date, "{}")
        #expect(try await failure(request, key, served, isChanging: true) == nil)
        served.clock.advance(seconds: 60)
        // The request comes, and the server starts again, within one second.
        let last = signing.request("2027-01-15T08:01:00Z", "{}")
        #expect(try await failure(last, key, served, isChanging: true) == nil)
        served.clock.advance(microseconds: 999_999)
        let later = try served.opening()
        for known in [request, last] {
            await #expect(throws: SignatureFailure.beforeStart) {
                try await later.check(known, by: key, isChanging: true).get()
            }
            try await later.check(known, by: key, isChanging: false).get()
        }
        try await later.check(signing.request("2027-01-15T08:01:01Z", "{}"), by: key, isChanging: true).get()
    }

    @Test func `the memory of requests is bounded, and forgotten requests are refused`() throws {
        var memory = ReplayMemory(capacity: 100)
        var random = Randomness("marks of signed requests")
        let now = 1_800_000_000 as Int64
        func mark(_ number: Int) -> ReplayMemory.Mark {
            ReplayMemory.Mark(r: number.bytesInOrder + [UInt8](repeating: 0, count: 24))
        }
        func admit(_ number: Int, _ second: Int64, at time: Int64) -> SignatureFailure? {
            do throws(SignatureFailure) {
                try memory.admit(mark(number), signed: second, at: time)
                return nil
            } catch {
                return error
            }
        }
        var admitted: [Int: Int64] = [:]
        for number in 0..<5000 {
            let time = now + Int64(number / 10)
            let second = time + Int64.random(in: -20...20, using: &random)
            if admit(number, second, at: time) == nil { admitted[number] = second }
            #expect(memory.size <= 100)
        }
        #expect(admitted.count > 500)
        // None of these requests is accepted again, remembered or not.
        for (number, second) in admitted where second >= now + 500 - 600 {
            #expect([.replayed, .forgotten].contains(admit(number, second, at: now + 500)))
        }
        #expect(admit(5000, now + 520, at: now + 500) == nil)
        #expect(admit(5000, now + 520, at: now + 500) == .replayed)
        // Once their dates have expired, they are not stored any more.
        #expect(admit(5001, now + 2000, at: now + 2000) == nil)
        #expect(memory.size == 1)
    }
}
