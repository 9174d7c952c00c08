import CPostgres
import Dispatch

/// What libpq needs to ask a server to end the statement of a connection, from any thread.
///
/// `@unchecked`: the pointer never changes, and `PQcancel` may be called from any thread.
final class PostgresCancellation: @unchecked Sendable {
    private let pointer: OpaquePointer?

    /// - Parameter connection: A `PGconn` that has connected.
    init(_ connection: OpaquePointer) { pointer = PQgetCancel(connection) }

    deinit { PQfreeCancel(pointer) }

    /// Asks the server, over a connection of its own, on a thread of its own. A statement that the server gets later goes on.
    func request() {
        // The pointer stays until the server has answered: the closure keeps its owner.
        DispatchQueue.global().async { [self] in
            guard let pointer else { return }
            var message = [CChar](repeating: 0, count: 256)
            PQcancel(pointer, &message, 256)
        }
    }
}
