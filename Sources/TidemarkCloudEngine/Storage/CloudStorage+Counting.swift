public import TidemarkCloud

/// Counts the rows of a container, for those who administer a cloud.
public protocol CountingTransaction {
    /// Returns the number of a zone's records, by the names of their types. Tombstones are left out. O(records of the zone).
    func recordCounts(in zone: StoredZone.ID) throws(CloudError) -> [String: Int]
    /// Counts the rows of all owners. O(records + assets).
    func totals() throws(CloudError) -> StoredTotals
}

/// What a container has in one environment, of all owners.
public struct StoredTotals: Hashable, Sendable {
    /// Records, without tombstones.
    public let records: Int
    /// Assets, and the bytes of their contents. An asset of two owners counts twice.
    public let assets: Int, assetBytes: Int64
    /// Owners that have zones: accounts, and the public database.
    public let owners: Int

    /// Makes totals from their members.
    public init(records: Int, assets: Int, assetBytes: Int64, owners: Int) {
        (self.records, self.assets, self.assetBytes, self.owners) = (records, assets, assetBytes, owners)
    }
}
