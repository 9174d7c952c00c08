public import TidemarkModel

/// A record that a fetch has left out, because it can't be read as the type that was asked for.
///
/// As a rule a newer version of the program has written it, or another program.
public struct UnreadableRecord: Sendable {
    /// The type and the name of the record.
    public let record: RecordName
    /// Why it can't be read: a `DecodingError` that names the property, or what the type's own `init(from:)` has thrown.
    public let error: any Error
}
