import HTTPTypes
import Synchronization

/// What is told of the server itself.
struct ServerPages: Sendable {
    let metrics: ServerMetrics
    let bodies: BodyBudget
    let readiness: Readiness

    /// - Parameter check: Reads a little of the databases.
    init(metrics: ServerMetrics, bodies: BodyBudget, check: @escaping @Sendable () async throws -> Void) {
        (self.metrics, self.bodies) = (metrics, bodies)
        readiness = Readiness(check: check)
    }

    var operations: [Operation] {
        [
            Operation("health", .get, "/health", body: .none) { _ in Reply(body: .text("ok\n", type: Self.text)) },
            Operation("ready", .get, "/ready", body: .none) { _ in
                if await readiness.isReady(at: ServerTime.seconds()) {
                    return Reply(body: .text("ready\n", type: Self.text))
                }
                return Reply(status: .serviceUnavailable, body: .text("the databases can't be read\n", type: Self.text))
            },
            Operation("metrics", .get, "/metrics", body: .none) { _ in
                Reply(body: .text(metrics.text(bodies: bodies.bytes), type: "text/plain; version=0.0.4; charset=utf-8"))
            },
            Operation("openapi", .get, "/openapi.json", body: .none) { _ in .json(PackageResources.openapi_json) },
        ]
    }

    private static let text = "text/plain; charset=utf-8"
}

/// Whether the databases can be read. It is looked at once a second, however many ask.
final class Readiness: Sendable {
    private let check: @Sendable () async throws -> Void
    private let last = Mutex<(at: Double, isReady: Bool)?>(nil)

    init(check: @escaping @Sendable () async throws -> Void) { self.check = check }

    /// - Parameter now: Seconds since whenever.
    func isReady(at now: Double) async -> Bool {
        if let last = last.withLock({ $0 }), now - last.at < 1 { return last.isReady }
        let isReady: Bool
        do {
            try await check()
            isReady = true
        } catch {
            isReady = false
        }
        last.withLock { $0 = (at: now, isReady: isReady) }
        return isReady
    }
}
