import Foundation

/// Hears the doorbells of other processes, and of other doorbells in its own.
///
/// What it hears is a hint that a store may have changed: read the history since the last token then. Rings may merge, and there may be one
/// without a change behind it; the last ring always leads to a call that begins after it. Start to listen before you read the
/// history for the first time, and nothing is missed.
///
/// A listener reads the container's folders and nothing else, so it works for a process that may not write there. The folder of the doorbells
/// need not be there yet, and may be moved, removed and made again. While nobody rings, nothing wakes up.
///
/// ```swift
/// let listener = try DoorbellListener(container: container, ignoring: doorbell) { changes.refresh() }
/// ```
///
/// On Linux each listener takes one inotify instance, of which a user has 128 as a rule.
public final class DoorbellListener: Sendable {
    private let watch: DoorbellWatch

    /// Listens until ``close()``, or until the listener is no longer used.
    ///
    /// - Parameters:
    ///   - own: The doorbell whose rings are not heard: that of the same writer.
    ///   - heard: Is called on a queue of the listener's, one call at a time.
    /// - Throws: ``StoreError`` `io` when the system has no more watches to give, or the container can't be read.
    public init(
        container: ContainerDirectory, ignoring own: Doorbell? = nil, _ heard: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        watch = try DoorbellWatch(container: container.url.absoluteURL, own: own, heard: heard)
    }

    /// Listens to the doorbells of what lies in a folder, container or not.
    package init(in place: URL, ignoring own: Doorbell?, _ heard: @escaping @Sendable () -> Void) throws(StoreError) {
        watch = try DoorbellWatch(container: place.absoluteURL, own: own, heard: heard)
    }

    deinit { watch.cancel() }

    /// Stops listening. After it has returned there is no call, and none is running, but for one that called this itself.
    public func close() { watch.close() }
}

extension DoorbellListener {
    /// The rings as a sequence that keeps no more than one: whoever is slow hears the last.
    ///
    /// Listening begins at once, and ends when the sequence is dropped or its task is cancelled.
    ///
    /// ```swift
    /// for await _ in try DoorbellListener.rings(at: container) { try await refresh() }
    /// ```
    ///
    /// - Throws: As ``init(container:ignoring:_:)``.
    public static func rings(
        at container: ContainerDirectory, ignoring own: Doorbell? = nil
    ) throws(StoreError) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let listener = try DoorbellListener(container: container, ignoring: own) { continuation.yield() }
        continuation.onTermination = { _ in listener.watch.cancel() }
        return stream
    }
}
