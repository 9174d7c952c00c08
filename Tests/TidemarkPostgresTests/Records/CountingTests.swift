import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: both storages count alike. Method: the same saves and deletions in each, and the numbers of each.
@Suite(
    "Counts for administrators", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"),
    .timeLimit(.minutes(30)))
struct CountingTests {
    @Test("A zone's records are counted by type, and a container's in all, without what was deleted")
    func counts() async throws {
        let (postgres, name) = try await SharedRecords.shared.next()
        let scratch = try Scratch()
        let rows = try await postgres.storage(of: name)
        for storage in [rows, nil] as [(any CloudStorage)?] {
            var make: EmbeddedCloud.StorageOfContainer?
            if let storage { make = { _, _ in storage } }
            let cloud = try EmbeddedCloud(
                at: scratch[storage == nil ? "files" : "database"], now: Timestamp.now, storage: make)
            let anna = try await cloud.addAccount("anna@example.org")
            let database = try cloud.database(.private, of: name, account: anna.id)
            let zone = CloudZoneID("Trips")
            try await database.modifyZones(saving: [zone], deleting: [])
            func save(_ names: [String], _ type: String) async throws {
                let operations = names.map {
                    RecordOperation.save(CloudRecord(CloudRecordID($0, in: zone), type: type, fields: ["n": .int64(1)]))
                }
                for case .failed(let error) in try await database.modify(ModifyRecordsRequest(zone: zone, operations: operations))
                { throw error }
            }
            try await save(["a", "b", "c"], "City")
            try await save(["d"], "Day")
            _ = try await database.modify(
                ModifyRecordsRequest(zone: zone, operations: [.delete(CloudRecordID("b", in: zone))]))
            let administered = try await cloud.administeredDatabase(.private, of: name, environment: .development, account: anna)
            #expect(try await administered.recordCounts(in: zone) == ["City": 2, "Day": 1])
            #expect(try await administered.recordCounts(in: .default) == [:])
            #expect(try await administered.hasRecords(in: zone))
            #expect(try await !administered.hasRecords(in: .default))
            // The tombstones of deleted records are not counted.
            let emptied = CloudZoneID("Emptied")
            try await database.modifyZones(saving: [emptied], deleting: [])
            #expect(try await !administered.hasRecords(in: emptied))
            let last = CloudRecord(CloudRecordID("z", in: emptied), type: "City", fields: [:])
            for operation in [RecordOperation.save(last), .delete(last.id)] {
                _ = try await database.modify(ModifyRecordsRequest(zone: emptied, operations: [operation]))
            }
            #expect(try await !administered.hasRecords(in: emptied))
            let totals = try await cloud.totals(of: name, environment: .development)
            #expect(totals == StoredTotals(records: 3, assets: 0, assetBytes: 0, owners: 1))
            // Records of the public database belong to no account.
            let shared = try cloud.database(.public, of: name, account: anna.id)
            let city = CloudRecord(CloudRecordID("e", in: .default), type: "City", fields: ["m": .int64(1)])
            for case .failed(let error) in try await shared.modify(
                ModifyRecordsRequest(zone: .default, operations: [.save(city)]))
            { throw error }
            let spread = try await cloud.recordSpread(of: "City", having: nil, in: name)
            #expect(spread == RecordSpread(["": 1, "anna": 2], publicOwner: ""))
            #expect(try await cloud.recordSpread(of: "City", having: "n", in: name) == RecordSpread(["anna": 2], publicOwner: ""))
            #expect(try await cloud.recordSpread(of: "City", having: "m", in: name) == RecordSpread(["": 1], publicOwner: ""))
            #expect(try await cloud.recordSpread(of: "Lake", having: nil, in: name).records == 0)
        }
    }
}
