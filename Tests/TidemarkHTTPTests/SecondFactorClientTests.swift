import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// Goal: a program learns that an account has a second factor, and sends the code only to the sign-in. Method: a server that
/// answers with bytes of the test's.
@Suite(.timeLimit(.minutes(30))) struct SecondFactorClientTests {
    private static func refusal(_ extra: String) -> StubServer.Reply {
        .json(
            #"{"serverErrorCode":"AUTHENTICATION_FAILED","reason":"the account has a second factor"\#(extra)}"#,
            status: "401 Unauthorized")
    }

    @Test func `an error of its own asks for a code, which the next try sends`() async throws {
        let stub = try StubServer { request, _ in
            request.body.contains(#""code":"123456""#)
                ? .json(#"{"token":"abc","expires":1,"userRecordName":"_anna"}"#)
                : Self.refusal(#","tidemark":{"code":"secondFactorRequired"}"#)
        }
        let cloud = HTTPCloud(try stub.address, container: "iCloud.org.example.journal")
        let error = await #expect(throws: CloudError.self) {
            try await cloud.signIn(email: "anna@example.org", password: "pass word", device: "", system: "")
        }
        #expect(error?.code == .secondFactorRequired && error?.reason == "the account has a second factor")
        #expect(try cloud.userRecordName == nil)
        #expect(stub.requests.map(\.body) == [#"{"email":"anna@example.org","password":"pass word"}"#])
        #expect(
            try await cloud.signIn(email: "anna@example.org", password: "pass word", code: "123456", device: "", system: "")
                == "_anna")
        #expect(stub.requests.last?.body == #"{"email":"anna@example.org","password":"pass word","code":"123456"}"#)
        // Each try was sent once, because it changes something.
        #expect(stub.requests.count == 2)
        _ = try? await cloud.database(.private).zones()
        #expect(stub.requests.last?.body.contains("123456") == false)
    }

    @Test func `an earlier version reads the error as a failed sign-in`() async throws {
        for extra in ["", #","tidemark":{"code":"somethingOfLater"}"#] {
            let stub = try StubServer { _, _ in Self.refusal(extra) }
            let cloud = HTTPCloud(try stub.address, container: "iCloud.org.example.journal")
            let error = await #expect(throws: CloudError.self) {
                try await cloud.signIn(email: "anna@example.org", password: "a", code: "1")
            }
            #expect(error?.code == .notAuthenticated)
        }
    }
}
