/// Which requests that a key has signed have come, so that none does a second time.
///
/// It has the process's life, and room for so many. What no longer fits is forgotten with all that was signed before it, and nothing that is
/// as old is let in any more.
struct ReplayMemory: Sendable {
    /// By what a request is known again: the first half of the signature's `r`.
    struct Mark: Hashable, Sendable {
        private let high, low: UInt64

        init(r: [UInt8]) {
            high = UInt64(bytesInOrder: r[..<8])
            low = UInt64(bytesInOrder: r[8..<16])
        }
    }

    private let capacity: Int
    /// By the second in which they were signed.
    private var seen: [Int64: Set<Mark>] = [:]
    private var count = 0
    /// How many it remembers.
    var size: Int { count }
    /// What was signed then, or before, is not let in.
    private var forgotten = Int64.min
    private var lastSweep = Int64.min

    init(capacity: Int) { self.capacity = capacity }

    /// Takes note of a request.
    ///
    /// - Parameters:
    ///   - second: When it was signed: seconds since 1970 UTC.
    ///   - now: The same.
    mutating func admit(_ mark: Mark, signed second: Int64, at now: Int64) throws(SignatureFailure) {
        if now != lastSweep {
            lastSweep = now
            // What is older is refused for its date.
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
