import NIOCore
import TidemarkModel

/// The connections that each address has, so that one leaves room for the others.
final class AddressConnections: Sendable {
    private struct Connections {
        var most: Int
        var byAddress: [String: Int] = [:]
    }

    private let connections: LockedValue<Connections>

    /// - Parameter most: Of one address; 0 for no limit.
    init(most: Int) { connections = LockedValue(Connections(most: most)) }

    /// There is room for fewer than was thought.
    func lower(to most: Int) {
        connections.withLock { connections in
            guard connections.most > 0 else { return }
            connections.most = min(connections.most, max(1, most))
        }
    }

    /// Counts one more from an address, if it may have it.
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

/// Closes a connection before anything is read of it. Stands before all others.
final class ClosedDoor: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { context.close(promise: nil) }
    }

    // Nobody behind it learns that there was a connection.
    func channelActive(context: ChannelHandlerContext) { context.close(promise: nil) }
}

@available(*, unavailable)
extension ClosedDoor: Sendable {}
