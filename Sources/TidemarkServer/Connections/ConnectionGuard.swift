import NIOCore
import NIOHTTP1
import NIOTLS

/// Closes a connection whose client keeps the server waiting, and counts its bytes. It stands between TLS and the HTTP decoder.
final class ConnectionGuard: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var timeouts: ConnectionTimeouts
    private let metrics: ServerMetrics
    private let idle: IdleConnections
    private let address: String
    /// Requests that have begun to arrive and whose answers are not complete.
    private var unanswered = 0
    private var isResting = false
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    private var timerDeadline: NIODeadline?

    /// - Parameter address: The connection's address, in the form that limits use.
    init(limits: ServerLimits, metrics: ServerMetrics, idle: IdleConnections, address: String) {
        timeouts = ConnectionTimeouts(limits: limits, allowance: .random(in: 0..<0.25))
        (self.metrics, self.idle, self.address) = (metrics, idle, address)
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

    /// A new connection is expected to send a request. Only a connection that was used may rest.
    private func begin() {
        timeouts.begin(at: .now())
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
        wake(context)
        let now = NIODeadline.now()
        timeouts.receive(count, at: now)
        context.fireChannelRead(data)
        // The decoder has handled the bytes by now. Most requests are complete, and then no timer is set.
        arm()
    }

    func read(context: ChannelHandlerContext) {
        timeouts.setReading(true, at: .now())
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // A handler that wants to read on calls `read` now.
        timeouts.setReading(false, at: .now())
        context.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        metrics.sent(unwrapOutboundIn(data).readableBytes)
        context.write(data, promise: promise)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        timeouts.setTaking(context.channel.isWritable, at: .now())
        arm()
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted = event as? TLSUserEvent {
            timeouts.begin(at: .now())
            arm()
        }
        if event is IdleConnections.GiveWay {
            if isResting {
                metrics.gaveWay()
                context.close(promise: nil)
            }
            return
        }
        context.fireUserInboundEventTriggered(event)
    }

    // The events of the HTTP decoder, reported by the handler behind it

    fileprivate func receiveHead() {
        // The bytes of a head may have come together with the end of an earlier request, which was answered first.
        if let context { wake(context) }
        timeouts.receiveHead(at: .now())
        unanswered += 1
    }

    /// Records the end of a request. A request that is refused by its head may have been answered before.
    fileprivate func receiveEnd() {
        timeouts.receiveEnd()
        restIfDone()
    }

    /// Records the end of an answer.
    fileprivate func sendEnd() {
        unanswered -= 1
        restIfDone()
    }

    private func restIfDone() {
        guard unanswered <= 0, timeouts.isQuiet, !isResting, let context else { return }
        isResting = true
        idle.rest(context.channel, of: address)
    }

    private func wake(_ context: ChannelHandlerContext) {
        guard isResting else { return }
        isResting = false
        idle.wake(context.channel)
    }

    /// Sets a timer, unless one is set that fires in time. A timer that fires too early is set again.
    private func arm() {
        guard let context, let deadline = timeouts.deadline else { return }
        if timer != nil, let timerDeadline, timerDeadline <= deadline { return }
        timer?.cancel()
        timerDeadline = deadline
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.timeIsUp() }
    }

    private func timeIsUp() {
        timer = nil
        guard let context else { return }
        if timeouts.expire(at: .now()) {
            metrics.gaveUp()
            context.close(promise: nil)
        } else {
            arm()
        }
    }
}

@available(*, unavailable)
extension ConnectionGuard: Sendable {}

/// Stands behind the HTTP decoder, and reports to the guard where requests begin and end and where answers end. If `Host` is
/// missing, doubled or malformed, the request continues without one, and is refused.
final class RequestMarker: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let connection: ConnectionGuard

    init(_ connection: ConnectionGuard) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            connection.receiveHead()
            let hosts = head.headers["host"]
            guard hosts.count == 1, WebAddress.isHost(hosts[0]) else {
                head.headers.remove(name: "host")
                context.fireChannelRead(wrapInboundOut(.head(head)))
                return
            }
        case .body: break
        case .end: connection.receiveEnd()
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let isEnd = if case .end = unwrapOutboundIn(data) { true } else { false }
        context.write(data, promise: promise)
        if isEnd { connection.sendEnd() }
    }
}

@available(*, unavailable)
extension RequestMarker: Sendable {}
