import CPostgres
import Dispatch
import TidemarkModel

/// What libpq needs to ask a server to end the statement of a connection, from any thread.
///
/// `@unchecked`: the pointer never changes, and `PQcancel` may be called from any thread.
final class PostgresCancellation: @unchecked Sendable {
    private let pointer: OpaquePointer?
    /// Whether the server has not answered a request yet.
    private let isAsking = LockedValue(false)

    /// - Parameter connection: A `PGconn` that has connected.
    init(_ connection: OpaquePointer) { pointer = PQgetCancel(connection) }

    deinit { PQfreeCancel(pointer) }

    /// Asks the server, over a connection of its own, on a thread of the global queue. A statement that the server gets later goes on.
    ///
    /// Nothing is asked while an earlier request has no answer: over a network that loses all packets each would keep a thread for as long as the
    /// system tries to connect.
    func request() {
        let mayAsk = isAsking.withLock { isAsking in
            defer { isAsking = true }
            return !isAsking
        }
        guard mayAsk else { return }
        // The pointer stays until the server has answered: the closure keeps its owner.
        DispatchQueue.global().async { [self] in
            defer { isAsking.withLock { $0 = false } }
            guard let pointer else { return }
            var message = [CChar](repeating: 0, count: 256)
            PQcancel(pointer, &message, 256)
        }
    }
}
