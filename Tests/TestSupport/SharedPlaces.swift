import Foundation
import GRDB
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Writes zones and shares into a store, and assigns records to zones, in SQL, as a synchronisation would.
public struct SharedPlaces {
    private let database: DatabaseQueue

    public init(_ container: URL, _ scope: StoreScope) throws {
        let path = try ContainerDirectory(openingAt: container).store(scope).path
        var configuration = Configuration()
        configuration.busyMode = .timeout(30)
        database = try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Runs SQL in one transaction.
    public func change(_ body: (Database) throws -> Void) throws { try database.write(body) }

    /// Runs one SQL text in a transaction of its own, as another program would.
    public func run(_ sql: String) throws { try change { try $0.execute(sql: sql) } }

    /// Makes a zone, and puts records of a type into it.
    public func zone(_ id: Int64, _ name: ZoneName, type: String = "Destination", records: [String] = []) throws {
        try database.write { db in
            try db.execute(
                sql: "INSERT INTO tide_zones (id, owner, name) VALUES (?, ?, ?)", arguments: [id, name.owner ?? "", name.name])
            for record in records {
                try db.execute(
                    sql: "UPDATE \"\(type)\" SET _zone = ? WHERE _id = (SELECT _id FROM \"_\(type)\" WHERE _name = ?)",
                    arguments: [id, record])
            }
        }
    }

    /// Writes a share of a zone, or its new state.
    public func note(_ share: Share, of zone: Int64) throws {
        try database.write { db in try Self.note(db, share, of: zone) }
    }

    public static func note(_ db: Database, _ share: Share, of zone: Int64) throws {
        let encoder = JSONEncoder()
        let user = share.currentUser
        let participant = try user.map { String(decoding: try encoder.encode($0), as: UTF8.self) } ?? ""
        try db.execute(
            sql: """
                INSERT OR REPLACE INTO tide_shares
                    (zone, name, root, title, public_permission, tag, role, permission, acceptance, participant, participants)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                zone, share.name, share.root, share.title, share.publicPermission.rawValue, share.changeTag,
                user?.role.rawValue ?? 0,
                user?.permission.rawValue ?? 0, user?.acceptanceStatus.rawValue ?? 0, participant,
                String(decoding: try encoder.encode(share.participants), as: UTF8.self),
            ])
    }
}

extension Scratch {
    /// Writes a share of another user into the shared store: the container's user has accepted it and may write.
    ///
    /// - Parameter zone: The number of the share's zone; the store must not have a zone of that number.
    public func acceptedShare(zone: Int64 = 2) throws -> Share {
        let name = ZoneName("Trip-\(zone)", owner: "_anna")
        let (anna, ben) = (ShareParticipant.named("anna", .owner), ShareParticipant.named("ben", .privateUser))
        let share = Share(
            scope: .shared, zone: name, name: "cloudkit.zoneshare", title: "Trip \(zone)", participants: [anna, ben],
            currentUser: ben,
            changeTag: "1")
        let places = try SharedPlaces(container, .shared)
        try places.zone(zone, name)
        try places.note(share, of: zone)
        return share
    }

    /// Makes the container of the scratch folder, with records in its shared store that other people have made. They are not in a
    /// zone yet.
    public func receive(_ records: [Destination]) async throws {
        let theirs = try ContainerDirectory(openingOrCreatingAt: self["Theirs.tidemark"])
        try await PersistentContainer(directory: theirs).save(records)
        let own = try ContainerDirectory(openingOrCreatingAt: container)
        try await DatabaseQueue(path: theirs.store(.private).path).vacuum(into: own.store(.shared).path)
    }
}

extension ShareParticipant {
    /// A participant with a name; the rest has usual values.
    public static func named(
        _ name: String, _ role: Role, _ permission: Permission = .readWrite, _ acceptance: AcceptanceStatus = .accepted
    ) -> ShareParticipant {
        ShareParticipant(
            id: name, identity: UserIdentity(userRecordName: "_\(name)", name: PersonName(givenName: name)), role: role,
            permission: permission, acceptanceStatus: acceptance)
    }
}
