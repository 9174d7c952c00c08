import TidemarkModel
import TidemarkWire

/// Compresses the bodies of requests with gzip, if that is worthwhile.
///
/// It is not worthwhile for bodies of a few hundred bytes, which fit into one packet; for contents of assets, which are mostly
/// compressed already; and for a server on this machine.
final class BodyPacker: Sendable {
    private let least: Int
    private let isOn: LockedValue<Bool>

    init(_ server: ServerAddress, _ timeouts: HTTPTimeouts) {
        least = timeouts.leastPacked
        isOn = LockedValue(timeouts.packsOnLoopback || !server.isLoopback)
    }

    /// Returns the compressed body of a call; `nil` if the body is sent as it is.
    func packed(_ call: HTTPCall) -> [UInt8]? {
        switch call.kind {
        case .look, .change: break
        case .upload, .download, .poll: return nil
        }
        guard let body = call.body, body.count >= least, isOn.withLock({ $0 }) else { return nil }
        // A body that does not become smaller is sent as it is.
        guard let packed = Gzip.packed(body), packed.count < body.count else { return nil }
        return packed
    }

    /// Stops compressing, because the server or a proxy before it does not accept compressed bodies.
    func stop() { isOn.withLock { $0 = false } }
}
