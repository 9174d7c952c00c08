package import TidemarkCloud

/// What is done about an error of the cloud.
package enum ErrorReaction: Hashable, Sendable {
    /// Try again, after some time.
    case retry
    /// Nobody knows whether it was done: ask again in the same words.
    case resend
    /// Merge with what the cloud has, and try again.
    case merge
    /// Send less at once.
    case halve
    /// Make the zone anew, and send everything.
    case remakeZone
    /// The person has deleted everything, for good.
    case wipe
    /// Fetch everything again.
    case refetch
    /// It waits for another record.
    case park
    /// Another item of the request is to blame.
    case innocent
    /// Upload the record's assets again.
    case uploadAssets
    /// Only a person can do something about it.
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

    /// Whether it may pass by itself; else somebody has to do something, though it may be tried again.
    package var isPassing: Bool { self == .retry || self == .resend }
}
