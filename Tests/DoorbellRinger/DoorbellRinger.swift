import Foundation
import Synchronization
import TidemarkModel
import TidemarkStore

/// A process that rings or listens, for tests: doorbell-ringer MODE CONTAINER [COUNT [MICROSECONDS]].
@main
struct DoorbellRinger {
    let container: ContainerDirectory
    let count: Int64
    let pause: UInt32

    static func main() throws {
        // A test that fails leaves no process behind. The thread that started this one may have had signals blocked.
        var alarms = sigset_t()
        sigemptyset(&alarms)
        sigaddset(&alarms, SIGALRM)
        sigprocmask(SIG_UNBLOCK, &alarms, nil)
        alarm(120)
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else { exit(64) }
        let ringer = DoorbellRinger(
            container: try ContainerDirectory(openingAt: URL(fileURLWithPath: arguments[2])),
            count: arguments.dropFirst(3).first.flatMap { Int64($0) } ?? 1,
            pause: arguments.dropFirst(4).first.flatMap { UInt32($0) } ?? 0)
        switch arguments[1] {
        case "ring": try ringer.ring()
        case "guest": try ringer.guest()
        case "duet": try ringer.duet()
        case "alone": try ringer.alone()
        case "descriptors": try ringer.descriptors()
        case "idle": try ringer.idle()
        case "cost": try ringer.cost()
        case "send": try ringer.send()
        case "measure": try ringer.measure()
        default: exit(64)
        }
    }

    /// Rings so often, and ends.
    private func ring() throws {
        let doorbell = try Doorbell(container: container, role: .tool)
        ringAll(doorbell)
        exit(doorbell.failures == 0 ? 0 : 1)
    }

    /// Opens the store, rings, and ends at the first ring of another.
    private func guest() throws {
        let store = try RecordStore(container: container)
        let doorbell = try Doorbell(container: container, role: .app)
        let listener = try DoorbellListener(container: container, ignoring: doorbell) { exit(0) }
        ringAll(doorbell)
        withExtendedLifetime((store, listener)) { waitUntilKilled() }
    }

    /// Rings so often, and ends when it has been told of the last ring of another that does the same.
    private func duet() throws {
        let doorbell = try Doorbell(container: container, role: .app)
        let isDone = Atomic(false)
        let (container, count) = (container, count)
        let endIfAllIsHeard = { @Sendable () -> Void in
            let readings = (try? Doorbell.readings(in: container)) ?? []
            let hasHeardAll = readings.contains { !doorbell.isOwn($0) && $0.transactions[.private] == count }
            if hasHeardAll, isDone.load(ordering: .sequentiallyConsistent) { exit(0) }
        }
        let listener = try DoorbellListener(container: container, ignoring: doorbell, endIfAllIsHeard)
        ringAll(doorbell)
        isDone.store(true, ordering: .sequentiallyConsistent)
        endIfAllIsHeard()
        withExtendedLifetime(listener) { waitUntilKilled() }
    }

    /// Rings so often, and then waits for the first ring that is heard: status 0 when it is another's.
    private func alone() throws {
        let doorbell = try Doorbell(container: container, role: .extension)
        let container = container
        let listener = try DoorbellListener(container: container, ignoring: doorbell) {
            let readings = (try? Doorbell.readings(in: container)) ?? []
            exit(readings.contains { !doorbell.isOwn($0) && $0.transactions[.shared] != nil } ? 0 : 3)
        }
        ringAll(doorbell)
        withExtendedLifetime(listener) { waitUntilKilled() }
    }

    /// Opens and closes so often: status 0 when no descriptor is left.
    private func descriptors() throws {
        func openAndClose() throws {
            let doorbell = try Doorbell(container: container, role: .tool)
            let listeners = try (0..<3).map { _ in try DoorbellListener(container: container, ignoring: doorbell) {} }
            for listener in listeners { listener.close() }
            doorbell.close()
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
        let listener = try DoorbellListener(container: container) {}
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

    /// Prints what a ring costs.
    private func cost() throws {
        let doorbell = try Doorbell(container: container, role: .tool)
        doorbell.ring(transaction: 1, scope: .private)
        let (start, startOfWork) = (Self.now(), Self.now(CLOCK_THREAD_CPUTIME_ID))
        ringAll(doorbell)
        let (time, work) = (Self.now() - start, Self.now(CLOCK_THREAD_CPUTIME_ID) - startOfWork)
        print("a ring: \(work / count) ns of work, \(time / count) ns of time, \(count) rings")
    }

    /// Rings so often, so many microseconds apart, with the time as the transaction, and once in the other scope.
    private func send() throws {
        let doorbell = try Doorbell(container: container, role: .app)
        for _ in 0..<count {
            usleep(pause)
            doorbell.ring(transaction: Self.now(), scope: .private)
        }
        usleep(pause)
        doorbell.ring(transaction: 1, scope: .shared)
        // The file stays, for the last ring to be read.
        exit(0)
    }

    /// Listens to a `send` until its end, and prints how long each ring took.
    private func measure() throws {
        let times = Mutex<[Int64: Int64]>([:])
        let container = container
        let listener = try DoorbellListener(container: container) {
            let heard = Self.now()
            let told = ((try? Doorbell.readings(in: container)) ?? []).map(\.transactions)
            times.withLock { times in
                // What was sent while the call began has a call of its own.
                for sent in told.compactMap({ $0[.private] }) where sent < heard && times[sent] == nil {
                    times[sent] = heard - sent
                }
                guard told.contains(where: { $0[.shared] != nil }) else { return }
                let sorted = times.values.sorted()
                func show(_ part: Double) -> Int64 { sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))] / 1000 }
                print(
                    "from ring to call: p50 \(show(0.5)) µs, p99 \(show(0.99)) µs, longest \(show(1)) µs, \(sorted.count) rings")
                exit(0)
            }
        }
        withExtendedLifetime(listener) { waitUntilKilled() }
    }

    private func ringAll(_ doorbell: Doorbell) {
        for number in stride(from: 1, through: count, by: 1) { doorbell.ring(transaction: number, scope: .private) }
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
