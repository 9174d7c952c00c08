import TidemarkConsole
import TidemarkModel

/// Remembers the last notifications that this server has put into the boxes of devices.
final class DeliveryLog: Sendable {
    /// The number of deliveries that are remembered.
    private static let most = 500

    private let state = LockedValue<(deliveries: [Delivery], next: Int)>(([], 0))

    func record(_ delivery: Delivery) {
        state.withLock { state in
            if state.deliveries.count < Self.most {
                state.deliveries.append(delivery)
            } else {
                state.deliveries[state.next] = delivery
                state.next = (state.next + 1) % Self.most
            }
        }
    }

    /// Returns the last deliveries, the newest first.
    ///
    /// - Parameter container: Only those of this container.
    func deliveries(of container: String?) -> [Delivery] {
        let (deliveries, next) = state.withLock { ($0.deliveries, $0.next) }
        return (deliveries[next...] + deliveries[..<next]).reversed().filter { container == nil || $0.container == container }
    }
}
