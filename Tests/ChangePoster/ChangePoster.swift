import Foundation
import Synchronization
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A process that posts or listens, for tests: change-poster MODE CONTAINER [COUNT [MICROSECONDS]].
@main
struct ChangePoster {
    let container: ContainerDirectory
    let count: Int64
    let pause: UInt32

    static func main() throws {
        // The process ends itself after the longest time that a test may take, so that a failed test leaves none. The thread that started
        // this process may have had signals blocked.
        var alarms = sigset_t()
        sigemptyset(&alarms)
        sigaddset(&alarms, SIGALRM)
        sigprocmask(SIG_UNBLOCK, &alarms, nil)
        alarm(30 * 60)
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else { exit(64) }
        let poster = ChangePoster(
            container: try ContainerDirectory(openingAt: URL(fileURLWithPath: arguments[2])),
            count: arguments.dropFirst(3).first.flatMap { Int64($0) } ?? 1,
            pause: arguments.dropFirst(4).first.flatMap { UInt32($0) } ?? 0)
        switch arguments[1] {
        case "post": try poster.post()
        case "guest": try poster.guest()
        case "duet": try poster.duet()
        case "alone": try poster.alone()
        case "descriptors": try poster.descriptors()
        case "idle": try poster.idle()
        case "cost": try poster.cost()
        case "send": try poster.send()
        case "measure": try poster.measure()
        default: exit(64)
        }
    }

    /// Posts so often, and ends.
    private func post() throws {
        let notifier = try StoreChangeNotifier(container: container, role: .tool)
        postAll(notifier)
        exit(notifier.failures == 0 ? 0 : 1)
    }

    /// Opens the store, posts, and ends at the first notification of another.
    private func guest() throws {
        let store = try RecordStore(container: container)
        let notifier = try StoreChangeNotifier(container: container, role: .app)
        let listener = try StoreChangeListener(container: container, ignoring: notifier) { exit(0) }
        postAll(notifier)
        withExtendedLifetime((store, listener)) { waitUntilKilled() }
    }

    /// Posts so often, and ends when it has been told of the last notification of another that does the same.
    private func duet() throws {
        let notifier = try StoreChangeNotifier(container: container, role: .app)
        let isDone = Atomic(false)
        let (container, count) = (container, count)
        let endIfAllIsHeard = { @Sendable () -> Void in
            let readings = (try? StoreChangeNotifier.readings(in: container)) ?? []
            let hasHeardAll = readings.contains { !notifier.isOwn($0) && $0.transactions[.private] == count }
            if hasHeardAll, isDone.load(ordering: .sequentiallyConsistent) { exit(0) }
        }
        let listener = try StoreChangeListener(container: container, ignoring: notifier, endIfAllIsHeard)
        postAll(notifier)
        isDone.store(true, ordering: .sequentiallyConsistent)
        endIfAllIsHeard()
        withExtendedLifetime(listener) { waitUntilKilled() }
    }

    /// Posts so often, and then waits for the first notification that is heard: status 0 when it is another's.
    private func alone() throws {
        let notifier = try StoreChangeNotifier(container: container, role: .extension)
        let container = container
        let listener = try StoreChangeListener(container: container, ignoring: notifier) {
            let readings = (try? StoreChangeNotifier.readings(in: container)) ?? []
            exit(readings.contains { !notifier.isOwn($0) && $0.transactions[.shared] != nil } ? 0 : 3)
        }
        postAll(notifier)
        withExtendedLifetime(listener) { waitUntilKilled() }
    }

    /// Opens and closes so often: status 0 when no descriptor is left.
    private func descriptors() throws {
        func openAndClose() throws {
            let notifier = try StoreChangeNotifier(container: container, role: .tool)
            let listeners = try (0..<3).map { _ in try StoreChangeListener(container: container, ignoring: notifier) {} }
            for listener in listeners { listener.close() }
            notifier.close()
        }
        func openDescriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
        // What the process opens once and for all.
        for _ in 0..<3 { _ = (try openAndClose(), try openDescriptors()) }
        let before = try openDescriptors()
        for _ in 0..<count { try openAndClose() }
        var after = try openDescriptors()
        // Threads that listened may be about to end; and the system's libraries open one for themselves now and then, which a hundred that are
        // left behind are told from.
        let some = before + Int(count) / 10
        for _ in 0..<1000 where after > some {
            usleep(10_000)
            after = try openDescriptors()
        }
        print("\(before) before, \(after) after")
        exit(after <= some ? 0 : 1)
    }

    /// Listens for so many milliseconds, and prints how often threads of the process went to sleep meanwhile.
    private func idle() throws {
        let listener = try StoreChangeListener(container: container) {}
        usleep(100_000)
        func sleeps() -> Int {
            let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
            return threads.reduce(0) { sum, thread in
                let status = (try? String(contentsOfFile: "/proc/self/task/\(thread)/status", encoding: .utf8)) ?? ""
                let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
                return sum + (line.flatMap { Int($0.split(separator: "\t").last ?? "") } ?? 0)
            }
        }
        let before = sleeps()
        usleep(UInt32(count) * 1000)
        print("\(sleeps() - before) sleeps of a thread in \(count) ms, that of the measurement among them")
        withExtendedLifetime(listener) {}
    }

    /// Prints what a notification costs.
    private func cost() throws {
        let notifier = try StoreChangeNotifier(container: container, role: .tool)
        notifier.post(transaction: 1, scope: .private)
        let (start, startOfWork) = (Self.now(), Self.now(CLOCK_THREAD_CPUTIME_ID))
        postAll(notifier)
        let (time, work) = (Self.now() - start, Self.now(CLOCK_THREAD_CPUTIME_ID) - startOfWork)
        print("a notification: \(work / count) ns of work, \(time / count) ns of time, \(count) notifications")
    }

    /// Posts so often, so many microseconds apart, with the time as the transaction, and once in the other scope.
    private func send() throws {
        let notifier = try StoreChangeNotifier(container: container, role: .app)
        for _ in 0..<count {
            usleep(pause)
            notifier.post(transaction: Self.now(), scope: .private)
        }
        usleep(pause)
        notifier.post(transaction: 1, scope: .shared)
        // The file stays, for the last notification to be read.
        exit(0)
    }

    /// Listens to a `send` until its end, and prints how long each notification took.
    private func measure() throws {
        let times = LockedValue<[Int64: Int64]>([:])
        let container = container
        let listener = try StoreChangeListener(container: container) {
            let heard = Self.now()
            let told = ((try? StoreChangeNotifier.readings(in: container)) ?? []).map(\.transactions)
            times.withLock { times in
                // What was sent while the call began has a call of its own.
                for sent in told.compactMap({ $0[.private] }) where sent < heard && times[sent] == nil {
                    times[sent] = heard - sent
                }
                guard told.contains(where: { $0[.shared] != nil }) else { return }
                let sorted = times.values.sorted()
                func show(_ part: Double) -> Int64 { sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))] / 1000 }
                print(
                    "from notification to call: p50 \(show(0.5)) µs, p99 \(show(0.99)) µs, longest \(show(1)) µs, \(sorted.count) notifications"
                )
                exit(0)
            }
        }
        withExtendedLifetime(listener) { waitUntilKilled() }
    }

    private func postAll(_ notifier: StoreChangeNotifier) {
        for number in stride(from: 1, through: count, by: 1) { notifier.post(transaction: number, scope: .private) }
    }

    private func waitUntilKilled() -> Never {
        while true { sleep(1000) }
    }

    /// Nanoseconds of a clock that all processes share.
    private static func now(_ clock: clockid_t = CLOCK_MONOTONIC) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
