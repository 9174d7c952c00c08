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
}
