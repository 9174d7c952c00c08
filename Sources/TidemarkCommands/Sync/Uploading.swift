import Synchronization
import TidemarkStore
import TidemarkSync
import TidemarkTransfer

/// Sends what an import brings while it goes on, and the rest when it has ended.
final class Uploading: Sendable {
    /// Records that were sent so far, as they are; ends with the upload. For one consumer.
    let progress: AsyncStream<Int>
    private let work: Task<SyncReport, any Error>
    private let counting: Task<Void, Never>

    init(with engine: SyncEngine, while importing: Task<ImportSummary, any Error>) {
        let (progress, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        self.progress = progress
        let over = Over()
        Task {
            _ = await importing.result
            over.end()
        }
        work = Task {
            defer { continuation.finish() }
            var sum = SyncReport()
            var isLast = false
            while true {
                let report = try await engine.sync(isContinued: true)
                sum = SyncReport(sum, then: report)
                if isLast { return sum }
                isLast = over.isOver
                if !isLast { try await Task.sleep(for: .milliseconds(50)) }
            }
        }
        let counted = Counted(continuation)
        counting = Task {
            for await event in engine.events where event.kind == .export { counted.note(event.id.hashValue, event.records) }
        }
        counts = counted
    }

    private let counts: Counted

    /// Whether the import has ended.
    private final class Over: Sendable {
        private let state = Mutex(false)
        var isOver: Bool { state.withLock { $0 } }
        func end() { state.withLock { $0 = true } }
    }

    /// Adds the records of one export after the other.
    private final class Counted: Sendable {
        private let state = Mutex<(before: Int, event: Int, records: Int)>((0, 0, 0))
        private let told: AsyncStream<Int>.Continuation

        init(_ told: AsyncStream<Int>.Continuation) { self.told = told }

        var sum: Int { state.withLock { $0.before + $0.records } }

        func note(_ event: Int, _ records: Int) {
            state.withLock { state in
                if state.event != event { state = (state.before + state.records, event, 0) }
                state.records = records
            }
            told.yield(sum)
        }
    }

    /// Records that were sent so far.
    var sent: Int { counts.sum }

    /// What has come of it.
    var report: SyncReport {
        get async throws {
            defer { counting.cancel() }
            return try await work.value
        }
    }

    func cancel() { work.cancel() }
}

extension SyncReport {
    /// One synchronisation after another.
    init(_ first: SyncReport, then second: SyncReport) {
        self = second
        imported += first.imported
        exported += first.exported
        conflicts += first.conflicts
    }
}
