import HTTPTypes
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel

/// The pages about the server itself: its health and its metrics.
struct ServerPages: Sendable {
    let metrics: ServerMetrics
    let bodies: BodyBudget
    let readiness: Readiness
    /// As ``readiness``, without the contents of assets.
    let recordsReadiness: Readiness
    /// Whether saves are refused because the database has no room. Reads still work, so the server stays ready.
    let hasNoRoom: @Sendable () -> Bool
    /// The token that a request for the metrics needs; `nil` serves no metrics.
    let metricsToken: String?

    var operations: [Operation] {
        [
            Operation("health", .get, "/health", body: .none) { _ in Reply(body: .text("ok\n", type: Self.text)) },
            Operation("ready", .get, "/ready", body: .none) { call in
                let asked = call.query["without"] == "assets" ? recordsReadiness : readiness
                guard let missing = await asked.missing() else {
                    let text = hasNoRoom() ? "ready, but the database has no room: saves are refused, it is read" : "ready"
                    return Reply(body: .text("\(text)\n", type: Self.text))
                }
                return Reply(
                    status: .serviceUnavailable, headers: [.retryAfter: "1"], body: .text("\(missing.part)\n", type: Self.text))
            },
            Operation("metrics", .get, "/metrics", body: .none) { call in
                try checkToken(call.headers)
                return Reply(body: .text(metrics.text(bodies: bodies.bytes), type: Self.prometheus))
            },
            Operation("openapi", .get, "/openapi.json", body: .none) { _ in .json(PackageResources.openapi_json) },
        ]
    }

    /// Checks that a request for the metrics has the token.
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

/// Tells whether everything that the server needs can be reached. It checks once a second at most, for all requests together.
final class Readiness: Sendable {
    private struct Looks {
        var last: (at: Double, missing: Missing?)?
        var running: Task<Missing?, Never>?
    }

    private enum Answer {
        case known(Missing?)
        case awaited(Task<Missing?, Never>)
    }

    private let check: @Sendable () async throws(Missing) -> Void
    private let onChange: @Sendable (Missing?) -> Void
    /// Seconds of a monotonic clock.
    private let now: @Sendable () -> Double
    private let looks = LockedValue(Looks())

    /// - Parameters:
    ///   - check: Reads a little of what the server needs.
    ///   - onChange: Called when a part becomes missing, when another part does, and when nothing is missing any more.
    init(
        check: @escaping @Sendable () async throws(Missing) -> Void, onChange: @escaping @Sendable (Missing?) -> Void = { _ in },
        now: @escaping @Sendable () -> Double = ServerTime.seconds
    ) {
        (self.check, self.onChange, self.now) = (check, onChange, now)
    }

    /// Returns the missing part; `nil` where everything can be reached.
    func missing() async -> Missing? {
        let answer: Answer = looks.withLock { looks in
            if let running = looks.running { return .awaited(running) }
            if let last = looks.last, now() - last.at < 1 { return .known(last.missing) }
            let task = Task { await self.look() }
            looks.running = task
            return .awaited(task)
        }
        switch answer {
        case .known(let missing): return missing
        case .awaited(let task): return await task.value
        }
    }

    private func look() async -> Missing? {
        let missing: Missing?
        do throws(Missing) {
            try await check()
            missing = nil
        } catch {
            missing = error
        }
        // The age of a long check counts from its end.
        let before = looks.withLock { looks in
            let before = looks.last?.missing
            looks = Looks(last: (at: now(), missing: missing))
            return before
        }
        if before?.part != missing?.part { onChange(missing) }
        return missing
    }
}
