import Foundation
import TidemarkCloudEngine
public import TidemarkModel

extension CredentialStore {
    /// Makes a token of a program.
    ///
    /// - Parameters:
    ///   - name: What it is for, for people.
    ///   - callback: Where the sign-in page brings session tokens.
    ///   - origins: Whose pages may use it, such as `https://journal.example.org`; of any origin when there is none.
    /// - Returns: The token and its text, which is told this once.
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

    /// Ends what a token allows.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func revokeAPIToken(id: String) async throws(CredentialError) {
        guard try await stored({ try await storage.removeAPIToken(id) }) else {
            throw CredentialError(.notFound, "there is no token '\(id.prefix(100))'; see 'tidemark admin token list'")
        }
    }

    /// The token of that text; `nil` when there is none. Some microseconds.
    public func apiToken(_ text: String) throws(CredentialError) -> APIToken? {
        // Anything longer is none, and need not be hashed.
        guard text.utf8.count == 64 else { return nil }
        let digest = Digest.sha256(Array(text.lowercased().utf8))
        return try cache.look { $0.tokens[digest] }
    }
}
