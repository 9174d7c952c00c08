/// The name of a zone of a store: a set of records that is synchronised, shared and deleted as a whole.
public struct ZoneName: Hashable, Codable, Sendable {
    /// The zone's name: 1 to 255 bytes.
    public let name: String
    /// The owner's name in the cloud container; `nil` for a zone of the account itself.
    public let owner: String?

    /// Makes a name; without an owner, of a zone of the account itself.
    public init(_ name: String, owner: String? = nil) {
        self.name = name
        self.owner = owner
    }

    /// The zone of records that are in no other zone. In a cloud it has the name that the configuration of the synchronisation
    /// sets.
    public static let `default` = ZoneName("_defaultZone")
}
