public import Foundation
public import TidemarkModel

/// A record that a fetch has left out, because it can't be read as the requested type.
///
/// Usually a newer version of the program has written it, or another program.
public struct UnreadableRecord: Sendable {
    /// The type and the name of the record.
    public let record: RecordName
    /// The error of the decoder: a `DecodingError` that names the property, or an error of the type's own `init(from:)`.
    public let error: any Error
}

extension UnreadableRecord: LocalizedError, CustomStringConvertible {
    /// The record, the property, and the reason why its value can't be read. The `localizedDescription` of a `DecodingError` has
    /// none of them.
    public var description: String {
        switch error as? DecodingError {
        case .dataCorrupted(let context), .keyNotFound(_, let context), .typeMismatch(_, let context),
            .valueNotFound(_, let context):
            context.debugDescription
        default: "\(record.type) \(record.name) can't be read: \(error)"
        }
    }

    public var errorDescription: String? { description }

    /// The remedy; `nil` when none is known, or when the description has it.
    public var recoverySuggestion: String? {
        guard case .dataCorrupted? = error as? DecodingError else { return nil }
        return """
            A newer version of the program, or another one, has written a value that this type does not know: add it to the type, or read the \
            property as the type of its raw value.
            """
    }
}
