import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// The channel handlers of a connection that speaks HTTP/1.1.
struct ServedChannel: ServerChildChannel, HTTPChannelHandler {
    typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    let responder: HTTPChannelHandler.Responder
    let limits: ServerLimits
    let hasTLS: Bool
    let metrics: ServerMetrics
    let addresses: AddressConnections
    let idle: IdleConnections

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        metrics.opened()
        let address = channel.remoteAddress?.ipAddress.map(CloudResponder.network)
        let isTurnedAway = !enter(channel, address)
        idle.opened()
        channel.closeFuture.whenComplete { [metrics, idle] _ in
            metrics.closed()
            idle.closed(channel)
        }
        return channel.eventLoop.makeCompletedFuture {
            let line = channel.pipeline.syncOperations
            // The handlers are added all the same, because the framework expects them on each connection.
            if isTurnedAway { try line.addHandler(ClosedDoor(), position: .first) }
            let connection = ConnectionGuard(limits: limits, metrics: metrics, idle: idle, address: address ?? "")
            try line.addHandler(connection)
            var size = NIOHTTPDecoderLimitConfiguration()
            size.maxHeaderFieldSize = limits.headSize
            size.maxHeaderListSize = limits.headSize
            size.maxHeaderFieldCount = 100
            try line.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: size)
            try line.addHandler(RequestMarker(connection))
            try line.addHandler(HTTP1ToHTTPServerCodec(secure: hasTLS))
            try line.addHandler(HTTPConnectionStateHandler(idleTimeout: limits.idleTime, logger: logger))
            return try NIOAsyncChannel(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
    }

    /// Counts a connection for its address until it is closed.
    ///
    /// - Returns: Whether the address may have it.
    private func enter(_ channel: any Channel, _ address: String?) -> Bool {
        // A connection that has closed again has no address.
        guard let address else { return true }
        guard addresses.open(address) else {
            metrics.turnedAway()
            return false
        }
        channel.closeFuture.whenComplete { [addresses] _ in addresses.close(address) }
        return true
    }

    func handle(value: Value, logger: Logger) async { await handleHTTP(asyncChannel: value, logger: logger) }
}

/// Limits the number of accepted connections. Further ones wait.
struct ConnectionLimit: AvailableConnectionsDelegate {
    let limit: Int
    private var count = 0

    init(_ limit: Int) { self.limit = limit }

    mutating func connectionOpened() { count += 1 }
    mutating func connectionClosed() { count -= 1 }
    func isAcceptingNewConnections() -> Bool { count < limit }
}
