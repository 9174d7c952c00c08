import TidemarkCloud

/// The records of a zone that a request has read, with the request's own changes.
struct RecordCache {
    let zone: StoredZone.ID
    /// By name; the value is `nil` where no record has the name.
    private var known: [String: StoredCloudRecord?]
    /// The children that this request has given each parent, by the parent's name. Some may have left it again.
    private var adopted: [String: [String]] = [:]
    /// The records that this request has written, in their last state.
    private var written: [String: StoredCloudRecord] = [:]
    /// The records that this request has given a `deleteSelf` reference to a record, by that record's name. Some may have lost it
    /// again.
    private var attached: [String: [String]] = [:]
    /// The parents of records that the request has not read otherwise.
    private var parents: [String: String?] = [:]
    /// Whether any record of the zone has a parent; `nil` until that was asked.
    private var hasChildren: Bool?

    init(_ names: [String], in zone: StoredZone.ID, _ rows: any CloudTransaction) throws(CloudError) {
        self.zone = zone
        known = [:]
        known.reserveCapacity(names.count)
        let found = try rows.records(names, in: zone)
        for name in names { known.updateValue(found[name], forKey: name) }
    }

    /// Returns a record, also a deleted one.
    func record(_ name: String, _ rows: any CloudTransaction) throws(CloudError) -> StoredCloudRecord? {
        if let found = known[name] { return found }
        return try rows.records([name], in: zone)[name]
    }

    mutating func put(_ record: StoredCloudRecord) {
        known.updateValue(record, forKey: record.name)
        written[record.name] = record
        for target in record.dependsOn { attached[target, default: []].append(record.name) }
        if let parent = record.parent { adopted[parent, default: []].append(record.name) }
    }

    /// Returns the records that have one of the names as their parent, in the order in which they were made. Deleted records are
    /// left out.
    ///
    /// - Parameter limit: The most of the storage's records that are examined.
    mutating func children(
        of names: [String], limit: Int = .max, _ rows: any CloudTransaction
    ) throws(CloudError) -> [StoredChild] {
        if hasChildren == nil { hasChildren = try rows.hasChildren(in: zone) }
        guard hasChildren == true || !adopted.isEmpty else { return [] }
        let parents = Set(names)
        var (found, seen): ([StoredChild], Set<String>) = ([], [])
        for child in try rows.children(of: names, in: zone, limit: limit) {
            if let record = known[child.name] ?? nil, record.isDeleted || !parents.contains(record.parent ?? "") { continue }
            seen.insert(child.name)
            found.append(child)
        }
        for name in names.flatMap({ adopted[$0] ?? [] }) {
            guard let record = known[name] ?? nil, !record.isDeleted, let parent = record.parent, parents.contains(parent),
                seen.insert(name).inserted
            else { continue }
            found.append(StoredChild(name: name, type: record.type, changed: record.changed))
        }
        return found
    }

    /// Returns everything that hangs below a record.
    mutating func descendants(of name: String, _ rows: any CloudTransaction) throws(CloudError) -> [StoredChild] {
        var (found, seen, next): ([StoredChild], Set<String>, [String]) = ([], [name], [name])
        while !next.isEmpty {
            let level = try children(of: next, rows).filter { seen.insert($0.name).inserted }
            found += level
            next = level.map(\.name)
        }
        return found
    }

    /// Returns whether a record would hang below itself.
    ///
    /// - Parameter isTop: Whether the climb ends at a name. A participant must not learn what is above a root.
    /// - Throws: `limitExceeded` where there are more than ``stepsMax`` above it.
    mutating func isAbove(
        _ name: String, _ parent: String, upTo isTop: (String) -> Bool, _ rows: any CloudTransaction
    ) throws(CloudError) -> Bool {
        var (steps, next): (Int, String?) = (0, parent)
        while let above = next {
            if above == name { return true }
            if isTop(above) { return false }
            steps += 1
            guard steps < Self.stepsMax else {
                throw CloudError(
                    .limitExceeded,
                    "'\(name)' would hang more than \(Self.stepsMax) steps deep. Hang it higher up in the hierarchy")
            }
            if let record = known[above] {
                next = record?.parent
            } else if let parent = parents[above] {
                next = parent
            } else {
                next = try rows.parent(of: above, in: zone)
                parents.updateValue(next, forKey: above)
            }
        }
        return false
    }

    /// The most levels of a hierarchy. A request that adds a record climbs all of them.
    private static let stepsMax = 1000

    /// Records that are deleted with a record because of their `deleteSelf` references, directly or through each other.
    struct Dependents {
        var found: [StoredCloudRecord] = []
        /// The names of records that may have further dependents.
        var unfinished: [String] = []
    }

    /// Finds the records that are deleted with a record.
    ///
    /// - Parameter limit: The most records to look for.
    func dependents(of name: String, limit: Int, _ rows: any CloudTransaction) throws(CloudError) -> Dependents {
        var (dependents, seen, next) = (Dependents(), Set([name]), [name][...])
        while let target = next.popFirst() {
            let left = limit - dependents.found.count
            let names = try rows.dependents(of: [target], in: zone, before: .max, limit: left + 1)
            if names.count > left { dependents.unfinished.append(target) }
            let stored = try rows.records(names.filter { written[$0] == nil }, in: zone)
            // Each storage has an order of its own. Deletions are changes, so their order must be the same for all storages. The
            // request's own records are few, and all of them are found.
            for name in names.prefix(left).sorted() + (attached[target] ?? []) where !seen.contains(name) {
                // The state that this request has given the record counts.
                if let record = written[name] {
                    guard !record.isDeleted, record.dependsOn.contains(target) else { continue }
                    dependents.found.append(record)
                } else if let record = stored[name], !record.isDeleted {
                    dependents.found.append(record)
                } else {
                    continue
                }
                seen.insert(name)
                next.append(name)
            }
        }
        return dependents
    }
}
