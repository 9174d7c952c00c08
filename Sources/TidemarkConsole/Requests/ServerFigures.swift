/// What a server tells the console of its requests. It is of one server, and since that has started.
package protocol ServerFigures: Sendable {
    /// Returns the samples of a span of time, the oldest first, with empty ones where nothing came.
    func history(_ span: FigureSpan) -> [FigureSample]
    /// Returns the last requests, the newest first; none of the console itself.
    ///
    /// - Parameter container: Only those of this container.
    func requests(of container: String?) -> [ServedRequest]
}

/// A span of time up to now.
package enum FigureSpan: String, CaseIterable, Sendable {
    case hour, day, week

    /// Seconds of a sample.
    package var step: Int64 {
        switch self {
        case .hour: 60
        case .day: 15 * 60
        case .week: 60 * 60
        }
    }

    /// How many samples it has.
    package var count: Int {
        switch self {
        case .hour: 60
        case .day: 96
        case .week: 168
        }
    }
}

/// What was asked for in some minutes.
package struct FigureSample: Hashable, Sendable {
    /// When they began: microseconds since 1970 UTC.
    package let began: Int64
    package let requests: Int
    /// Those of the requests that the server has failed: statuses from 500 on.
    package let errors: Int
    /// Milliseconds in which half of the requests, and 95 of 100, were answered.
    package let median, slow: Double

    package init(began: Int64, requests: Int, errors: Int, median: Double, slow: Double) {
        (self.began, self.requests, self.errors) = (began, requests, errors)
        (self.median, self.slow) = (median, slow)
    }
}

/// A request that was answered. It has no contents.
package struct ServedRequest: Hashable, Sendable {
    /// When it was answered: microseconds since 1970 UTC.
    package let at: Int64
    /// Such as `records.query`.
    package let operation: String
    package let status: Int
    package let milliseconds: Double
    /// Container and environment; empty where the request names none.
    package let container, environment: String
    /// The account's identifier; empty for nobody.
    package let account: String
    /// From where, as limits know it.
    package let address: String

    package init(
        at: Int64, operation: String, status: Int, milliseconds: Double, container: String, environment: String, account: String,
        address: String
    ) {
        (self.at, self.operation, self.status, self.milliseconds) = (at, operation, status, milliseconds)
        (self.container, self.environment, self.account, self.address) = (container, environment, account, address)
    }
}
