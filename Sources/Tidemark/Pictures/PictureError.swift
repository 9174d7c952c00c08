import CTidePictures
public import Foundation
import TidemarkModel

/// The error of scaling a picture. Two errors are equal if their codes are.
public struct PictureError: Error, Sendable {
    /// The kind of failure, for programs to act on.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code.
        public let rawValue: String
        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The options have a value that is not possible.
        public static let options = Code(rawValue: "options")
        /// The file can't be read.
        public static let unreadable = Code(rawValue: "unreadable")
        /// The content is neither a JPEG nor a PNG, or is of a kind that can't be decoded: 12 bits, lossless.
        public static let unsupported = Code(rawValue: "unsupported")
        /// The picture is cut off, or has damage that its decoder notices.
        public static let damaged = Code(rawValue: "damaged")
        /// The picture has more pixels, or would take more memory, than is allowed.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// There was not enough memory.
        public static let outOfMemory = Code(rawValue: "outOfMemory")
    }

    /// The kind of failure.
    public let code: Code
    /// What happened, where, and the remedy.
    public let message: String

    /// Makes an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Makes an error from a failure of the C core.
    init(_ error: tide_error, text: String, of name: String) {
        let code: Code =
            switch (error.status, error.reject) {
            case (TIDE_REJECTED, TIDE_REJECT_PICTURE_UNSUPPORTED): .unsupported
            case (TIDE_REJECTED, TIDE_REJECT_PICTURE_TOO_LARGE): .tooLarge
            case (TIDE_REJECTED, _): .damaged
            case (TIDE_MISUSE, _): .options
            case (TIDE_NO_MEMORY, _): .outOfMemory
            default: .unreadable
            }
        self.init(code, "\(name): \(text)")
    }
}

extension PictureError: Equatable {
    public static func == (left: PictureError, right: PictureError) -> Bool { left.code == right.code }
}

extension PictureError: CustomStringConvertible {
    public var description: String { message }
}

extension PictureError: LocalizedError {
    /// The kind of failure as a sentence, in languages that have one; otherwise the message.
    public var errorDescription: String? { code.sentence(in: .current) ?? message }
    /// The message, if the description is such a sentence.
    public var failureReason: String? { code.sentence(in: .current).map { _ in message } }
    /// The remedy; `nil` if none is known.
    public var recoverySuggestion: String? { code.remedy(in: .current) }
}
