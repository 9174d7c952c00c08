import Foundation
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Rows that requests to a hostile database write and read, past the rules of the engine.
enum HostileRows {
    static func record(_ name: String, in zone: StoredZone.ID, at change: Int64, bytes: Int = 100) -> StoredCloudRecord {
        let stamp = CloudRecord.Stamp(time: 1, userRecordName: "_anna")
        // Random, so that the server can't make it smaller.
        var fields = Data()
        while fields.count < bytes {
            withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { fields.append(contentsOf: $0.prefix(bytes - fields.count)) }
        }
        return StoredCloudRecord(
            zone: zone, name: name, type: "Note", fields: fields, parent: nil, changed: change, created: stamp, modified: stamp,
            isDeleted: false, dependsOn: ["target"], assets: [], indexed: [1: [.text(name)]])
    }

    static func makeZone(_ storage: PostgresCloudStorage) async throws -> StoredZone.ID {
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save(StoredZone(place: .init(scope: .private, owner: "_anna", name: "Zone"), made: 0, changed: 0)).id
        }
    }

    /// Saves records as a request does, and counts their bytes. A request that is sent again does nothing.
    ///
    /// - Parameters:
    ///   - prefix: What the names of the records begin with, and the token of the request.
    ///   - between: Is called in the transaction, when the records were sent.
    static func save(
        _ count: Int, _ prefix: String, on storage: PostgresCloudStorage, in zone: StoredZone.ID, bytes: Int = 100,
        _ between: @escaping @Sendable () -> Void = {}
    ) async throws {
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            if try rows.answer(to: prefix, of: "_anna") != nil { return }
            let names = (0..<count).map { "\(prefix) \($0)" }
            _ = try rows.records(names, in: zone)
            let last = try rows.lastChange(of: "_anna")
            try rows.save(names.enumerated().map { Self.record($1, in: zone, at: last + Int64($0) + 1, bytes: bytes) })
            // This sends the statements that wait.
            _ = try rows.zone(zone)
            between()
            try rows.setLastChange(last + Int64(count), of: "_anna")
            try rows.addUsed(Int64(count), by: "_anna")
            try rows.keep(Data([1]), to: prefix, of: "_anna", at: 1)
        }
    }

    /// Checks that all tables say the same, and returns how many records there are.
    static func count(_ storage: PostgresCloudStorage, _ zone: StoredZone.ID) async throws -> Int {
        let (records, last, used, dependents) = try await storage.read { rows throws(CloudError) in
            (
                try rows.records(in: zone, after: 0, limit: 100_000), try rows.lastChange(of: "_anna"),
                try rows.used(by: "_anna"), try rows.dependents(of: ["target"], in: zone, before: .max, limit: 100_000)
            )
        }
        #expect(records.allSatisfy { $0.damage == nil })
        #expect(records.map(\.changed) == (0..<records.count).map { Int64($0) + 1 })
        #expect(last == Int64(records.count))
        #expect(used == Int64(records.count))
        #expect(dependents.count == records.count)
        return records.count
    }

    /// Returns the `CloudError` that a body throws; `nil` for none, and for any other error.
    static func failure(_ body: () async throws -> Void) async -> CloudError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? CloudError
        }
    }
}
