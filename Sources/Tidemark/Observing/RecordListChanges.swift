/// The differences between a list of records and the previous list: the rows that a table view inserts, deletes, moves and reloads.
///
/// An edited record is in ``changed``. If the edit has changed its place in the order, it is in ``moved`` as well. As few records
/// as possible count as moved. `NSFetchedResultsController` reports the same changes.
///
/// ```swift
/// for position in list.changes.changed { reloadRow(position.index) }
/// ```
public struct RecordListChanges: Hashable, Sendable {
    /// A record and its place in a list.
    public struct Position: Hashable, Sendable {
        /// The record's name.
        public let recordName: String
        /// The index in the list.
        public let index: Int
    }

    /// A record whose place among the others has changed.
    public struct Move: Hashable, Sendable {
        /// The record's name.
        public let recordName: String
        /// The index in the previous list.
        public let oldIndex: Int
        /// The index in the new list.
        public let newIndex: Int
    }

    /// The records that are new in the list, with their indices in the new list, in ascending order.
    public let inserted: [Position]
    /// The records that are no longer in the list, with their indices in the previous list, in ascending order.
    public let deleted: [Position]
    /// The records that stayed in the list and have changed their place among the others, in ascending order of ``Move/newIndex``.
    public let moved: [Move]
    /// The records that stayed in the list and have other values, with their indices in the new list, in ascending order.
    public let changed: [Position]

    /// Whether both lists are the same.
    public var isEmpty: Bool { inserted.isEmpty && deleted.isEmpty && moved.isEmpty && changed.isEmpty }

    /// The difference between the two lists of record names. A move is a removal and an insertion that are associated with each
    /// other.
    ///
    /// - Complexity: O(*n* log *n*) in the insertions, deletions and moves.
    public var difference: CollectionDifference<String> {
        let removals: [CollectionDifference<String>.Change] =
            deleted.map { .remove(offset: $0.index, element: $0.recordName, associatedWith: nil) }
            + moved.map { .remove(offset: $0.oldIndex, element: $0.recordName, associatedWith: $0.newIndex) }
        let insertions: [CollectionDifference<String>.Change] =
            inserted.map { .insert(offset: $0.index, element: $0.recordName, associatedWith: nil) }
            + moved.map { .insert(offset: $0.newIndex, element: $0.recordName, associatedWith: $0.oldIndex) }
        return CollectionDifference(removals + insertions)!
    }
}

/// Identifies a record in a list, and its version.
struct RecordListKey: Hashable, Sendable {
    let name: String
    let scope: Int
    /// The number of the change that wrote the record.
    let version: Int64
}

extension RecordListChanges {
    /// Compares two lists by name and version. Records of the same name, which several zones may have, are paired in their order.
    ///
    /// - Complexity: O(*n*); O(*n* log *n*) when records have moved.
    init(from old: [RecordListKey], to new: [RecordListKey]) {
        var pairs: [(old: Int, new: Int)] = []
        pairs.reserveCapacity(min(old.count, new.count))
        // Most lists keep their beginning and their end.
        var start = 0
        while start < min(old.count, new.count), old[start].name == new[start].name {
            pairs.append((start, start))
            start += 1
        }
        var (oldEnd, newEnd) = (old.count, new.count)
        while oldEnd > start, newEnd > start, old[oldEnd - 1].name == new[newEnd - 1].name {
            oldEnd -= 1
            newEnd -= 1
        }
        let middle = RecordListChanges.pairs(of: old, start..<oldEnd, and: new, start..<newEnd)
        pairs += middle
        pairs += zip(oldEnd..<old.count, newEnd..<new.count).map { (old: $0, new: $1) }

        let (oldPaired, newPaired) = (Set(middle.map(\.old)), Set(middle.map(\.new)))
        inserted = (start..<newEnd).filter { !newPaired.contains($0) }.map { Position(recordName: new[$0].name, index: $0) }
        deleted = (start..<oldEnd).filter { !oldPaired.contains($0) }.map { Position(recordName: old[$0].name, index: $0) }
        let staying = RecordListChanges.longestRise(middle.map(\.old))
        moved = middle.indices.filter { !staying.contains($0) }.map {
            Move(recordName: new[middle[$0].new].name, oldIndex: middle[$0].old, newIndex: middle[$0].new)
        }
        changed = pairs.filter { old[$0.old] != new[$0.new] }.map { Position(recordName: new[$0.new].name, index: $0.new) }
    }

    /// Returns the indices of the records that are in both ranges, in the new order.
    private static func pairs(
        of old: [RecordListKey], _ oldRange: Range<Int>, and new: [RecordListKey], _ newRange: Range<Int>
    ) -> [(old: Int, new: Int)] {
        // The first index of each name, and for each index the next one of the same name.
        var first: [String: Int] = [:]
        first.reserveCapacity(oldRange.count)
        var next: [Int: Int] = [:]
        for index in oldRange.reversed() {
            if let later = first.updateValue(index, forKey: old[index].name) { next[index] = later }
        }
        return newRange.compactMap { index in
            guard let place = first[new[index].name] else { return nil }
            first[new[index].name] = next[place]
            return (place, index)
        }
    }

    /// Returns the indices of a longest increasing subsequence of distinct numbers.
    private static func longestRise(_ numbers: [Int]) -> Set<Int> {
        if zip(numbers, numbers.dropFirst()).allSatisfy(<) { return Set(numbers.indices) }
        // `ends` has, for each length, the index at which the subsequence with the least last number ends. `previous` has, for each
        // number, the index of the number before it in its subsequence.
        var ends: [Int] = []
        var previous = [Int](repeating: -1, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
            }
            if low > 0 { previous[index] = ends[low - 1] }
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var rise: Set<Int> = []
        var index = ends.last ?? -1
        while index >= 0 {
            rise.insert(index)
            index = previous[index]
        }
        return rise
    }
}
