package import CTideCore
public import Foundation
import GRDB
import TidemarkModel

/// The error of an operation on a store. Two errors are equal if their codes are.
public struct StoreError: Error, Sendable {
    /// The kind of failure. Later versions may have more codes.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name, such as `notFound`.
        public let rawValue: String
        /// Makes a code from its name, known to this version or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There is no container or store at that place.
        public static let notFound = Code(rawValue: "notFound")
        /// The container exists, but the process may not read it.
        public static let unreadable = Code(rawValue: "unreadable")
        /// The file or folder is not a Tidemark store.
        public static let notAStore = Code(rawValue: "notAStore")
        /// The store was written by a newer version.
        public static let newerFormat = Code(rawValue: "newerFormat")
        /// The store has a format older than those that this version reads.
        public static let olderFormat = Code(rawValue: "olderFormat")
        /// Another process began to write to the store while it was read without a lock. The results of the read are void; read
        /// again.
        public static let changed = Code(rawValue: "changed")
        /// The container or a file in it can't be made.
        public static let cannotCreate = Code(rawValue: "cannotCreate")
        /// A file can't be read or written.
        public static let io = Code(rawValue: "io")
        /// The disk or the quota is full.
        public static let diskFull = Code(rawValue: "diskFull")
        /// Another process has held the store's lock for too long.
        public static let busy = Code(rawValue: "busy")
        /// The data on disk violates the format.
        public static let corrupt = Code(rawValue: "corrupt")
        /// A record's values do not match its digest.
        public static let damaged = Code(rawValue: "damaged")
        /// A schema contradicts the store's; or, in the production environment, the schema lacks a type or field.
        public static let schema = Code(rawValue: "schema")
        /// The caller gave a value, a name or a number that is not allowed.
        public static let invalid = Code(rawValue: "invalid")
        /// History before a token was purged, or the token belongs to another history (Core Data's 134301): fetch everything again.
        public static let historyTokenExpired = Code(rawValue: "historyTokenExpired")
        /// The content of an asset is in the cloud and not on this device.
        public static let notDownloaded = Code(rawValue: "notDownloaded")
        /// The caller's SQL is wrong.
        public static let sql = Code(rawValue: "sql")
        /// A container or a group can't have that name.
        public static let invalidName = Code(rawValue: "invalidName")
        /// A folder belongs to another user, or other users may write to it.
        public static let untrusted = Code(rawValue: "untrusted")
        /// The container was closed.
        public static let closed = Code(rawValue: "closed")
        /// The C core failed for another reason.
        public static let core = Code(rawValue: "core")
    }

    /// What the caller can do.
    public enum Recovery: Sendable {
        /// Try again later (`retry`). Delete files, then try again (`freeSpace`). Show the message, because a person has to
        /// decide or repair something (`askThePerson`).
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
    /// What happened, where, and the remedy.
    public let message: String
    /// Whether the message ends with a remedy. A caller that adds remedies adds none to this error.
    package let namesRemedy: Bool

    /// Makes an error. `message` says in a sentence, without a final period, what happened, where, and the remedy.
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
    /// The container is at another place now, or another container is at its place; the message says which.
    public static let moved = StoreError.Code(rawValue: "moved")
    /// The container is the incomplete copy of a move that has begun, and can't be opened yet.
    public static let incompleteCopy = StoreError.Code(rawValue: "incompleteCopy")
    /// A move, its rollback, a backup or a restoration is not possible in this state.
    public static let cannotMove = StoreError.Code(rawValue: "cannotMove")
}

extension StoreError: Equatable {
    public static func == (left: StoreError, right: StoreError) -> Bool { left.code == right.code }
}

extension StoreError: CustomStringConvertible {
    public var description: String { message }
}

extension StoreError {
    /// Makes a `StoreError` from a failure of the C core.
    package init(_ error: tide_error) {
        // The error of a reader that has read a store without an index of its log.
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

    /// Makes a `StoreError` from an error of GRDB, or any other error.
    ///
    /// - Parameters:
    ///   - what: The operation that failed, as words after "cannot".
    ///   - path: The path of the database, if it is known.
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
        // If SQLite can't open a file for writing, it opens the file for reading, and fails at the first write.
        case let error as DatabaseError where error.resultCode == .SQLITE_READONLY:
            self.init(
                .io,
                """
                cannot \(what): the database\(path.map { " " + $0 } ?? ""), or the log beside it, could be opened for reading only. \
                Make sure that its files can be written, and that their disk works and has room
                """)
        // "out of memory" is SQLite's message for a missing connection.
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
            // If a step of a copy has failed, the connection has no message of its own.
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

/// Runs a call of the C core, and throws the failure that it reports.
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
