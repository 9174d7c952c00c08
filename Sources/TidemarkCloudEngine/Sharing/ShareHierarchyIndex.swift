import TidemarkCloud
import TidemarkModel

/// Knows which share covers each record of a zone, while a request changes the records. A share covers its root and everything
/// below it.
///
/// Each share has its own feed of records that entered it, changed in it and left it. So a participant who sees only this share
/// learns of nothing else.
struct ShareHierarchyIndex {
    private let zone: StoredZone.ID
    /// The share of each record that was asked about, as the request has left it.
    private var shares: [String: StoredShare.ID?] = [:]
    /// The share of each of these records before the request.
    private var sharesBefore: [String: StoredShare.ID?] = [:]
    private var known: [StoredShare.ID: StoredShare] = [:]
    private struct Place: Hashable {
        let share: StoredShare.ID
        let name: String
    }
    private var noted: [Place: CoveredRecord] = [:]

    init(zone: StoredZone.ID) { self.zone = zone }

    /// Reads the shares of many records at once.
    mutating func load(_ names: [String], _ rows: any CloudTransaction) throws(CloudError) {
        let unknown = names.filter { shares[$0] == nil }
        guard !unknown.isEmpty else { return }
        let found = try rows.shares(covering: unknown, in: zone)
        for name in unknown {
            shares.updateValue(found[name], forKey: name)
            sharesBefore.updateValue(found[name], forKey: name)
        }
    }

    /// Returns the share that covers a record.
    mutating func share(of name: String, _ rows: any CloudTransaction) throws(CloudError) -> StoredShare.ID? {
        try load([name], rows)
        return shares[name] ?? nil
    }

    mutating func stored(_ share: StoredShare.ID, _ rows: any CloudTransaction) throws(CloudError) -> StoredShare {
        if let found = known[share] { return found }
        guard let found = try rows.share(share) else {
            throw CloudError(.internalError, "a record is in a share that is not there")
        }
        known[share] = found
        return found
    }

    /// Returns the share whose root a record is.
    mutating func rooted(_ name: String, _ rows: any CloudTransaction) throws(CloudError) -> StoredShare? {
        guard let share = try share(of: name, rows) else { return nil }
        let stored = try stored(share, rows)
        return stored.root == name ? stored : nil
    }

    // Changes

    /// Records that a record was saved. The share of its parent covers it and everything below it.
    ///
    /// - Parameters:
    ///   - before: The record before the save; `nil` for a new one, which has nothing below it.
    ///   - change: The last change. Each other record that enters or leaves a share gets the next number.
    /// - Throws: `alreadyShared` where something would be in two shares.
    mutating func place(
        _ record: StoredCloudRecord, was before: StoredCloudRecord?, change: inout Int64, _ records: inout RecordCache,
        _ rows: any CloudTransaction
    ) throws(CloudError) {
        let old = try share(of: record.name, rows)
        var new: StoredShare.ID?
        if let parent = record.parent { new = try share(of: parent, rows) }
        if let old, try stored(old, rows).root == record.name {
            guard new == nil || new == old else { throw Self.alreadyShared }
            new = old
        }
        guard old != new else {
            if let new { note(record.name, record.type, in: new, record.changed, isGone: false) }
            return
        }
        let below = before == nil ? [] : try records.descendants(of: record.name, rows)
        try load(below.map(\.name), rows)
        if new != nil, below.contains(where: { shares[$0.name] ?? nil != old }) { throw Self.alreadyShared }
        move(record.name, record.type, from: old, to: new, record.changed)
        for child in below where shares[child.name] ?? nil == old {
            change += 1
            move(child.name, child.type, from: old, to: new, change)
        }
    }

    /// Records that a record was deleted.
    mutating func remove(_ record: StoredCloudRecord, _ rows: any CloudTransaction) throws(CloudError) {
        guard let share = try share(of: record.name, rows) else { return }
        move(record.name, record.type, from: share, to: nil, record.changed)
    }

    private mutating func move(
        _ name: String, _ type: String, from old: StoredShare.ID?, to new: StoredShare.ID?, _ change: Int64
    ) {
        if let old { note(name, type, in: old, change, isGone: true) }
        if let new { note(name, type, in: new, change, isGone: false) }
        shares.updateValue(new, forKey: name)
    }

    private mutating func note(_ name: String, _ type: String, in share: StoredShare.ID, _ change: Int64, isGone: Bool) {
        noted[Place(share: share, name: name)] = CoveredRecord(
            share: share, name: name, type: type, change: change, isGone: isGone)
    }

    /// Writes the collected entries. A record that has entered a share and left it within the request has none there: nobody may learn of it.
    mutating func save(_ rows: any CloudTransaction) throws(CloudError) {
        noted = noted.filter { place, record in !record.isGone || sharesBefore[place.name] == place.share }
        guard !noted.isEmpty else { return }
        try rows.save(noted.values.sorted { $0.change < $1.change }, in: zone)
        var last: [StoredShare.ID: Int64] = [:]
        for record in noted.values { last[record.share] = max(last[record.share] ?? 0, record.change) }
        for (share, change) in last.sorted(by: { $0.key.number < $1.key.number }) {
            var stored = try stored(share, rows)
            stored.touched = max(stored.touched, change)
            known[share] = try rows.save(stored)
        }
    }

    static let alreadyShared = CloudError(SharePolicy.decide(.share, on: .init(scope: .private, isShared: true), by: .owner))
}
