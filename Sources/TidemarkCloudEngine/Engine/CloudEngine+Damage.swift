public import TidemarkCloud
import TidemarkModel

/// The part of a transaction that finds and marks damaged rows. The rules of ``CloudTransaction`` hold.
///
/// A storage keeps a digest with each record, zone, share and participant, and compares it when it reads the row.
public protocol DamageTransaction {
    /// Marks a damaged record as noted, and gives it a new change, so that devices hear of it. A record that is already marked
    /// stays as it is.
    ///
    /// - Parameter change: The number of that change.
    func noteDamage(_ damage: StoredCloudRecord.Damage, of owner: String, at change: Int64) throws(CloudError)
    /// Returns all damaged records of all owners, for verification. O(records).
    func damagedRecords() throws(CloudError) -> [StoredCloudRecord]
    /// Gives the entry of a damaged record in a share's hierarchy, and the share, another change, so that participants hear of it. Does
    /// nothing where no share covers the record.
    func noteDamage(ofCovered name: String, in zone: StoredZone.ID, at change: Int64) throws(CloudError)
    /// Returns the names of a zone's damaged shares, as far as they can be read.
    func damagedShares(in zone: StoredZone.ID) throws(CloudError) -> [String]
}

/// A damaged row is an error of its record alone; other records stay usable. All devices hear of it, so that a device with an
/// intact copy sends the record again.
extension CloudEngine {
    package static func damaged(_ name: String) -> CloudError {
        CloudError(
            .recordDamaged,
            "what the cloud has of the record '\(name.prefix(255))' is damaged. A device that has it whole sends it again; where none has, "
                + "restore the cloud from a backup, or delete the record")
    }

    package static func damagedShare(_ name: String) -> CloudError {
        CloudError(
            .recordDamaged,
            "what the cloud has of the share '\(name.prefix(255))' is damaged; restore the cloud from a backup")
    }

    package static func damagedZone(_ name: String) -> CloudError {
        CloudError(
            .recordDamaged,
            "what the cloud has of the zone '\(name.prefix(255))' is damaged; restore the cloud from a backup")
    }

    package static let damagedParticipant = CloudError(
        .recordDamaged, "what the cloud has of a participant of a share is damaged; restore the cloud from a backup")

    /// Returns an error for each damaged share of a zone of the caller's own.
    package func damagedShares(in id: CloudZoneID, _ caller: Caller) async throws(CloudError) -> [CloudError] {
        try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows), caller.scope == .private else { return [] }
            return try rows.damagedShares(in: access.zone.id).map(Self.damagedShare)
        }
    }

    func failure(_ stored: StoredCloudRecord, _ error: CloudError, in zone: CloudZoneID) -> RecordFailure {
        RecordFailure(
            id: CloudRecordID(stored.name, in: zone),
            changeTag: tag(stored.damage?.change ?? stored.changed, of: stored.zone.owner),
            error: error)
    }

    /// Reports newly found damage to devices. A row that can't be written, because an index is damaged with it, stays as it is.
    ///
    /// - Returns: Whether anything was written.
    @discardableResult
    package func noteDamage(of records: [StoredCloudRecord]) async -> Bool {
        let fresh = records.filter { $0.damage?.isNoted == false }
        var isAny = false
        for record in fresh {
            do throws(CloudError) {
                try await storage.write(owners: [record.zone.owner]) { rows throws(CloudError) in
                    guard var zone = try rows.zone(record.zone), let damage = record.damage else { return }
                    let change = try nextChange(of: record.zone.owner, rows)
                    try rows.noteDamage(damage, of: record.zone.owner, at: change)
                    if zone.sharing == .hierarchies {
                        try rows.noteDamage(ofCovered: record.name, in: zone.id, at: change)
                    }
                    zone.changed = change
                    try saveChanged(zone, rows)
                }
                isAny = true
            } catch {
                continue
            }
        }
        return isAny
    }
}
