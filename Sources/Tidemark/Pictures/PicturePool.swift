import CTidePictures
import Dispatch
import Foundation
import TidemarkModel

/// Scales pictures on threads of its own, in the order of the calls. At most one picture for each core is scaled at a time.
///
/// A picture takes up to half a GiB of memory. All pictures together take at most half of the machine's memory.
final class PicturePool: Sendable {
    /// The pool of the process.
    static let shared = PicturePool(
        limit: Int(
            tide_picture_concurrency(
                UInt64(ProcessInfo.processInfo.activeProcessorCount), ProcessInfo.processInfo.physicalMemory)))

    private let limit: Int
    private let queue = DispatchQueue(label: "tidemark.pictures", attributes: .concurrent)
    private let state = LockedValue(State())

    private enum Outcome { case begins, waits, cancelled }

    private struct State {
        var running = 0
        var nextWaiter = 0
        var waiters: [(id: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    }

    /// Creates a pool.
    ///
    /// - Parameter limit: The most pictures that are scaled at a time; at least 1.
    init(limit: Int) { self.limit = max(1, limit) }

    /// Runs the body on a thread of the pool.
    ///
    /// - Parameter body: The work. It blocks its thread, and should end early when its flag is raised.
    /// - Throws: `CancellationError` when the task is cancelled while it waits; the errors of the body.
    func run<Result: Sendable>(_ body: @escaping @Sendable (StopFlag) throws -> Result) async throws -> Result {
        try await begin()
        defer { end() }
        let stop = StopFlag()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                queue.async { continuation.resume(with: Swift.Result { try body(stop) }) }
            }
        } onCancel: {
            stop.raise()
        }
    }

    private func begin() async throws {
        try Task.checkCancellation()
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let outcome = state.withLock { state -> Outcome in
                    // The cancellation handler may have run before.
                    if Task.isCancelled { return .cancelled }
                    if state.running < limit {
                        state.running += 1
                        return .begins
                    }
                    state.waiters.append((id, continuation))
                    return .waits
                }
                switch outcome {
                case .begins: continuation.resume()
                case .waits: break
                case .cancelled: continuation.resume(throwing: CancellationError())
                }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0).continuation }
            }
            waiter?.resume(throwing: CancellationError())
        }
    }

    /// Ends a call, and lets the next waiting one begin.
    private func end() {
        let next = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard state.waiters.isEmpty else { return state.waiters.removeFirst().continuation }
            state.running -= 1
            return nil
        }
        next?.resume()
    }
}
