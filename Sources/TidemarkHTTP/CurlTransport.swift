import CCurl
import Foundation
import TidemarkModel

/// HTTP/2 and HTTP/1.1 by libcurl.
///
/// All requests are on one thread, which begins with the first of them and ends when no request was there for a while. A request is sent
/// once: libcurl's own second try, where a connection that was kept has gone, is allowed only as long as no byte of a body was handed out.
package final class CurlTransport: HTTPTransport {
    private let loop: CurlLoop

    package init(trustRoots: TrustRoots, isSecure: Bool) {
        loop = CurlLoop(CurlLoop.Setup(authorities: trustRoots.pem.map { Array($0.utf8) }, isSecure: isSecure))
    }

    deinit { loop.close(nil) }

    package func send(_ request: HTTPRequest) async throws(TransportFailure) -> HTTPAnswer {
        let transfer = CurlTransfer(request)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                transfer.completion = { continuation.resume(returning: $0) }
                loop.submit(transfer)
            }
        } onCancel: {
            loop.cancel(transfer)
        }
        return try result.get()
    }

    /// As ``send(_:)``, and blocks the calling thread, which is none of Swift's tasks.
    package func sendBlocking(_ request: HTTPRequest) throws(TransportFailure) -> HTTPAnswer {
        let (transfer, done) = (CurlTransfer(request), DispatchSemaphore(value: 0))
        let answer = AnswerBox()
        transfer.completion = { result in
            answer.content.withLock { $0 = result }
            done.signal()
        }
        loop.submit(transfer)
        done.wait()
        return try answer.content.withLock { $0 }.get()
    }

    /// An answer on its way to the thread that waits for it.
    private final class AnswerBox: Sendable {
        let content = LockedValue<Result<HTTPAnswer, TransportFailure>>(.failure(.closed))
    }

    package func shutdown() async {
        await withCheckedContinuation { continuation in loop.close(continuation) }
    }
}

/// The thread on which libcurl runs, and what waits for it.
final class CurlLoop: Sendable {
    /// Connections that nobody uses are closed after it: servers close them about then, and a request that meets the closing would fail.
    static let idleTime = Duration.seconds(20)

    /// What all requests have in common.
    struct Setup: Sendable {
        let authorities: [UInt8]?
        let isSecure: Bool
    }

    private struct State: ~Copyable {
        var submitted: [CurlTransfer] = []
        var cancelled: [CurlTransfer] = []
        /// While the thread runs: `curl_multi_wakeup` is for other threads, too.
        var multi: CurlHandle?
        var isClosed = false
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    private let setup: Setup
    private let state = LockedValue(State())

    init(_ setup: Setup) { self.setup = setup }

    func submit(_ transfer: CurlTransfer) {
        let failure: TransportFailure? = state.withLock { state in
            if state.isClosed { return .closed }
            if transfer.isCancelled { return .cancelled }
            if let multi = state.multi {
                curl_multi_wakeup(multi.pointer)
            } else {
                guard CurlProcess.isReady, let multi = curl_multi_init().map(CurlHandle.init) else { return .outOfMemory }
                state.multi = multi
                Thread.detachNewThread { [self] in CurlRun(self, setup, multi).run() }
            }
            state.submitted.append(transfer)
            return nil
        }
        if let failure { transfer.end(.failure(failure)) }
    }

    func cancel(_ transfer: CurlTransfer) {
        state.withLock { state in
            // One that comes later is not submitted.
            transfer.isCancelled = true
            guard let multi = state.multi else { return }
            state.cancelled.append(transfer)
            curl_multi_wakeup(multi.pointer)
        }
    }

    /// - Parameter continuation: Is resumed when the connections are closed.
    func close(_ continuation: CheckedContinuation<Void, Never>?) {
        let isOver = state.withLock { state in
            state.isClosed = true
            guard let multi = state.multi else { return true }
            if let continuation { state.closers.append(continuation) }
            curl_multi_wakeup(multi.pointer)
            return false
        }
        if isOver { continuation?.resume() }
    }

    /// What has come since the last time.
    func take() -> (submitted: [CurlTransfer], cancelled: [CurlTransfer], isClosed: Bool) {
        state.withLock { state in
            defer { (state.submitted, state.cancelled) = ([], []) }
            return (state.submitted, state.cancelled, state.isClosed)
        }
    }

    /// Whether the thread may end: then the next request begins another.
    func mayEnd() -> Bool {
        state.withLock { state in
            guard state.submitted.isEmpty else { return false }
            state.multi = nil
            state.cancelled = []
            return true
        }
    }

    /// Tells those who wait that the connections are closed.
    func ended() {
        let closers = state.withLock { state in
            defer { state.closers = [] }
            return state.closers
        }
        for closer in closers { closer.resume() }
    }
}

/// A multi handle. `@unchecked`: one thread works with it, and others only wake it up, under the lock of the state.
struct CurlHandle: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer
}

/// What the thread does.
private final class CurlRun {
    private typealias Lane = HTTPRequest.Lane

    private let loop: CurlLoop
    private let setup: CurlLoop.Setup
    private let multi: UnsafeMutableRawPointer
    private var active: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    private var counts = [Int](repeating: 0, count: Lane.allCases.count)
    private var waiting = [[CurlTransfer]](repeating: [], count: Lane.allCases.count)
    /// Whether connections have room for many requests each.
    private var isMultiplexed = false
    /// Streams that servers take at the least, mostly.
    private static let multiplexed = 100
    private let clock = SuspendingClock()

    init(_ loop: CurlLoop, _ setup: CurlLoop.Setup, _ multi: CurlHandle) {
        (self.loop, self.setup, self.multi) = (loop, setup, multi.pointer)
    }

    func run() {
        tide_curl_block_signals()
        tide_curl_multi_set_number(multi, CURLMOPT_MAXCONNECTS, Lane.allCases.reduce(0) { $0 + $1.limit })
        tide_curl_multi_set_number(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        var idleSince = clock.now
        while true {
            let now = clock.now
            let (submitted, cancelled, isClosed) = loop.take()
            var next = now + .seconds(60)
            CurlProcess.step {
                for transfer in submitted { begin(transfer, now) }
                for transfer in cancelled { end(transfer, .cancelled) }
                if isClosed { for transfer in Array(active.values) + waiting.joined() { end(transfer, .closed) } }
                var running: Int32 = 0
                curl_multi_perform(multi, &running)
                complete()
                let later = clock.now
                for transfer in active.values {
                    if let failure = transfer.failure(at: later) { end(transfer, failure) }
                }
                for transfer in waiting.joined() where transfer.deadline <= later { end(transfer, .noConnection) }
                start()
                for transfer in active.values { next = min(next, transfer.nextDeadline) }
                for transfer in waiting.joined() { next = min(next, transfer.deadline) }
            }
            let isIdle = active.isEmpty && waiting.allSatisfy(\.isEmpty)
            if !isIdle {
                idleSince = clock.now
            } else {
                next = min(next, idleSince + CurlLoop.idleTime)
                if isClosed || clock.now >= idleSince + CurlLoop.idleTime, loop.mayEnd() { break }
            }
            let (seconds, attoseconds) = clock.now.duration(to: next).components
            let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1
            curl_multi_poll(multi, nil, 0, Int32(clamping: max(0, milliseconds)), nil)
        }
        CurlProcess.step { _ = curl_multi_cleanup(multi) }
        loop.ended()
    }

    private func begin(_ transfer: CurlTransfer, _ now: SuspendingClock.Instant) {
        transfer.began(now)
        waiting[transfer.request.lane.rawValue].append(transfer)
        start()
    }

    /// Starts what waits, as far as there is room.
    private func start() {
        for lane in Lane.allCases {
            let limit = isMultiplexed ? max(lane.limit, Self.multiplexed) : lane.limit
            while counts[lane.rawValue] < limit, !waiting[lane.rawValue].isEmpty {
                let transfer = waiting[lane.rawValue].removeFirst()
                guard let easy = transfer.prepare(setup, clock), curl_multi_add_handle(multi, easy) == CURLM_OK else {
                    transfer.end(.failure(.outOfMemory))
                    continue
                }
                active[easy] = transfer
                counts[lane.rawValue] += 1
            }
        }
    }

    private func complete() {
        var code = CURLE_OK
        while let easy = tide_curl_next_ended(multi, &code) {
            guard let transfer = active[easy] else { continue }
            if tide_curl_number(easy, CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0 { isMultiplexed = true }
            let result = transfer.result(code)
            remove(transfer)
            transfer.end(result)
        }
    }

    /// Ends one that is under way, or waits; its connection is closed, unless it is shared.
    private func end(_ transfer: CurlTransfer, _ failure: TransportFailure) {
        let lane = transfer.request.lane.rawValue
        if let easy = transfer.easy, active[easy] === transfer {
            remove(transfer)
        } else if let index = waiting[lane].firstIndex(where: { $0 === transfer }) {
            waiting[lane].remove(at: index)
        } else {
            return
        }
        transfer.end(.failure(failure))
    }

    private func remove(_ transfer: CurlTransfer) {
        guard let easy = transfer.easy, active.removeValue(forKey: easy) != nil else { return }
        counts[transfer.request.lane.rawValue] -= 1
        curl_multi_remove_handle(multi, easy)
        // Here, and not where its caller lets go of it: freeing what it has of TLS while the process exits must be waited for, too.
        transfer.dispose()
    }
}

/// libcurl as the process has it.
enum CurlProcess {
    private struct Gate {
        var inside = 0
        var isExiting = false
    }

    private static let gate = LockedValue(Gate())

    /// Whether libcurl could be set up.
    static let isReady: Bool = {
        guard tide_curl_global_init() == CURLE_OK else { return false }
        // `exit` runs OpenSSL's cleanup while other threads go on. This comes before it, as it was registered later: it waits for what they
        // do with OpenSSL just now, and lets them begin nothing more.
        atexit {
            CurlProcess.gate.withLock { $0.isExiting = true }
            for _ in 0..<2000 where CurlProcess.gate.withLock({ $0.inside > 0 }) { usleep(1000) }
        }
        return true
    }()

    /// Does something with libcurl's handles, unless the process is about to end: then it never returns.
    static func step(_ body: () -> Void) {
        let isExiting = gate.withLock { gate in
            if !gate.isExiting { gate.inside += 1 }
            return gate.isExiting
        }
        while isExiting { sleep(60) }
        body()
        gate.withLock { $0.inside -= 1 }
    }
}
