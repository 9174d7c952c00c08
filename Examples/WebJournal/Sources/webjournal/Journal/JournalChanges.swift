import Foundation
import Tidemark

/// Tells everybody who looks at a journal that it has changed: its records, by an observation of the store, and its shares.
actor JournalChanges {
    private var listeners: [UUID: AsyncStream<Void>.Continuation] = [:]
    private var tasks: [Task<Void, Never>] = []
    private var hasEnded = false

    /// Begins to follow a container.
    func begin(_ container: PersistentContainer) {
        guard tasks.isEmpty, !hasEnded else { return }
        tasks = [
            Task { [weak self] in
                await Self.follow("records") { [weak self] in
                    for try await _ in container.observe(changesOf: [Destination.self], fetch: {}) { await self?.post() }
                }
            },
            Task { [weak self] in
                await Self.follow("shares") { [weak self] in
                    for try await change in try await container.permissions.changes() where !change.zones.isEmpty {
                        await self?.post()
                    }
                }
            },
        ]
    }

    /// A container that is closed ends its observations; anything else is for the log.
    private static func follow(_ what: String, _ body: @Sendable () async throws -> Void) async {
        do {
            try await body()
        } catch let error as StoreError where error.code == .closed {
        } catch is CancellationError {
        } catch {
            Log.error("the observation of \(what) ended: \(error)")
        }
    }

    private func post() { for listener in listeners.values { listener.yield() } }

    /// A stream of its own for each caller. Who is slow gets one element for many changes.
    func stream() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        guard !hasEnded else {
            continuation.finish()
            return stream
        }
        let id = UUID()
        listeners[id] = continuation
        continuation.onTermination = { [weak self] _ in Task { await self?.remove(id) } }
        return stream
    }

    private func remove(_ id: UUID) { listeners[id] = nil }

    /// Ends all streams.
    func end() {
        hasEnded = true
        for task in tasks { task.cancel() }
        for listener in listeners.values { listener.finish() }
    }
}
