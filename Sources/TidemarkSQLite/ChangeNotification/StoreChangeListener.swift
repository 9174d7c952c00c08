package import Foundation

/// Calls a function when a notifier of another process, or another notifier of this process, has posted.
///
/// A notification is a hint that a store may have changed: the receiver reads the history since its last token. Several
/// notifications may become one call, and a call may come without a change. After the last notification a call always begins. A
/// receiver that listens before it reads the history for the first time misses nothing.
///
/// A listener only reads the container's folders, so it works for a process that may not write there. The folder of the notifiers
/// need not exist yet, and may be moved, removed and made again. While no process posts, no thread wakes up.
///
/// ```swift
/// let listener = try StoreChangeListener(container: container, ignoring: notifier) { changes.refresh() }
/// ```
///
/// On Linux each listener takes one inotify instance. A user usually has 128 of them.
public final class StoreChangeListener: Sendable {
    private let watch: NotifierWatch

    /// Listens to the notifiers in a folder, which may be a container or another folder.
    ///
    /// - Parameters:
    ///   - marker: The name of a file whose replacement leads to a call, too.
    ///   - own: A notifier of this process that is ignored.
    ///   - heard: The function to call. It runs on a queue of the listener.
    package init(
        in place: URL, marker: String? = nil, ignoring own: StoreChangeNotifier?, _ heard: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        watch = try NotifierWatch(container: place.absoluteURL, marker: marker, own: own, heard: heard)
    }

    deinit { watch.cancel() }

    /// Stops listening, without waiting for a call that is running.
    package func cancel() { watch.cancel() }

    /// Stops listening. When this returns no call is running, and none begins any more; only a call that itself calls `close()`
    /// goes on.
    public func close() { watch.close() }
}
