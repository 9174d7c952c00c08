import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// The line of handlers of a connection that speaks HTTP/1.1.
struct ServedChannel: ServerChildChannel, HTTPChannelHandler {
    typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    let responder: HTTPChannelHandler.Responder
    let limits: ServerLimits
    let hasTLS: Bool
    let metrics: ServerMetrics

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        metrics.opened()
        channel.closeFuture.whenComplete { [metrics] _ in metrics.closed() }
        return channel.eventLoop.makeCompletedFuture {
            let line = channel.pipeline.syncOperations
            let connection = ConnectionGuard(limits: limits, metrics: metrics)
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

    func handle(value: Value, logger: Logger) async { await handleHTTP(asyncChannel: value, logger: logger) }
}

/// Accepts no more connections than that; those that come besides wait.
struct ConnectionLimit: AvailableConnectionsDelegate {
    let limit: Int
    private var count = 0

    init(_ limit: Int) { self.limit = limit }

    mutating func connectionOpened() { count += 1 }
    mutating func connectionClosed() { count -= 1 }
    func isAcceptingNewConnections() -> Bool { count < limit }
}
