import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// Goal: a program learns that an account has a second factor, gives the code, and sends it nowhere else. Method: a server that answers with bytes of
/// the test's.
@Suite(.timeLimit(.minutes(30))) struct SecondFactorClientTests {
    private static func refusal(_ extra: String) -> StubServer.Reply {
        .json(
            #"{"serverErrorCode":"AUTHENTICATION_FAILED","reason":"the account has a second factor"\#(extra)}"#,
            status: "401 Unauthorized")
    }

    @Test func `a code is asked for by an error of its own, and sent with the next try`() async throws {
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
        // Once: an attempt that changes something is not sent again.
        #expect(stub.requests.count == 2)
        _ = try? await cloud.database(.private).zones()
        #expect(stub.requests.last?.body.contains("123456") == false)
    }

    @Test func `a version that doesn't know the error takes it for a sign-in that failed`() async throws {
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
