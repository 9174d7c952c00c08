import Foundation

/// Hears the notifiers of other processes, and of other notifiers in its own.
///
/// What it hears is a hint that a store may have changed: read the history since the last token then. Rings may merge, and there may be one
/// without a change behind it; the last notification always leads to a call that begins after it. Start to listen before you read the
/// history for the first time, and nothing is missed.
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

    /// Listens until ``close()``, or until the listener is no longer used.
    ///
    /// - Parameters:
    ///   - own: The notifier whose notifications are not heard: that of the same writer.
    ///   - heard: Is called on a queue of the listener's, one call at a time.
    /// - Throws: ``StoreError`` `io` when the system has no more watches to give, or the container can't be read.
    public init(
        container: ContainerDirectory, ignoring own: StoreChangeNotifier? = nil, _ heard: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        watch = try NotifierWatch(container: container.url.absoluteURL, own: own, heard: heard)
    }

    /// Listens to the notifiers of what lies in a folder, container or not.
    package init(in place: URL, ignoring own: StoreChangeNotifier?, _ heard: @escaping @Sendable () -> Void) throws(StoreError) {
        watch = try NotifierWatch(container: place.absoluteURL, own: own, heard: heard)
    }

    deinit { watch.cancel() }

    /// Stops listening. After it has returned there is no call, and none is running, but for one that called this itself.
    public func close() { watch.close() }
}

extension StoreChangeListener {
    /// The notifications as a sequence that keeps no more than one: whoever is slow hears the last.
    ///
    /// Listening begins at once, and ends when the sequence is dropped or its task is cancelled.
    ///
    /// ```swift
    /// for await _ in try StoreChangeListener.notifications(at: container) { try await refresh() }
    /// ```
    ///
    /// - Throws: As ``init(container:ignoring:_:)``.
    public static func notifications(
        at container: ContainerDirectory, ignoring own: StoreChangeNotifier? = nil
    ) throws(StoreError) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let listener = try StoreChangeListener(container: container, ignoring: own) { continuation.yield() }
        continuation.onTermination = { _ in listener.watch.cancel() }
        return stream
    }
}
