import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: whoever waits for a store's lock gets it, also while another thread takes it again and again. Method: two threads of one process,
/// which know of each other when they wait.
@Suite(.timeLimit(.minutes(30))) struct LockTests {
    private let scratch: Scratch
    private var file: URL { scratch["lock"] }

    init() throws { scratch = try Scratch() }

    private final class Order: Sendable {
        private let names = LockedValue<[String]>([])
        var all: [String] { names.withLock { $0 } }
        func note(_ name: String) { names.withLock { $0.append(name) } }
    }

    @Test func `who waits has the lock before one who has just let go of it and wants it back`() async throws {
        let (file, order) = (file, Order())
        let lock = try StoreLock(at: file)
        let turns = LockTurns.of(file)
        let (done, end) = AsyncStream.makeStream(of: Void.self)
        try lock.withLock(timeout: .seconds(60)) {
            // A thread of its own: those of tasks may all be taken, by others that wait as this one does.
            Thread.detachNewThread {
                try? StoreLock(at: file).withLock(timeout: .seconds(60)) { order.note("waiting") }
                end.finish()
            }
            while turns.count < 2 { usleep(1000) }
            order.note("first")
        }
        try lock.withLock(timeout: .seconds(60)) { order.note("again") }
        for await _ in done {}
        #expect(order.all == ["first", "waiting", "again"])
    }

    @Test func `who waits in vain is told so, and the next one comes to it`() throws {
        let lock = try StoreLock(at: file)
        let file = file
        try lock.withLock(timeout: .seconds(60)) {
            _ = #expect(throws: StoreError(.busy, "")) { try StoreLock(at: file).withLock(timeout: .milliseconds(10)) {} }
        }
        #expect(LockTurns.of(file).count == 0)
        #expect(try lock.withLock(timeout: .zero) { true })
    }
}
