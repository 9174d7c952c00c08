package import TidemarkCloud
import TidemarkModel

/// Changes shares by way of their records. Each call is one transaction, and does everything or nothing.
extension CloudEngine {
    /// Makes a share with its participants and its short GUID.
    ///
    /// - Parameters:
    ///   - name: The name of the share's record; `nil` for a new name. The share of a whole zone has a fixed name.
    ///   - root: The record to share; `nil` for the whole zone.
    ///   - tag: The change tag that the root must still have; `nil` for any.
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

    /// Changes a share to a desired state.
    ///
    /// - Parameter tag: The change tag that the share must still have; `nil` for any.
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

    /// Checks the length of a desired share. Other requests to the owner can't write while it is compared with the stored share.
    private func check(_ desired: DesiredShare, known: Int) throws(CloudError) {
        // A client that writes a share back names all participants that it was told of, removed ones among them.
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

    /// Checks that the root exists, and that it still has the tag that the client knows.
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
