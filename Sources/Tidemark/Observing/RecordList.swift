import TidemarkModel

/// The records that an observation has found, in their order, and the differences from the previous list.
///
/// A list is a collection of its records:
///
/// ```swift
/// for try await list in journal.observe(Destination.self, sortedBy: [.ascending(\.caption)]) {
///     print(list.count, "destinations,", list.changes.inserted.count, "of them new")
/// }
/// ```
public struct RecordList<R: Record>: Sendable {
    /// The records in the requested order.
    public let records: [R]
    /// The differences from the previous list. In the first list, all records count as inserted.
    public let changes: RecordListChanges
    /// Records that match the query and can't be read as this type, in the same order. ``records`` and ``changes`` leave them out.
    public let unreadable: [UnreadableRecord]

    private let keys: [RecordListKey]
    private let unreadableKeys: [RecordListKey]

    /// Creates the list that follows a previous one.
    ///
    /// - Returns: `nil` when the list is the same as the previous one.
    init?(_ entries: [RecordListEntry<R>], after previous: RecordList?) {
        var (records, keys) = ([R](), [RecordListKey]())
        var (unreadable, unreadableKeys) = ([UnreadableRecord](), [RecordListKey]())
        records.reserveCapacity(entries.count)
        keys.reserveCapacity(entries.count)
        for entry in entries {
            switch entry.result {
            case .success(let record):
                records.append(record)
                keys.append(entry.key)
            case .failure(let error):
                unreadable.append(UnreadableRecord(record: RecordName(type: R.recordType, name: entry.key.name), error: error))
                unreadableKeys.append(entry.key)
            }
        }
        changes = RecordListChanges(from: previous?.keys ?? [], to: keys)
        if let previous, changes.isEmpty, unreadableKeys == previous.unreadableKeys { return nil }
        (self.records, self.keys, self.unreadable, self.unreadableKeys) = (records, keys, unreadable, unreadableKeys)
    }

    /// - Parameter list: A list whose records are those of this one.
    private init(_ list: RecordList, changes: RecordListChanges) {
        (records, keys, unreadable, unreadableKeys) = (list.records, list.keys, list.unreadable, list.unreadableKeys)
        self.changes = changes
    }

    /// Returns the same list with its changes since another list.
    func since(_ previous: RecordList) -> RecordList {
        RecordList(self, changes: RecordListChanges(from: previous.keys, to: keys))
    }
}

extension RecordList: RandomAccessCollection {
    /// Zero.
    public var startIndex: Int { records.startIndex }
    /// The number of records.
    public var endIndex: Int { records.endIndex }
    /// The record at a place.
    public subscript(position: Int) -> R { records[position] }
}

/// A record in the result of a fetch, readable or not.
struct RecordListEntry<R: Record>: Sendable {
    let key: RecordListKey
    let result: Result<R, any Error>

    var isReadable: Bool {
        switch result {
        case .success: true
        case .failure: false
        }
    }
}
