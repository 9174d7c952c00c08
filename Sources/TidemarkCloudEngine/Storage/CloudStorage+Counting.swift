public import Foundation
public import TidemarkCloud

/// Counts the rows of a container, for those who administer a cloud.
public protocol CountingTransaction {
    /// Returns the number of a zone's records, by the names of their types. Tombstones are left out. O(records of the zone).
    func recordCounts(in zone: StoredZone.ID) throws(CloudError) -> [String: Int]
    /// Returns whether a zone has records. Tombstones are left out. It does not count them.
    func hasRecords(in zone: StoredZone.ID) throws(CloudError) -> Bool
    /// Counts the records of a type whose fields pass a test, in all zones, and the owners that have them. Tombstones are left out.
    /// O(records of the type).
    ///
    /// - Throws: What the test throws.
    func recordSpread(
        of type: String, where isCounted: (Data) throws(CloudError) -> Bool
    ) throws(CloudError) -> RecordSpread
    /// Counts the rows of all owners. O(records + assets).
    func totals() throws(CloudError) -> StoredTotals
}

/// The number of records that meet a condition, and the number of their owners.
public struct RecordSpread: Hashable, Sendable {
    /// All records that meet the condition.
    public let records: Int
    /// The records among them that are in the public database.
    public let publicRecords: Int
    /// The number of accounts that own the other records.
    public let accounts: Int

    /// Makes a spread from the numbers of records, by owners.
    ///
    /// - Parameter publicOwner: The owner of the public database.
    public init<Owner: Hashable>(_ counts: [Owner: Int], publicOwner: Owner) {
        records = counts.values.reduce(0, +)
        publicRecords = counts[publicOwner] ?? 0
        accounts = counts.count - (counts[publicOwner] == nil ? 0 : 1)
    }
}

/// The totals of a container in one environment, over all owners.
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
