import Foundation
import GRDB
import TidemarkModel

/// The result of one store, in order.
struct OrderedPart<Element> {
    var elements: [Element] = []
    /// For each element, the values that it is sorted by; empty when there is no order.
    var keys: [[DatabaseValue]] = []
    /// For each sort, whether its values are texts, which may have a collation.
    var areTexts: [Bool] = []
    /// The records that can't be read as the type.
    var unreadable: [UnreadableRecord] = []
}

extension OrderedPart: Sendable where Element: Sendable {}

/// Merges the sorted results of several stores.
struct RecordOrder {
    private let sorts: [(isDescending: Bool, compare: (@Sendable (String, String) -> ComparisonResult)?)]

    init<R: Record>(_ sorts: [RecordSort<R>]) { self.sorts = sorts.map { ($0.isDescending, $0.order.comparison) } }

    /// Merges the results.
    ///
    /// - Parameter counts: Returns whether an element counts for the limit.
    func merge<Element>(
        _ parts: [OrderedPart<Element>], limit: Int?, counting counts: (Element) -> Bool = { _ in true }
    ) -> [Element] {
        var next = parts.map { _ in 0 }
        var merged: [Element] = []
        var count = 0
        // A store without the field does not know its type, so another store decides.
        let areTexts = sorts.indices.map { sort in parts.contains { $0.areTexts[sort] } }
        while count < limit ?? .max {
            var first: Int?
            for (index, part) in parts.enumerated() where next[index] < part.elements.count {
                guard let best = first, !sorts.isEmpty else {
                    first = first ?? index
                    continue
                }
                if comesBefore(part.keys[next[index]], parts[best].keys[next[best]], areTexts: areTexts) { first = index }
            }
            guard let first else { break }
            let element = parts[first].elements[next[first]]
            merged.append(element)
            if counts(element) { count += 1 }
            next[first] += 1
        }
        return merged
    }

    private func comesBefore(_ left: [DatabaseValue], _ right: [DatabaseValue], areTexts: [Bool]) -> Bool {
        for index in sorts.indices {
            let order = Self.compare(left[index], right[index], areTexts[index] ? sorts[index].compare : nil)
            if order != 0 { return sorts[index].isDescending ? order > 0 : order < 0 }
        }
        return false
    }

    /// Compares two values in SQLite's order: NULL, numbers, texts by their bytes, blobs.
    static func compare(
        _ left: DatabaseValue, _ right: DatabaseValue, _ texts: (@Sendable (String, String) -> ComparisonResult)?
    ) -> Int {
        func rank(_ value: DatabaseValue) -> Int {
            switch value.storage {
            case .null: 0
            case .int64, .double: 1
            case .string: 2
            case .blob: 3
            }
        }
        func order<Value: Comparable>(_ one: Value, _ other: Value) -> Int { one < other ? -1 : one > other ? 1 : 0 }
        switch (left.storage, right.storage) {
        case (.int64(let one), .int64(let other)): return order(one, other)
        case (.double(let one), .double(let other)): return order(one, other)
        case (.int64(let one), .double(let other)): return order(Double(one), other)
        case (.double(let one), .int64(let other)): return order(one, Double(other))
        case (.string(let one), .string(let other)) where texts != nil: return texts!(one, other).rawValue
        case (.string(let one), .string(let other)): return bytes(Array(one.utf8), Array(other.utf8))
        case (.blob(let one), .blob(let other)): return bytes(Array(one), Array(other))
        default: return order(rank(left), rank(right))
        }
    }

    private static func bytes(_ one: [UInt8], _ other: [UInt8]) -> Int {
        one == other ? 0 : one.lexicographicallyPrecedes(other) ? -1 : 1
    }
}
