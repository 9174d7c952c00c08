import HTTPTypes
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel

/// What is told of the server itself.
struct ServerPages: Sendable {
    let metrics: ServerMetrics
    let bodies: BodyBudget
    let readiness: Readiness
    /// What who asks for the figures has to show; `nil` shows them to nobody.
    let metricsToken: String?

    /// - Parameter check: Reads a little of the databases.
    init(
        metrics: ServerMetrics, bodies: BodyBudget, metricsToken: String?, check: @escaping @Sendable () async throws -> Void
    ) {
        (self.metrics, self.bodies, self.metricsToken) = (metrics, bodies, metricsToken)
        readiness = Readiness(check: check)
    }

    var operations: [Operation] {
        [
            Operation("health", .get, "/health", body: .none) { _ in Reply(body: .text("ok\n", type: Self.text)) },
            Operation("ready", .get, "/ready", body: .none) { _ in
                if await readiness.isReady() {
                    return Reply(body: .text("ready\n", type: Self.text))
                }
                return Reply(status: .serviceUnavailable, body: .text("the databases can't be read\n", type: Self.text))
            },
            Operation("metrics", .get, "/metrics", body: .none) { call in
                try checkToken(call.headers)
                return Reply(body: .text(metrics.text(bodies: bodies.bytes), type: Self.prometheus))
            },
            Operation("openapi", .get, "/openapi.json", body: .none) { _ in .json(PackageResources.openapi_json) },
        ]
    }

    /// Makes sure that a request for the figures shows the token.
    private func checkToken(_ headers: HTTPFields) throws(Refusal) {
        guard let metricsToken else {
            throw Refusal(
                CloudError(.permissionFailure, "the figures are not public: see --metrics-port and --metrics-token-file"))
        }
        guard CredentialStore.areEqual(headers[.authorization] ?? "", "Bearer \(metricsToken)") else {
            throw .authenticationFailed("the figures need their token, as 'Authorization: Bearer'")
        }
    }

    private static let text = "text/plain; charset=utf-8"
    static let prometheus = "text/plain; version=0.0.4; charset=utf-8"
}

/// Whether the databases can be read. It is looked at once a second, and by one at a time, however many ask.
final class Readiness: Sendable {
    private struct Looks {
        var last: (at: Double, isReady: Bool)?
        var running: Task<Bool, Never>?
    }

    private enum Answer {
        case known(Bool)
        case awaited(Task<Bool, Never>)
    }

    private let check: @Sendable () async throws -> Void
    /// Seconds since whenever.
    private let now: @Sendable () -> Double
    private let looks = LockedValue(Looks())

    init(check: @escaping @Sendable () async throws -> Void, now: @escaping @Sendable () -> Double = ServerTime.seconds) {
        (self.check, self.now) = (check, now)
    }

    func isReady() async -> Bool {
        let answer: Answer = looks.withLock { looks in
            if let running = looks.running { return .awaited(running) }
            if let last = looks.last, now() - last.at < 1 { return .known(last.isReady) }
            let task = Task { await self.look() }
            looks.running = task
            return .awaited(task)
        }
        switch answer {
        case .known(let isReady): return isReady
        case .awaited(let task): return await task.value
        }
    }

    private func look() async -> Bool {
        let isReady: Bool
        do {
            try await check()
            isReady = true
        } catch {
            isReady = false
        }
        // One that took long is as new as its end.
        looks.withLock { $0 = Looks(last: (at: now(), isReady: isReady)) }
        return isReady
    }
}
