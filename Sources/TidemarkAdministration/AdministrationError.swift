package import TidemarkCloud
import TidemarkIdentity

/// An error of administration.
package struct AdministrationError: Error, Sendable, CustomStringConvertible {
    /// The kind of error.
    package enum Code: String, Sendable {
        /// It is not there, or not the actor's.
        case notFound
        /// The actor may not do it.
        case forbidden
        /// A given value is not allowed.
        case invalid
        /// It is there already.
        case exists
        /// The record was changed meanwhile.
        case conflict
        /// A query needs an index that the field lacks.
        case missingIndex
        /// The cloud can't do it for the moment.
        case busy
        /// The stored data is damaged.
        case damaged
        /// The cloud has failed.
        case failed
    }

    package let code: Code
    /// What is wrong and what helps: a sentence without a final period.
    package let message: String
    /// The message for pages, without names of hosts and files. If a part of the cloud has failed, this is the message that
    /// clients get.
    package let publicMessage: String
    /// With `conflict`: the record that is there; `nil` where it was deleted.
    package var record: CloudRecord?
    /// With `invalid`, of a form: the name of the field that is wrong.
    package var field: String?
    /// With `missingIndex`: the index.
    package var index: MissingIndex?
    /// The error of a part of the cloud, if that was the cause.
    package var cause: (any Error)?

    package init(_ code: Code, _ message: String, publicMessage: String? = nil, field: String? = nil) {
        (self.code, self.message, self.publicMessage) = (code, message, publicMessage ?? message)
        self.field = field
    }

    package var description: String { message }

    /// Whether pages say less than ``message``, which is for the server's log then.
    package var isForLog: Bool { code == .failed || message != publicMessage }

    package init(_ error: any Error) {
        switch error {
        case let error as AdministrationError: self = error
        case let error as CloudError:
            self.init(Code(error), error.reason, publicMessage: error.reasonForClients)
            (record, index) = (error.serverRecord, error.missingIndex)
            cause = error
        case let error as CredentialError:
            let code = Code(error)
            let isInternal = code == .busy || code == .failed
            self.init(code, error.message, publicMessage: isInternal ? CloudError(credentials: error).reasonForClients : nil)
            cause = error
        default:
            self.init(.failed, "\(error)", publicMessage: CloudError(.internalError, "").reasonForClients)
            cause = error
        }
    }
}

extension AdministrationError.Code {
    fileprivate init(_ error: CloudError) {
        self =
            switch error.code {
            case .unknownItem, .zoneNotFound, .userDeletedZone: .notFound
            case .permissionFailure, .notAuthenticated: .forbidden
            case .serverRecordChanged: .conflict
            case .invalidArguments: error.missingIndex == nil ? .invalid : .missingIndex
            case .limitExceeded, .referenceViolation, .quotaExceeded, .assetNotAvailable: .invalid
            case .alreadyShared: .exists
            case .recordDamaged: .damaged
            case .zoneBusy, .serviceUnavailable, .networkFailure, .networkUnavailable, .requestRateLimited,
                .accountTemporarilyUnavailable:
                .busy
            default: .failed
            }
    }

    fileprivate init(_ error: CredentialError) {
        self =
            switch error.code {
            case .invalid: .invalid
            case .notFound: .notFound
            case .exists: .exists
            case .busy: .busy
            default: .failed
            }
    }
}
