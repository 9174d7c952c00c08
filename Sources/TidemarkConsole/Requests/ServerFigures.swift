package import TidemarkModel

/// What a server tells the console of its requests. It is of one server, and since that has started.
package protocol ServerFigures: Sendable {
    /// Returns the samples of a span of time, the oldest first, with empty ones where nothing came.
    func history(_ span: FigureSpan) -> [FigureSample]
    /// Returns the last requests, the newest first; none of the console itself.
    ///
    /// - Parameter container: Only those of this container.
    func requests(of container: String?) -> [ServedRequest]
    /// Returns the last notifications that were put into the boxes of devices, the newest first.
    ///
    /// - Parameter container: Only those of this container.
    func deliveries(of container: String?) -> [Delivery]
    /// Returns what an account has subscribed to in a container, and how many devices it has there.
    ///
    /// - Parameter account: Its identifier.
    /// - Throws: What the storage of subscriptions has failed with.
    func notifications(
        of account: String, in container: String, _ environment: StoreEnvironment
    ) async throws -> NotifiedAccount
}

/// A notification that was put into the boxes of an account's devices.
package struct Delivery: Hashable, Sendable {
    /// Microseconds since 1970 UTC.
    package let at: Int64
    package let container, environment: String
    /// The account's identifier.
    package let account: String
    package let subscription: String
    /// What has happened to the record: `create`, `update` or `delete`.
    package let event: String
    /// Into how many boxes it was put, and how many devices the account has.
    package let delivered, devices: Int

    package init(
        at: Int64, container: String, environment: String, account: String, subscription: String, event: String, delivered: Int,
        devices: Int
    ) {
        (self.at, self.container, self.environment, self.account) = (at, container, environment, account)
        (self.subscription, self.event, self.delivered, self.devices) = (subscription, event, delivered, devices)
    }
}

/// What an account wants to hear of in a container.
package struct NotifiedAccount: Hashable, Sendable {
    package let subscriptions: [KnownSubscription]
    /// How many devices it has registered.
    package let devices: Int

    package init(subscriptions: [KnownSubscription], devices: Int) {
        (self.subscriptions, self.devices) = (subscriptions, devices)
    }
}

/// A subscription, as lists show it.
package struct KnownSubscription: Hashable, Sendable {
    package let id: String
    package let scope: DatabaseScope
    /// Whether it is to all changes of a zone; otherwise to records that a query finds.
    package let isOfZone: Bool
    package let recordType, zone: String?
    /// `create`, `update` and `delete`.
    package let events: [String]
    package let hasFilters, firesOnce: Bool

    package init(
        id: String, scope: DatabaseScope, isOfZone: Bool, recordType: String?, zone: String?, events: [String], hasFilters: Bool,
        firesOnce: Bool
    ) {
        (self.id, self.scope, self.isOfZone, self.recordType, self.zone) = (id, scope, isOfZone, recordType, zone)
        (self.events, self.hasFilters, self.firesOnce) = (events, hasFilters, firesOnce)
    }
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
    /// Those of the requests that were refused: statuses from 400 to 499.
    package let refused: Int
    /// Those of the requests that the server has failed: statuses from 500 on.
    package let errors: Int
    /// Milliseconds in which half of the requests, and 95 of 100, were answered.
    package let median, slow: Double

    package init(began: Int64, requests: Int, refused: Int, errors: Int, median: Double, slow: Double) {
        (self.began, self.requests, self.refused, self.errors) = (began, requests, refused, errors)
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
