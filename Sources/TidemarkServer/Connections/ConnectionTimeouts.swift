import NIOCore

/// Decides how long a connection may keep the server waiting.
///
/// Time in which the server itself reads nothing does not count, since a body can't arrive then.
struct ConnectionTimeouts {
    private enum Phase {
        /// Nothing has arrived since the last request.
        case quiet
        /// TLS is being negotiated, or the first head is expected, or a head has begun to arrive.
        case head(until: NIODeadline)
        /// A body arrives: this many bytes in the period that ends then.
        case body(until: NIODeadline, bytes: Int)
    }

    let limits: ServerLimits
    /// A part of the time for heads and bodies that is added. It differs between connections, so that connections that came
    /// together are not all closed together.
    private let allowance: Double
    private var phase = Phase.quiet
    /// The time since which the server reads nothing.
    private var pausedSince: NIODeadline?
    private var unansweredSince: NIODeadline?

    init(limits: ServerLimits, allowance: Double = 0) {
        self.limits = limits
        self.allowance = allowance
    }

    /// Whether no request has begun to arrive.
    var isQuiet: Bool { if case .quiet = phase { true } else { false } }

    /// The time to call ``expire(at:)``; `nil` while the server waits for nothing.
    var deadline: NIODeadline? {
        let answer = unansweredSince.map { $0 + TimeAmount(limits.answerTime) }
        switch phase {
        case .quiet: return answer
        case .head(let until), .body(let until, _): return answer.map { min($0, until) } ?? until
        }
    }

    /// Records a new connection, or the end of the TLS negotiation. A head is expected next.
    mutating func begin(at now: NIODeadline) { phase = .head(until: now + TimeAmount(limits.headTime * (1 + allowance))) }

    /// Records bytes that have arrived. Bytes that end a head count with the body, which does no harm.
    mutating func receive(_ count: Int, at now: NIODeadline) {
        switch phase {
        case .quiet: begin(at: now)
        case .head: break
        case .body(let until, let bytes): phase = .body(until: until, bytes: bytes + count)
        }
    }

    /// Records a complete head.
    mutating func receiveHead(at now: NIODeadline) {
        phase = .body(until: now + TimeAmount(limits.bodyTime * (1 + allowance)), bytes: 0)
    }

    /// Records a complete request.
    mutating func receiveEnd() { phase = .quiet }

    /// Records whether the server reads.
    mutating func setReading(_ isReading: Bool, at now: NIODeadline) {
        if !isReading {
            pausedSince = pausedSince ?? now
        } else if let pausedSince {
            if case .body(let until, let bytes) = phase { phase = .body(until: until + (now - pausedSince), bytes: bytes) }
            self.pausedSince = nil
        }
    }

    /// Records whether the client reads its answer.
    mutating func setTaking(_ isTaking: Bool, at now: NIODeadline) {
        unansweredSince = isTaking ? nil : unansweredSince ?? now
    }

    /// Returns whether the connection has kept the server waiting too long.
    mutating func expire(at now: NIODeadline) -> Bool {
        if let unansweredSince, unansweredSince + TimeAmount(limits.answerTime) <= now { return true }
        switch phase {
        case .quiet: return false
        case .head(let until): return until <= now
        case .body(let until, let bytes):
            guard until <= now else { return false }
            let least = Double(limits.bodyRate) * (limits.bodyTime * (1 + allowance) / .seconds(1))
            guard pausedSince != nil || Double(bytes) >= least else { return true }
            if pausedSince != nil { pausedSince = now }
            phase = .body(until: now + TimeAmount(limits.bodyTime * (1 + allowance)), bytes: 0)
            return false
        }
    }
}
