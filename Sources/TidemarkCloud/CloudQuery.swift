public import TidemarkModel

/// A search for records. As `CKQuery`; the comparators are those of CloudKit Web Services.
public struct CloudQuery: Hashable, Sendable {
    /// How a filter compares a field with its value. The raw values are those of CloudKit Web Services.
    public enum Comparator: String, Codable, CaseIterable, Sendable {
        /// The field equals the value.
        case equals = "EQUALS"
        /// The field does not equal the value.
        case notEquals = "NOT_EQUALS"
        /// The field is less than the value.
        case lessThan = "LESS_THAN"
        /// The field is less than the value or equals it.
        case lessThanOrEquals = "LESS_THAN_OR_EQUALS"
        /// The field is greater than the value.
        case greaterThan = "GREATER_THAN"
        /// The field is greater than the value or equals it.
        case greaterThanOrEquals = "GREATER_THAN_OR_EQUALS"
        /// The field is a location within the filter's distance of the value.
        case near = "NEAR"
        /// The field contains all the words of the value.
        case containsAllTokens = "CONTAINS_ALL_TOKENS"
        /// The field contains a word of the value.
        case containsAnyTokens = "CONTAINS_ANY_TOKENS"
        /// The field equals an element of the list.
        case isIn = "IN"
        /// The field equals no element of the list.
        case isNotIn = "NOT_IN"
        /// The list contains the value.
        case listContains = "LIST_CONTAINS"
        /// The list does not contain the value.
        case listDoesNotContain = "NOT_LIST_CONTAINS"
        /// The list contains an element of the value.
        case listContainsAny = "CONTAINS_ANY"
        /// The list contains no element of the value.
        case listContainsNone = "NOT_LIST_CONTAINS_ANY"
        /// The list contains all elements of the value.
        case listContainsAll = "LIST_CONTAINS_ALL"
        /// The list does not contain all elements of the value.
        case listDoesNotContainAll = "NOT_LIST_CONTAINS_ALL"
        /// The text begins with the value.
        case beginsWith = "BEGINS_WITH"
        /// The text does not begin with the value.
        case doesNotBeginWith = "NOT_BEGINS_WITH"
        /// An element of the list begins with the value.
        case listMemberBeginsWith = "LIST_MEMBER_BEGINS_WITH"
        /// No element of the list begins with the value.
        case noListMemberBeginsWith = "NOT_LIST_MEMBER_BEGINS_WITH"
    }

    /// A field, or a property that every record has.
    public enum Key: Hashable, Sendable {
        /// The field with this name.
        case field(String)
        /// A property that every record has.
        case recordName, created, createdBy, modified, modifiedBy, parent
    }

    /// A condition that each result fulfils.
    public struct Filter: Hashable, Sendable {
        /// The field or property to compare.
        public var key: Key
        /// How to compare it.
        public var comparator: Comparator
        /// The value to compare it with.
        public var value: CloudValue
        /// Metres, with ``Comparator/near``.
        public var distance: Double?

        /// Makes a condition.
        ///
        /// - Parameters:
        ///   - key: The field or property to compare.
        ///   - comparator: How to compare it.
        ///   - value: The value to compare it with.
        ///   - distance: Metres, with ``Comparator/near``.
        public init(_ key: Key, _ comparator: Comparator, _ value: CloudValue, distance: Double? = nil) {
            self.key = key
            self.comparator = comparator
            self.value = value
            self.distance = distance
        }
    }

    /// A rule for the order of the results.
    public struct Sort: Hashable, Sendable {
        /// The field or property to sort by.
        public var key: Key
        /// Whether small values come first.
        public var isAscending: Bool
        /// The place whose distance decides the order; `nil` to sort by the value.
        public var relativeLocation: Location?

        /// Makes a rule for the order of the results.
        ///
        /// - Parameters:
        ///   - key: The field or property to sort by.
        ///   - isAscending: Whether small values come first.
        ///   - relativeLocation: The place whose distance decides.
        public init(_ key: Key, isAscending: Bool = true, relativeLocation: Location? = nil) {
            self.key = key
            self.isAscending = isAscending
            self.relativeLocation = relativeLocation
        }
    }

    /// The type of the records.
    public var recordType: String
    /// The conditions. A result fulfils all of them.
    public var filters: [Filter]
    /// The rules for the order. An earlier rule decides before a later one; record names decide last.
    public var sorts: [Sort]

    /// Makes a query.
    ///
    /// - Parameters:
    ///   - recordType: The type of the records.
    ///   - filters: Conditions, all of which a result fulfils.
    ///   - sorts: Rules for the order; an earlier rule decides before a later one.
    public init(recordType: String, filters: [Filter] = [], sorts: [Sort] = []) {
        self.recordType = recordType
        self.filters = filters
        self.sorts = sorts
    }
}

/// The position at which the next answer to a query begins. Opaque.
public struct QueryContinuation: RawRepresentable, Hashable, Codable, Sendable {
    /// The cloud's text for the position.
    public let rawValue: String
    /// Makes a continuation from the text that a cloud has returned.
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// An answer to a query: some of the records that match.
public struct QueryAnswer: Hashable, Sendable {
    /// The records, in the order of the query.
    public var records: [CloudRecord]
    /// The position of the next answer; `nil` if these are the last records.
    public var continuation: QueryContinuation?
    /// Matching records that are damaged in the cloud, so that it can't return them.
    public var failed: [RecordFailure]

    /// Makes an answer.
    ///
    /// - Parameters:
    ///   - records: The records, in the order of the query.
    ///   - continuation: Where the next answer begins; `nil` after the last.
    ///   - failed: Matching records that are damaged in the cloud.
    public init(records: [CloudRecord], continuation: QueryContinuation?, failed: [RecordFailure] = []) {
        self.failed = failed
        self.records = records
        self.continuation = continuation
    }
}
