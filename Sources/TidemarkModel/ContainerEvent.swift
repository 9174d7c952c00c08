public import Foundation

/// Something that the synchronisation of a store does. As `NSPersistentCloudKitContainer.Event`.
public struct ContainerEvent: Hashable, Sendable, Identifiable {
    /// The part of a synchronisation that an event is about. As `NSPersistentCloudKitContainer.EventType`, whose raw values it
    /// has.
    public enum Kind: Int, Codable, Sendable, CaseIterable {
        /// The account is looked at, and the zone made.
        case setup = 0
        /// Changes of others come in.
        case `import` = 1
        /// Changes made here go out.
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

    /// Why it failed. Equal by code and reason.
    public struct Failure: Hashable, Sendable, Error {
        /// As in Core Data where it has one; see ``SyncErrorCode``.
        public let code: Int
        /// What happened, as a sentence for a person, without a capital at its start and without a full stop.
        public let reason: String
        /// Whether it may pass by itself, as that of a server that can't be reached: it is tried again. Else somebody has to do something.
        /// It is not stored.
        public let isPassing: Bool
        /// How long the cloud wants one to wait before another try, where it says so. It is not stored.
        public let retryAfter: Duration?
        /// What helps, where that is known. It is not stored.
        public let remedy: ErrorRemedy?
        /// What kind of obstacle it is: tells an unreachable cloud from an account that has signed out, which have the same ``code``. `nil`
        /// for any other failure. It is not stored.
        public let cause: FailureCause?

        /// Makes a failure.
        ///
        /// - Parameters:
        ///   - code: A number of ``SyncErrorCode``.
        ///   - reason: A sentence for a person.
        ///   - isPassing: Whether it is tried again without anybody's help.
        ///   - retryAfter: The wait that the cloud asks for.
        ///   - remedy: What helps.
        ///   - cause: What kind of obstacle it is.
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
    /// The history of the store that it is about.
    public let store: UUID
    /// What the synchronisation does.
    public let kind: Kind
    /// Microseconds since 1970 UTC.
    public let start: Int64
    /// `nil` while it goes on.
    public var end: Int64?
    /// The time at which it has begun.
    public var startDate: Date { Timestamp.date(microseconds: start) }
    /// The time at which it has ended; `nil` while it goes on.
    public var endDate: Date? { end.map { Timestamp.date(microseconds: $0) } }
    /// Why it has failed; `nil` while it goes on, and where it has succeeded.
    public var failure: Failure?
    /// What has been done.
    public var records = 0
    /// Of assets, in bytes.
    public var bytes: Int64 = 0
    /// Conflicts that were resolved, or left to a person.
    public var conflicts = 0
    /// What there was to be done, as far as that is known. With an export that has ended: what was sent, and what the cloud has refused;
    /// `nil` where it was stopped before it knew.
    public var totalRecords: Int?
    /// The bytes of assets that there are to be transferred, as far as that is known.
    public var totalBytes: Int64?
    /// With a setup that has ended: the account that has come, gone or changed since the setup before. Events of the private store have it.
    /// It is not stored.
    public var accountChange: AccountChange?

    /// Whether it has ended without a failure. As `NSPersistentCloudKitContainer.Event.succeeded`.
    public var succeeded: Bool { end != nil && failure == nil }

    /// Makes an event that has begun.
    ///
    /// - Parameters:
    ///   - store: The history of the store that it is about.
    ///   - start: Microseconds since 1970 UTC.
    public init(id: UUID = UUID(), store: UUID, kind: Kind, start: Int64) {
        self.id = id
        self.store = store
        self.kind = kind
        self.start = start
    }
}

/// Numbers of errors that end a synchronisation; those of Core Data.
public enum SyncErrorCode {
    /// The cloud has a model that this version can't use.
    public static let unsupportedModel = 134_060
    /// The changes since the last synchronisation were purged from the history: everything is fetched again.
    /// `NSPersistentHistoryTokenExpiredError`.
    public static let historyTokenExpired = 134_301
    /// There is no account, or it can't be used for the moment: branch on the reason.
    public static let noAccount = 134_400
    /// The account is switched off for the app.
    public static let accountSwitchedOff = 134_405
    /// Setting up has failed, so that nothing is sent and nothing fetched.
    public static let notInitialized = 134_406
    /// Another process synchronises this store.
    public static let anotherSyncer = 134_410
    /// The same request is under way already.
    public static let duplicateRequest = 134_417
    /// Anything else; the reason says what. None of Core Data's.
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
