import Foundation
import TidemarkModel
public import TidemarkSQLite

extension StoreChangeNotifier {
    /// Opens a notifier in a container, making the folder for it if need be, and removes the files of processes that have died.
    ///
    /// - Throws: ``StoreError`` `notFound` when the container is not there, `diskFull`, `busy` or `io`.
    public convenience init(container: ContainerDirectory, role: Role) throws(StoreError) {
        try self.init(in: container.url, role: role)
    }

    /// Returns the last posts of all notifiers of a container, in the order of their names; none without a folder of notifiers.
    package static func readings(in container: ContainerDirectory) throws(StoreError) -> [NotifierReading] {
        try readings(in: container.url)
    }
}

extension StoreChangeListener {
    /// Listens until ``close()``, or until the listener is no longer used.
    ///
    /// - Parameters:
    ///   - own: The notifier of the same writer, whose notifications are ignored.
    ///   - heard: Called on a queue of the listener's own, one call at a time.
    /// - Throws: ``StoreError`` `io` when the system has no more watches to give, or the container can't be read.
    public convenience init(
        container: ContainerDirectory, ignoring own: StoreChangeNotifier? = nil, _ heard: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        try self.init(in: container.url, marker: ContainerContents.description, ignoring: own, heard)
    }
}

extension StoreChangeListener {
    /// Returns the notifications as a sequence that buffers one element: a slow consumer gets only the last.
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
        continuation.onTermination = { _ in listener.cancel() }
        return stream
    }
}

extension ContainerDirectory {
    /// The folder with the notifiers of the writing processes.
    var notifier: URL { url.appendingPathComponent(StoreChangeNotifier.folderName, isDirectory: true) }
}
