import HTTPTypes

/// What is told of the server itself.
struct ServerPages: Sendable {
    let metrics: ServerMetrics
    let bodies: BodyBudget
    /// Reads a little of the databases.
    let check: @Sendable () async throws -> Void

    var operations: [Operation] {
        [
            Operation("health", .get, "/health", body: .none) { _ in Reply(body: .text("ok\n", type: Self.text)) },
            Operation("ready", .get, "/ready", body: .none) { _ in
                do {
                    try await check()
                    return Reply(body: .text("ready\n", type: Self.text))
                } catch {
                    return Reply(status: .serviceUnavailable, body: .text("the databases can't be read\n", type: Self.text))
                }
            },
            Operation("metrics", .get, "/metrics", body: .none) { _ in
                Reply(body: .text(metrics.text(bodies: bodies.bytes), type: "text/plain; version=0.0.4; charset=utf-8"))
            },
            Operation("openapi", .get, "/openapi.json", body: .none) { _ in .json(PackageResources.openapi_json) },
        ]
    }

    private static let text = "text/plain; charset=utf-8"
}
