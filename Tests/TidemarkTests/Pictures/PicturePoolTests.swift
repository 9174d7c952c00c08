import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import Tidemark

/// Goal: pictures are made on threads of their own, in order, no more at once than allowed, and can be cancelled. Method: bodies
/// that wait for the test.
@Suite(.timeLimit(.minutes(30))) struct PicturePoolTests {
    private final class Running: Sendable {
        let counts = LockedValue((now: 0, most: 0, all: 0))
    }

    @Test func `no more pictures than the limit are made at once, and all are made`() async throws {
        let pool = PicturePool(limit: 2)
        let running = Running()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await pool.run { _ in
                        running.counts.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1), $0.all + 1) }
                        // Other threads get the chance to run.
                        for _ in 0..<100 { sched_yield() }
                        running.counts.withLock { $0.now -= 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(running.counts.withLock { $0.most } <= 2)
        #expect(running.counts.withLock { $0.all } == 20)
    }

    @Test func `a waiting picture that is cancelled leaves at once, and the next one gets its place`() async throws {
        let pool = PicturePool(limit: 1)
        let (gate, begun) = (DispatchSemaphore(value: 0), AsyncStream.makeStream(of: Void.self))
        let first = Task {
            try await pool.run { _ in
                begun.continuation.yield()
                gate.wait()
            }
        }
        for await _ in begun.stream { break }
        let second = Task { try await pool.run { _ in true } }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        let third = Task { try await pool.run { _ in true } }
        gate.signal()
        try await first.value
        #expect(try await third.value)
    }

    @Test func `a picture that is cancelled ends with a cancellation`() async throws {
        let pool = PicturePool(limit: 1)
        let (gate, begun) = (DispatchSemaphore(value: 0), AsyncStream.makeStream(of: Void.self))
        let task = Task {
            try await pool.run { stop in
                begun.continuation.yield()
                gate.wait()
                #expect(stop.pointer.pointee == 1)
                throw CancellationError()
            }
        }
        for await _ in begun.stream { break }
        task.cancel()
        gate.signal()
        await #expect(throws: CancellationError.self) { try await task.value }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await ScaledPicture(data: DrawnPicture.png(1), options: PictureOptions(maxPixelSize: 20))
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }
}
