public import Foundation

/// A part of a store's synchronisation, from its start to its end. As `NSPersistentCloudKitContainer.Event`.
public struct ContainerEvent: Hashable, Sendable, Identifiable {
    /// The kind of an event. As `NSPersistentCloudKitContainer.EventType`, with the same raw values.
    public enum Kind: Int, Codable, Sendable, CaseIterable {
        /// The engine examines the account, and prepares zones and subscriptions.
        case setup = 0
        /// The engine fetches changes from the cloud.
        case `import` = 1
        /// The engine sends changes to the cloud.
        case export = 2

        /// The kind in lower case, as the command-line tool and its JSON name it.
        public var name: String {
            switch self {
            case .setup: "setup"
            case .import: "import"
            case .export: "export"
            }
        }
    }

    /// The reason why an event failed. Failures are equal if their codes and reasons are.
    public struct Failure: Hashable, Sendable, Error {
        /// The number of the error, one of ``SyncErrorCode``: Core Data's where Core Data has one.
        public let code: Int
        /// What happened, as a sentence for a person, without a capital at its start and without a full stop.
        public let reason: String
        /// Whether the failure may pass by itself, as when a server can't be reached. The engine tries again. After any other
        /// failure a person has to do something. It is not stored.
        public let isPassing: Bool
        /// The wait that the cloud asks for before another try; `nil` if it asks for none. It is not stored.
        public let retryAfter: Duration?
        /// The remedy, if one is known. It is not stored.
        public let remedy: ErrorRemedy?
        /// The kind of obstacle. It distinguishes failures that have the same ``code``, such as an unreachable cloud and an
        /// account that has signed out. `nil` for failures of no such kind. It is not stored.
        public let cause: FailureCause?

        /// Makes a failure.
        ///
        /// - Parameters:
        ///   - code: A number of ``SyncErrorCode``.
        ///   - reason: A sentence for a person.
        ///   - isPassing: Whether the failure may pass by itself, so that the engine tries again.
        ///   - retryAfter: The wait that the cloud asks for.
        ///   - remedy: The remedy.
        ///   - cause: The kind of obstacle.
        public init(
            code: Int, reason: String, isPassing: Bool = false, retryAfter: Duration? = nil, remedy: ErrorRemedy? = nil,
            cause: FailureCause? = nil
        ) {
            self.code = code
            self.reason = reason
            self.isPassing = isPassing
            self.retryAfter = retryAfter
            self.remedy = remedy
            self.cause = cause
        }

        public static func == (left: Failure, right: Failure) -> Bool {
            left.code == right.code && left.reason == right.reason
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(code)
            hasher.combine(reason)
        }
    }

    /// The event's identity: the same from its start to its end.
    public let id: UUID
    /// The identifier of the history of the store that the event is about.
    public let store: UUID
    /// The kind of the event.
    public let kind: Kind
    /// The time at which the event began; microseconds since 1970 UTC.
    public let start: Int64
    /// The time at which the event ended; microseconds since 1970 UTC. `nil` while it goes on.
    public var end: Int64?
    /// The time at which the event began.
    public var startDate: Date { Timestamp.date(microseconds: start) }
    /// The time at which the event ended; `nil` while it goes on.
    public var endDate: Date? { end.map { Timestamp.date(microseconds: $0) } }
    /// The reason of a failure; `nil` while the event goes on, and if it succeeded.
    public var failure: Failure?
    /// The number of records that were transferred so far.
    public var records = 0
    /// The bytes of assets that were transferred so far.
    public var bytes: Int64 = 0
    /// The number of conflicts that were resolved, or left to a person.
    public var conflicts = 0
    /// The number of records to transfer, as far as it is known. For an export that has ended: the records that were sent, and
    /// those that the cloud refused; `nil` if the export was stopped before it knew the number.
    public var totalRecords: Int?
    /// The bytes of assets to transfer, as far as the number is known.
    public var totalBytes: Int64?
    /// The change of the account since the setup before; `nil` if there was none. Only setups of the private store that have
    /// ended have it. It is not stored.
    public var accountChange: AccountChange?

    /// Whether the event has ended without a failure. As `NSPersistentCloudKitContainer.Event.succeeded`.
    public var succeeded: Bool { end != nil && failure == nil }

    /// Makes an event that has begun.
    ///
    /// - Parameters:
    ///   - store: The identifier of the history of the store that the event is about.
    ///   - start: Microseconds since 1970 UTC.
    public init(id: UUID = UUID(), store: UUID, kind: Kind, start: Int64) {
        self.id = id
        self.store = store
        self.kind = kind
        self.start = start
    }
}

/// The numbers of errors that end a synchronisation. All but ``other`` are Core Data's.
public enum SyncErrorCode {
    /// The cloud has a model that this version can't use.
    public static let unsupportedModel = 134_060
    /// The changes since the last synchronisation were purged from the history: everything is fetched again.
    /// `NSPersistentHistoryTokenExpiredError`.
    public static let historyTokenExpired = 134_301
    /// There is no account, or it can't be used for the moment: ``ContainerEvent/Failure/cause`` says which.
    public static let noAccount = 134_400
    /// The account is switched off for the app.
    public static let accountSwitchedOff = 134_405
    /// The setup failed, so nothing is sent and nothing fetched.
    public static let notInitialized = 134_406
    /// Another process synchronises this store.
    public static let anotherSyncer = 134_410
    /// The same request is under way already.
    public static let duplicateRequest = 134_417
    /// Any other error; the reason says which. Core Data has no such number.
    public static let other = 134_499
}

extension ContainerEvent.Failure: LocalizedError {
    /// The error message: the text of `localizedDescription`, in the language of ``ErrorLanguage/current``.
    public var errorDescription: String? { cause?.sentence(in: .current) ?? reason }
    /// The reason in English, where the description is a general sentence in another language.
    public var failureReason: String? { cause?.sentence(in: .current).map { _ in reason } }
    /// The remedy; `nil` when none is known, or when the description has it.
    public var recoverySuggestion: String? { remedy?.sentence(in: .current) }
}
