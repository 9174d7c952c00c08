public import Foundation
public import TidemarkSQLite
import TidemarkStore

/// The error that ended an import or export. Two errors are equal if their codes are.
///
/// Refused rows are not an error: ``ImportSummary`` counts them, and the rejects file describes them.
public struct ImportError: Error, Sendable {
    /// The kind of error, for programs to act on.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code.
        public let rawValue: String
        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The options contradict each other, or have a value that is not possible.
        public static let options = Code(rawValue: "options")
        /// The source can't be read.
        public static let source = Code(rawValue: "source")
        /// The source as a whole is unusable: it is not a JSON array, is a CSV without proper column names, or is not the source
        /// to resume, or has fields that the store can't have.
        public static let manifest = Code(rawValue: "manifest")
        /// The schema file is wrong.
        public static let schemaFile = Code(rawValue: "schemaFile")
        /// The rejects file, or the file to export to, can't be made.
        public static let output = Code(rawValue: "output")
        /// A file was opened, but can't be written to its end: the disk is full, or fails.
        public static let writing = Code(rawValue: "writing")
        /// The output is a pipe, and its reader has closed it.
        public static let closed = Code(rawValue: "closed")
        /// The store failed; ``ImportError/cause`` has its error. Batches that were committed before stay.
        public static let store = Code(rawValue: "store")
    }

    /// The kind of error.
    public let code: Code
    /// What happened, where, and the remedy.
    public let message: String
    /// The error of the store, if that is the cause.
    public let cause: StoreError?

    /// Makes an error.
    public init(_ code: Code, _ message: String, cause: StoreError? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    /// A source with fields that the store can't have, such as too many, is at fault itself.
    init(_ cause: StoreError) {
        self.init(cause.code == .schema ? .manifest : .store, cause.message, cause: cause)
    }
}

extension ImportError: Equatable {
    public static func == (left: ImportError, right: ImportError) -> Bool { left.code == right.code }
}

extension ImportError: CustomStringConvertible {
    public var description: String { message }
}

extension ImportError: LocalizedError {
    /// The error message: the text of `localizedDescription`.
    public var errorDescription: String? { message }
    /// The remedy; `nil` when none is known, or when the description has it.
    public var recoverySuggestion: String? { cause?.recoverySuggestion }
}
