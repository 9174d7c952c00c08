public import TidemarkModel

/// A record that a fetch has found and could not read as its type.
public struct UnreadableRecord: Sendable {
    /// The name of the record.
    public let record: RecordName
    /// Why it can't be read: a `DecodingError`, or what the type's own `init(from:)` throws.
    public let error: any Error
}
