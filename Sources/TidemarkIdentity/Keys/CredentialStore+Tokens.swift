import Foundation
import TidemarkCloudEngine
public import TidemarkModel

extension CredentialStore {
    /// Makes a token of a program.
    ///
    /// - Parameters:
    ///   - name: What the token is for; a text for people.
    ///   - callback: Where the sign-in page brings session tokens.
    ///   - origins: The origins whose pages may use the token, such as `https://journal.example.org`; empty for any origin.
    /// - Returns: The token, and its text, which is not stored.
    /// - Throws: ``CredentialError`` `invalid`, `notFound` when the container is not served, `storage`, `busy`.
    public func addAPIToken(
        container: String, environment: StoreEnvironment, name: String, callback: SignInCallback, origins: [String] = []
    ) async throws(CredentialError) -> (token: APIToken, text: String) {
        let checked =
            switch callback {
            case .redirect(let address): try SignInCallback.checkedRedirect(address)
            case .popup(let origin): try SignInCallback.checkedPopup(origin)
            }
        guard origins.count <= 100 else { throw CredentialError(.invalid, "a token can have 100 origins at the most") }
        var allowed: [String] = []
        for origin in origins { allowed.append(try WebOrigin.checked(origin)) }
        let text = Hexadecimal.text(random(32))
        let digest = Digest.sha256(Array(text.utf8))
        let token = APIToken(
            id: Hexadecimal.text(random(8)), container: container, environment: environment, name: try Self.checkedName(name),
            callback: checked, origins: allowed, made: now())
        let row = token.stored(digest: digest)
        switch try await stored({ try await storage.add(row) }) {
        case .added: break
        case .containerIsNotServed: throw Self.noContainer(container)
        case .exists: throw CredentialError(.storage, "the token could not be made: there is one of its name")
        }
        return (token, text)
    }

    /// The tokens of programs, the oldest first.
    public func apiTokens() throws(CredentialError) -> [APIToken] {
        try cache.look { $0.tokens.values.sorted { ($0.made, $0.id) < ($1.made, $1.id) } }
    }

    /// Revokes a token.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func revokeAPIToken(id: String) async throws(CredentialError) {
        guard try await stored({ try await storage.removeAPIToken(id) }) else {
            throw CredentialError(.notFound, "there is no token '\(id.prefix(100))'; see 'tidemark admin token list'")
        }
    }

    /// Returns the token with a text; `nil` when there is none. Takes some microseconds.
    public func apiToken(_ text: String) throws(CredentialError) -> APIToken? {
        // A text of another length is no token, and need not be hashed.
        guard text.utf8.count == 64 else { return nil }
        let digest = Digest.sha256(Array(text.lowercased().utf8))
        return try cache.look { $0.tokens[digest] }
    }
}
