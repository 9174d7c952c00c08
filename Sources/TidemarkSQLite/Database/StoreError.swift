package import CTideCore
public import Foundation
import GRDB
import TidemarkModel

/// Why a store could not do what was asked. Two errors are equal when their codes are.
public struct StoreError: Error, Sendable {
    /// The kind of failure; more may come.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name, such as `notFound`.
        public let rawValue: String
        /// Makes a code from its name, known to this version or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There is no container or store at that place.
        public static let notFound = Code(rawValue: "notFound")
        /// The container is there and may not be read.
        public static let unreadable = Code(rawValue: "unreadable")
        /// What is there is no Tidemark store.
        public static let notAStore = Code(rawValue: "notAStore")
        /// The store was written by a newer version.
        public static let newerFormat = Code(rawValue: "newerFormat")
        /// The store has a format older than those that this version reads.
        public static let olderFormat = Code(rawValue: "olderFormat")
        /// Another process began to write to the store while it was read without a lock; what was read last is void.
        public static let changed = Code(rawValue: "changed")
        /// The container or a file in it can't be made.
        public static let cannotCreate = Code(rawValue: "cannotCreate")
        /// A file can't be read or written.
        public static let io = Code(rawValue: "io")
        /// The disk or the quota is full.
        public static let diskFull = Code(rawValue: "diskFull")
        /// Another process has held the store's lock for too long.
        public static let busy = Code(rawValue: "busy")
        /// What is on disk breaks the format's rules.
        public static let corrupt = Code(rawValue: "corrupt")
        /// A record's values are not what its digest says.
        public static let damaged = Code(rawValue: "damaged")
        /// In production: a type or field that the schema lacks; or a schema that contradicts the store's.
        public static let schema = Code(rawValue: "schema")
        /// The caller gave a value, a name or a number that is not allowed.
        public static let invalid = Code(rawValue: "invalid")
        /// History before a token was purged, or the token belongs to another history (Core Data's 134301): fetch everything again.
        public static let historyTokenExpired = Code(rawValue: "historyTokenExpired")
        /// The content of an asset is in the cloud and not on this device.
        public static let notDownloaded = Code(rawValue: "notDownloaded")
        /// SQL that the caller gave is wrong.
        public static let sql = Code(rawValue: "sql")
        /// A container or a group can't have that name.
        public static let invalidName = Code(rawValue: "invalidName")
        /// A folder belongs to another user, or other users may write to it.
        public static let untrusted = Code(rawValue: "untrusted")
        /// The container was closed.
        public static let closed = Code(rawValue: "closed")
        /// The core refused for another reason.
        public static let core = Code(rawValue: "core")
    }

    /// What the caller can do.
    public enum Recovery: Sendable {
        /// Try again later; delete files, then try again; show the message, because a person has to decide or mend something.
        case retry, freeSpace, askThePerson
        /// Discard the records and the token that were fetched, and fetch everything again.
        case reset
        /// Download the content, then try again.
        case download
        /// The caller can do nothing: the failure is in the store or the system, and ``StoreError/message`` says more.
        case none
    }

    /// The kind of failure, for programs to act on.
    public let code: Code
    /// What happened, where, and what helps.
    public let message: String
    /// The message ends with what helps: a caller that adds a remedy of its own leaves this error as it is.
    package let namesRemedy: Bool

    /// Makes an error. `message` says in a sentence, without a final period, what happened, where, and what helps.
    public init(_ code: Code, _ message: String) {
        self.init(code, message, namesRemedy: false)
    }

    package init(_ code: Code, _ message: String, namesRemedy: Bool) {
        self.code = code
        self.message = message
        self.namesRemedy = namesRemedy
    }

    /// What the caller can do; it follows from ``code``, and is ``Recovery/none`` for a code that this version does not know.
    public var recovery: Recovery {
        switch code {
        case .busy, .changed: .retry
        case .diskFull: .freeSpace
        case .schema, .newerFormat, .olderFormat, .notAStore, .cannotCreate, .sql, .invalid, .invalidName, .untrusted, .damaged:
            .askThePerson
        case .historyTokenExpired: .reset
        case .notDownloaded: .download
        default: .none
        }
    }
}

extension StoreError.Code {
    /// The container is at another place now, or another has come to its place; the message says which.
    public static let moved = StoreError.Code(rawValue: "moved")
    /// What is there is the copy that a move has begun: it does not count yet.
    public static let incompleteCopy = StoreError.Code(rawValue: "incompleteCopy")
    /// A move, its rolling back, a backup or a restoration can't be done as things are.
    public static let cannotMove = StoreError.Code(rawValue: "cannotMove")
}

extension StoreError: Equatable {
    public static func == (left: StoreError, right: StoreError) -> Bool { left.code == right.code }
}

extension StoreError: CustomStringConvertible {
    public var description: String { message }
}

extension StoreError {
    /// The core's failure as an error of ours.
    package init(_ error: tide_error) {
        // Of a reader whose store had no index of its log.
        if error.status == TIDE_BUSY, error.system == ResultCode.SQLITE_BUSY_SNAPSHOT.rawValue {
            self.init(.changed, "\(error.text): another process began to write to the store meanwhile. Read it again")
            return
        }
        let code: Code =
            switch error.status {
            case TIDE_IO_ERROR: .io
            case TIDE_DISK_FULL: .diskFull
            case TIDE_BUSY: .busy
            case TIDE_CORRUPT: .corrupt
            case TIDE_MISUSE: .schema
            default: .core
            }
        self.init(code, error.text)
    }

    /// GRDB's failure, or any other, as an error of ours.
    ///
    /// - Parameter path: Of the database, if it is known.
    package init(_ error: any Error, doing what: String, with path: String? = nil) {
        switch error {
        case let error as StoreError:
            self = error
        case let error as DatabaseError where ReadOnlyDatabase.isVoid(error):
            self.init(.changed, "cannot \(what): another process began to write to the store meanwhile. Read it again")
        case let error as DatabaseError where error.extendedResultCode == .SQLITE_READONLY_ROLLBACK:
            self.init(
                .unreadable,
                "cannot \(what): a transaction was broken off, and its journal is left. Open the container for writing once")
        // SQLite opens a file for reading where it can't open it for writing, and says so when something is written.
        case let error as DatabaseError where error.resultCode == .SQLITE_READONLY:
            self.init(
                .io,
                """
                cannot \(what): the database\(path.map { " " + $0 } ?? ""), or the log beside it, could be opened for reading only. \
                Make sure that its files can be written, and that their disk works and has room
                """)
        // The second one is SQLite's own message of a connection that is none.
        case let error as DatabaseError
        where error.resultCode == .SQLITE_MISUSE && ["Connection is closed", "out of memory"].contains(error.message):
            self.init(.closed, "cannot \(what): the container was closed. Open it again")
        case let error as DatabaseError where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE:
            self.init(.diskFull, "cannot \(what): no space is left for the index of the log")
        case let error as DatabaseError:
            let code: Code =
                switch error.resultCode {
                case .SQLITE_FULL: .diskFull
                case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
                case .SQLITE_CORRUPT, .SQLITE_NOTADB: .corrupt
                case .SQLITE_IOERR, .SQLITE_CANTOPEN: .io
                default: .core
                }
            // Where only a step of a copy has failed, the connection has no message of its own.
            let message = error.message.flatMap { $0 == "not an error" ? nil : $0 } ?? error.resultCode.description
            self.init(code, "cannot \(what): \(message)")
        case is RowDecodingError:
            self.init(.corrupt, "cannot \(what): \(path ?? "the database") is damaged: a row has a value of a wrong form")
        default:
            self.init(.io, "cannot \(what): \(error)")
        }
    }
}

extension tide_error {
    /// The message as a string.
    package var text: String {
        withUnsafeBytes(of: message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// Runs a call of the core and throws what it reports.
package func checked(_ body: (inout tide_error) -> tide_status) throws(StoreError) {
    var error = tide_error()
    let status = body(&error)
    guard status != TIDE_OK else { return }
    if error.status == TIDE_OK { error.status = status }
    throw StoreError(error)
}

extension StoreError: LocalizedError {
    /// The error message: the text of `localizedDescription`, in the language of ``ErrorLanguage/current``.
    public var errorDescription: String? { code.sentence(in: .current) ?? message }
    /// The message in English, where the description is a general sentence in another language.
    public var failureReason: String? { code.sentence(in: .current).map { _ in message } }
    /// The remedy; `nil` when none is known, or when the description has it.
    public var recoverySuggestion: String? { recovery.sentence(in: .current) }
}
