/// The result of a sign-in with a password.
public enum SignInResult<Grant: Sendable>: Sendable {
    /// The account is signed in, and uses the grant from now on: the token of a session, or the value of a cookie.
    case signedIn(Grant)
    /// The password is not the account's, or the account may not sign in there. The client does not learn which.
    case refused
    /// The password is right, and the code of the second factor is missing, wrong, or was used already.
    case needsCode
    /// The password is right, and too many codes were wrong: the next one may be tried in so many seconds. A recovery code always may.
    case tooManyCodes(wait: Int)

    /// The grant; `nil` where the account is not signed in.
    public var grant: Grant? {
        if case .signedIn(let grant) = self { grant } else { nil }
    }
}

/// Why a code of a second factor is refused.
enum CodeRefusal: Sendable {
    /// It is missing, wrong, or was used already.
    case needed
    /// Too many were wrong: the next one may be tried in so many seconds.
    case tooMany(wait: Int)

    func of<Grant>(_ type: Grant.Type = Grant.self) -> SignInResult<Grant> {
        switch self {
        case .needed: .needsCode
        case .tooMany(let wait): .tooManyCodes(wait: wait)
        }
    }
}

extension SignInResult: Equatable where Grant: Equatable {}

/// The result of a sign-in to pages. Its grant is the value of the cookie.
package typealias PageSignIn = SignInResult<String>
