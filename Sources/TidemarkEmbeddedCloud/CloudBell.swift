import Foundation
import Synchronization
import TidemarkCloud
import TidemarkStore

/// Tells whoever listens, in this process and in others, that something was written to a container's databases.
final class CloudBell: Sendable {
    private struct State {
        var doorbell: Doorbell?
        var listener: DoorbellListener?
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let folder: URL?
    private let state = Mutex(State())

    /// - Parameter folder: Where others are told; `nil` for this process only.
    init(_ folder: URL?) { self.folder = folder }

    func ring(_ change: Int64) {
        let listeners = state.withLock { state in
            if let folder, state.doorbell == nil {
                // Where nobody can be told, they look by themselves in a while.
                state.doorbell = try? Doorbell(in: folder, role: .app)
            }
            state.doorbell?.ring(transaction: change, scope: .public)
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield() }
    }

    /// The rings from now on; those that nobody has waited for become one.
    func rings() throws(CloudError) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        do {
            let number = try state.withLock { state in
                if let folder, state.listener == nil {
                    if state.doorbell == nil { state.doorbell = try Doorbell(in: folder, role: .app) }
                    state.listener = try DoorbellListener(in: folder, ignoring: state.doorbell) { [weak self] in self?.tell() }
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
