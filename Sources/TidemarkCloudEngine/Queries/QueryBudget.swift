/// Bounds the work of one query.
///
/// A storage counts the steps of its engine, of SQLite the instructions of its virtual machine: the same query over the same records costs the
/// same everywhere, whatever the machine or its load.
public struct QueryBudget: Sendable {
    /// The most steps of the storage's engine.
    public var steps: Int64
    /// The most time.
    public var time: Duration
    /// Sleeps for as long as it has worked, in short turns, so that other work goes first.
    public var givesWay: Bool
    /// A query that would sort so many records walks the index of its order instead. Tests make it less.
    package var frequent = 5_000

    /// Creates a budget. Without `givesWay` a query works without a pause.
    public init(steps: Int64, time: Duration, givesWay: Bool = false) {
        (self.steps, self.time, self.givesWay) = (steps, time, givesWay)
    }

    /// Half of the work and of the time.
    package var half: QueryBudget {
        var half = self
        (half.steps, half.time) = (steps / 2, time / 2)
        return half
    }

    /// What is left of the work and of the time.
    package func without(steps used: Int64, time spent: Duration) -> QueryBudget {
        var left = self
        (left.steps, left.time) = (max(0, steps - used), max(.zero, time - spent))
        return left
    }
}
