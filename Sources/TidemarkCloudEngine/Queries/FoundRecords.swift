/// The records that a query found, and what the query cost.
public struct FoundRecords: Sendable {
    /// The records in the query's order, each with one value for each element of ``IndexQuery/order``.
    public var rows: [(record: StoredCloudRecord, keys: [IndexValue?])] = []
    /// Whether the query exceeded its budget. More records may follow those that were found.
    public var isCut = false
    /// The steps of the storage's engine that it took, as ``QueryBudget/steps`` counts them.
    public var steps: Int64 = 0
    /// The seconds of processor time that it took.
    public var seconds = 0.0

    package init(
        rows: [(record: StoredCloudRecord, keys: [IndexValue?])] = [], isCut: Bool = false, steps: Int64 = 0
    ) {
        self.rows = rows
        self.isCut = isCut
        self.steps = steps
    }
}
