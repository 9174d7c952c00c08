package import TidemarkCloud
import TidemarkModel

/// Shares as their records are written: each of these is done whole or not at all, in one transaction.
extension CloudEngine {
    /// Makes a share with its participants and the link that stays the same.
    ///
    /// - Parameters:
    ///   - name: The name of the share's record; `nil` for a new one. The share of a whole zone has its own.
    ///   - root: The record that it is for; `nil` for the whole zone.
    ///   - tag: What the root's change tag has to be; `nil` for any.
    /// - Returns: The share's record.
    package func createShare(
        _ desired: DesiredShare, named name: String?, of root: String?, ifTag tag: String?, in id: CloudZoneID, _ caller: Caller
    ) async throws(CloudError) -> CloudRecord {
        try demandSharing(caller)
        try check(desired, known: 1)
        return try await storage.write(owners: [try place(id, caller).owner]) { rows throws(CloudError) in
            if let root { try checkRoot(root, tag, in: id, caller, rows) }
            let made = try create(
                in: id, named: name, coverage: root.map { .hierarchy(root: $0) } ?? .zone, title: desired.title,
                publicPermission: desired.publicPermission ?? .none, caller, rows)
            let shareID = CloudRecordID(made.name, in: id)
            let (access, stored) = try found(shareID, caller, rows)
            let changes = try desired.changes(of: try share(stored, caller, rows))
            try makeShortGUID(of: try change(stored, changes, access, rows), access, rows)
            return try shareRecord(shareID, caller, rows)
        }
    }

    /// Makes a share what it is wished to be.
    ///
    /// - Parameter tag: What its change tag has to be; `nil` for any.
    /// - Returns: The share's record.
    package func changeShare(
        _ id: CloudRecordID, to desired: DesiredShare, ifTag tag: String?, _ caller: Caller
    ) async throws(CloudError) -> CloudRecord {
        try demandSharing(caller)
        return try await storage.write(owners: [try place(id.zone, caller).owner]) { rows throws(CloudError) in
            let (access, stored) = try found(id, caller, rows)
            try checkTag(tag, of: stored, access, rows)
            let there = try share(stored, caller, rows)
            try check(desired, known: there.participants.count)
            let changes = try desired.changes(of: there)
            _ = try change(stored, changes, access, rows)
            return try shareRecord(id, caller, rows)
        }
    }

    /// That a desired share is not too long. Nobody else can write while it is compared with what there is.
    private func check(_ desired: DesiredShare, known: Int) throws(CloudError) {
        // Whoever writes a share back names all that are told of, also who is out.
        let most = max(limits.operationsPerRequest, known + limits.participantsPerShare)
        guard let count = desired.participants?.count, count > most else { return }
        throw CloudError(.limitExceeded, "a request names \(most) participants of this share at the most, not \(count)")
    }

    /// - Throws: `CloudError` `serverRecordChanged`, with the share's record, when its tag is another one.
    func checkTag(
        _ tag: String?, of stored: StoredShare, _ access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) {
        guard let tag else { return }
        let shareID = CloudRecordID(stored.name, in: id(of: access.zone, access.caller))
        let record = try shareRecord(shareID, access.caller, rows)
        guard record.changeTag != tag else { return }
        throw CloudError(.serverRecordChanged, "client oplock error updating record", serverRecord: record)
    }

    /// That there is a record to share, and that it is what it was when somebody decided so.
    private func checkRoot(
        _ root: String, _ tag: String?, in id: CloudZoneID, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) {
        guard case .success(let record)? = try looked([root], in: id, keys: [], caller, rows).first else {
            throw CloudError(.unknownItem, "Cannot share - no such record exists to share")
        }
        guard tag == nil || tag == record.changeTag else {
            throw CloudError(
                .serverRecordChanged, "client oplock error updating record: forRecord has changed", serverRecord: record)
        }
    }

    private func shareRecord(
        _ id: CloudRecordID, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> CloudRecord {
        guard let found = try looked([id.recordName], in: id.zone, keys: nil, caller, rows).first else { throw Self.noRecord }
        return try found.get()
    }
}
