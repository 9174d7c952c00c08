/// What became of signing in with a password.
public enum SignInResult<Grant: Sendable>: Sendable {
    /// The account is signed in, and uses this from now on: the token of a session, or what a cookie gets.
    case signedIn(Grant)
    /// The password is not the account's, or the account may not come in there: nobody learns which.
    case refused
    /// The password is right, and the code of the second factor is missing, wrong, or was used already.
    case needsCode
    /// The password is right, and too many codes were wrong: the next one may be tried in so many seconds. A recovery code always may.
    case tooManyCodes(wait: Int)

    /// What the account uses from now on; `nil` where it is not signed in.
    public var grant: Grant? {
        if case .signedIn(let grant) = self { grant } else { nil }
    }
}

/// Why a code of a second factor lets nobody in.
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

/// What became of signing in to pages, which gives a cookie.
package typealias PageSignIn = SignInResult<String>
