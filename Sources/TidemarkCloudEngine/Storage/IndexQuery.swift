public import Foundation
public import TidemarkModel

/// A value under which a record is found. Numbers come before texts, texts before bytes.
public enum IndexValue: Hashable, Sendable {
    /// An int64, or a timestamp in microseconds since 1970 UTC.
    case integer(Int64)
    /// A double. It is compared with integers by its value.
    case real(Double)
    /// A string, a reference's record name, a word of a searchable field, or a location as `latitude longitude`. Compared by its UTF-8
    /// bytes.
    case text(String)
    /// Bytes, compared one by one. The engine makes no such value.
    case bytes(Data)
}

/// A query, as a storage gets it: by the numbers of indexes instead of field names. The engine has checked that the indexes exist.
public struct IndexQuery: Hashable, Sendable {
    /// The part of a record that a condition or an order uses.
    public enum Key: Hashable, Sendable {
        /// The values of an index, by its number. A record has none, one or several.
        case index(Int64)
        /// The record's name, parent, or the time or account of its ``StoredCloudRecord/created`` or ``StoredCloudRecord/modified``.
        case recordName, created, createdBy, modified, modifiedBy, parent
    }

    /// How a value compares. The raw values are SQL.
    public enum Comparison: String, Sendable {
        /// Equal.
        case equal = "="
        /// Less.
        case less = "<"
        /// Less or equal.
        case lessOrEqual = "<="
        /// Greater.
        case greater = ">"
        /// Greater or equal.
        case greaterOrEqual = ">="
    }

    /// A condition on records. A record without a value meets no comparison, and so the negation of each.
    public indirect enum Condition: Hashable, Sendable {
        /// One of the record's values compares so.
        case compare(Key, Comparison, IndexValue)
        /// One of the record's values is among these; an empty list is met by no record.
        case isOneOf(Key, [IndexValue])
        /// One of the record's texts begins with these bytes.
        case beginsWith(Key, String)
        /// One of the record's locations is at most so many metres away, on a sphere.
        case near(Key, latitude: Double, longitude: Double, metres: Double)
        /// The condition is not met.
        case not(Condition)
        /// All conditions are met; an empty list is met by every record.
        case all([Condition])
    }

    /// An order of records.
    public struct Order: Hashable, Sendable {
        /// The index by which records are ordered. Of several values of a record, the least counts.
        public var key: Key
        /// Whether the least value comes first.
        public var isAscending: Bool
        /// If not `nil`, the distance of the value from here in metres is the order, and not the value.
        public var from: Location?
        /// Comparisons that the value meets in each record that meets the conditions: a walk along the index begins and ends at them.
        public var bounds: [Bound] = []
    }

    /// A comparison of the value that records are ordered by.
    public struct Bound: Hashable, Sendable {
        /// How the value compares.
        public let comparison: Comparison
        /// The value of the comparison's other side.
        public let value: IndexValue
    }

    /// The record type's name.
    public var type: String
    /// The conditions, all of which a record has to meet.
    public var conditions: [Condition]
    /// The orders, the most significant first. Records that are equal in all of them come in the order of their names.
    public var order: [Order]
    /// If not `nil`, only records that these shares cover (see ``CoveredRecord``). The root of a share then counts as a record without
    /// a parent.
    public var shares: [StoredShare.ID]?
    /// If not `nil`, only records that come after this place.
    public var after: Place?

    /// The index of the first order, which may be walked; `nil` where the first order is no value of an index.
    package var walkedIndex: Int64? {
        guard let first = order.first, first.from == nil, case .index(let number) = first.key else { return nil }
        return number
    }

    /// The parts of the walked index from ``after`` on, in the order of the query. A place without a value lies among the records without
    /// one, and conditions that bound the value leave these out.
    package var walkedParts: [WalkedPart] {
        guard let first = order.first else { return [] }
        let parts: [WalkedPart] = first.isAscending ? [.withoutValue, .values] : [.values, .withoutValue]
        let isAtValue = after.map { $0.values.first.flatMap { $0 } != nil }
        return parts.filter { part in
            switch (part, isAtValue) {
            case (.withoutValue, true?): !first.isAscending && first.bounds.isEmpty
            case (.withoutValue, _): first.bounds.isEmpty
            case (.values, false?): first.isAscending
            case (.values, _): true
            }
        }
    }

    /// The place after which the walk of a part continues; `nil` where the whole part comes after ``after``.
    package func place(in part: WalkedPart) -> Place? {
        guard let after else { return nil }
        return (after.values.first.flatMap { $0 } != nil) == (part == .values) ? after : nil
    }

    /// A part of an index that is walked.
    package enum WalkedPart: Sendable {
        /// Records that have a value, by the number of the index.
        case values
        /// Records without one, by the negative number of the index.
        case withoutValue
    }

    /// The first text, by the order of bytes, after all texts that begin with `text`; `nil` where there is none.
    ///
    /// In UTF-8, bytes come in the order of the code points.
    package static func end(of text: String) -> String? {
        var scalars = Array(text.unicodeScalars)
        while let last = scalars.popLast() {
            // Surrogates are no characters.
            let next = last.value == 0xd7ff ? 0xe000 : last.value + 1
            guard let scalar = Unicode.Scalar(next) else { continue }
            scalars.append(scalar)
            var end = String.UnicodeScalarView()
            end.append(contentsOf: scalars)
            return String(end)
        }
        return nil
    }

    /// A record's place in the order of a query.
    public struct Place: Hashable, Sendable {
        /// The values that the record was ordered by, as ``FoundRecords/rows`` has them.
        public let values: [IndexValue?]
        /// The record's name.
        public let name: String
    }
}
