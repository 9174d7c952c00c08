import CZlib

/// Compresses and decompresses bodies with gzip.
package enum Gzip {
    package enum Failure: Error {
        /// The bytes are not gzip, or incomplete.
        case malformed
        /// The decompressed bytes exceed the limit.
        case tooLong
    }

    private static let bufferSize = 64 << 10

    /// Compresses bytes, with the fastest level. Returns `nil` if there is not enough memory.
    package static func packed(_ bytes: [UInt8]) -> [UInt8]? {
        var stream = z_stream()
        guard
            deflateInit2_(
                &stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
        defer { deflateEnd(&stream) }
        guard bytes.count < Int(UInt32.max) else { return nil }
        let bound = Int(deflateBound(&stream, UInt(bytes.count)))
        return bytes.withUnsafeBufferPointer { bytes in
            // zlib doesn't write to what it reads.
            stream.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
            stream.avail_in = UInt32(bytes.count)
            var isDone = false
            let packed = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
                stream.next_out = buffer.baseAddress
                stream.avail_out = UInt32(bound)
                isDone = deflate(&stream, Z_FINISH) == Z_STREAM_END
                count = bound - Int(stream.avail_out)
            }
            return isDone ? packed : nil
        }
    }

    /// Decompresses bytes piece by piece.
    ///
    /// - Parameters:
    ///   - limit: The most bytes of the result.
    ///   - more: Called with the size of each piece before the piece is kept. It throws if there is no room for the piece.
    /// - Throws: ``Failure``; the errors of `more`.
    package static func unpacked(_ bytes: [UInt8], limit: Int, more: (Int) throws -> Void) throws -> [UInt8] {
        var stream = z_stream()
        guard inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw Failure.malformed
        }
        defer { inflateEnd(&stream) }
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: bufferSize)
        try bytes.withUnsafeBufferPointer { bytes in
            stream.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
            stream.avail_in = UInt32(bytes.count)
            while true {
                let (status, count) = buffer.withUnsafeMutableBufferPointer { buffer in
                    stream.next_out = buffer.baseAddress
                    stream.avail_out = UInt32(buffer.count)
                    return (inflate(&stream, Z_NO_FLUSH), buffer.count - Int(stream.avail_out))
                }
                guard status == Z_OK || status == Z_STREAM_END else { throw Failure.malformed }
                guard result.count + count <= limit else { throw Failure.tooLong }
                try more(count)
                result += buffer[..<count]
                if status == Z_STREAM_END {
                    guard stream.avail_in == 0 else { throw Failure.malformed }
                    return
                }
                guard count > 0 || stream.avail_in > 0 else { throw Failure.malformed }
            }
        }
        return result
    }
}
