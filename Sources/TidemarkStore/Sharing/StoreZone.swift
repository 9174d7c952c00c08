import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// A zone of a store: records that are synchronised, shared and deleted as one.
public struct StoreZone: Hashable, Sendable {
    /// Identifies the zone in this store only. No other zone ever gets the number.
    public let id: Int64
    /// The zone's owner and its name, as in `CKRecordZone.ID`.
    public let name: ZoneName

    package init(id: Int64, name: ZoneName) { (self.id, self.name) = (id, name) }
}

extension StoreZone {
    /// - Throws: ``StoreError`` `corrupt` unless the numbers of the zones rise.
    static func fetchAll(_ db: Database) throws -> [StoreZone] {
        let zones = try Row.fetchAll(db.cachedStatement(sql: "SELECT id, owner, name FROM tide_zones ORDER BY id"))
            .map { try StoreZone($0) }
        // A damaged table may have a row twice.
        guard zip(zones, zones.dropFirst()).allSatisfy({ $0.id < $1.id }) else {
            throw StoreError(.corrupt, "the table tide_zones has two zones of one number")
        }
        return zones
    }

    static func fetch(_ db: Database, id: Int64) throws -> StoreZone? {
        let sql = "SELECT id, owner, name FROM tide_zones WHERE id = ?"
        return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [id]).map { try StoreZone($0) }
    }

    /// Returns whether a zone exists. A late change for a removed zone is ignored.
    static func isThere(_ db: Database, id: Int64) throws -> Bool {
        if id == StoreFormat.defaultZone { return true }
        return try Bool.fetchOne(db.cachedStatement(sql: "SELECT 1 FROM tide_zones WHERE id = ?"), arguments: [id]) ?? false
    }

    /// Returns whether there is any zone besides the default one. Most stores never have one.
    static func areSeveral(_ db: Database) throws -> Bool {
        try Bool.fetchOne(db.cachedStatement(sql: "SELECT max(id) > \(StoreFormat.defaultZone) FROM tide_zones")) ?? false
    }

    private init(_ row: Row) throws {
        let owner: String = try row.stored("owner", of: "tide_zones")
        self.init(
            id: try row.stored("id", of: "tide_zones"),
            name: ZoneName(try row.stored("name", of: "tide_zones"), owner: owner.isEmpty ? nil : owner))
    }
}

extension StoreReader {
    /// The zones of the store, the default one first.
    public func zones() throws(StoreError) -> [StoreZone] { try read("read the zones") { try StoreZone.fetchAll($0) } }
}

extension RecordStore {
    /// The zones of the store, the default one first.
    public func zones() throws(StoreError) -> [StoreZone] {
        try connection.read("read the zones") { try StoreZone.fetchAll($0) }
    }

    /// Returns the zone of a name, and makes it if it does not exist.
    ///
    /// - Throws: ``StoreError`` `invalid` for another owner's zone in a private store, and for the user's own zone in a shared
    ///   one.
    package func zone(_ name: ZoneName) throws(StoreError) -> StoreZone {
        if let known = try zones().first(where: { $0.name == name }) { return known }
        let isOwn = name.owner?.isEmpty != false
        guard isOwn == (scope != .shared), !name.name.isEmpty else {
            throw StoreError(
                .invalid,
                isOwn
                    ? "the zone '\(name.name)' belongs to this account, and a shared store has only zones of other owners"
                    : "the zone '\(name.name)' belongs to another owner, and a \(scope.name) store has only zones of its own account"
            )
        }
        return try connection.locked("make the zone \(name.name)") { db in
            try db.execute(
                sql: "INSERT OR IGNORE INTO tide_zones (owner, name) VALUES (?, ?)", arguments: [name.owner ?? "", name.name])
            guard let zone = try StoreZone.fetchAll(db).first(where: { $0.name == name }) else {
                throw StoreError(.core, "the zone '\(name.name)' was not made")
            }
            return (zone, .commit)
        }
    }
}
