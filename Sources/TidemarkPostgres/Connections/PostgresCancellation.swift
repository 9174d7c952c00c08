import CPostgres
import Dispatch
import TidemarkModel

/// Asks a server, from any thread, to end the statement that a connection runs.
///
/// `@unchecked`: the pointer never changes, and `PQcancel` may be called from any thread.
final class PostgresCancellation: @unchecked Sendable {
    private let pointer: OpaquePointer?
    /// Whether the server has yet to answer a request.
    private let isAsking = LockedValue(false)

    /// - Parameter connection: A `PGconn` that has connected.
    init(_ connection: OpaquePointer) { pointer = PQgetCancel(connection) }

    deinit { PQfreeCancel(pointer) }

    /// Asks the server to end the running statement. The request has a connection of its own, on a thread of the global queue. It
    /// does not end a statement that the server receives later.
    ///
    /// Does nothing while an earlier request has no answer. In a network that loses all packets, each request would block a
    /// thread for as long as the system tries to connect.
    func request() {
        let mayAsk = isAsking.withLock { isAsking in
            defer { isAsking = true }
            return !isAsking
        }
        guard mayAsk else { return }
        // The closure keeps this object, and so the pointer, until the server has answered.
        DispatchQueue.global().async { [self] in
            defer { isAsking.withLock { $0 = false } }
            guard let pointer else { return }
            var message = [CChar](repeating: 0, count: 256)
            PQcancel(pointer, &message, 256)
        }
    }
}
