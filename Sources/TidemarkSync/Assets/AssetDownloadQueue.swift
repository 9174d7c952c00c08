import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkStore

/// Downloads the contents of a store that were asked for, some of them at once.
///
/// Contents of a higher priority come first. A caller who asks for a content that is being transferred joins the transfer. The
/// transfer is cancelled when all its callers are.
/// wait for it are.
actor AssetDownloadQueue {
    private let assets: AssetTransfer
    /// The most transfers at once.
    private static let slots = 4
    /// The most transfers for callers who don't wait: one slot is kept for a person who does.
    private static let prefetchSlots = 3

    private var waiting: [Int: Transfer] = [:]
    private var running: [Int: Transfer] = [:]
    /// The transfer of a content that others may join.
    private var transfers: [String: Transfer] = [:]
    private var last = 0

    init(_ assets: AssetTransfer) { self.assets = assets }

    /// A content on its way. Only the queue uses it.
    private final class Transfer {
        let number: Int
        let content: RemoteAsset
        let zones: [CloudZoneID]
        let limits: CloudLimits
        var priority: TaskPriority
        var waiters: [Int: Waiter] = [:]
        var task: Task<Void, Never>?

        init(_ number: Int, _ content: RemoteAsset, _ zones: [CloudZoneID], _ limits: CloudLimits, _ priority: TaskPriority) {
            (self.number, self.content, self.zones, self.limits) = (number, content, zones, limits)
            self.priority = priority
        }

        var isPrefetch: Bool { priority < .userInitiated }
    }

    private struct Waiter {
        let continuation: CheckedContinuation<Void, any Error>
        let progress: @Sendable (Int64) -> Void
    }

    /// Downloads a content, and returns when it is here.
    ///
    /// - Parameters:
    ///   - zones: The zones whose records name the content.
    ///   - progress: Called with the number of bytes that are here.
    /// - Throws: `CloudError`; ``StoreError``; `CancellationError`. What has come until then stays, and the next download goes on from there.
    func download(
        _ content: RemoteAsset, zones: [CloudZoneID], limits: CloudLimits, priority: TaskPriority,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws {
        last += 1
        let number = last
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                let transfer = transfers[content.id] ?? Transfer(number, content, zones, limits, priority)
                transfer.waiters[number] = Waiter(continuation: continuation, progress: progress)
                transfer.priority = max(transfer.priority, priority)
                if transfers[content.id] == nil {
                    transfers[content.id] = transfer
                    waiting[transfer.number] = transfer
                }
                // A prefetch that waits may go by now, because a person has joined it.
                start()
            }
        } onCancel: {
            Task { await self.cancel(number, of: content.id) }
        }
    }

    private func start() {
        while running.count < Self.slots {
            let mayPrefetch = running.values.count(where: \.isPrefetch) < Self.prefetchSlots
            let next = waiting.values.filter { mayPrefetch || !$0.isPrefetch }.max {
                $0.priority == $1.priority ? $0.number > $1.number : $0.priority < $1.priority
            }
            guard let next else { return }
            waiting[next.number] = nil
            running[next.number] = next
            let (number, content, zones, limits, assets) = (next.number, next.content, next.zones, next.limits, assets)
            next.task = Task(priority: next.priority) {
                let result: Result<Void, any Error>
                do {
                    try await assets.bring(content, zones: zones, limits: limits) { bytes in
                        await self.report(bytes, of: number)
                    }
                    result = .success(())
                } catch {
                    result = .failure(error)
                }
                self.end(number, result)
            }
        }
    }

    private func report(_ bytes: Int64, of number: Int) {
        for waiter in running[number]?.waiters.values ?? [:].values { waiter.progress(bytes) }
    }

    private func end(_ number: Int, _ result: Result<Void, any Error>) {
        guard let transfer = running.removeValue(forKey: number) else { return }
        forget(transfer)
        for waiter in transfer.waiters.values { waiter.continuation.resume(with: result) }
        start()
    }

    private func cancel(_ number: Int, of content: String) {
        guard let transfer = transfers[content], let waiter = transfer.waiters.removeValue(forKey: number) else { return }
        waiter.continuation.resume(throwing: CancellationError())
        guard transfer.waiters.isEmpty else { return }
        // A caller who asks for the content from now on begins another transfer, which continues where this one stops.
        forget(transfer)
        waiting[transfer.number] = nil
        transfer.task?.cancel()
    }

    private func forget(_ transfer: Transfer) {
        if transfers[transfer.content.id] === transfer { transfers[transfer.content.id] = nil }
    }
}
