import HTTPTypes
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel

/// What is told of the server itself.
struct ServerPages: Sendable {
    let metrics: ServerMetrics
    let bodies: BodyBudget
    let readiness: Readiness
    /// As ``readiness``, but for the contents of assets.
    let recordsReadiness: Readiness
    /// Whether saves are refused because the database has no room. It is read all the same, so the server stays ready.
    let hasNoRoom: @Sendable () -> Bool
    /// What who asks for the figures has to show; `nil` shows them to nobody.
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

/// Whether all that the server needs can be reached. It is looked at once a second, and by one request at a time, however many ask.
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
    /// Seconds since whenever.
    private let now: @Sendable () -> Double
    private let looks = LockedValue(Looks())

    /// - Parameters:
    ///   - check: Reads a little of what the server needs.
    ///   - onChange: Is told when something is missing, when another part is, and when nothing is any more.
    init(
        check: @escaping @Sendable () async throws(Missing) -> Void, onChange: @escaping @Sendable (Missing?) -> Void = { _ in },
        now: @escaping @Sendable () -> Double = ServerTime.seconds
    ) {
        (self.check, self.onChange, self.now) = (check, onChange, now)
    }

    /// What is missing; `nil` where nothing is.
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
        // One that took long is as new as its end.
        let before = looks.withLock { looks in
            let before = looks.last?.missing
            looks = Looks(last: (at: now(), missing: missing))
            return before
        }
        if before?.part != missing?.part { onChange(missing) }
        return missing
    }
}
