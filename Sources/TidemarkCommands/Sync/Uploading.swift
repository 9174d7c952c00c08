import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Sends the records of an import while it goes on, batch after batch, and the rest when it has ended.
final class Uploading: Sendable {
    /// The rows in a transaction of an import that is sent while it goes on. The import and the upload write to the store by
    /// turns, and neither should wait for long.
    static let batchSize = 2000

    /// The number of records that were sent so far. The stream ends with the upload, and has one consumer.
    let progress: AsyncStream<Int>
    private let work: Task<SyncReport, any Error>
    private let counting: Task<Void, Never>
    private let batches: AsyncStream<Void>.Continuation

    init(with container: ContainerSync) {
        let engine = container.privateEngine
        let (progress, told) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        let (stream, batches) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.progress, self.batches) = (progress, batches)
        // The upload looks up the account and fetches while the first batch is read.
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

    /// Reports that a batch was imported, and can be sent.
    func batchHasCome() { batches.yield() }

    /// Reports that there are no more batches.
    func importHasEnded() { batches.finish() }

    /// Adds up the records of successive exports.
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

    /// The result of the upload.
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
    /// The report of two successive synchronisations.
    init(_ first: SyncReport, then second: SyncReport) {
        self = second
        imported += first.imported
        exported += first.exported
        conflicts += first.conflicts
        refused += first.refused
        // The first one's failure still holds, whether or not the second one has tried again.
        if failure == nil, outbox.pending > 0 { failure = first.failure }
    }
}
