package import TidemarkCloud
public import TidemarkSQLite

/// The error of a ``CredentialStore``. Two errors are equal if their codes are.
public struct CredentialError: Error, Sendable {
    /// The kind of error; more may come.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name, such as `notFound`.
        public let rawValue: String
        /// Makes a code from its name, known to this version or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A given name, password, key or address is not acceptable.
        public static let invalid = Code(rawValue: "invalid")
        /// The credential store lacks the named object.
        public static let notFound = Code(rawValue: "notFound")
        /// The credential store has the object already.
        public static let exists = Code(rawValue: "exists")
        /// Too many passwords wait to be checked, or another process has held the credential store for too long: try again later.
        public static let busy = Code(rawValue: "busy")
        /// Other users of the machine may read the credential store's file, and its mode can't be changed.
        public static let untrusted = Code(rawValue: "untrusted")
        /// The credential store can't be read or written.
        public static let storage = Code(rawValue: "storage")
    }

    /// The kind of failure, for programs to act on.
    public let code: Code
    /// What happened, where, and what helps.
    public let message: String
    /// The error of the database below, where that is the reason.
    public var cause: StoreError?
    /// What a server tells clients in place of ``message``, which may name hosts and files; `nil` for a general sentence.
    package var publicMessage: String?

    /// Makes an error. `message` says in a sentence, without a final period, what happened and what helps.
    public init(_ code: Code, _ message: String, cause: StoreError? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension CredentialError: Hashable {
    public static func == (left: CredentialError, right: CredentialError) -> Bool { left.code == right.code }
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension CredentialError: CustomStringConvertible {
    public var description: String { message }
}

extension CredentialError {
    /// - Parameters:
    ///   - what: What is wrong in a row.
    ///   - place: Where the row is.
    init(damaged what: String, _ place: String = "the storage of credentials") {
        self.init(.storage, "\(place) is damaged: it has a wrong \(what)")
    }

    /// Makes an error of what a storage has thrown. Refusals keep their meaning; anything else is a fault of the storage.
    init(storage error: any Error) {
        switch error {
        case let error as CredentialError: self = error
        case let error as CloudError:
            switch error.code {
            case .invalidArguments: self.init(.invalid, error.reason)
            case .zoneBusy, .serviceUnavailable, .networkFailure: self.init(.busy, error.reason)
            default: self.init(.storage, error.reason)
            }
            publicMessage = error.publicReason
        default:
            let cause = StoreError(error, doing: "use \(CredentialTables.file)", with: CredentialTables.file)
            self.init(cause.code == .busy ? .busy : .storage, cause.message, cause: cause)
        }
    }
}

extension CloudError {
    /// Makes the error of a request whose credentials can't be looked up.
    package init(credentials error: CredentialError) {
        self.init(
            error.code == .busy ? .serviceUnavailable : .internalError, error.message,
            retryAfter: error.code == .busy ? .seconds(2) : nil)
        publicReason = error.publicMessage
    }
}
