/// Remembers the requests that a key has signed, so that none is accepted twice.
///
/// The memory lasts as long as the process, and has room for a number of requests. When it is full, it forgets the requests of
/// the oldest second, and refuses all requests that were signed in that second or before.
struct ReplayMemory: Sendable {
    /// The mark of a request, which its copies have too: the first half of the signature's `r`.
    struct Mark: Hashable, Sendable {
        private let high, low: UInt64

        init(r: [UInt8]) {
            high = UInt64(bytesInOrder: r[..<8])
            low = UInt64(bytesInOrder: r[8..<16])
        }
    }

    private let capacity: Int
    /// The marks, by the second in which the requests were signed.
    private var seen: [Int64: Set<Mark>] = [:]
    private var count = 0
    /// How many requests it remembers.
    var size: Int { count }
    /// Requests that were signed in this second, or before, are refused.
    private var forgotten = Int64.min
    private var lastSweep = Int64.min

    init(capacity: Int) { self.capacity = capacity }

    /// Remembers a request, or refuses it.
    ///
    /// - Parameters:
    ///   - second: When the request was signed: seconds since 1970 UTC.
    ///   - now: The present time: seconds since 1970 UTC.
    mutating func admit(_ mark: Mark, signed second: Int64, at now: Int64) throws(SignatureFailure) {
        if now != lastSweep {
            lastSweep = now
            // Older requests are refused for their date.
            for old in seen.keys where old < now - ServerKey.tolerance - 1 { forget(old) }
        }
        guard second > forgotten else { throw .forgotten }
        guard seen[second, default: []].insert(mark).inserted else { throw .replayed }
        count += 1
        while count > capacity, let oldest = seen.keys.min() {
            forget(oldest)
            forgotten = oldest
        }
    }

    private mutating func forget(_ second: Int64) { count -= seen.removeValue(forKey: second)?.count ?? 0 }
}
