import NIOCore
import TidemarkModel

/// Counts the connections of each address, so that one address leaves room for the others.
final class AddressConnections: Sendable {
    private struct Connections {
        var most: Int
        var byAddress: [String: Int] = [:]
    }

    private let connections: LockedValue<Connections>

    /// - Parameter most: The most connections of one address; 0 for no limit.
    init(most: Int) { connections = LockedValue(Connections(most: most)) }

    /// Lowers the limit, because the system allows fewer connections.
    func lower(to most: Int) {
        connections.withLock { connections in
            guard connections.most > 0 else { return }
            connections.most = min(connections.most, max(1, most))
        }
    }

    /// Counts a connection of an address, unless the address has as many as it may.
    func open(_ address: String) -> Bool {
        connections.withLock { connections in
            let count = connections.byAddress[address] ?? 0
            guard connections.most == 0 || count < connections.most else { return false }
            connections.byAddress[address] = count + 1
            return true
        }
    }

    func close(_ address: String) {
        connections.withLock { connections in
            let left = (connections.byAddress[address] ?? 0) - 1
            connections.byAddress[address] = left > 0 ? left : nil
        }
    }
}

/// Closes a connection before anything is read from it. It is the first handler of the pipeline.
final class ClosedDoor: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { context.close(promise: nil) }
    }

    // The handlers behind it never learn of the connection.
    func channelActive(context: ChannelHandlerContext) { context.close(promise: nil) }
}

@available(*, unavailable)
extension ClosedDoor: Sendable {}
