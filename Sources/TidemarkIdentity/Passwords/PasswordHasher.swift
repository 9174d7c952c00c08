import TidemarkModel
import TidemarkSQLite

/// Hashes passwords, one at a time, on a thread of its own.
actor PasswordHasher {
    private nonisolated let executor = StoreExecutor(label: "tidemark.passwords")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func hash(_ password: [UInt8], salt: [UInt8], cost: PasswordHash.Cost) throws(CredentialError) -> PasswordHash {
        try PasswordHash(password, salt: salt, cost: cost)
    }
}

/// The origin of an attempt with a password, which decides when the password is hashed.
struct SignInOrigin: Hashable, Sendable {
    var lane: HashQueue.Lane
    var address: String
    var network: String

    /// - Parameters:
    ///   - address: The client's address as limits count it.
    ///   - isKnown: Whether the address or the device was used to sign in to the account before.
    init(address: String, isKnown: Bool) {
        lane = isKnown ? .known : .unknown
        self.address = address
        network = NetworkAddress(address)?.network ?? address
    }

    /// This process itself, which sets a password.
    static let own = SignInOrigin(address: "", isKnown: true)
}

/// Hashes passwords, few at a time, because each takes much memory. The others wait in a ``HashQueue``; too many are refused.
final class PasswordHashers: Sendable {
    private struct State {
        var queue: HashQueue
        /// Hashers that have nothing to do.
        var free: [PasswordHasher]
        var waiting: [Int: CheckedContinuation<PasswordHasher?, Never>] = [:]
        /// Attempts whose task was cancelled before they waited.
        var withdrawn: Set<Int> = []
        var nextTicket = 0
    }

    private let state: LockedValue<State>

    /// - Parameters:
    ///   - count: How many passwords are hashed at once. Each needs the memory of one hash.
    ///   - room: How many attempts may wait.
    ///   - choice: Picks a number from 0 to below its argument; a parameter for tests.
    init(
        count: Int = 1, room: HashQueue.Room = .init(), choice: @escaping @Sendable (Int) -> Int = { Int.random(in: 0..<$0) }
    ) {
        let hashers = (0..<max(1, count)).map { _ in PasswordHasher() }
        state = LockedValue(State(queue: HashQueue(room, choice: choice), free: hashers))
    }

    /// How many attempts wait.
    var waiting: Int { state.withLock { $0.queue.count } }

    /// - Throws: ``CredentialError`` `busy` or `storage`.
    func hash(
        _ password: [UInt8], salt: [UInt8], cost: PasswordHash.Cost, from origin: SignInOrigin = .own
    ) async throws(CredentialError) -> PasswordHash {
        try await withTurn(of: origin) { hasher throws(CredentialError) in
            try await hasher.hash(password, salt: salt, cost: cost)
        }
    }

    /// Waits for a turn, and calls a body with a hasher.
    ///
    /// - Throws: ``CredentialError`` `busy` when too many wait already, and what `body` throws.
    func withTurn<Result: Sendable>(
        of origin: SignInOrigin, _ body: (PasswordHasher) async throws(CredentialError) -> Result
    ) async throws(CredentialError) -> Result {
        guard let hasher = await turn(of: origin) else {
            var error = CredentialError(.busy, "too many devices sign in at once")
            error.publicMessage = error.message
            throw error
        }
        defer { giveBack(hasher) }
        return try await body(hasher)
    }

    private func turn(of origin: SignInOrigin) async -> PasswordHasher? {
        let ticket = state.withLock { state in
            state.nextTicket += 1
            return state.nextTicket
        }
        // After the handler, no cancellation of this attempt comes any more.
        defer { state.withLock { state in _ = state.withdrawn.remove(ticket) } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in enter(ticket, origin, continuation) }
        } onCancel: {
            withdraw(ticket)
        }
    }

    private func enter(_ ticket: Int, _ origin: SignInOrigin, _ continuation: CheckedContinuation<PasswordHasher?, Never>) {
        let (answered, answer) = state.withLock { state -> ([CheckedContinuation<PasswordHasher?, Never>], PasswordHasher?) in
            if state.withdrawn.remove(ticket) != nil { return ([continuation], nil) }
            if let hasher = state.free.popLast() { return ([continuation], hasher) }
            switch state.queue.add(ticket, origin.lane, address: origin.address, network: origin.network) {
            case .isRefused: return ([continuation], nil)
            case .waits:
                state.waiting[ticket] = continuation
                return ([], nil)
            case .displaces(let other):
                state.waiting[ticket] = continuation
                return (state.waiting.removeValue(forKey: other).map { [$0] } ?? [], nil)
            }
        }
        for continuation in answered { continuation.resume(returning: answer) }
    }

    private func withdraw(_ ticket: Int) {
        let continuation = state.withLock { state -> CheckedContinuation<PasswordHasher?, Never>? in
            guard let continuation = state.waiting.removeValue(forKey: ticket) else {
                // The attempt has its turn, or does not wait yet.
                state.withdrawn.insert(ticket)
                return nil
            }
            state.queue.remove(ticket)
            return continuation
        }
        continuation?.resume(returning: nil)
    }

    private func giveBack(_ hasher: PasswordHasher) {
        let next = state.withLock { state -> CheckedContinuation<PasswordHasher?, Never>? in
            guard let ticket = state.queue.next(), let continuation = state.waiting.removeValue(forKey: ticket) else {
                state.free.append(hasher)
                return nil
            }
            return continuation
        }
        next?.resume(returning: hasher)
    }
}
