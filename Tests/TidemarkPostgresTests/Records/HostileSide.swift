import Foundation
import TestServers
import TestSupport
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres
import TidemarkTesting

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// A server over a database: a cloud with an account, credentials, and notifications. It has a second way to the same rows, which
/// nothing disturbs.
struct HostileSide: Sendable {
    static let container = "iCloud.org.example.journal"
    static let password = "correct horse"

    let cloud: EmbeddedCloud
    let account: StoredAccount
    let credentials: CredentialStore
    let notifications: PostgresNotificationStorage
    /// A session of another account.
    let session: SessionToken
    /// The second way to the database.
    let direct: PostgresDatabase
    let directCredentials: CredentialStore
    let directNotifications: PostgresNotificationStorage
    private let database: PostgresDatabase
    private let listener: PostgresListener
    private let scratch: Scratch

    /// - Parameters:
    ///   - port: The port of a proxy before the database; `nil` for none.
    ///   - change: Changes how the server uses the database.
    init(
        _ records: RecordsFixture, port: Int? = nil, _ change: (inout PostgresConfiguration) -> Void = { _ in }
    ) async throws {
        let scratch = try Scratch()
        let direct = records.fixture.database
        let database = try records.fixture.other(port: port, change)
        // The listener goes past the proxy, since it is no part of a request.
        let listener = try PostgresListener(direct.configuration, pace: .seconds(1))
        let backend = try await PostgresCloudBackend(database, listener: listener) { container, environment in
            EmbeddedCloud.sharedAssets(
                in: scratch["assets"].appendingPathComponent("\(container)/\(environment.rawValue)", isDirectory: true))
        }
        // The same time for all, so that two clouds store the same.
        let cloud = EmbeddedCloud(in: backend, folder: scratch.url, removesByItself: false, now: { 1_700_000_000_000_000 })
        let account = try await cloud.addAccount("anna@example.org")
        try await cloud.open(Self.container, environment: .development)
        _ = try await PostgresSubscriptionStorage.open(direct)
        let directCredentials = try CredentialStore(try await PostgresCredentialStorage.open(direct), passwordLogN: 4)
        try await directCredentials.addContainer(Self.container)
        try await directCredentials.setPassword(Self.password, of: account.id)
        session = try await directCredentials.makeSession(
            account: "ben", container: Self.container, environment: .development, kind: .device)
        credentials = try CredentialStore(try await PostgresCredentialStorage.open(database), passwordLogN: 4)
        notifications = PostgresNotificationStorage(database, listener: listener)
        directNotifications = PostgresNotificationStorage(direct, listener: listener)
        (self.scratch, self.direct, self.database, self.listener) = (scratch, direct, database, listener)
        (self.cloud, self.account, self.directCredentials) = (cloud, account, directCredentials)
    }

    /// The account's private database.
    var own: EmbeddedDatabase {
        get throws { try cloud.database(.private, of: Self.container, account: account.id) }
    }

    func close() async {
        await listener.close()
        await database.close()
        await direct.close()
    }

    // Records

    static func record(_ name: String, _ number: Int, in zone: CloudZoneID, type: String = "Note") -> CloudRecord {
        var record = CloudRecord(CloudRecordID(name, in: zone), type: type)
        record.fields["n"] = .int64(Int64(number))
        return record
    }

    /// Saves new records in one request.
    ///
    /// - Parameter token: The client token of the request.
    func save(
        _ names: [String], in zone: CloudZoneID, type: String = "Note", token: String? = nil
    ) async throws -> [RecordOutcome] {
        let operations = names.enumerated().map { number, name in
            RecordOperation(.create, Self.record(name, number, in: zone, type: type))
        }
        return try await own.modify(ModifyRecordsRequest(zone: zone, operations: operations, clientToken: token))
    }

    /// Makes a zone with records.
    func fill(_ zone: CloudZoneID, _ names: [String]) async throws {
        try await own.modifyZones(saving: [zone], deleting: [])
        if !names.isEmpty { _ = try await save(names, in: zone) }
    }

    // Words

    /// Describes a record in words that are the same in each cloud.
    func words(_ record: CloudRecord) throws -> String {
        let change = try record.changeTag.flatMap { try own.change(of: $0) } ?? -1
        guard record.type != CloudShare.recordType else { return "a share #\(change)" }
        let fields = record.fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return "\(record.id.recordName) \(record.type) #\(change) \(fields)"
    }

    func words(_ outcome: RecordOutcome) throws -> String {
        switch outcome {
        case .saved(let record): try words(record)
        case .deleted(let id): "deleted \(id.recordName)"
        case .failed(let error): "failed \(error.code.rawValue)"
        }
    }

    func words(_ changes: [ZoneChanges.Change]) throws -> [String] {
        try changes.map { change in
            switch change {
            case .saved(let record): try words(record)
            case .deleted(let deletion): "deleted \(deletion.id.recordName)"
            }
        }
    }

    /// Describes all that the account has: what its devices see, and what is counted.
    func state() async throws -> [String] {
        let database = try own
        var lines: [String] = []
        for zone in try await database.zones().sorted(by: { $0.zoneName < $1.zoneName }) where !zone.isDefault {
            lines.append("zone \(zone.zoneName)")
            var (token, moreComing): (CloudToken?, Bool) = (nil, true)
            while moreComing {
                let page = try await database.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
                lines += try words(page.changes)
                (token, moreComing) = (page.token, page.moreComing)
            }
            lines += try await database.shares(in: zone).map { "\($0.coverage) \($0.title ?? "")" }.sorted()
            lines += try await database.shareAudit(in: zone, after: nil).map { "\($0.kind) \($0.value ?? "")" }.sorted()
        }
        let container = try await cloud.openedContainer(Self.container, .development)
        let (used, found, reserved) = try await container.engine.storage.read { rows throws(CloudError) in
            (try rows.allUsed(), try rows.countUsed(), try rows.reservations(of: nil).count)
        }
        // Nobody else has stored anything.
        return lines + ["used \(used.values.sorted())", "found \(found.values.sorted())", "reserved \(reserved)"]
    }
}
