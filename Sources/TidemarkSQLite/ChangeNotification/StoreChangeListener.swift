package import Foundation

/// Hears the notifiers of other processes, and of other notifiers in its own.
///
/// A notification is a hint that a store may have changed: the receiver reads the history since its last token. Notifications may merge, and
/// one may come without a change. After the last notification a call always begins. A receiver that listens before it reads the history for
/// the first time misses nothing.
///
/// A listener reads the container's folders and nothing else, so it works for a process that may not write there. The folder of the notifiers
/// need not be there yet, and may be moved, removed and made again. While no process posts, nothing wakes up.
///
/// ```swift
/// let listener = try StoreChangeListener(container: container, ignoring: notifier) { changes.refresh() }
/// ```
///
/// On Linux each listener takes one inotify instance, of which a user has 128 as a rule.
public final class StoreChangeListener: Sendable {
    private let watch: NotifierWatch

    /// Listens to the notifiers of what lies in a folder, container or not.
    ///
    /// - Parameter marker: A file whose replacement is heard, too.
    package init(
        in place: URL, marker: String? = nil, ignoring own: StoreChangeNotifier?, _ heard: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        watch = try NotifierWatch(container: place.absoluteURL, marker: marker, own: own, heard: heard)
    }

    deinit { watch.cancel() }

    /// Stops listening, without waiting for a call that is running.
    package func cancel() { watch.cancel() }

    /// Stops listening. After it has returned there is no call, and none is running, but for one that called this itself.
    public func close() { watch.close() }
}
