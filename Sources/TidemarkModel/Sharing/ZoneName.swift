/// Names a zone of a store: a set of records that is synchronised, shared and deleted as one.
public struct ZoneName: Hashable, Codable, Sendable {
    /// The zone's name: 1 to 255 bytes.
    public let name: String
    /// The owner's name in the cloud container; `nil` for one's own.
    public let owner: String?

    /// Makes a name; without an owner, of a zone of one's own.
    public init(_ name: String, owner: String? = nil) {
        self.name = name
        self.owner = owner
    }

    /// Where records are that are in no other zone. What its name is in a cloud, the synchronisation's configuration says.
    public static let `default` = ZoneName("_defaultZone")
}
