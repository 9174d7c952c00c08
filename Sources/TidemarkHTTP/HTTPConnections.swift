import AsyncHTTPClient
import NIOCore

/// The connections of a cloud. Those who wait for news have their own, so that nothing else waits for them; and pieces of assets come on
/// others than calls, whose answers may take longer to begin.
final class HTTPConnections: Sendable {
    private let calls, downloads, polls: HTTPClient

    init(_ patience: HTTPPatience, _ trustRoots: TrustRoots) {
        calls = Self.client(patience, trustRoots, silence: max(patience.looking, patience.changing), perHost: 8)
        downloads = Self.client(patience, trustRoots, silence: patience.silence, perHost: 8)
        polls = Self.client(patience, trustRoots, silence: patience.polling, perHost: 256)
    }

    deinit { for client in all { client.shutdown { _ in } } }

    private var all: [HTTPClient] { [calls, downloads, polls] }

    func client(for kind: HTTPCall.Kind) -> HTTPClient {
        switch kind {
        case .look, .change, .upload: calls
        case .download: downloads
        case .poll: polls
        }
    }

    func shutdown() async {
        for client in all {
            await withCheckedContinuation { continuation in client.shutdown { _ in continuation.resume() } }
        }
    }

    /// - Parameter silence: How long nothing may come of an answer.
    private static func client(
        _ patience: HTTPPatience, _ trustRoots: TrustRoots, silence: Duration, perHost: Int
    ) -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        configuration.tlsConfiguration = trustRoots.configuration
        configuration.redirectConfiguration = .disallow
        configuration.timeout = .init(
            connect: patience.connecting.amount, read: silence.amount, write: patience.silence.amount)
        // Servers close what is idle for longer; a request that meets the closing would be lost.
        configuration.connectionPool.idleTimeout = .seconds(20)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = perHost
        // Whoever synchronises tries again by itself, and whoever waits at a terminal wants to know.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.decompression = .enabled(limit: .size(patience.bytesPerAnswer))
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
}
