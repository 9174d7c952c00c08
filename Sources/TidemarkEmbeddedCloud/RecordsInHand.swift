import TidemarkCloud

/// The records of a zone that a request has read, as it has left them.
struct RecordsInHand {
    let zone: Int64
    /// `nil` for a name that is not there.
    private var known: [String: StoredRecord?]
    /// By a parent's name, those that were put below it; they may have gone elsewhere since.
    private var adopted: [String: [String]] = [:]
    /// Whether anything hangs below anything; `nil` before somebody has asked.
    private var hasChildren: Bool?

    init(_ names: [String], in zone: Int64, _ rows: any CloudTransaction) throws(CloudError) {
        self.zone = zone
        known = [:]
        known.reserveCapacity(names.count)
        let found = try rows.records(names, in: zone)
        for name in names { known.updateValue(found[name], forKey: name) }
    }

    /// The record; a deleted one, too.
    func record(_ name: String, _ rows: any CloudTransaction) throws(CloudError) -> StoredRecord? {
        if let found = known[name] { return found }
        return try rows.records([name], in: zone)[name]
    }

    mutating func put(_ record: StoredRecord) {
        known.updateValue(record, forKey: record.name)
        if let parent = record.parent { adopted[parent, default: []].append(record.name) }
    }

    /// Those, not deleted, that have one of the names as their parent, in the order in which they came.
    mutating func children(of names: [String], _ rows: any CloudTransaction) throws(CloudError) -> [StoredChild] {
        if hasChildren == nil { hasChildren = try rows.hasChildren(in: zone) }
        guard hasChildren == true || !adopted.isEmpty else { return [] }
        let parents = Set(names)
        var (found, seen): ([StoredChild], Set<String>) = ([], [])
        for child in try rows.children(of: names, in: zone) {
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
    /// - Parameter isNew: Nothing hangs below a new record but what this request has put there.
    func isAbove(_ name: String, _ parent: String, isNew: Bool, _ rows: any CloudTransaction) throws(CloudError) -> Bool {
        if name == parent { return true }
        if isNew, adopted[name] == nil { return false }
        var (seen, next): (Set<String>, String?) = ([], parent)
        while let above = next, seen.insert(above).inserted {
            if above == name { return true }
            next = try record(above, rows)?.parent
        }
        return false
    }

    /// Those that go with a record by their `deleteSelf` references, and with these, and so on.
    func dependents(of name: String, _ rows: any CloudTransaction) throws(CloudError) -> [StoredRecord] {
        var (found, seen, next): ([StoredRecord], Set<String>, [String]) = ([], [name], [name])
        while !next.isEmpty {
            let names = try rows.dependents(of: next, in: zone).filter { seen.insert($0).inserted }
            let stored = try rows.records(names, in: zone)
            for name in names {
                // What this request has changed already is what counts.
                if let record = (known[name] ?? nil) ?? stored[name], !record.isDeleted { found.append(record) }
            }
            next = names
        }
        return found
    }
}
