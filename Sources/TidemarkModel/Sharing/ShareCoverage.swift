/// Finds the share of a zone that covers a record: the share of the whole zone; otherwise the share whose root is the record; otherwise the
/// only share of the zone, or, of several, the one that allows least.
///
/// ```swift
/// let share = ShareCoverage(shares).share(of: "senja")
/// ```
public struct ShareCoverage: Hashable, Sendable {
    /// The share of records that are no root; `nil` if nothing is shared.
    public let others: Share?
    /// The shares of hierarchies, by the names of their roots; empty if the whole zone is shared.
    public let roots: [String: Share]

    /// - Parameter shares: All shares of a zone.
    public init(_ shares: [Share]) {
        if let whole = Self.weakest(shares.filter { $0.root == nil }) {
            (others, roots) = (whole, [:])
        } else {
            others = Self.weakest(shares)
            roots = Dictionary(grouping: shares) { $0.root ?? "" }.compactMapValues(Self.weakest)
        }
    }

    /// The share that covers a record of the zone; `nil` if nothing is shared.
    public func share(of record: String) -> Share? { roots[record] ?? others }

    /// The share that allows least; of equal ones, the share with the least name.
    private static func weakest(_ shares: [Share]) -> Share? {
        guard shares.count > 1 else { return shares.first }
        func allowed(_ share: Share) -> Int {
            let operations: [SharePolicy.Operation] = [.read, .update, .delete]
            return operations.filter { SharePolicy.decide($0, on: share.target(), by: share.actor).isAllowed }.count
        }
        return shares.min { (allowed($0), $0.name) < (allowed($1), $1.name) }
    }
}
