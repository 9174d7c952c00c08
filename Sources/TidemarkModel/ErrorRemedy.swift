/// What helps against an error. A client chooses its command, button or sentence by it, and not by the text of the message.
public enum ErrorRemedy: String, Hashable, Codable, CaseIterable, Sendable {
    /// Sign in again: the session has ended, or can't be used.
    case signIn
    /// Name the authority that issued the server's certificate.
    case trustAuthority
    /// Correct the server's address, or use a version of the server that has the operation: no operation has that path.
    case checkAddress
}
