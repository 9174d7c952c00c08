import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// Serves the metrics at a port of their own, which the network in front of the server can block.
struct MetricsServer: Sendable {
    let host: String
    let port: Int
    let metrics: ServerMetrics
    let bodies: BodyBudget
    let logger: Logger

    /// Serves until the server is shut down.
    func run(_ onListening: @escaping @Sendable (Int) -> Void) async throws {
        let (metrics, bodies) = (metrics, bodies)
        let server = try HTTPServerBuilder.http1().buildServer(
            configuration: HummingbirdCore.ServerConfiguration(
                address: .hostname(host, port: port), availableConnectionsDelegate: ConnectionLimit(100)),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger,
            responder: { request, writer, _ in
                let isThere = request.uri.path == "/metrics" && (request.method == .get || request.method == .head)
                let text = isThere ? metrics.text(bodies: bodies.bytes) : "the figures are at /metrics\n"
                let body = ByteBuffer(string: text)
                let head = HTTPResponse(
                    status: isThere ? .ok : .notFound,
                    headerFields: [
                        .contentType: ServerPages.prometheus, .cacheControl: "no-store",
                        .contentLength: String(body.readableBytes),
                    ])
                guard request.method != .head else { return try await writer.writeResponse(head) }
                var response = try await writer.writeHead(head)
                try await response.write(body)
                try await response.finish(nil)
            },
            onServerRunning: { channel in onListening(channel.localAddress?.port ?? port) })
        try await server.run()
    }
}
