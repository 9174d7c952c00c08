/// What a server tells its clients of an error.
///
/// The reason of a storage's failure may name hosts, buckets, files and statements. Those are for the server's log. Where the error does not
/// say what clients may read, those codes have a general sentence that a storage's failure can have.
extension CloudError {
    /// Makes an error whose reason clients may read, whatever its code.
    package init(_ code: Code, forClients reason: String, retryAfter: Duration? = nil) {
        self.init(code, reason, retryAfter: retryAfter)
        publicReason = reason
    }

    /// The reason that clients are told.
    package var reasonForClients: String {
        if let publicReason { return publicReason }
        switch code {
        case .networkUnavailable, .serviceUnavailable, .accountTemporarilyUnavailable:
            return "the server can't do it for the moment; try again later"
        case .zoneBusy: return "others are using the zone; try again later"
        case .networkFailure: return "the server does not know whether it is done; send the same request again"
        // The rules of a cloud have these, and name what the client has sent.
        case .requestRateLimited, .serverRecordChanged, .limitExceeded, .batchRequestFailed, .zoneNotFound, .userDeletedZone,
            .changeTokenExpired, .referenceViolation, .assetNotAvailable, .quotaExceeded, .notAuthenticated,
            .secondFactorRequired, .permissionFailure, .alreadyShared, .recordDamaged, .unknownItem, .invalidArguments:
            return reason
        default: return "the server could not do it; its log has more"
        }
    }

    /// Whether clients are told less than ``reason``.
    package var hasInternalReason: Bool { reasonForClients != reason }
}
