import Foundation
import NIOHTTP1
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkModel

@testable import TidemarkIdentity
@testable import TidemarkServer

/// A second factor of which tests know each code.
struct TestFactor {
    static let secret = [UInt8](repeating: 7, count: 20)
    static let recovery = "aaaa-bbbb-cccc-dddd"

    /// The code that an app shows now, or shows next.
    static func code(next: Bool = false) -> String {
        TimeCode.code(secret, step: TimeCode.step(at: Timestamp.now()) + (next ? 1 : 0))
    }

    static func add(to account: String, _ access: CredentialStore) async throws {
        let digest = Digest.sha256(Array(recovery.filter { $0 != "-" }.utf8))
        try await access.storage.setSecondFactor(
            StoredSecondFactor(account: account, secret: secret, recovery: digest, step: 0, added: 1), of: account)
    }
}

/// Goal: an account with a second factor can't be signed in to without a code, on a device or in an app, and without the password
/// a client does not learn of the second factor. Method: a real server, requests as devices and browsers send them, and our
/// client.
@Suite(.timeLimit(.minutes(30))) struct SecondFactorSignInTests {
    private static let path = "/tidemark/1/\(StubbedServer.container)/development/session"

    /// A server where anna@example.org has a second factor.
    private func with(
        limits: ServerLimits = ServerLimits(), signInTime: @escaping @Sendable () -> Double = ServerTime.seconds,
        callback: SignInCallback? = nil, _ body: @escaping @Sendable (StubbedServer, String) async throws -> Void
    ) async throws {
        try await StubbedServer.with(limits: limits, callback: callback, signInTime: signInTime) { server in
            let anna = try await server.access.session(server.deviceToken).get().account
            try await TestFactor.add(to: anna, server.access)
            try await body(server, anna)
        }
    }

    private func begin(
        _ server: StubbedServer, _ password: String = "correct horse", _ code: String? = nil, email: String = "anna@example.org"
    ) async throws -> StubbedServer.Answer {
        var members = ["email": email, "password": password]
        members["code"] = code
        return try await server.send(
            .POST, Self.path, headers: ["X-Tidemark-Extensions": "1"],
            body: Array(try JSONSerialization.data(withJSONObject: members)))
    }

    @Test func `a device is asked for a code only after the right password`() async throws {
        try await with { server, anna in
            let asked = try await begin(server)
            #expect(asked.status == 401 && asked.code == "AUTHENTICATION_FAILED")
            #expect((asked.json["tidemark"] as? [String: Any])?["code"] as? String == "secondFactorRequired")
            #expect(
                asked.json["reason"] as? String
                    == "the account has a second factor: give the code that its app shows, or a recovery code")
            #expect(asked.json["redirectURL"] == nil && asked.json["token"] == nil)
            let wrong = try await begin(server, "correct horse", "000-000")
            #expect(wrong.status == 401)
            #expect(wrong.json["reason"] as? String == "the code of the second factor is wrong, or was used already")
            // Without the password a client does not learn of the second factor, even with a right code.
            let (guess, unknown) = (
                try await begin(server, "wrong horse", TestFactor.code()),
                try await begin(server, "wrong horse", email: "emma@example.org")
            )
            #expect(guess.status == 401 && guess.json["reason"] as? String == unknown.json["reason"] as? String)
            #expect(guess.json["tidemark"] as? [String: String] == ["code": "notAuthenticated"])

            let code = TestFactor.code()
            let done = try await begin(server, "correct horse", code)
            #expect(done.status == 200)
            #expect(try await server.access.session(try #require(done.json["token"] as? String)).get().account == anna)
            #expect(try await begin(server, "correct horse", code).status == 401)
            #expect(try await begin(server, "correct horse", TestFactor.recovery).status == 200)
            #expect(try await begin(server, "correct horse", TestFactor.recovery).status == 401)
            // Earlier sessions go on.
            let headers: HTTPHeaders = ["Authorization": "Bearer \(server.deviceToken)"]
            #expect(try await server.send(.POST, Self.path + "/end", headers: headers, body: Array("{}".utf8)).status == 200)
            let log = try await server.access.auditLog(account: anna).reversed().filter { $0.event.action == .signIn }
            #expect(
                log.map(\.event.outcome) == [
                    "no code", "wrong code", "wrong password", "done", "wrong code", "done", "wrong code",
                ])
            #expect(!server.logged.contains(code) && !server.logged.contains(TestFactor.recovery))
        }
    }

    @Test func `attempts with codes are limited like those with passwords`() async throws {
        var limits = ServerLimits()
        limits.signInAttempts = 3
        @Sendable func attempts(_ server: StubbedServer, _ account: String) async throws {
            for code in [nil, "000000", "000001"] as [String?] {
                #expect(try await begin(server, "correct horse", code).status == 401)
            }
            #expect(try await begin(server, "correct horse", TestFactor.code()).status == 429)
            #expect(try await begin(server, "correct horse", TestFactor.recovery).status == 429)
        }
        try await with(limits: limits, signInTime: StubbedServer.stoppedTime, attempts)
    }

    @Test func `after many wrong codes a device and a page have to wait`() async throws {
        var limits = ServerLimits()
        limits.signInAttempts = 0
        try await with(limits: limits) { server, _ in
            for _ in 0..<10 { #expect(try await begin(server, "correct horse", "000000").status == 401) }
            let answer = try await begin(server, "correct horse", TestFactor.code())
            #expect(answer.status == 429 && answer.code == "THROTTLED")
            #expect((answer.json["retryAfter"] as? Int).map { (300...361).contains($0) } == true)
            #expect((answer.json["reason"] as? String)?.contains("recovery code") == true)
            let challenge = try await server.send(.POST, server.path("records/query", database: "private", query: server.api))
            let address = try #require(challenge.json["redirectURL"] as? String).dropFirst(
                "http://127.0.0.1:\(server.port)".count)
            let form = try field("form", try await server.send(.GET, String(address)).text)
            let body = "form=\(form)&email=anna%40example.org&password=correct%20horse&code=\(TestFactor.code())"
            let page = try await server.send(.POST, "/signin", body: Array(body.utf8))
            #expect(
                page.status == 429 && page.text.contains("a recovery code still counts") && page.text.contains("name=\"code\""))
            #expect(try await begin(server, "correct horse", TestFactor.recovery).status == 200)
        }
    }

    @Test func `our client signs in with the code, and its session needs none`() async throws {
        try await with { server, _ in
            let cloud = HTTPCloud(try ServerAddress("http://127.0.0.1:\(server.port)"), container: StubbedServer.container)
            let error = await #expect(throws: CloudError.self) {
                try await cloud.signIn(email: "anna@example.org", password: "correct horse")
            }
            #expect(error?.code == .secondFactorRequired && error?.reason.contains("second factor") == true)
            let wrong = await #expect(throws: CloudError.self) {
                try await cloud.signIn(email: "anna@example.org", password: "correct horse", code: "000000")
            }
            #expect(wrong?.code == .secondFactorRequired && wrong?.reason.contains("wrong") == true)
            let name = try await cloud.signIn(email: "anna@example.org", password: "correct horse", code: TestFactor.code())
            #expect(try cloud.userRecordName == name)
            try await cloud.signOut()
            // A known device needs a code, too.
            let again = await #expect(throws: CloudError.self) {
                try await cloud.signIn(email: "anna@example.org", password: "correct horse")
            }
            #expect(again?.code == .secondFactorRequired)
        }
    }

    // A web app's page

    private func field(_ name: String, _ html: String) throws -> String {
        let start = try #require(html.range(of: "name=\"\(name)\" value=\""))
        return String(html[start.upperBound...].prefix { $0 != "\"" })
    }

    @Test func `a web app's page asks for the code, and keeps typed values except the password`() async throws {
        try await with { server, anna in
            let answer = try await server.send(.POST, server.path("records/query", database: "private", query: server.api))
            let address = try #require(answer.json["redirectURL"] as? String).dropFirst("http://127.0.0.1:\(server.port)".count)
            let form = try await server.send(.GET, String(address)).text
            #expect(!form.contains("name=\"code\""))
            var fields = ["form": try field("form", form), "email": "anna@example.org", "password": "correct horse", "stay": "1"]
            func send() async throws -> StubbedServer.Answer {
                let body = fields.map { "\($0)=\(PercentCoding.encoded($1))" }.joined(separator: "&")
                return try await server.send(.POST, "/signin", body: Array(body.utf8))
            }
            let asked = try await send()
            #expect(asked.status == 403 && asked.headers.first(name: "Set-Cookie") == nil)
            #expect(
                asked.text.contains("autocomplete=\"one-time-code\"")
                    && asked.text.contains("role=\"alert\">Enter your password again"))
            #expect(asked.text.contains("value=\"anna@example.org\"") && asked.text.contains("value=\"1\" checked"))
            #expect(!asked.text.contains("correct horse"))
            fields["code"] = "000000"
            let wrong = try await send()
            #expect(wrong.status == 403 && wrong.text.contains("The code is wrong, or was used already."))
            #expect(wrong.text.contains("name=\"code\"") && !wrong.text.contains("000000"))
            fields["code"] = " \(TestFactor.code()) "
            let done = try await send()
            #expect(done.status == 303)
            let start = "https://journal.example.org/in?x=1&ckWebAuthToken="
            let location = try #require(done.headers.first(name: "Location"))
            let session = try await server.access.session(String(location.dropFirst(start.count))).get()
            #expect(session.account == anna && session.kind == .web(staysSignedIn: true))
            #expect(try await send().status == 403)
            // With a wrong password the page says nothing of a code, but keeps the field for it if it was there.
            fields["password"] = "wrong horse"
            #expect(try await send().text.contains("The e-mail address or the password is wrong."))
            fields["code"] = nil
            #expect(try await !send().text.contains("name=\"code\""))
        }
    }

    /// Signs in on a device, in each kind of storage.
    private func flow(_ cloud: EmbeddedCloud, _ access: CredentialStore) async throws {
        try await access.addContainer("journal")
        let anna = try await cloud.addAccount("anna@example.org")
        try await access.setPassword("correct horse", of: anna.id)
        try await TestFactor.add(to: anna.id, access)
        let signIn = SignIn(cloud: cloud, access: access, metrics: ServerMetrics(), limits: SignInLimits(perMinute: 0))
        func token(_ code: String) async throws -> SignInResult<SessionToken> {
            try await signIn.token(
                email: anna.email, password: "correct horse", code: code, container: "journal", environment: .development,
                kind: .device, device: "Phone", address: "192.0.2.7")
        }
        #expect(try await token("") == .needsCode)
        #expect(try await token("000000") == .needsCode)
        let code = TestFactor.code(next: true)
        #expect(try await token(code).grant?.session.account == anna.id)
        #expect(try await token(code) == .needsCode)
        #expect(try await token(TestFactor.recovery).grant != nil)
        #expect(try await token(TestFactor.recovery) == .needsCode)
        try await access.removeSecondFactor(of: anna.id)
        #expect(try await token("").grant != nil)
        let log = try await access.auditLog(account: anna.id).reversed().map(\.event.outcome)
        #expect(log == ["no code", "wrong code", "done", "wrong code", "done", "wrong code", "done"])
    }

    @Test func `over a directory`() async throws { try await StoredClouds.overDirectory(flow) }

    @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"))
    func `over PostgreSQL`() async throws { try await StoredClouds.overPostgreSQL(flow) }
}
