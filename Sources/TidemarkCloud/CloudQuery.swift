import TidemarkModel

/// What records are looked for. As `CKQuery`; the comparators are those of CloudKit Web Services.
public struct CloudQuery: Hashable, Sendable {
    public enum Comparator: String, Codable, CaseIterable, Sendable {
        case equals = "EQUALS"
        case notEquals = "NOT_EQUALS"
        case lessThan = "LESS_THAN"
        case lessThanOrEquals = "LESS_THAN_OR_EQUALS"
        case greaterThan = "GREATER_THAN"
        case greaterThanOrEquals = "GREATER_THAN_OR_EQUALS"
        /// A location within the filter's distance.
        case near = "NEAR"
        case containsAllTokens = "CONTAINS_ALL_TOKENS"
        case containsAnyTokens = "CONTAINS_ANY_TOKENS"
        /// One of a list.
        case isIn = "IN"
        case isNotIn = "NOT_IN"
        case listContains = "LIST_CONTAINS"
        case listDoesNotContain = "NOT_LIST_CONTAINS"
        case listContainsAny = "CONTAINS_ANY"
        case listContainsNone = "NOT_LIST_CONTAINS_ANY"
        case listContainsAll = "LIST_CONTAINS_ALL"
        case listDoesNotContainAll = "NOT_LIST_CONTAINS_ALL"
        case beginsWith = "BEGINS_WITH"
        case doesNotBeginWith = "NOT_BEGINS_WITH"
        case listMemberBeginsWith = "LIST_MEMBER_BEGINS_WITH"
        case noListMemberBeginsWith = "NOT_LIST_MEMBER_BEGINS_WITH"
    }

    /// A field, or what every record has.
    public enum Key: Hashable, Sendable {
        case field(String)
        case recordName, created, createdBy, modified, modifiedBy, parent
    }

    public struct Filter: Hashable, Sendable {
        public var key: Key
        public var comparator: Comparator
        public var value: CloudValue
        /// Metres, with ``Comparator/near``.
        public var distance: Double?

        public init(_ key: Key, _ comparator: Comparator, _ value: CloudValue, distance: Double? = nil) {
            self.key = key
            self.comparator = comparator
            self.value = value
            self.distance = distance
        }
    }

    public struct Sort: Hashable, Sendable {
        public var key: Key
        public var isAscending: Bool
        /// Sorts by the distance from here.
        public var relativeLocation: Location?

        public init(_ key: Key, isAscending: Bool = true, relativeLocation: Location? = nil) {
            self.key = key
            self.isAscending = isAscending
            self.relativeLocation = relativeLocation
        }
    }

    public var recordType: String
    /// All of them hold.
    public var filters: [Filter]
    /// The first decides first; in the end the record names do.
    public var sorts: [Sort]

    public init(recordType: String, filters: [Filter] = [], sorts: [Sort] = []) {
        self.recordType = recordType
        self.filters = filters
        self.sorts = sorts
    }
}

/// Where a query's answer goes on. Opaque.
public struct QueryContinuation: RawRepresentable, Hashable, Codable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// Some of the records that a query has found.
public struct QueryAnswer: Hashable, Sendable {
    public var records: [CloudRecord]
    /// `nil` when these were the last.
    public var continuation: QueryContinuation?
    /// Records that would have been found and can't be told, because what the cloud has of them is damaged.
    public var failed: [RecordFailure]

    public init(records: [CloudRecord], continuation: QueryContinuation?, failed: [RecordFailure] = []) {
        self.failed = failed
        self.records = records
        self.continuation = continuation
    }
}
