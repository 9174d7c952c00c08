import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Notifies listeners, in this process and in others, that a container's databases in a folder have changed.
final class ZoneChangeNotifier: ChangeSignal {
    private struct State {
        var notifications: Int64 = 0
        var listener: StoreChangeListener?
    }

    private let folder: URL
    private let notifier: StoreChangeNotifier
    private let state = LockedValue(State())
    private let listeners = ChangeListeners()

    var heard: Int64 { listeners.heard }

    init(_ folder: URL) throws(StoreError) {
        self.folder = folder
        notifier = try StoreChangeNotifier(in: folder, role: .app)
    }

    func post() {
        let count = state.withLock { state in
            state.notifications += 1
            return state.notifications
        }
        notifier.post(transaction: count, scope: .public)
        listeners.wake()
    }

    func notifications() throws(CloudError) -> AsyncStream<Void> {
        do {
            try state.withLock { state in
                guard state.listener == nil else { return }
                state.listener = try StoreChangeListener(in: folder, ignoring: notifier) { [listeners] in listeners.wake() }
            }
        } catch {
            throw CloudError(storage: error)
        }
        return listeners.stream()
    }
}
