/// The type and the name of a record, which identify it in its store.
public struct RecordName: Hashable, Codable, Sendable {
    /// The record type's name.
    public let type: String
    /// The record's name within its type: 1 to 255 bytes.
    public let name: String

    /// Makes the name of a record.
    public init(type: String, name: String) {
        self.type = type
        self.name = name
    }
}
