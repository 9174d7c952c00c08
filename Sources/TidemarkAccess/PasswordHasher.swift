import Synchronization
import TidemarkStore

/// Hashes passwords, each hasher one at a time on a thread of its own.
private actor PasswordHasher {
    private nonisolated let executor = StoreExecutor(label: "tidemark.passwords")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func hash(_ password: [UInt8], salt: [UInt8], cost: PasswordHash.Cost) throws(AccessError) -> PasswordHash {
        try PasswordHash(password, salt: salt, cost: cost)
    }
}

/// Hashes two passwords at once; others wait, and too many are turned away.
final class PasswordHashers: Sendable {
    private let hashers = [PasswordHasher(), PasswordHasher()]
    /// How many each hasher has to do.
    private let lines = Mutex([0, 0])
    private let lineMax: Int

    /// - Parameter lineMax: How many may wait for one hasher, the one that it is at among them.
    init(lineMax: Int = 32) { self.lineMax = lineMax }

    /// - Throws: ``AccessError`` `busy` or `storage`.
    func hash(_ password: [UInt8], salt: [UInt8], cost: PasswordHash.Cost) async throws(AccessError) -> PasswordHash {
        let chosen = lines.withLock { lines -> Int? in
            let shortest = lines[0] <= lines[1] ? 0 : 1
            guard lines[shortest] < lineMax else { return nil }
            lines[shortest] += 1
            return shortest
        }
        guard let chosen else { throw AccessError(.busy, "too many sign in at once: try again in some seconds") }
        defer { lines.withLock { $0[chosen] -= 1 } }
        return try await hashers[chosen].hash(password, salt: salt, cost: cost)
    }
}
