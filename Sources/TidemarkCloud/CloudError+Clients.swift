/// The reasons of errors as a server sends them to its clients.
///
/// When a storage fails, the reason may name hosts, buckets, files and SQL statements. These are for the server's log only. Codes
/// that a failing storage can have are sent with a general sentence, unless the error has a reason for clients.
extension CloudError {
    /// Makes an error whose reason clients may read, whatever its code.
    package init(_ code: Code, forClients reason: String, retryAfter: Duration? = nil) {
        self.init(code, reason, retryAfter: retryAfter)
        publicReason = reason
    }

    /// The reason that is sent to clients.
    package var reasonForClients: String {
        if let publicReason { return publicReason }
        switch code {
        case .networkUnavailable, .serviceUnavailable, .accountTemporarilyUnavailable:
            return "the server can't do it for the moment; try again later"
        case .zoneBusy: return "others are using the zone; try again later"
        case .networkFailure: return "the server does not know whether it is done; send the same request again"
        // Only the rules of a cloud make errors with these codes, and their reasons name nothing but what the client has sent.
        case .requestRateLimited, .serverRecordChanged, .limitExceeded, .batchRequestFailed, .zoneNotFound, .userDeletedZone,
            .changeTokenExpired, .referenceViolation, .assetNotAvailable, .quotaExceeded, .notAuthenticated,
            .secondFactorRequired, .permissionFailure, .alreadyShared, .recordDamaged, .unknownItem, .invalidArguments:
            return reason
        default: return "the server could not do it; its log has more"
        }
    }

    /// Whether ``reason`` is kept from clients.
    package var hasInternalReason: Bool { reasonForClients != reason }
}
