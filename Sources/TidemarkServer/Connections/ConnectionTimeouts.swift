import NIOCore

/// How long a connection may keep the server waiting: says until when, and when it is enough.
///
/// Waiting that is the server's own doing doesn't count: while nothing is read, a body can't go on.
struct ConnectionTimeouts {
    private enum Phase {
        /// Nothing has come since the last request.
        case quiet
        /// TLS is agreed on, or the first head is waited for, or one has begun to come.
        case head(until: NIODeadline)
        /// A body comes: so many bytes in the time that ends then.
        case body(until: NIODeadline, bytes: Int)
    }

    let limits: ServerLimits
    /// What of the time for heads and bodies is given besides. Not the same to all: those that came at once would be closed at once, and
    /// others wait for that.
    private let allowance: Double
    private var phase = Phase.quiet
    /// Since when the server reads nothing.
    private var pausedSince: NIODeadline?
    private var unansweredSince: NIODeadline?

    init(limits: ServerLimits, allowance: Double = 0) {
        self.limits = limits
        self.allowance = allowance
    }

    /// Whether no request has begun to come.
    var isQuiet: Bool { if case .quiet = phase { true } else { false } }

    /// When to ``expire(at:)``; `nil` as long as nothing is waited for.
    var deadline: NIODeadline? {
        let answer = unansweredSince.map { $0 + TimeAmount(limits.answerTime) }
        switch phase {
        case .quiet: return answer
        case .head(let until), .body(let until, _): return answer.map { min($0, until) } ?? until
        }
    }

    /// Somebody has connected, or TLS is agreed on: a head is to come.
    mutating func begin(at now: NIODeadline) { phase = .head(until: now + TimeAmount(limits.headTime * (1 + allowance))) }

    /// Bytes have come. Those that end a head are counted with the body, which does no harm.
    mutating func receive(_ count: Int, at now: NIODeadline) {
        switch phase {
        case .quiet: begin(at: now)
        case .head: break
        case .body(let until, let bytes): phase = .body(until: until, bytes: bytes + count)
        }
    }

    /// A head is complete.
    mutating func receiveHead(at now: NIODeadline) {
        phase = .body(until: now + TimeAmount(limits.bodyTime * (1 + allowance)), bytes: 0)
    }

    /// A request is complete.
    mutating func receiveEnd() { phase = .quiet }

    /// Whether the server reads, or has had enough for now.
    mutating func setReading(_ isReading: Bool, at now: NIODeadline) {
        if !isReading {
            pausedSince = pausedSince ?? now
        } else if let pausedSince {
            if case .body(let until, let bytes) = phase { phase = .body(until: until + (now - pausedSince), bytes: bytes) }
            self.pausedSince = nil
        }
    }

    /// Whether the client takes what it is sent.
    mutating func setTaking(_ isTaking: Bool, at now: NIODeadline) {
        unansweredSince = isTaking ? nil : unansweredSince ?? now
    }

    /// Whether it is enough.
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
