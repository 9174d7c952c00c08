import Foundation
import TestSupport
import Testing

@testable import TidemarkIdentity

/// Goal: an API token is identified by its text alone, and redirects only to where its owner has said. Method: addresses as
/// well-meaning and hostile people type them.
@Suite(.timeLimit(.minutes(30))) struct TokenTests {
    private func make(
        _ served: Served, _ callback: SignInCallback = .redirect("https://example.org/"), origins: [String] = []
    ) async throws -> (token: APIToken, text: String) {
        try await served.credentials.addAPIToken(
            container: served.container, environment: .production, name: "Web", callback: callback, origins: origins)
    }

    @Test func `a token is found by its text, and the text is not stored`() async throws {
        let served = try await Served()
        let (token, text) = try await make(served, origins: ["https://Journal.example.org:443", "http://localhost:8000"])
        #expect(text.wholeMatch(of: /[0-9a-f]{64}/) != nil)
        #expect(token.id.wholeMatch(of: /[0-9a-f]{16}/) != nil)
        #expect(token.isOf(served.container, .production) && !token.isOf(served.container, .development))
        #expect(token.origins == ["https://journal.example.org", "http://localhost:8000"])
        #expect(try served.credentials.apiToken(text) == token)
        #expect(try served.credentials.apiToken(text.uppercased()) == token)
        #expect(try served.opening().apiTokens() == [token])
        for wrong in ["", text.dropLast() + "", text + "0", token.id, String(text.reversed())] {
            #expect(try served.credentials.apiToken(wrong) == nil)
        }
        for name in ["access.sqlite", "access.sqlite-wal"] {
            #expect(try Data(contentsOf: served.scratch["cloud/\(name)"]).range(of: Data(text.utf8)) == nil)
        }
        try await served.credentials.revokeAPIToken(id: token.id)
        #expect(try served.credentials.apiToken(text) == nil)
        let error = await refusal { try await served.credentials.revokeAPIToken(id: token.id) }
        #expect(error == CredentialError(.notFound, ""))
    }

    @Test func `a token needs a container that is served`() async throws {
        let served = try await Served()
        let error = await refusal {
            _ = try await served.credentials.addAPIToken(
                container: "other", environment: .development, name: "", callback: .redirect("https://example.org/"))
        }
        #expect(error == CredentialError(.notFound, ""))
    }

    @Test(arguments: [
        "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "about:blank", "ftp://example.org/",
        "//example.org/",
        "/signed-in", "example.org", "https:///path", "https://", "https://anna@example.org/", "https://anna:x@example.org/",
        "https://example.org/#part", "https://example.org/ a", "https://example.org/\n", "https://exämple.org/", "",
        "org.example",
    ])
    func `an unsafe address can't be a token's callback`(_ address: String) async throws {
        let served = try await Served()
        let error = await refusal { _ = try await make(served, .redirect(address)) }
        #expect(error == CredentialError(.invalid, ""))
    }

    @Test func `a person who has signed in is redirected with the token in the query`() async throws {
        let served = try await Served()
        let token = try await served.session()
        for (address, expected) in [
            ("https://example.org/a", "https://example.org/a?ckWebAuthToken="),
            ("http://localhost:8000/?x=1", "http://localhost:8000/?x=1&ckWebAuthToken="),
            ("org.example.journal://signed-in", "org.example.journal://signed-in?ckWebAuthToken="),
        ] {
            let made = try await make(served, .redirect(address)).token
            #expect(made.callback.address(with: token) == expected + token.text)
        }
        let popup = try await make(served, .popup(origin: "https://Example.org:443")).token
        #expect(popup.callback == .popup(origin: "https://example.org"))
        #expect(popup.callback.address(with: token) == nil)
    }

    @Test(arguments: [
        "*", "null", "example.org", "https://example.org/", "https://*.example.org", "https://a@example.org", "ftp://a", "",
    ])
    func `an invalid origin is refused`(_ origin: String) async throws {
        let served = try await Served()
        for attempt in 0...1 {
            let error = await refusal {
                _ = try await attempt == 0 ? make(served, .popup(origin: origin)) : make(served, origins: [origin])
            }
            #expect(error == CredentialError(.invalid, ""))
        }
    }

    @Test func `pages of any origin use a token without origins, and otherwise only those of its origins`() async throws {
        let served = try await Served()
        let (open, closed) = (try await make(served).token, try await make(served, origins: ["https://a.example"]).token)
        #expect(open.allows(origin: "https://b.example"))
        #expect(closed.allows(origin: "https://a.example"))
        for origin in ["https://b.example", "http://a.example", "https://a.example:8443", "null", ""] {
            #expect(!closed.allows(origin: origin))
        }
    }
}
