public import TidemarkModel

/// A zone, as a storage keeps it.
public struct StoredZone: Hashable, Sendable {
    /// Identifies a zone by its owner, and by a number that no other zone of the owner has.
    public struct ID: Hashable, Sendable {
        /// The owner's user record name; empty in the public database.
        public let owner: String
        /// The zone's number.
        public let number: Int64

        /// Makes an identifier from its members.
        public init(owner: String, number: Int64) { (self.owner, self.number) = (owner, number) }
    }

    /// Where a zone is. No two zones have the same place.
    public struct Place: Hashable, Sendable {
        /// Public or private: what is shared is in its owner's private database.
        public let scope: DatabaseScope
        /// The owner's user record name; empty in the public database.
        public let owner: String
        /// The zone's name, unique among the owner's zones.
        public let name: String

        /// Makes a place from its members.
        public init(scope: DatabaseScope, owner: String, name: String) {
            self.scope = scope
            self.owner = owner
            self.name = name
        }
    }

    /// Whether a zone exists. The raw values are stored.
    public enum State: Int, Sendable {
        /// The zone can be used.
        case present = 0
        /// Deleted. A save makes the place's zone again, under the same number.
        case deleted = 1
        /// Deleted by a person who wants the data gone: devices get `userDeletedZone` and don't upload it again.
        case purged = 2
    }

    /// Unique among the owner's zones; 0 before the zone is saved.
    public var number: Int64
    /// The zone's database, owner and name.
    public let place: Place
    /// The zone's owner and number.
    public var id: ID { ID(owner: place.owner, number: number) }
    /// Whether the zone exists. A deleted zone keeps its row, so that devices learn of it.
    public var state: State
    /// The change that made the zone. Tokens from before it have expired: they belong to an earlier zone of the same name.
    public var made: Int64
    /// The last change in the zone, or of what is shared of it.
    public var changed: Int64
    /// Whether the zone has shares, and of which kind.
    public var sharing: Sharing

    /// The kinds of shares that a zone has. The raw values are stored.
    public enum Sharing: Int, Sendable {
        /// The zone has no share.
        case nothing = 0
        /// One share covers all records.
        case whole = 1
        /// Each share covers a record with the records below it.
        case hierarchies = 2
    }

    /// Makes a zone from its members. A zone that is not saved yet has the number 0.
    public init(
        number: Int64 = 0, place: Place, state: State = .present, made: Int64, changed: Int64, sharing: Sharing = .nothing
    ) {
        self.number = number
        self.place = place
        self.state = state
        self.made = made
        self.changed = changed
        self.sharing = sharing
    }
}
