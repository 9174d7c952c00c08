import NIOCore
import NIOPosix
import TidemarkModel

/// A connection on which a test writes any bytes, and sees the answers and when the server closes it.
final class RawConnection: Sendable {
    private final class Collector: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let text = LockedValue("")
        /// The texts that callers wait for; `nil` once the connection is closed.
        let waiting = LockedValue<[(String, EventLoopPromise<Void>)]?>([])

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let piece = String(buffer: unwrapInboundIn(data))
            let all = text.withLock {
                $0 += piece
                return $0
            }
            waiting.withLock { waiting in
                for (_, promise) in (waiting ?? []).filter({ all.contains($0.0) }) { promise.succeed() }
                waiting?.removeAll { all.contains($0.0) }
            }
        }

        func channelInactive(context: ChannelHandlerContext) {
            waiting.withLock { waiting in
                for (_, promise) in waiting ?? [] { promise.fail(ChannelError.eof) }
                waiting = nil
            }
        }

        // The server may close the connection during a write.
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private let channel: any Channel
    private let collector: Collector

    init(port: Int) async throws {
        let collector = Collector()
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { $0.pipeline.addHandler(collector) }
            .connect(host: "127.0.0.1", port: port).get()
        self.collector = collector
    }

    func write(_ text: String) async throws { try await channel.writeAndFlush(ByteBuffer(string: text)) }
    func write(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    /// Waits until a text has come.
    func receive(_ text: String) async throws {
        let promise = channel.eventLoop.makePromise(of: Void.self)
        collector.waiting.withLock { waiting in
            if collector.text.withLock({ $0.contains(text) }) {
                promise.succeed()
            } else if waiting == nil {
                promise.fail(ChannelError.eof)
            } else {
                waiting?.append((text, promise))
            }
        }
        try await promise.futureResult.get()
    }

    /// Waits until the server closes the connection; returns all that has come.
    func closed() async throws -> String {
        try await channel.closeFuture.get()
        return collector.text.withLock { $0 }
    }

    func close() async throws { try await channel.close() }
    var isOpen: Bool { channel.isActive }
}
