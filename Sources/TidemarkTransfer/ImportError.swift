public import Foundation
public import TidemarkSQLite
import TidemarkStore

/// Why an import or export could not be done, or not to its end. Two errors are equal when their codes are.
///
/// Refused rows are no error: they are counted in ``ImportSummary`` and described in the rejects file.
public struct ImportError: Error, Sendable {
    /// What kind of error it is; a program branches on it.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code.
        public let rawValue: String
        /// Makes a code of its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The options contradict each other or name what can't be.
        public static let options = Code(rawValue: "options")
        /// The source can't be read.
        public static let source = Code(rawValue: "source")
        /// The source as a whole is unusable: no JSON array, a CSV without proper column names, another source than the one to resume.
        public static let manifest = Code(rawValue: "manifest")
        /// The schema file is wrong.
        public static let schemaFile = Code(rawValue: "schemaFile")
        /// The rejects file, or the file to export to, can't be made.
        public static let output = Code(rawValue: "output")
        /// What was made can't be written to its end: the disk is full, or fails.
        public static let writing = Code(rawValue: "writing")
        /// Nobody reads any more what is written to a pipe.
        public static let closed = Code(rawValue: "closed")
        /// The store refused; `cause` says why. What was committed before stays.
        public static let store = Code(rawValue: "store")
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, where, and what helps.
    public let message: String
    /// The error of the store, where that is the cause.
    public let cause: StoreError?

    /// Makes an error.
    public init(_ code: Code, _ message: String, cause: StoreError? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    init(_ cause: StoreError) {
        self.init(.store, cause.message, cause: cause)
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
