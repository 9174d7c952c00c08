public import Foundation
public import TidemarkModel

/// The error of a request to a cloud. Two errors are equal if their codes are.
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
        /// The connection broke. The request may have been done or not.
        public static let networkFailure = Code("networkFailure")
        /// The cloud can't answer now. Try again later.
        public static let serviceUnavailable = Code("serviceUnavailable")
        /// The client sends too many requests. Try again after ``CloudError/retryAfter``.
        public static let requestRateLimited = Code("requestRateLimited")
        /// The zone is busy. Try again later.
        public static let zoneBusy = Code("zoneBusy")
        /// The account can't be used for the moment. Try again later.
        public static let accountTemporarilyUnavailable = Code("accountTemporarilyUnavailable")

        // Repair the request, then try again.
        /// The record was changed since the cloud returned its tag, or exists already. ``CloudError/serverRecord`` is its present
        /// version.
        public static let serverRecordChanged = Code("serverRecordChanged")
        /// The request has more items or bytes than the cloud takes at once.
        public static let limitExceeded = Code("limitExceeded")
        /// Another item of an atomic request is to blame.
        public static let batchRequestFailed = Code("batchRequestFailed")
        /// The zone does not exist, or the account may not see it.
        public static let zoneNotFound = Code("zoneNotFound")
        /// The owner has deleted the zone's data permanently.
        public static let userDeletedZone = Code("userDeletedZone")
        /// The change token has expired. Ask for changes without a token.
        public static let changeTokenExpired = Code("changeTokenExpired")
        /// The record refers to a record that does not exist.
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
        /// The account lacks the permission. If a rule of sharing forbids the operation, ``CloudError/denial`` names the rule.
        public static let permissionFailure = Code("permissionFailure")
        /// The record is in a share already, and can't be in a second one.
        public static let alreadyShared = Code("alreadyShared")

        /// The cloud's copy of a record is damaged, and no client gets it. A client that has the record under the change tag of
        /// ``RecordFailure`` can send it again, by `replace` with that tag or by `forceReplace`. `delete` and `forceDelete`
        /// delete the record. Other operations are refused.
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
    /// The wait that the cloud asks for before another try; `nil` if it asks for none.
    public var retryAfter: Duration?
    /// With ``Code/serverRecordChanged``: the record's present version; `nil` when the record has been deleted.
    public var serverRecord: CloudRecord?
    /// With ``Code/permissionFailure`` and ``Code/alreadyShared``: the rule that refuses the operation, and its remedy.
    public var denial: ShareDecision?
    /// The remedy, if the cloud or its client knows one.
    public var remedy: ErrorRemedy?
    /// The failure on this device that caused the error. The code that ends the transfer reports it. A cloud never sends it.
    package var localCause: (any Error)?
    /// With ``Code/invalidArguments`` from a query: the index that the query needs. A server does not send it.
    package var missingIndex: MissingIndex?
    /// With ``Code/invalidArguments`` and ``Code/unknownItem`` from a save: the part of the schema that the record does not
    /// match. A server does not send it.
    package var schemaMismatch: SchemaMismatch?
    /// With ``Code/notAuthenticated`` from a server: `false` if the server does not have the container for any account.
    package var containerIsServed = true
    /// With ``Code/serviceUnavailable`` from the storage of assets: whether the storage could not be reached or has failed. It is
    /// `false` if the storage has refused the request.
    package var isOutOfReach = false
    /// Whether a content came from the storage with wrong bytes or a wrong length: it was damaged in the storage, or on the way.
    package var isOtherContent = false
    /// The reason that a server sends to clients in place of ``reason``; `nil` if the code decides which reason is sent.
    package var publicReason: String?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - reason: What is wrong, for people.
    ///   - retryAfter: How long to wait before another try.
    ///   - serverRecord: The record that the cloud has, with ``Code/serverRecordChanged``.
    ///   - remedy: The remedy.
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

/// The part of a schema that a record does not match.
package struct SchemaMismatch: Hashable, Sendable {
    /// The field's name; `recordName` for the record type itself, which the schema lacks.
    package let field: String
    /// The type of the record's value; empty for the record type itself.
    package let fieldType: String

    package init(field: String, fieldType: String) { (self.field, self.fieldType) = (field, fieldType) }
}

extension CloudError {
    /// Makes the error of an operation that ``SharePolicy`` refuses.
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
