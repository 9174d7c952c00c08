/// Which of a zone's shares covers a record: that of the whole zone; else the one whose root the record is; else the only one of the zone, or
/// the one of several that allows least.
///
/// ```swift
/// let share = ShareCoverage(shares).share(of: "senja")
/// ```
public struct ShareCoverage: Hashable, Sendable {
    /// That of records which are the root of none; `nil` where nothing is shared.
    public let others: Share?
    /// By the names of the roots of hierarchies; empty where the whole zone is shared.
    public let roots: [String: Share]

    /// - Parameter shares: All of one zone.
    public init(_ shares: [Share]) {
        if let whole = Self.weakest(shares.filter { $0.root == nil }) {
            (others, roots) = (whole, [:])
        } else {
            others = Self.weakest(shares)
            roots = Dictionary(grouping: shares) { $0.root ?? "" }.compactMapValues(Self.weakest)
        }
    }

    /// The share that covers a record of the zone; `nil` where nothing is shared.
    public func share(of record: String) -> Share? { roots[record] ?? others }

    /// That of several which allows the least; of equals, that of the least name.
    private static func weakest(_ shares: [Share]) -> Share? {
        guard shares.count > 1 else { return shares.first }
        func allowed(_ share: Share) -> Int {
            let operations: [SharePolicy.Operation] = [.read, .update, .delete]
            return operations.filter { SharePolicy.decide($0, on: share.target(), by: share.actor).isAllowed }.count
        }
        return shares.min { (allowed($0), $0.name) < (allowed($1), $1.name) }
    }
}
