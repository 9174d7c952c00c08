import Foundation
package import TidemarkCloud

extension CloudEngine {
    /// Returns the number of a zone's records, by the names of their types; none where nothing was saved in the zone.
    ///
    /// - Throws: `CloudError` `zoneNotFound`.
    package func recordCounts(in id: CloudZoneID, _ caller: Caller) async throws(CloudError) -> [String: Int] {
        try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows) else { return [:] }
            return try rows.recordCounts(in: access.zone.id)
        }
    }

    /// Returns whether a zone has records; it has none where nothing was saved in it.
    ///
    /// - Throws: `CloudError` `zoneNotFound`.
    package func hasRecords(in id: CloudZoneID, _ caller: Caller) async throws(CloudError) -> Bool {
        try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows) else { return false }
            return try rows.hasRecords(in: access.zone.id)
        }
    }

    /// Counts the records of a type, or those of them that have a field, in all zones of all owners. O(records of the type).
    package func recordSpread(of type: String, having field: String?) async throws(CloudError) -> RecordSpread {
        // Beside the writers: all records are looked at.
        try await storage.read { rows throws(CloudError) in
            try rows.recordSpread(of: type) { data throws(CloudError) in
                guard let field else { return true }
                return try FieldCoding.decode(data, only: [field])[field] != nil
            }
        }
    }
}
