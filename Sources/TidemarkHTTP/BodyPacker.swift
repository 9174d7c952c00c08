import TidemarkModel
import TidemarkWire

/// Packs the bodies of requests, where that spares more than it costs.
///
/// Bodies of a few hundred bytes go in one packet anyhow; contents of assets are packed mostly, or not worth it; and to a server of this
/// machine bytes cost nothing.
final class BodyPacker: Sendable {
    private let least: Int
    private let isOn: LockedValue<Bool>

    init(_ server: ServerAddress, _ timeouts: HTTPTimeouts) {
        least = timeouts.leastPacked
        isOn = LockedValue(timeouts.packsOnLoopback || !server.isLoopback)
    }

    /// The body of a call, packed; `nil` where it goes as it is.
    func packed(_ call: HTTPCall) -> [UInt8]? {
        switch call.kind {
        case .look, .change: break
        case .upload, .download, .poll: return nil
        }
        guard let body = call.body, body.count >= least, isOn.withLock({ $0 }) else { return nil }
        // Where nothing is gained it goes as it is.
        guard let packed = Gzip.packed(body), packed.count < body.count else { return nil }
        return packed
    }

    /// Packs no more: the server, or whoever is before it, does not take what is packed.
    func stop() { isOn.withLock { $0 = false } }
}
