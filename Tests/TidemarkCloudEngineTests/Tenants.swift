import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// An embedded cloud with several accounts in one container, for tests of what one account may cost the others.
struct Tenants {
    static let container = "iCloud.org.example.journal"
    static let zone = CloudZoneID("Journal")
    let scratch: Scratch
    let cloud: EmbeddedCloud

    init(queries: QueryLimits = QueryLimits(), removesByItself: Bool = true) throws {
        try self.init(try Scratch(), queries: queries, removesByItself: removesByItself)
    }

    /// Opens a directory, again or for the first time.
    init(_ scratch: Scratch, queries: QueryLimits = QueryLimits(), removesByItself: Bool = true) throws {
        self.scratch = scratch
        cloud = try EmbeddedCloud(
            at: scratch["cloud"], queries: queries, removesByItself: removesByItself,
            now: { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) })
    }

    var file: URL { scratch["cloud/containers/\(Self.container)/development/records.sqlite"] }

    func inner() throws -> CloudContainer { try cloud.container(Self.container, .development) }

    /// Finishes all removals; returns the number of steps.
    func finishRemovals() async throws -> Int {
        let container = try inner()
        var steps = 0
        while try await container.engine.removeNext(container.assetStorage) { steps += 1 }
        return steps
    }

    func database(
        _ name: String, _ scope: DatabaseScope = .private, quota: Int64 = .max
    ) async throws -> EmbeddedDatabase {
        let account = try await cloud.addAccount("\(name)@example.org", quota: quota)
        return try cloud.database(scope, of: Self.container, account: account.id)
    }

    /// A private database with the zone ``zone``.
    func journal(_ name: String, quota: Int64 = .max) async throws -> EmbeddedDatabase {
        let database = try await database(name, quota: quota)
        try await database.modifyZones(saving: [Self.zone], deleting: [])
        return database
    }

    func record(
        _ name: String, _ fields: [String: CloudValue] = [:], in zone: CloudZoneID = Tenants.zone, type: String = "Note"
    ) -> CloudRecord { CloudRecord(CloudRecordID(name, in: zone), type: type, fields: fields) }

    /// Saves records in as few requests as possible.
    func save(_ records: [CloudRecord], to database: EmbeddedDatabase, zone: CloudZoneID = Tenants.zone) async throws {
        for begin in stride(from: 0, to: records.count, by: 400) {
            let outcomes = try await database.modify(
                ModifyRecordsRequest(
                    zone: zone,
                    operations: records[begin..<min(begin + 400, records.count)].map { RecordOperation(.forceReplace, $0) }))
            for outcome in outcomes {
                if case .failed(let error) = outcome { throw error }
            }
        }
    }

    func outcome(
        _ operation: RecordOperation, _ database: EmbeddedDatabase, zone: CloudZoneID = Tenants.zone
    ) async throws -> RecordOutcome {
        try await database.modify(ModifyRecordsRequest(zone: zone, operations: [operation]))[0]
    }

    /// All changes of a zone since a token.
    func changes(
        _ database: EmbeddedDatabase, since token: CloudToken? = nil
    ) async throws -> (saved: [CloudRecord], deleted: [String], token: CloudToken) {
        var (saved, deleted, token): ([CloudRecord], [String], CloudToken?) = ([], [], token)
        while true {
            let page = try await database.zoneChanges(Self.zone, since: token, limit: nil, desiredKeys: nil)
            for change in page.changes {
                switch change {
                case .saved(let record): saved.append(record)
                case .deleted(let deletion): deleted.append(deletion.id.recordName)
                }
            }
            token = page.token
            if !page.moreComing { return (saved, deleted, page.token) }
        }
    }
}
