import CZlib
import NIOCore
import Synchronization

/// Packs the bodies of requests, where that spares more than it costs.
///
/// Bodies of a few hundred bytes go in one packet anyhow; contents of assets are packed mostly, or not worth it; and to a server of this
/// machine bytes cost nothing.
final class BodyPacker: Sendable {
    private let least: Int
    private let isOn: Mutex<Bool>

    init(_ server: ServerAddress, _ patience: HTTPPatience) {
        least = patience.leastPacked
        isOn = Mutex(patience.packsOnLoopback || !server.isLoopback)
    }

    /// The body of a call, packed; `nil` where it goes as it is.
    func packed(_ call: HTTPCall) -> ByteBuffer? {
        switch call.kind {
        case .look, .change: break
        case .upload, .download, .poll: return nil
        }
        guard let body = call.body, body.readableBytes >= least, isOn.withLock({ $0 }) else { return nil }
        return Self.packed(body)
    }

    /// Packs no more: the server, or whoever is before it, does not take what is packed.
    func stop() { isOn.withLock { $0 = false } }

    /// As `gzip` does, quickly rather than well; `nil` where nothing is gained.
    private static func packed(_ body: ByteBuffer) -> ByteBuffer? {
        var stream = z_stream()
        guard
            deflateInit2_(
                &stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
        defer { deflateEnd(&stream) }
        let count = body.readableBytes
        guard count < Int(Int32.max) else { return nil }
        let bound = Int(deflateBound(&stream, UInt(count)))
        var packed = ByteBuffer()
        var isDone = false
        packed.writeWithUnsafeMutableBytes(minimumWritableBytes: bound) { (space: UnsafeMutableRawBufferPointer) -> Int in
            body.withUnsafeReadableBytes { (bytes: UnsafeRawBufferPointer) -> Int in
                // zlib doesn't write to what it reads.
                stream.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress)
                stream.avail_in = UInt32(count)
                stream.next_out = space.bindMemory(to: UInt8.self).baseAddress
                stream.avail_out = UInt32(bound)
                isDone = deflate(&stream, Z_FINISH) == Z_STREAM_END
                return bound - Int(stream.avail_out)
            }
        }
        return isDone && packed.readableBytes < count ? packed : nil
    }
}
