public import Foundation
public import TidemarkCloud
public import TidemarkModel

/// A fault of a request.
public enum CloudFault: String, CaseIterable, Sendable {
    /// The request does not reach the cloud.
    case networkUnavailable
    /// The request is done, and its answer is lost.
    case lostReply
    /// The cloud refuses the request for the moment.
    case serviceUnavailable
    /// The zone is busy. As `CKError.zoneBusy`.
    case zoneBusy
    /// The cloud refuses the request, and asks for a wait.
    case requestRateLimited
    /// The change token has expired. A request without a token is slow instead.
    case changeTokenExpired
    /// The request is slow, so that others overtake it.
    case slow
}

/// A plan of faults. It draws them by a seed, so that a run can be repeated.
public struct FaultPlan: Sendable {
    /// The share of requests that suffer each fault, from 0 to 1; together at most 1.
    public var rates: [CloudFault: Double]
    /// The seed of the random numbers. The same seed leads to the same faults.
    public var seed: UInt64
    /// The longest wait of a slow request.
    public var delayMax: Duration

    /// Makes a plan. A fault without a rate does not occur.
    public init(seed: UInt64, rates: [CloudFault: Double] = [:], delayMax: Duration = .milliseconds(20)) {
        self.seed = seed
        self.rates = rates
        self.delayMax = delayMax
    }

    /// Returns a plan with all faults, each equally often.
    ///
    /// - Parameters:
    ///   - rate: The share of requests that suffer a fault, from 0 to 1.
    ///   - seed: The seed of the random numbers.
    public static func all(rate: Double, seed: UInt64) -> FaultPlan {
        let share = rate / Double(CloudFault.allCases.count)
        return FaultPlan(seed: seed, rates: Dictionary(uniqueKeysWithValues: CloudFault.allCases.map { ($0, share) }))
    }
}

/// Wraps a database, and injects faults into its requests by a plan.
///
/// ```swift
/// let nasty = FaultyDatabase(database, plan: .all(rate: 0.2, seed: 42))
/// ```
///
/// Requests without a fault are passed to the wrapped database unchanged.
public final class FaultyDatabase: CloudDatabase {
    private struct State {
        var random: SeededRandom
        var plan: FaultPlan
        /// The faults of the next requests, which precede those of the plan.
        var next: [CloudFault] = []
        var counts: [CloudFault: Int] = [:]
    }

    let base: any CloudDatabase
    private let sleep: @Sendable (Duration) async -> Void
    private let state: LockedValue<State>

    /// Wraps a database.
    ///
    /// - Parameters:
    ///   - base: The database.
    ///   - plan: The plan of the faults.
    ///   - sleep: Waits for a slow request, such as ``TestClock/sleep(_:)``. Cancelling the task ends the wait.
    public init(
        _ base: any CloudDatabase, plan: FaultPlan,
        sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    ) {
        self.base = base
        self.sleep = sleep
        state = LockedValue(State(random: SeededRandom(plan.seed), plan: plan))
    }

    /// Injects faults into the next requests, one into each. The plan continues afterwards.
    public func inject(_ faults: [CloudFault]) { state.withLock { $0.next += faults } }

    /// Replaces the rates of the plan.
    public func change(_ rates: [CloudFault: Double]) { state.withLock { $0.plan.rates = rates } }

    /// Ends all faults.
    public func calm() {
        state.withLock { state in
            state.next = []
            state.plan.rates = [:]
        }
    }

    /// The number of times that each fault has occurred.
    public var counts: [CloudFault: Int] { state.withLock(\.counts) }

    private func draw() -> (fault: CloudFault?, delay: Duration) {
        state.withLock { state in
            var fault: CloudFault?
            if !state.next.isEmpty {
                fault = state.next.removeFirst()
            } else {
                var place = state.random.unit()
                for candidate in CloudFault.allCases {
                    let rate = state.plan.rates[candidate] ?? 0
                    if place < rate {
                        fault = candidate
                        break
                    }
                    place -= rate
                }
            }
            if let fault { state.counts[fault, default: 0] += 1 }
            return (fault, state.plan.delayMax * state.random.unit())
        }
    }

    func suffering<Answer>(
        token: CloudToken? = nil, _ body: () async throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        let (fault, delay) = draw()
        switch fault {
        case nil: return try await body()
        case .networkUnavailable: throw CloudError(.networkUnavailable, "injected: the network is down")
        case .serviceUnavailable: throw CloudError(.serviceUnavailable, "injected: the service is unavailable")
        case .zoneBusy: throw CloudError(.zoneBusy, "injected: the zone is busy")
        case .requestRateLimited:
            throw CloudError(.requestRateLimited, "injected: too many requests", retryAfter: delay)
        case .lostReply:
            _ = try await body()
            throw CloudError(.networkFailure, "injected: the answer was lost")
        case .changeTokenExpired where token != nil:
            throw CloudError(.changeTokenExpired, "injected: the change token has expired")
        case .changeTokenExpired, .slow:
            await sleep(delay)
            return try await body()
        }
    }

    public var scope: DatabaseScope { base.scope }
    public func limits() async throws(CloudError) -> CloudLimits { try await base.limits() }

    public func account() async throws(CloudError) -> CloudAccount {
        try await suffering { () async throws(CloudError) in try await base.account() }
    }

    public func zones() async throws(CloudError) -> [CloudZoneID] {
        try await suffering { () async throws(CloudError) in try await base.zones() }
    }

    public func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        try await suffering { () async throws(CloudError) in try await base.modifyZones(saving: saving, deleting: deleting) }
    }

    public func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        try await suffering { () async throws(CloudError) in try await base.modify(request) }
    }

    public func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        try await suffering { () async throws(CloudError) in try await base.lookup(names, in: zone, desiredKeys: desiredKeys) }
    }

    public func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer {
        try await suffering { () async throws(CloudError) in
            try await base.query(query, in: zone, limit: limit, desiredKeys: desiredKeys, continuation: continuation)
        }
    }

    public func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try await suffering(token: token) { () async throws(CloudError) in
            try await base.databaseChanges(since: token, limit: limit)
        }
    }

    public func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try await suffering(token: token) { () async throws(CloudError) in
            try await base.zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
        }
    }

    public func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try await suffering { () async throws(CloudError) in try await base.missingAssets(assets, in: zone) }
    }

    public func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        try await suffering { () async throws(CloudError) in try await base.upload(piece, of: asset, at: offset, in: zone) }
    }

    public func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try await suffering { () async throws(CloudError) in try await base.download(asset, in: zone, from: offset, count: count)
        }
    }

    public func notifications() async throws(CloudError) -> AsyncStream<Void> { try await base.notifications() }
}
