package import TidemarkCloud
package import TidemarkModel

extension CloudError.Code {
    /// The protocol's name of the code, and the HTTP status of a request that fails with it.
    package var wire: (name: String, status: Int) {
        switch self {
        case .serverRecordChanged: ("CONFLICT", 409)
        case .batchRequestFailed: ("ATOMIC_ERROR", 400)
        case .zoneNotFound, .userDeletedZone: ("ZONE_NOT_FOUND", 404)
        case .unknownItem: ("NOT_FOUND", 404)
        case .referenceViolation: ("VALIDATING_REFERENCE_ERROR", 412)
        case .quotaExceeded: ("QUOTA_EXCEEDED", 413)
        case .notAuthenticated: ("AUTHENTICATION_REQUIRED", 421)
        case .secondFactorRequired: ("AUTHENTICATION_FAILED", 401)
        case .permissionFailure: ("ACCESS_DENIED", 403)
        case .alreadyShared: ("EXISTS", 409)
        case .limitExceeded, .invalidArguments, .changeTokenExpired, .assetNotAvailable: ("BAD_REQUEST", 400)
        case .requestRateLimited: ("THROTTLED", 429)
        case .serviceUnavailable, .zoneBusy, .accountTemporarilyUnavailable, .networkUnavailable, .networkFailure:
            ("TRY_AGAIN_LATER", 503)
        default: ("INTERNAL_ERROR", 500)
        }
    }

    /// Makes the code of a name of the protocol, for answers without a more precise code. An unknown name becomes
    /// `internalError`.
    package init(wire name: String) {
        self =
            switch name {
            case "CONFLICT": .serverRecordChanged
            case "ATOMIC_ERROR": .batchRequestFailed
            case "ZONE_NOT_FOUND": .zoneNotFound
            case "NOT_FOUND": .unknownItem
            case "VALIDATING_REFERENCE_ERROR": .referenceViolation
            case "QUOTA_EXCEEDED": .quotaExceeded
            case "AUTHENTICATION_REQUIRED", "AUTHENTICATION_FAILED": .notAuthenticated
            case "ACCESS_DENIED": .permissionFailure
            case "EXISTS": .alreadyShared
            case "BAD_REQUEST": .invalidArguments
            case "THROTTLED": .requestRateLimited
            case "TRY_AGAIN_LATER": .serviceUnavailable
            case "ZONE_BUSY": .zoneBusy
            case "CHANGE_TOKEN_EXPIRED", "SYNC_TOKEN_EXPIRED": .changeTokenExpired
            default: .internalError
            }
    }

    /// All codes that an answer can have.
    private static let known: Set<CloudError.Code> = [
        .networkUnavailable, .networkFailure, .serviceUnavailable, .requestRateLimited, .zoneBusy, .accountTemporarilyUnavailable,
        .serverRecordChanged, .limitExceeded, .batchRequestFailed, .zoneNotFound, .userDeletedZone, .changeTokenExpired,
        .referenceViolation, .assetNotAvailable, .quotaExceeded, .notAuthenticated, .secondFactorRequired, .permissionFailure,
        .alreadyShared, .unknownItem, .invalidArguments, .internalError, .recordDamaged,
    ]

    fileprivate init?(named name: String) {
        self.init(rawValue: name)
        guard Self.known.contains(self) else { return nil }
    }
}

extension CloudError {
    /// Writes the members of an error into the object of the item that it is about.
    ///
    /// - Parameter name: The protocol's code, if it differs from that of ``code``.
    package func writeMembers(_ json: inout JSONWriter, name: String? = nil, _ dialect: WireDialect) {
        json.member("serverErrorCode", name ?? code.wire.name)
        json.member("reason", reasonForClients)
        if hasInternalReason { dialect.onInternalReason?(self) }
        if let retryAfter { json.member("retryAfter", max(0, retryAfter.components.seconds)) }
        guard dialect.isExtended else { return }
        json.member("tidemark") {
            $0.member("code", code.rawValue)
            $0.member("remedy", remedy?.rawValue)
            if !containerIsServed { $0.member("containerIsServed", false) }
            if let serverRecord {
                $0.name("serverRecord")
                serverRecord.write(&$0, dialect)
            }
            if let denial {
                $0.member("denial") {
                    $0.member("operation", denial.operation.rawValue)
                    $0.member("rule", denial.rule.rawValue)
                }
            }
        }
    }

    /// Returns the answer to a request that fails as a whole.
    ///
    /// - Parameters:
    ///   - uuid: The identifier of the request.
    ///   - name: The protocol's code, if it differs from that of ``code``.
    ///   - redirectURL: The address at which a person can sign in, if the request lacks a session.
    package func answer(uuid: String, name: String? = nil, redirectURL: String? = nil, _ dialect: WireDialect) -> [UInt8] {
        var json = JSONWriter()
        json.object {
            $0.member("uuid", uuid)
            writeMembers(&$0, name: name, dialect)
            $0.member("redirectURL", redirectURL)
        }
        return json.bytes
    }

    /// Reads the error of an item or of a whole answer; `nil` if it is not an error.
    ///
    /// - Parameter zone: The zone of the records in the error.
    package init?(answered node: JSONNode, in zone: CloudZoneID) throws(CloudError) {
        guard let name = try node.string("serverErrorCode") else { return nil }
        let extra = node["tidemark"]
        let code = try extra?.string("code").flatMap { Code(named: $0) } ?? Code(wire: name)
        self.init(
            code, try node.string("reason") ?? name,
            // A client waits for a day at the most, whatever a server asks for.
            retryAfter: try node.integer("retryAfter").map { .seconds(min(max(0, $0), 86_400)) },
            serverRecord: try extra?["serverRecord"].map { node throws(CloudError) in try CloudRecord(answered: node, in: zone) })
        if let denial = extra?["denial"],
            let operation = try SharePolicy.Operation(rawValue: denial.required("operation").asString()),
            let rule = try SharePolicy.Rule(rawValue: denial.required("rule").asString())
        {
            self.denial = ShareDecision(operation: operation, rule: rule)
        }
        // A remedy that this version doesn't know is left out.
        remedy = try extra?.string("remedy").flatMap { ErrorRemedy(rawValue: $0) }
        containerIsServed = try extra?.bool("containerIsServed") ?? true
    }
}
