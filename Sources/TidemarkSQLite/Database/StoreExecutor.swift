import Dispatch

/// Runs an actor's jobs on a queue of its own, so that waiting for the disk never blocks a thread of the cooperative pool.
package final class StoreExecutor: SerialExecutor {
    private let queue: DispatchQueue

    package init(label: String) {
        queue = DispatchQueue(label: label)
    }

    /// Runs `body` on the queue, and returns when it has ended. It must not be called on the queue itself.
    package func sync<Result>(_ body: () throws -> Result) rethrows -> Result { try queue.sync(execute: body) }

    package func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
