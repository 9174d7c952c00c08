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
