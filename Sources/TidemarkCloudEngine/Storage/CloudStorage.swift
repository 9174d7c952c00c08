import Foundation
import TidemarkCloud
import TidemarkModel

/// Where an embedded cloud keeps what one container has in one environment.
///
/// It knows rows and no rules: what may be done, ``CloudEngine`` decides. All of a transaction runs on a thread of the storage's own, alone
/// if it writes; what it has written is durable when ``write(_:)`` returns. What a body throws is thrown, and nothing of it is written.
public protocol CloudStorage: Sendable {
    /// 16 random bytes that were made with it: what nobody else knows.
    var key: [UInt8] { get }
    /// When it was made, in microseconds since 1970 UTC: what lies beside it from before may belong to another one.
    var began: Int64 { get }

    func read<Answer: Sendable>(
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer

    func write<Answer: Sendable>(
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer

    /// Reads a few rows in the thread that calls: for what takes less time than to wake another one.
    ///
    /// - Returns: `nil` where a storage can't.
    func readInline<Answer>(
        _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) throws(CloudError) -> Answer?
}

/// The rows of a storage within a transaction. Every function may throw `CloudError` `internalError`.
public protocol CloudTransaction: SharingTransaction, IncarnationTransaction, DamageTransaction {
    /// Counts the changes of all databases: what is changed gets the next numbers.
    func lastChange() throws(CloudError) -> Int64
    func setLastChange(_ number: Int64) throws(CloudError)

    // Zones

    func zone(_ place: StoredZone.Place) throws(CloudError) -> StoredZone?
    func zone(id: Int64) throws(CloudError) -> StoredZone?
    /// The last change of an owner's zones; 0 where there are none.
    func lastChange(_ scope: DatabaseScope, owner: String) throws(CloudError) -> Int64
    /// Those of an owner that changed after a number, in that order, deleted ones among them.
    func zones(_ scope: DatabaseScope, owner: String, after change: Int64, limit: Int) throws(CloudError) -> [StoredZone]
    /// Inserts it, or replaces the one of its place; returns it with its number.
    func save(_ zone: StoredZone) throws(CloudError) -> StoredZone

    // Records

    func records(_ names: [String], in zone: Int64) throws(CloudError) -> [String: StoredCloudRecord]
    /// Inserts them, or replaces those of equal zone and name.
    func save(_ records: [StoredCloudRecord]) throws(CloudError)
    /// Those that changed after a number, in that order, deleted ones among them.
    func records(in zone: Int64, after change: Int64, limit: Int) throws(CloudError) -> [StoredCloudRecord]
    func parent(of name: String, in zone: Int64) throws(CloudError) -> String?
    /// Those, not deleted, that have one of the names as their parent, without what they depend on and are found under.
    func children(of names: [String], in zone: Int64, limit: Int) throws(CloudError) -> [StoredChild]
    /// Whether one that is not deleted has a parent.
    func hasChildren(in zone: Int64) throws(CloudError) -> Bool
    /// Names of those that hold a `deleteSelf` reference to one of the names and were last changed before a number.
    func dependents(of names: [String], in zone: Int64, before change: Int64, limit: Int) throws(CloudError) -> [String]
    /// Removes records of a zone, tombstones among them.
    ///
    /// - Returns: How many, the bytes that they have counted, and the digests of the assets that they have named.
    func removeRecords(in zone: Int64, limit: Int) throws(CloudError) -> (count: Int, bytes: Int64, assets: Set<String>)
    /// Those that a query finds, in its order, each with what it was ordered by.
    func find(
        _ query: IndexQuery, in zone: Int64, limit: Int, within budget: QueryBudget
    ) throws(CloudError) -> FoundRecords

    // Removals that take more than one transaction

    func add(_ removal: StoredRemoval) throws(CloudError)
    /// The one that was begun first.
    func nextRemoval() throws(CloudError) -> StoredRemoval?
    func removals(in zone: Int64) throws(CloudError) -> [StoredRemoval]
    func endRemoval(_ id: Int64) throws(CloudError)

    /// Finds all records of a type anew, in all zones, under what their fields are to be found.
    func reindex(_ type: String, _ indexed: (Data) throws(CloudError) -> [Int64: [IndexValue]]) throws(CloudError)

    /// How many records of a type there are whose fields pass a test. O(records).
    func countRecords(
        of type: String, where isCounted: (Data) throws(CloudError) -> Bool
    ) throws(CloudError) -> Int

    // Assets

    /// Which of the digests an owner has, with their sizes.
    func assets(_ digests: Set<String>, owner: String) throws(CloudError) -> [String: Int64]
    /// - Parameter payer: The account whose quota it counts against.
    func addAsset(_ asset: CloudAsset, owner: String, payer: String) throws(CloudError)
    /// Digests that records of a zone name.
    func assetsNamed(by records: [String], in zone: Int64) throws(CloudError) -> Set<String>
    /// Removes those of an owner's assets that none of their records names; returns these, with the accounts that have paid for them.
    func removeUnnamedAssets(
        _ digests: Set<String>, owner: String
    ) throws(CloudError) -> [(asset: CloudAsset, payer: String)]
    /// Looks at some of an owner's assets, behind a digest, in the order of the digests.
    ///
    /// - Parameter limit: How many are looked at.
    /// - Returns: Those that none of the owner's records names, and the digest of the last that was looked at; `nil` behind the last of all.
    func unnamedAssets(
        of owner: String, after digest: String, limit: Int
    ) throws(CloudError) -> (unnamed: [CloudAsset], last: String?)

    // Requests that were answered

    func answer(to token: String, of user: String) throws(CloudError) -> Data?
    func keep(_ answer: Data, to token: String, of user: String, at time: Int64) throws(CloudError)
    func forgetAnswers(before time: Int64) throws(CloudError)

    // What is stored for an account, in bytes

    func used(by user: String) throws(CloudError) -> Int64
    func addUsed(_ bytes: Int64, by user: String) throws(CloudError)
    /// What is counted, by account.
    func allUsed() throws(CloudError) -> [String: Int64]
    func replaceUsed(_ used: [String: Int64]) throws(CloudError)
    /// What is stored, counted from the rows, by account.
    func countUsed() throws(CloudError) -> [String: Int64]

    /// Bytes that uploads which have begun will take, and how many they are.
    func reserved(by payer: String) throws(CloudError) -> (bytes: Int64, count: Int)
    func reservation(_ upload: StoredUpload) throws(CloudError) -> Int64?
    func reserve(_ bytes: Int64, for upload: StoredUpload, at time: Int64) throws(CloudError)
    func removeReservation(_ upload: StoredUpload) throws(CloudError)
    /// Those of an account, or all, with the times when they began.
    func reservations(of payer: String?) throws(CloudError) -> [(upload: StoredUpload, time: Int64)]

    // Schema

    func schema() throws(CloudError) -> CloudSchema
    func save(_ schema: CloudSchema) throws(CloudError)
}

/// A zone as it is kept.
public struct StoredZone: Hashable, Sendable {
    public struct Place: Hashable, Sendable {
        public let scope: DatabaseScope
        /// The owner's user record name; empty in the public database.
        public let owner: String
        public let name: String

        public init(scope: DatabaseScope, owner: String, name: String) {
            self.scope = scope
            self.owner = owner
            self.name = name
        }
    }

    public enum State: Int, Sendable {
        case present = 0
        case deleted = 1
        /// Deleted by the person, for good.
        case purged = 2
    }

    /// 0 before it is saved.
    public var id: Int64
    public let place: Place
    public var state: State
    /// The change that made it: tokens from before belong to another zone of its name.
    public var made: Int64
    /// The last change in it.
    public var changed: Int64
    /// What of it is shared.
    public var sharing: Sharing

    public enum Sharing: Int, Sendable {
        case nothing = 0
        case whole = 1
        case hierarchies = 2
    }

    public init(
        id: Int64 = 0, place: Place, state: State = .present, made: Int64, changed: Int64, sharing: Sharing = .nothing
    ) {
        self.id = id
        self.place = place
        self.state = state
        self.made = made
        self.changed = changed
        self.sharing = sharing
    }
}

/// A record as it is kept; a deleted one has no fields.
public struct StoredCloudRecord: Hashable, Sendable {
    public let zone: Int64
    public let name: String
    public var type: String
    /// As ``FieldCoding`` makes them.
    public var fields: Data
    public var parent: String?
    /// The change that last touched it; its tag.
    public var changed: Int64
    public var created: CloudRecord.Stamp
    public var modified: CloudRecord.Stamp
    public var isDeleted: Bool
    /// What its `deleteSelf` references name.
    public var dependsOn: Set<String>
    /// Digests of its assets.
    public var assets: Set<String>
    /// By the number of an index of the schema, what it is found under.
    public var indexed: [Int64: [IndexValue]]
    /// What is wrong with it; `nil` where it is what was written.
    public var damage: Damage?

    /// That a record is not what was written.
    public struct Damage: Hashable, Sendable {
        /// The row's number.
        public let row: Int64
        /// The change that had made it what it was.
        public let change: Int64
        /// Whether devices are told of it.
        public let isNoted: Bool

        package init(
            row: Int64, change: Int64, isNoted: Bool
        ) {
            self.row = row
            self.change = change
            self.isNoted = isNoted
        }
    }

    public init(
        zone: Int64, name: String, type: String, fields: Data, parent: String?, changed: Int64, created: CloudRecord.Stamp,
        modified: CloudRecord.Stamp, isDeleted: Bool, dependsOn: Set<String>, assets: Set<String>,
        indexed: [Int64: [IndexValue]], damage: Damage? = nil
    ) {
        (self.zone, self.name, self.type, self.fields, self.parent) = (zone, name, type, fields, parent)
        (self.changed, self.created, self.modified, self.isDeleted) = (changed, created, modified, isDeleted)
        (self.dependsOn, self.assets, self.indexed, self.damage) = (dependsOn, assets, indexed, damage)
    }
}

/// A record that hangs below another.
public struct StoredChild: Hashable, Sendable {
    public let name: String
    public let type: String
    public let changed: Int64

    package init(
        name: String, type: String, changed: Int64
    ) {
        self.name = name
        self.type = type
        self.changed = changed
    }
}

/// The records that a query has found, each with what it was ordered by.
public struct FoundRecords: Sendable {
    public var rows: [(record: StoredCloudRecord, keys: [IndexValue?])] = []
    /// Whether the query has exceeded its budget. Further records may be behind those that were found.
    public var isCut = false
    /// Instructions of SQLite's virtual machine that it has taken.
    public var steps: Int64 = 0
    /// Seconds of processor time that it has taken.
    public var seconds = 0.0

    package init(
        rows: [(record: StoredCloudRecord, keys: [IndexValue?])] = [], isCut: Bool = false, steps: Int64 = 0
    ) {
        self.rows = rows
        self.isCut = isCut
        self.steps = steps
    }
}

/// What a record is found under.
public enum IndexValue: Hashable, Sendable {
    case integer(Int64)
    case real(Double)
    case text(String)
    case bytes(Data)
}

/// A query in terms of indexes.
public struct IndexQuery: Hashable, Sendable {
    public enum Key: Hashable, Sendable {
        case index(Int64)
        case recordName, created, createdBy, modified, modifiedBy, parent
    }

    public enum Comparison: String, Sendable {
        case equal = "="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="
    }

    public indirect enum Condition: Hashable, Sendable {
        /// One of the values compares so.
        case compare(Key, Comparison, IndexValue)
        case isOneOf(Key, [IndexValue])
        case beginsWith(Key, String)
        /// Within some metres.
        case near(Key, latitude: Double, longitude: Double, metres: Double)
        case not(Condition)
        case all([Condition])
    }

    public struct Order: Hashable, Sendable {
        public var key: Key
        public var isAscending: Bool
        /// Instead of the value: its distance from here.
        public var from: Location?
    }

    public var type: String
    public var conditions: [Condition]
    public var order: [Order]
    /// Only records of these shares, whose roots have no parent then; `nil` for all.
    public var shares: [Int64]?
    /// Only what comes behind this.
    public var after: Place?

    /// A record's place in an order: what it is ordered by, and its name.
    public struct Place: Hashable, Sendable {
        public let values: [IndexValue?]
        public let name: String
    }
}

extension StoredCloudRecord {
    /// Bytes of a record's row and of its places in the indexes by name and by change, about.
    package static let overhead: Int64 = 64

    /// Bytes that the record counts against a quota, also when it is deleted.
    package var size: Int64 {
        Self.overhead + Int64(name.utf8.count + type.utf8.count + (parent?.utf8.count ?? 0) + fields.count)
    }
}
