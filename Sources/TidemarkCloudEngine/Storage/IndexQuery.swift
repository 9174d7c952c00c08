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

    /// What a record has to meet. A record without a value meets no comparison, and so the negation of each.
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
        /// What records are ordered by: of several values of an index, the least.
        public var key: Key
        /// Whether the least value comes first.
        public var isAscending: Bool
        /// If not `nil`, the distance of the value from here in metres is the order, and not the value.
        public var from: Location?
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

    /// A record's place in the order of a query.
    public struct Place: Hashable, Sendable {
        /// The values that the record was ordered by, as ``FoundRecords/rows`` has them.
        public let values: [IndexValue?]
        /// The record's name.
        public let name: String
    }
}
