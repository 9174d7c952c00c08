import Foundation
import Synchronization
import TidemarkCloud
import TidemarkStore

/// Tells whoever listens, in this process and in others, that something was written to a container's databases.
final class CloudBell: Sendable {
    private struct State {
        var rings: Int64 = 0
        var listener: DoorbellListener?
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let folder: URL
    private let doorbell: Doorbell
    private let state = Mutex(State())

    init(_ folder: URL) throws(StoreError) {
        self.folder = folder
        doorbell = try Doorbell(in: folder, role: .app)
    }

    func ring() {
        let (count, listeners) = state.withLock { state in
            state.rings += 1
            return (state.rings, Array(state.listeners.values))
        }
        doorbell.ring(transaction: count, scope: .public)
        for listener in listeners { listener.yield() }
    }

    /// The rings from now on; those that nobody has waited for become one.
    func rings() throws(CloudError) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        do {
            let number = try state.withLock { state in
                if state.listener == nil {
                    state.listener = try DoorbellListener(in: folder, ignoring: doorbell) { [weak self] in self?.tell() }
                }
                state.next += 1
                state.listeners[state.next] = continuation
                return state.next
            }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
            }
        } catch {
            throw CloudError(storage: error)
        }
        return stream
    }

    private func tell() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }
}
