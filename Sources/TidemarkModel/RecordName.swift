/// A record among all of a store: its type and its name.
public struct RecordName: Hashable, Codable, Sendable {
    public let type: String
    public let name: String

    public init(type: String, name: String) {
        self.type = type
        self.name = name
    }
}
