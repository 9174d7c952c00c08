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
                if await readiness.isReady() {
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
    private let looks = Mutex(Looks())

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
