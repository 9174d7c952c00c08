public import Foundation
public import TidemarkCloud
import TidemarkModel

/// A record, as a storage keeps it. A tombstone has no fields and no parent.
public struct StoredCloudRecord: Hashable, Sendable {
    /// The record's zone.
    public let zone: StoredZone.ID
    /// The record's name, unique in its zone: 1 to 255 bytes, in the normal form C of Unicode.
    public let name: String
    /// The record type's name. A tombstone keeps it.
    public var type: String
    /// The fields, encoded; opaque to a storage.
    public var fields: Data
    /// The name of the record's parent, as `CKRecord.parent`.
    public var parent: String?
    /// The record's last change. The engine makes the change tag from it.
    public var changed: Int64
    /// The time and the account of the record's creation.
    public var created: CloudRecord.Stamp
    /// The time and the account of the record's last change.
    public var modified: CloudRecord.Stamp
    /// Whether the record is a tombstone.
    public var isDeleted: Bool
    /// The names of the records to which it has a `deleteSelf` reference. Empty in a record that was read.
    public var dependsOn: Set<String>
    /// The digests of its assets. Empty in a record that was read.
    public var assets: Set<String>
    /// By the number of an index of the schema, the values under which it is found. The negative number of a sortable index has the
    /// record's name where the record has no value for the index. Empty in a record that was read.
    public var indexed: [Int64: [IndexValue]]
    /// Whether the row is not what was written; `nil` for a whole record.
    public var damage: Damage?

    /// Which row is damaged, and what is known of it.
    public struct Damage: Hashable, Sendable {
        /// The row's number.
        public let row: Int64
        /// The change that made the record, as far as its row tells.
        public let change: Int64
        /// Whether ``DamageTransaction/noteDamage(_:of:at:)`` was called for it.
        public let isNoted: Bool

        package init(
            row: Int64, change: Int64, isNoted: Bool
        ) {
            self.row = row
            self.change = change
            self.isNoted = isNoted
        }
    }

    /// Makes a record from its members.
    public init(
        zone: StoredZone.ID, name: String, type: String, fields: Data, parent: String?, changed: Int64,
        created: CloudRecord.Stamp,
        modified: CloudRecord.Stamp, isDeleted: Bool, dependsOn: Set<String>, assets: Set<String>,
        indexed: [Int64: [IndexValue]], damage: Damage? = nil
    ) {
        (self.zone, self.name, self.type, self.fields, self.parent) = (zone, name, type, fields, parent)
        (self.changed, self.created, self.modified, self.isDeleted) = (changed, created, modified, isDeleted)
        (self.dependsOn, self.assets, self.indexed, self.damage) = (dependsOn, assets, indexed, damage)
    }
}

extension StoredCloudRecord {
    /// Bytes of a record's row and of its places in the indexes by name and by change, about.
    package static let overhead: Int64 = 64

    /// Bytes that the record counts against a quota, also when it is deleted.
    package var size: Int64 {
        Self.overhead + Int64(name.utf8.count + type.utf8.count + (parent?.utf8.count ?? 0) + fields.count)
    }

    /// Leaves a tombstone.
    mutating func clear() {
        isDeleted = true
        damage = nil
        fields = Data()
        parent = nil
        (dependsOn, assets, indexed) = ([], [], [:])
    }

    /// Sets what the record depends on, the assets that it names and the values that it is found under, from its fields.
    mutating func link(to fields: [String: CloudValue], _ schema: CloudSchema) {
        (dependsOn, assets) = ([], [])
        for (_, value) in fields where value.type.scalar == .asset || value.type.scalar == .reference {
            for scalar in value.scalars {
                switch scalar {
                case .asset(let asset): assets.insert(asset.digest)
                case .reference(let reference):
                    if reference.action == .deleteSelf { dependsOn.insert(reference.recordName) }
                case .string, .int64, .double, .timestamp, .bytes, .location, .list: break
                }
            }
        }
        indexed = schema.indexed(fields, type: type, name: name)
    }
}

/// A record that has a parent.
public struct StoredChild: Hashable, Sendable {
    /// The record's name.
    public let name: String
    /// The record type's name.
    public let type: String
    /// As ``StoredCloudRecord/changed``.
    public let changed: Int64

    package init(
        name: String, type: String, changed: Int64
    ) {
        self.name = name
        self.type = type
        self.changed = changed
    }
}
