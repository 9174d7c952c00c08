import Foundation
import HTTPTypes
import Tidemark

/// What a person is told in place of a page.
struct PageError: Error {
    let status: HTTPResponse.Status
    let title: String
    let message: String

    init(_ status: Int, _ title: String, _ message: String) {
        (self.status, self.title, self.message) = (HTTPResponse.Status(code: status), title, message)
    }

    static let gone = PageError(404, "Not here", "There is no such destination: it was deleted, or is shared with you no more.")
    static let missing = PageError(404, "Not here", "There is no such page.")
    static let noPage = PageError(
        400, "No such page", "The address of this page is not whole. The newest places are on the first page.")
    static let foreignForm = PageError(
        403, "Not accepted",
        "The form is older than your sign-in, or is not from here. Go back, load the page again, and repeat it.")
    static let tooLarge = PageError(413, "Too large", "A photo has at most 20 MB.")
    static let signedOut = PageError(
        403, "Signed out",
        "The cloud has ended your sign-in, as it does after a change of the password. What you have saved is here, and is sent after you "
            + "sign in again.")
}

extension PageError {
    /// Whether the cloud has refused the session with it.
    static func isOfSignIn(_ error: any Error) -> Bool {
        (error as? CloudError)?.code == .notAuthenticated || (error as? ContainerEvent.Failure)?.cause == .signedOut
    }

    /// What a person is told of an error. What has failed inside is for the log: it may name what is not theirs.
    init(telling error: any Error) {
        switch error {
        case let error as PageError: self = error
        case _ where Self.isOfSignIn(error): self = .signedOut
        case let error as ValidationError: self.init(400, "Something is missing", error.message)
        case let error as PermissionDenied: self.init(403, "Not permitted", error.localizedDescription)
        case let error as DeletionDenied: self.init(403, "Not permitted", error.localizedDescription)
        case let error as PictureError: self.init(400, "Not a photo", Photo.message(of: error))
        case let error as CloudError:
            switch error.code {
            case .unknownItem:
                self.init(404, "Not here", "The link leads nowhere: it was revoked, or is for somebody else.")
            case .permissionFailure, .invalidArguments, .alreadyShared, .limitExceeded, .quotaExceeded:
                self.init(403, "Not permitted", error.localizedDescription)
            case .requestRateLimited: self.init(429, "Too many attempts", "Wait a while and try again.")
            default:
                Log.error("the cloud: \(error)")
                self.init(
                    503, "The cloud does not answer", "What you have saved is here and is sent later. Try this again in a while.")
            }
        default:
            Log.error("\(error)")
            self.init(500, "It has failed", "The log says why.")
        }
    }
}
