import ArgumentParser
import Foundation
import TidemarkOpenID
import TidemarkServer

/// The identity provider with which people sign in to pages.
struct IdentityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "An identity provider with which people sign in to pages (OpenID Connect), by the address that it calls itself. (default: "
                + "passwords alone)", valueName: "url"))
    var identityProvider: String?

    @Option(help: ArgumentHelp("What the provider calls this server: its client.", valueName: "id"))
    var identityClientID: String?

    @Option(
        help: ArgumentHelp(
            "A file with a line that is the client's secret. (default: the variable TIDEMARK_IDENTITY_CLIENT_SECRET, or none)",
            valueName: "file"))
    var identityClientSecretFile: String?

    @Option(help: ArgumentHelp("What people know the provider by. (default: its host)", valueName: "name"))
    var identityName: String?

    @Option(
        help: ArgumentHelp(
            "A file of certificates in PEM: the provider's is from one of them. (default: those that this machine trusts)",
            valueName: "file"))
    var identityCA: String?

    @Flag(help: "Makes an account for who has none and whose address the provider has verified.")
    var identitySignUp = false

    func validate() throws {
        guard (identityProvider == nil) == (identityClientID == nil) else {
            throw ValidationError("--identity-provider and --identity-client-id go together")
        }
        let others = identityClientSecretFile != nil || identityName != nil || identityCA != nil || identitySignUp
        guard identityProvider != nil || !others else {
            throw ValidationError(
                "--identity-client-secret-file, --identity-name, --identity-ca and --identity-sign-up need --identity-provider")
        }
    }

    /// The provider that the options name; `nil` for none.
    func provider() throws(ServerError) -> OpenIDProvider? {
        guard let identityProvider, let identityClientID else { return nil }
        let secret = try secret()
        do throws(OpenIDError) {
            return try OpenIDProvider(
                identityProvider, clientID: identityClientID, clientSecret: secret, name: identityName,
                signsUp: identitySignUp, authorities: identityCA.map { URL(fileURLWithPath: $0) })
        } catch {
            throw ServerError(.options, error.message)
        }
    }

    private func secret() throws(ServerError) -> String? {
        guard let identityClientSecretFile else {
            let given = ProcessInfo.processInfo.environment["TIDEMARK_IDENTITY_CLIENT_SECRET"] ?? ""
            return given.isEmpty ? nil : given
        }
        return try SecretFile.line(of: identityClientSecretFile, option: "--identity-client-secret-file", what: "secret")
    }
}

/// Reads secrets from files, so that the command line does not show them.
enum SecretFile {
    /// Reads a file of one line.
    ///
    /// - Parameter what: The name of the line's content, for messages.
    static func line(of path: String, option: String, what: String) throws(ServerError) -> String {
        guard let file = FileHandle(forReadingAtPath: path), let bytes = try? file.read(upToCount: 4_097) else {
            throw ServerError(.io, "\(path), the file of \(option), can't be read")
        }
        let line = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
        guard (1...4_096).contains(line.utf8.count), !line.contains(where: \.isNewline) else {
            throw ServerError(.options, "\(path) has no \(what): one line")
        }
        return line
    }
}
