import NIOCore
import NIOHTTP1
import NIOTLS

/// Closes a connection whose client keeps the server waiting; counts its bytes. Stands before the decoder of HTTP, behind TLS.
final class ConnectionGuard: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var patience: ConnectionPatience
    private let metrics: ServerMetrics
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    private var timerDeadline: NIODeadline?

    init(limits: ServerLimits, metrics: ServerMetrics) {
        patience = ConnectionPatience(limits: limits, allowance: .random(in: 0..<0.25))
        self.metrics = metrics
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin() }
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelActive(context: ChannelHandlerContext) {
        begin()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    /// Whoever connects has something to ask: only a connection that was used may rest.
    private func begin() {
        patience.begin(at: .now())
        arm()
    }

    private func end() {
        timer?.cancel()
        timer = nil
        context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let count = unwrapInboundIn(data).readableBytes
        metrics.received(count)
        let now = NIODeadline.now()
        patience.receive(count, at: now)
        context.fireChannelRead(data)
        // Behind this, the decoder has said what it made of the bytes: most requests are here whole, and no time is set.
        arm()
    }

    func read(context: ChannelHandlerContext) {
        patience.setReading(true, at: .now())
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // Whoever wants to read on says so now.
        patience.setReading(false, at: .now())
        context.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        metrics.sent(unwrapOutboundIn(data).readableBytes)
        context.write(data, promise: promise)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        patience.setTaking(context.channel.isWritable, at: .now())
        arm()
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted = event as? TLSUserEvent {
            patience.begin(at: .now())
            arm()
        }
        context.fireUserInboundEventTriggered(event)
    }

    // What the decoder has found, told by the handler behind it.

    fileprivate func receiveHead() { patience.receiveHead(at: .now()) }
    fileprivate func receiveEnd() { patience.receiveEnd() }

    /// Sets a timer unless one is set that comes in time. One that comes too early is set anew when it does.
    private func arm() {
        guard let context, let deadline = patience.deadline else { return }
        if timer != nil, let timerDeadline, timerDeadline <= deadline { return }
        timer?.cancel()
        timerDeadline = deadline
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.timeIsUp() }
    }

    private func timeIsUp() {
        timer = nil
        guard let context else { return }
        if patience.expire(at: .now()) {
            metrics.gaveUp()
            context.close(promise: nil)
        } else {
            arm()
        }
    }
}

@available(*, unavailable)
extension ConnectionGuard: Sendable {}

/// Stands behind the decoder of HTTP, and tells the guard before it where requests begin and end.
final class RequestMarker: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let connection: ConnectionGuard

    init(_ connection: ConnectionGuard) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: connection.receiveHead()
        case .body: break
        case .end: connection.receiveEnd()
        }
        context.fireChannelRead(data)
    }
}

@available(*, unavailable)
extension RequestMarker: Sendable {}
