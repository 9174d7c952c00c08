/// A record among all of a store: its type and its name.
public struct RecordName: Hashable, Codable, Sendable {
    /// The record type's name.
    public let type: String
    /// The record's name within its type: 1 to 255 bytes.
    public let name: String

    /// Makes a name of a record type's name and the record's own.
    public init(type: String, name: String) {
        self.type = type
        self.name = name
    }
}
