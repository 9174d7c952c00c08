import TidemarkModel

/// Locks by name, which tasks wait for in the order of coming.
final class KeyedLock: Sendable {
    private let waiting = LockedValue<[String: [CheckedContinuation<Void, Never>]]>([:])

    func lock(_ key: String) async {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func unlock(_ key: String) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard let queue = waiting[key], !queue.isEmpty else {
                waiting[key] = nil
                return nil
            }
            return waiting[key]?.removeFirst()
        }
        next?.resume()
    }
}
