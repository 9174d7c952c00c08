package import TidemarkCloud

/// How the engine reacts to an error of the cloud.
package enum ErrorReaction: Hashable, Sendable {
    /// Try again, after some time.
    case retry
    /// The outcome is unknown: send the same request again, under the same token.
    case resend
    /// Merge with what the cloud has, and try again.
    case merge
    /// Send less at once. A single record that is too large is tried again when it is edited, at a set-up if the cloud has announced other
    /// limits since, and after a day.
    case halve
    /// Make the zone again, and send everything.
    case remakeZone
    /// The owner has deleted the zone's data permanently: empty the store.
    case wipe
    /// Fetch everything again.
    case refetch
    /// The record waits for another one, to which it refers.
    case park
    /// Another item of the request was refused; this one is sent again.
    case innocent
    /// Upload the record's assets again.
    case uploadAssets
    /// A person has to act. A refused record is tried again every ten minutes, and at each setup. A setup that fails this way halts the
    /// engine; one that runs continuously sets up again after 30 seconds.
    case ask
    /// The record can't be sent as it is; it is tried again when it is edited. A record that the cloud's schema may have
    /// refused is also tried at each setup: an administrator may have deployed a schema that takes it.
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
        case .quotaExceeded, .notAuthenticated, .secondFactorRequired, .permissionFailure: self = .ask
        default: self = .report
        }
    }

    /// Whether the error may pass by itself. Otherwise a person has to act, even if it is tried again meanwhile.
    package var isPassing: Bool { self == .retry || self == .resend }
}
