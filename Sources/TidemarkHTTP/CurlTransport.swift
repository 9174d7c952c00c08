import CCurl
import Foundation
import TidemarkModel

/// Sends requests by HTTP/2 and HTTP/1.1 with libcurl.
///
/// All requests run on one thread, which starts with the first request and ends after a while without requests. A request is sent
/// once. libcurl tries again by itself when a kept connection was closed; this is allowed only if libcurl has not read a byte of
/// the body yet.
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

    /// Works like ``send(_:)``, and blocks the calling thread. It must not be a thread of Swift's tasks.
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

/// The thread on which libcurl runs, and the requests for it.
final class CurlLoop: Sendable {
    /// The time after which unused connections are closed. Servers close them after about this time, and a request on a
    /// connection that is being closed would fail.
    static let idleTime = Duration.seconds(20)

    /// The settings that all requests have in common.
    struct Setup: Sendable {
        let authorities: [UInt8]?
        let isSecure: Bool
    }

    private struct State: ~Copyable {
        var submitted: [CurlTransfer] = []
        var cancelled: [CurlTransfer] = []
        /// The handle while the thread runs. Other threads may call only `curl_multi_wakeup` with it.
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
            // A transfer that is submitted later ends at once.
            transfer.isCancelled = true
            guard let multi = state.multi else { return }
            state.cancelled.append(transfer)
            curl_multi_wakeup(multi.pointer)
        }
    }

    /// Ends all transfers and closes the connections.
    ///
    /// - Parameter continuation: Resumed when the connections are closed.
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

    /// Returns the transfers that were submitted or cancelled since the last call.
    func take() -> (submitted: [CurlTransfer], cancelled: [CurlTransfer], isClosed: Bool) {
        state.withLock { state in
            defer { (state.submitted, state.cancelled) = ([], []) }
            return (state.submitted, state.cancelled, state.isClosed)
        }
    }

    /// Returns whether the thread may end. If so, the next request starts another thread.
    func mayEnd() -> Bool {
        state.withLock { state in
            guard state.submitted.isEmpty else { return false }
            state.multi = nil
            state.cancelled = []
            return true
        }
    }

    /// Resumes the callers that wait for the connections to be closed.
    func ended() {
        let closers = state.withLock { state in
            defer { state.closers = [] }
            return state.closers
        }
        for closer in closers { closer.resume() }
    }
}

/// A multi handle of libcurl.
///
/// `@unchecked Sendable`: one thread works with it. Others only wake it up, under the lock of the state.
struct CurlHandle: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer
}

/// The work of the thread.
private final class CurlRun {
    private typealias Lane = HTTPRequest.Lane

    private let loop: CurlLoop
    private let setup: CurlLoop.Setup
    private let multi: UnsafeMutableRawPointer
    private var active: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    private var counts = [Int](repeating: 0, count: Lane.allCases.count)
    private var waiting = [[CurlTransfer]](repeating: [], count: Lane.allCases.count)
    /// Whether one connection can carry many requests at a time.
    private var isMultiplexed = false
    /// The requests on one connection that most servers allow.
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

    /// Starts waiting transfers, as far as the limits of their lanes allow.
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

    /// Ends a transfer that runs or waits. Its connection is closed, unless other transfers use it.
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
        // The handle is freed here, and not when its caller releases the transfer: an exit of the process waits for steps of this
        // thread only.
        transfer.dispose()
    }
}

/// The setup of libcurl in this process.
enum CurlProcess {
    private struct Gate {
        var inside = 0
        var isExiting = false
    }

    private static let gate = LockedValue(Gate())

    /// Whether libcurl could be set up.
    static let isReady: Bool = {
        guard tide_curl_global_init() == CURLE_OK else { return false }
        // `exit` runs OpenSSL's cleanup while other threads go on. This handler was registered later, so it runs before the
        // cleanup. It waits for the present steps of the threads, and lets them begin no further step.
        atexit {
            CurlProcess.gate.withLock { $0.isExiting = true }
            for _ in 0..<2000 where CurlProcess.gate.withLock({ $0.inside > 0 }) { usleep(1000) }
        }
        return true
    }()

    /// Runs a step that uses libcurl's handles. If the process is about to exit, it never returns.
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
