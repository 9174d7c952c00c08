import TidemarkCloud

/// The records of a zone that a request has read, as it has left them.
struct RecordCache {
    let zone: StoredZone.ID
    /// `nil` for a name that is not there.
    private var known: [String: StoredCloudRecord?]
    /// By a parent's name, those that were put below it; they may have gone elsewhere since.
    private var adopted: [String: [String]] = [:]
    /// As this request has left them.
    private var written: [String: StoredCloudRecord] = [:]
    /// By a record's name, those that this request has given a `deleteSelf` reference to it; they may have lost it since.
    private var attached: [String: [String]] = [:]
    /// What records hang below that this request has not read otherwise.
    private var parents: [String: String?] = [:]
    /// Whether anything hangs below anything; `nil` before somebody has asked.
    private var hasChildren: Bool?

    init(_ names: [String], in zone: StoredZone.ID, _ rows: any CloudTransaction) throws(CloudError) {
        self.zone = zone
        known = [:]
        known.reserveCapacity(names.count)
        let found = try rows.records(names, in: zone)
        for name in names { known.updateValue(found[name], forKey: name) }
    }

    /// The record; a deleted one, too.
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

    /// Those, not deleted, that have one of the names as their parent, in the order in which they came.
    ///
    /// - Parameter limit: How many are looked at of those that the storage has.
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

    /// All that hangs below a record.
    mutating func descendants(of name: String, _ rows: any CloudTransaction) throws(CloudError) -> [StoredChild] {
        var (found, seen, next): ([StoredChild], Set<String>, [String]) = ([], [name], [name])
        while !next.isEmpty {
            let level = try children(of: next, rows).filter { seen.insert($0.name).inserted }
            found += level
            next = level.map(\.name)
        }
        return found
    }

    /// Whether a record would come to hang below itself.
    ///
    /// - Parameter isTop: Whether to climb no higher: what is above a root is no business of who sees what hangs below.
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

    /// Steps of a hierarchy at the most: who adds to it climbs all of them.
    private static let stepsMax = 1000

    /// Records that go with others by their `deleteSelf` references, and with these, and so on.
    struct Dependents {
        var found: [StoredCloudRecord] = []
        /// The names of records of which further dependents may be there.
        var unfinished: [String] = []
    }

    /// Those that go with a record.
    ///
    /// - Parameter limit: How many are looked for.
    func dependents(of name: String, limit: Int, _ rows: any CloudTransaction) throws(CloudError) -> Dependents {
        var (dependents, seen, next) = (Dependents(), Set([name]), [name][...])
        while let target = next.popFirst() {
            let left = limit - dependents.found.count
            let names = try rows.dependents(of: [target], in: zone, before: .max, limit: left + 1)
            if names.count > left { dependents.unfinished.append(target) }
            let stored = try rows.records(names.filter { written[$0] == nil }, in: zone)
            // A storage has an order of its own; deletions are changes, and have the same order in all of them. Those of this request are few,
            // and are all found.
            for name in names.prefix(left).sorted() + (attached[target] ?? []) where !seen.contains(name) {
                // What this request has made of it is what counts.
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
