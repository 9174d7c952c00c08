package import TidemarkCloud

/// The reaction to an error of the cloud.
package enum ErrorReaction: Hashable, Sendable {
    /// Try again, after some time.
    case retry
    /// The outcome is unknown: send the same request again.
    case resend
    /// Merge with what the cloud has, and try again.
    case merge
    /// Send less at once.
    case halve
    /// Create the zone again, and send everything.
    case remakeZone
    /// The person has deleted everything permanently.
    case wipe
    /// Fetch everything again.
    case refetch
    /// The record waits for another one.
    case park
    /// Another item of the request is to blame.
    case innocent
    /// Upload the record's assets again.
    case uploadAssets
    /// Only a person can remove the cause.
    case ask
    /// This item can't be sent as it is.
    case report

    package init(_ code: CloudError.Code) {
        switch code {
        case .networkUnavailable, .serviceUnavailable, .requestRateLimited, .zoneBusy, .accountTemporarilyUnavailable:
            self = .retry
        case .networkFailure: self = .resend
        case .serverRecordChanged, .unknownItem: self = .merge
        case .limitExceeded: self = .halve
        case .zoneNotFound: self = .remakeZone
        case .userDeletedZone: self = .wipe
        case .changeTokenExpired: self = .refetch
        case .referenceViolation: self = .park
        case .batchRequestFailed: self = .innocent
        case .assetNotAvailable: self = .uploadAssets
        case .quotaExceeded, .notAuthenticated, .permissionFailure: self = .ask
        default: self = .report
        }
    }

    /// Whether the error may pass by itself. Otherwise a person has to act, although the operation may be tried again.
    package var isPassing: Bool { self == .retry || self == .resend }
}
