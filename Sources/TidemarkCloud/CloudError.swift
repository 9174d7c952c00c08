public import Foundation
public import TidemarkModel

/// Why a cloud did not do what it was asked to. Equal by code.
public struct CloudError: Error, Sendable {
    /// The kind of error. As `CKError.Code`, by name.
    public struct Code: RawRepresentable, Hashable, Codable, Sendable {
        /// The name of the code.
        public let rawValue: String
        /// Makes a code from its name, which may be unknown to this version.
        public init(rawValue: String) { self.rawValue = rawValue }

        // Try again, later.
        /// The network can't be reached. Try again later.
        public static let networkUnavailable = Code("networkUnavailable")
        /// The connection broke: it may have been done or not.
        public static let networkFailure = Code("networkFailure")
        /// The cloud can't answer now. Try again later.
        public static let serviceUnavailable = Code("serviceUnavailable")
        /// The client sends too many requests. Try again after ``CloudError/retryAfter``.
        public static let requestRateLimited = Code("requestRateLimited")
        /// The zone is busy. Try again later.
        public static let zoneBusy = Code("zoneBusy")
        /// The account can't be used for the moment. Try again later.
        public static let accountTemporarilyUnavailable = Code("accountTemporarilyUnavailable")

        // Mend, then try again.
        /// The record was changed since its tag was given out, or is there already; ``CloudError/serverRecord`` is what it is now.
        public static let serverRecordChanged = Code("serverRecordChanged")
        /// The request has more items or bytes than the cloud takes at once.
        public static let limitExceeded = Code("limitExceeded")
        /// Another item of an atomic request is to blame.
        public static let batchRequestFailed = Code("batchRequestFailed")
        /// The zone does not exist, or the account may not see it.
        public static let zoneNotFound = Code("zoneNotFound")
        /// The person has deleted the zone's data for good.
        public static let userDeletedZone = Code("userDeletedZone")
        /// The change token has expired. Ask for changes without a token.
        public static let changeTokenExpired = Code("changeTokenExpired")
        /// The record that it refers to is not there.
        public static let referenceViolation = Code("referenceViolation")
        /// The cloud does not have the asset's content, or the content does not match its digest.
        public static let assetNotAvailable = Code("assetNotAvailable")

        // Ask the person.
        /// The account's storage is full.
        public static let quotaExceeded = Code("quotaExceeded")
        /// No account is signed in, or the cloud does not accept its credentials.
        public static let notAuthenticated = Code("notAuthenticated")
        /// The password is right, and the account has a second factor whose code is missing, wrong, or was used already.
        public static let secondFactorRequired = Code("secondFactorRequired")
        /// ``CloudError/denial`` says by which rule, where sharing is what it is about.
        public static let permissionFailure = Code("permissionFailure")
        /// A record is in one share at the most.
        public static let alreadyShared = Code("alreadyShared")

        /// What the cloud has of a record is damaged, and nobody gets it. A client that has the record whole under the tag that is told with it
        /// sends it again, by `replace` with that tag or by `forceReplace`; `delete` and `forceDelete` delete it. All else is refused.
        public static let recordDamaged = Code("recordDamaged")

        // Give up this item.
        /// The item does not exist, or the account may not see it.
        public static let unknownItem = Code("unknownItem")
        /// The request is not valid.
        public static let invalidArguments = Code("invalidArguments")
        /// The cloud failed in a way that the client can't repair.
        public static let internalError = Code("internalError")

        private init(_ rawValue: String) { self.rawValue = rawValue }
    }

    /// The kind of error.
    public let code: Code
    /// What is wrong, for people.
    public let reason: String
    /// How long to wait before another try, where the cloud says so.
    public var retryAfter: Duration?
    /// With ``Code/serverRecordChanged``: the record that is there; `nil` when it has been deleted.
    public var serverRecord: CloudRecord?
    /// With ``Code/permissionFailure`` and ``Code/alreadyShared``: the rule that refuses it, and what would allow it.
    public var denial: ShareDecision?
    /// What helps, where the cloud or its client knows it.
    public var remedy: ErrorRemedy?
    /// The failure on this device that the error carries to the code that ends the transfer. A cloud never sends it.
    package var localCause: (any Error)?
    /// With ``Code/invalidArguments``, of a query: the index that it would need. A server does not send it.
    package var missingIndex: MissingIndex?
    /// With ``Code/invalidArguments`` and ``Code/unknownItem``, of a save: what of the schema the record does not fit. A server does not send it.
    package var schemaMismatch: SchemaMismatch?
    /// With ``Code/notAuthenticated``, of a server: `false` where it does not have the container, whoever asks.
    package var containerIsServed = true
    /// With ``Code/serviceUnavailable``, of what has the contents of assets: whether it has refused nothing, but could not be asked, or has failed.
    package var isOutOfReach = false
    /// Whether a stored content came with other bytes or another length: it was damaged in the storage, or on the way.
    package var isOtherContent = false
    /// What a server tells clients in place of ``reason``; `nil` where the code decides it.
    package var publicReason: String?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - reason: What is wrong, for people.
    ///   - retryAfter: How long to wait before another try.
    ///   - serverRecord: The record that the cloud has, with ``Code/serverRecordChanged``.
    ///   - remedy: What helps.
    public init(
        _ code: Code, _ reason: String, retryAfter: Duration? = nil, serverRecord: CloudRecord? = nil, remedy: ErrorRemedy? = nil
    ) {
        self.code = code
        self.reason = reason
        self.retryAfter = retryAfter
        self.serverRecord = serverRecord
        self.remedy = remedy
    }
}

/// An index that a field of a record type lacks for a query.
package struct MissingIndex: Hashable, Sendable {
    /// The field's name; `recordName` for the type itself.
    package let field: String
    /// The index, as the schema calls it: `queryable`, `sortable` or `searchable`.
    package let index: String

    package init(field: String, index: String) { (self.field, self.index) = (field, index) }
}

/// What of a schema a record does not fit.
package struct SchemaMismatch: Hashable, Sendable {
    /// The field's name; `recordName` for the record type itself, which the schema lacks.
    package let field: String
    /// The type of the record's value; empty for the record type itself.
    package let fieldType: String

    package init(field: String, fieldType: String) { (self.field, self.fieldType) = (field, fieldType) }
}

extension CloudError {
    /// What a policy has refused.
    public init(_ denial: ShareDecision) {
        self.init(denial.rule == .alreadyShared ? .alreadyShared : .permissionFailure, denial.reason)
        self.denial = denial
    }
}

extension CloudError: Hashable {
    public static func == (left: CloudError, right: CloudError) -> Bool { left.code == right.code }
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension CloudError: CustomStringConvertible {
    public var description: String { "\(code.rawValue): \(reason)" }
}

extension CloudError: LocalizedError {
    /// The error message: the text of `localizedDescription`, in the language of ``ErrorLanguage/current``.
    public var errorDescription: String? {
        let language = ErrorLanguage.current
        guard language != .english else { return reason }
        return denial?.sentence(in: language) ?? code.sentence(in: language) ?? reason
    }
    /// The reason in English, where the description is a general sentence in another language.
    public var failureReason: String? { ErrorLanguage.current == .english || errorDescription == reason ? nil : reason }
    /// The remedy; `nil` when none is known, or when the description has it.
    public var recoverySuggestion: String? {
        remedy?.sentence(in: .current) ?? denial?.remedy?.sentence(in: .current)
    }
}
