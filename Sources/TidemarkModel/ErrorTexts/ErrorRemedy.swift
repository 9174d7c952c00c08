/// A remedy against an error. A client chooses its command, button or sentence by this value, and not by the text of the message.
public enum ErrorRemedy: String, Hashable, Codable, CaseIterable, Sendable {
    /// Sign in again: the session has ended, or can't be used.
    case signIn
    /// Name the authority that issued the server's certificate.
    case trustAuthority
    /// Correct the server's address, or use a newer server: this server has no operation at the requested path.
    case checkAddress
}

extension ErrorRemedy {
    /// The remedy as a sentence for a person, in English.
    public var sentence: String { sentence(in: .english) }

    /// The remedy as a sentence for a person.
    public func sentence(in language: ErrorLanguage) -> String {
        switch (language, self) {
        case (.english, .signIn): "Sign in again."
        case (.english, .trustAuthority): "Name the authority that issued the server's certificate."
        case (.english, .checkAddress): "Correct the server's address, or use a newer version of the server."
        case (.german, .signIn): "Erneut anmelden."
        case (.german, .trustAuthority): "Die Stelle angeben, die das Zertifikat des Servers ausgestellt hat."
        case (.german, .checkAddress): "Die Adresse des Servers berichtigen, oder eine neuere Version des Servers verwenden."
        }
    }
}
