import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The records of an editing context, with their edits in order.
///
/// - Complexity: Each call for one record takes O(1) on average, and finds the record once.
struct RegisteredRecords: Sendable {
    private var records: [RecordName: RegisteredRecord] = [:]
    /// The names of the records with edits, in order; `nil` for an edit that was removed. Each of these records has its place in
    /// this list.
    private var order: [RecordName?] = []
    private var editCount = 0

    /// Whether there are edits.
    var hasEdits: Bool { editCount > 0 }

    /// The records with edits, in the order of the edits.
    var edits: [(name: RecordName, record: RegisteredRecord)] {
        var edits: [(name: RecordName, record: RegisteredRecord)] = []
        edits.reserveCapacity(editCount)
        for case let name? in order { if let record = records[name] { edits.append((name, record)) } }
        return edits
    }

    subscript(_ name: RecordName) -> RegisteredRecord? { records[name] }

    /// The loaded records of a store.
    func loaded(in scope: StoreScope) -> [(name: RecordName, loaded: RegisteredRecord.Loaded)] {
        records.compactMap { name, record in record.scope == scope ? record.loaded.map { (name: name, loaded: $0) } : nil }
    }

    /// Adds a loaded record, unless the context has it already.
    ///
    /// - Returns: The record that the context has.
    mutating func register(_ name: RecordName, _ new: @autoclosure () -> RegisteredRecord) -> RegisteredRecord {
        if let known = records[name] { return known }
        let record = new()
        records[name] = record
        return record
    }

    /// Edits a record, which is added if it is missing.
    mutating func edit(_ name: RecordName, scope: StoreScope, _ body: (inout RegisteredRecord) -> Void) {
        let (before, after, isGone) = Self.change(&records[name, default: RegisteredRecord(scope: scope)], order.count, body)
        if before == nil, after != nil {
            order.append(name)
            editCount += 1
        } else if after == nil {
            forgetEdit(at: before)
        }
        if isGone { records[name] = nil }
    }

    /// - Returns: The places of the edit before and after, and whether the record has neither an edit nor a loaded version any
    ///   more.
    private static func change(
        _ record: inout RegisteredRecord, _ next: Int, _ body: (inout RegisteredRecord) -> Void
    ) -> (before: Int?, after: Int?, isGone: Bool) {
        let before = record.place
        body(&record)
        record.place = record.edit == nil ? nil : before ?? next
        return (before, record.place, record.edit == nil && record.loaded == nil)
    }

    private mutating func forgetEdit(at place: Int?) {
        guard let place else { return }
        order[place] = nil
        editCount -= 1
        if editCount == 0 { order = [] }
        guard order.count > 64, order.count > 2 * editCount else { return }
        order = order.filter { $0 != nil }
        for (place, name) in order.enumerated() { records[name!]?.place = place }
    }

    /// Removes all edits. Records keep their loaded versions.
    mutating func rollback() {
        for case let name? in order {
            if records[name]?.loaded == nil {
                records[name] = nil
            } else {
                records[name]?.edit = nil
                records[name]?.place = nil
            }
        }
        (order, editCount) = ([], 0)
    }

    /// Marks an edit as saved. The record may have been edited again meanwhile.
    ///
    /// - Parameter state: The store's present version of the record; `nil` if it has none.
    mutating func markSaved(
        _ name: RecordName, _ saved: RegisteredRecord.Edit, in scope: StoreScope, as state: StoredVersion?, _ assets: AssetPlace
    ) throws {
        guard let index = records.index(forKey: name) else { return }
        let isLast = records.values[index].edit?.number == saved.number
        let place = records.values[index].place
        if let state {
            try records.values[index].markSaved(saved, as: state, in: scope, assets: assets)
        } else if isLast {
            records.remove(at: index)
        } else {
            // The later edit is one of a new record.
            records.values[index].forgetLoaded()
        }
        guard isLast else { return }
        if state != nil { records.values[index].place = nil }
        forgetEdit(at: place)
    }

    /// Removes a record that a delete rule has deleted. If it was edited meanwhile, the edit becomes one of a new record.
    mutating func forget(_ name: RecordName, in scopes: Set<StoreScope>) {
        guard let known = records[name], scopes.contains(known.scope) else { return }
        if known.edit == nil { records[name] = nil } else { records[name]?.forgetLoaded() }
    }

    /// Replaces the loaded version of a record, unless the record was loaded again meanwhile.
    ///
    /// - Parameter fresh: The new version; `nil` if the store no longer has the record.
    mutating func refresh(
        _ name: RecordName, from loaded: RegisteredRecord.Loaded, to fresh: RegisteredRecord.Loaded?, assets: AssetPlace
    ) throws {
        guard records[name]?.loaded?.state == loaded.state else { return }
        if let fresh {
            try records[name]?.refresh(fresh, assets: assets)
        } else if records[name]?.edit == nil {
            records[name] = nil
        }
    }
}
