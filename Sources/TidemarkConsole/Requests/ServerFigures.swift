package import TidemarkModel

/// The figures of a server's requests, for the console. They are those of one server, since its start.
package protocol ServerFigures: Sendable {
    /// Returns the samples of a span of time, the oldest first, with empty samples for times without requests.
    func history(_ span: FigureSpan) -> [FigureSample]
    /// Returns the last requests, the newest first, without the console's own.
    ///
    /// - Parameter container: Only those of this container.
    func requests(of container: String?) -> [ServedRequest]
    /// Returns the last notifications that were put into the boxes of devices, the newest first.
    ///
    /// - Parameter container: Only those of this container.
    func deliveries(of container: String?) -> [Delivery]
    /// Returns the subscriptions of an account in a container, and the number of its devices there.
    ///
    /// - Parameter account: The account's identifier.
    /// - Throws: The error of the storage of subscriptions.
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
    /// The change of the record: `create`, `update` or `delete`.
    package let event: String
    /// The number of boxes into which it was put, and the number of the account's devices.
    package let delivered, devices: Int

    package init(
        at: Int64, container: String, environment: String, account: String, subscription: String, event: String, delivered: Int,
        devices: Int
    ) {
        (self.at, self.container, self.environment, self.account) = (at, container, environment, account)
        (self.subscription, self.event, self.delivered, self.devices) = (subscription, event, delivered, devices)
    }
}

/// The subscriptions of an account in a container.
package struct NotifiedAccount: Hashable, Sendable {
    package let subscriptions: [KnownSubscription]
    /// The number of devices that the account has registered.
    package let devices: Int

    package init(subscriptions: [KnownSubscription], devices: Int) {
        (self.subscriptions, self.devices) = (subscriptions, devices)
    }
}

/// A subscription in the form for lists.
package struct KnownSubscription: Hashable, Sendable {
    package let id: String
    package let scope: DatabaseScope
    /// Whether the subscription is for all changes of a zone; otherwise it is for records that a query finds.
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

    /// The seconds of a sample.
    package var step: Int64 {
        switch self {
        case .hour: 60
        case .day: 15 * 60
        case .week: 60 * 60
        }
    }

    /// The number of samples.
    package var count: Int {
        switch self {
        case .hour: 60
        case .day: 96
        case .week: 168
        }
    }
}

/// The counts of requests in some minutes.
package struct FigureSample: Hashable, Sendable {
    /// The begin of these minutes: microseconds since 1970 UTC.
    package let began: Int64
    package let requests: Int
    /// The number of refused requests: statuses from 400 to 499.
    package let refused: Int
    /// The number of requests that have failed in the server: statuses from 500 on.
    package let errors: Int
    /// The milliseconds within which half of the requests, and 95 of 100, were answered.
    package let median, slow: Double

    package init(began: Int64, requests: Int, refused: Int, errors: Int, median: Double, slow: Double) {
        (self.began, self.requests, self.refused, self.errors) = (began, requests, refused, errors)
        (self.median, self.slow) = (median, slow)
    }
}

/// An answered request, without its contents.
package struct ServedRequest: Hashable, Sendable {
    /// When it was answered: microseconds since 1970 UTC.
    package let at: Int64
    /// The operation, such as `records.query`.
    package let operation: String
    package let status: Int
    package let milliseconds: Double
    /// The container and the environment; empty if the request names none.
    package let container, environment: String
    /// The account's identifier; empty for nobody.
    package let account: String
    /// The client's address, as limits count it.
    package let address: String

    package init(
        at: Int64, operation: String, status: Int, milliseconds: Double, container: String, environment: String, account: String,
        address: String
    ) {
        (self.at, self.operation, self.status, self.milliseconds) = (at, operation, status, milliseconds)
        (self.container, self.environment, self.account, self.address) = (container, environment, account, address)
    }
}
