import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Sends what an import brings while it goes on, batch after batch, and the rest when it has ended.
final class Uploading: Sendable {
    /// Rows in a transaction of an import that is sent as it goes on: the import and the upload take the store by turns, and neither is to
    /// wait for long.
    static let batchSize = 2000

    /// Records that were sent so far; ends with the upload. For one consumer.
    let progress: AsyncStream<Int>
    private let work: Task<SyncReport, any Error>
    private let counting: Task<Void, Never>
    private let batches: AsyncStream<Void>.Continuation

    init(with container: ContainerSync) {
        let engine = container.privateEngine
        let (progress, told) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        let (stream, batches) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.progress, self.batches) = (progress, batches)
        // It looks at the account, and fetches, while the first batch is read.
        batches.yield()
        work = Task {
            defer { told.finish() }
            var sum = SyncReport()
            for await _ in stream { sum = SyncReport(sum, then: try await engine.sync(isContinued: true)) }
            // A stream ends also when its task is cancelled.
            try Task.checkCancellation()
            return SyncReport(sum, then: try await container.sync(isContinued: true))
        }
        let counted = Counted()
        counting = Task {
            for await event in container.events where event.kind == .export {
                told.yield(counted.note(event.id.hashValue, event.records))
            }
        }
    }

    /// There is something to send.
    func batchHasCome() { batches.yield() }

    /// Nothing more will come.
    func importHasEnded() { batches.finish() }

    /// Adds the records of one export after the other.
    private final class Counted: Sendable {
        private let state = LockedValue<(before: Int, event: Int, records: Int)>((0, 0, 0))

        func note(_ event: Int, _ records: Int) -> Int {
            state.withLock { state in
                if state.event != event { state = (state.before + state.records, event, 0) }
                state.records = records
                return state.before + state.records
            }
        }
    }

    /// What has come of it.
    var report: Result<SyncReport, any Error> {
        get async {
            defer { counting.cancel() }
            return await work.result
        }
    }

    func cancel() {
        work.cancel()
        batches.finish()
    }
}

extension SyncReport {
    /// One synchronisation after another.
    init(_ first: SyncReport, then second: SyncReport) {
        self = second
        imported += first.imported
        exported += first.exported
        conflicts += first.conflicts
        refused += first.refused
        // What stood in its way does so still, whether or not the second has tried again.
        if failure == nil, outbox.pending > 0 { failure = first.failure }
    }
}
