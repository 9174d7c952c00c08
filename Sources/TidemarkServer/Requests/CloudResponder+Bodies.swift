import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTPTypes
import TidemarkWire

/// The body of a request ended before it was complete.
struct BodyFailure: Error {
    let cause: any Error
}

/// A body that an operation reads in pieces. The responder can read on where the operation stops.
///
/// `@unchecked Sendable`: it has one reader at a time, first the operation and then the responder.
final class SharedRequestBody: AsyncSequence, @unchecked Sendable {
    typealias Element = ByteBuffer

    private let body: RequestBody
    private var iterator: RequestBody.AsyncIterator?
    /// Whether all of it was read, and the number of bytes that were.
    private(set) var isDone = false
    private(set) var count = 0

    init(_ body: RequestBody) { self.body = body }

    /// Each iterator continues where the last one stopped.
    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let body: SharedRequestBody

        func next() async throws -> ByteBuffer? { try await body.next() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: self) }

    fileprivate func next() async throws -> ByteBuffer? {
        guard !isDone else { return nil }
        var reading = iterator ?? body.makeAsyncIterator()
        // A body can be iterated once only.
        defer { iterator = reading }
        do {
            let piece = try await reading.next()
            count += piece?.readableBytes ?? 0
            isDone = piece == nil
            return piece
        } catch {
            throw BodyFailure(cause: error)
        }
    }
}

extension CloudResponder {
    /// The most bytes of an unwanted body that are read. With a larger body the client may not see why it is refused.
    private static let unwanted = 16 << 20

    /// Returns the decompressed body of an operation that reads it as a whole.
    func body(
        of operation: Operation, _ request: Request, _ exchange: inout Exchange, _ writer: borrowing ResponseWriter
    ) async throws -> [UInt8] {
        let most: Int
        switch operation.body {
        case .none: return []
        case .json: most = limits.bodySize
        case .bytes(let limit):
            if let larger = operation.largerBody, try await larger.isAllowed(request.headers) {
                most = larger.most
            } else {
                most = limit
            }
        case .stream:
            if case .awaited = exchange.reading {
                try await writer.writeInformationalHead(HTTPResponse(status: .continue))
                exchange.reading = .unread
            }
            return []
        }
        let length = request.headers[.contentLength].flatMap { Int($0) }
        if let length, length > most { throw Refusal.tooLarge(most) }
        let isPacked = try Self.isPacked(request.headers)
        switch exchange.reading {
        case .done: return []
        case .awaited: try await writer.writeInformationalHead(HTTPResponse(status: .continue))
        default: break
        }
        var bytes: [UInt8] = []
        var iterator = request.body.makeAsyncIterator()
        exchange.reading = .begun(iterator)
        while let piece = try await Self.next(&iterator) {
            guard bytes.count + piece.readableBytes <= most else {
                exchange.reading = .begun(iterator)
                throw Refusal.tooLarge(most)
            }
            do {
                try take(piece.readableBytes, &exchange)
            } catch {
                exchange.reading = .begun(iterator)
                throw error
            }
            if bytes.isEmpty {
                if let length, length > piece.readableBytes { bytes.reserveCapacity(length) }
            }
            bytes += piece.readableBytesView
        }
        exchange.reading = .done
        exchange.bodySize = bytes.count
        // A broken connection looks like the end of the body.
        if let length, bytes.count != length { throw BodyFailure(cause: ConnectionAborted()) }
        guard isPacked else { return bytes }
        do {
            return try Gzip.unpacked(bytes, limit: most) { try take($0, &exchange) }
        } catch Gzip.Failure.tooLong {
            throw Refusal.tooLarge(most)
        } catch is Gzip.Failure {
            throw Refusal.badRequest("the body is not what gzip makes")
        }
    }

    private static func next(_ iterator: inout RequestBody.AsyncIterator) async throws -> ByteBuffer? {
        do {
            return try await iterator.next()
        } catch {
            throw BodyFailure(cause: error)
        }
    }

    private func take(_ count: Int, _ exchange: inout Exchange) throws {
        guard count > 0 else { return }
        switch bodies.take(count, for: exchange.network) {
        case .taken: exchange.held += count
        case .isFull: throw Refusal.busy("the server holds as many bodies as it can")
        case .shareIsFull:
            metrics.throttled()
            throw Refusal.throttled(2, "requests from this address have as many bytes under way as they may")
        }
    }

    private static func isPacked(_ headers: HTTPFields) throws -> Bool {
        switch headers[.contentEncoding]?.lowercased() {
        case nil, "", "identity": return false
        case "gzip", "x-gzip": return true
        default:
            var refusal = Refusal.badRequest("a body is packed by gzip, or not at all")
            refusal.status = .unsupportedMediaType
            refusal.headers[.acceptEncoding] = "gzip"
            throw refusal
        }
    }

    /// Returns whether the connection can't be used any more after the answer.
    private func isLast(_ request: Request, _ exchange: Exchange) -> Bool {
        switch exchange.reading {
        case .awaited: true
        case .unread, .begun: (request.headers[.contentLength].flatMap { Int($0) } ?? 0) > Self.unwanted
        case .done: false
        }
    }

    /// Reads the rest of an unwanted body, up to a limit, so that the client sees the answer.
    func readOn(_ request: Request, _ exchange: Exchange) async throws {
        var iterator: RequestBody.AsyncIterator
        switch exchange.reading {
        case .done: return
        case .awaited: throw ConnectionAborted()
        case .unread: iterator = request.body.makeAsyncIterator()
        case .begun(let begun): iterator = begun
        }
        var count = 0
        while let piece = try await iterator.next() {
            count += piece.readableBytes
            guard count <= Self.unwanted else { throw ConnectionAborted() }
        }
    }

    /// Writes the answer, and returns how many bytes its body has.
    func write(
        _ reply: inout Reply, _ exchange: Exchange, _ request: Request, _ writer: consuming ResponseWriter
    ) async throws -> Int {
        complete(&reply.headers, exchange)
        if isLast(request, exchange) { reply.headers[.connection] = "close" }
        switch reply.body {
        case .json(let bytes):
            reply.headers[.contentType] = "application/json; charset=UTF-8"
            return try await write(bytes, &reply, exchange, writer)
        case .text(let text, let type):
            reply.headers[.contentType] = type
            return try await write(Array(text.utf8), &reply, exchange, writer)
        case .none:
            if reply.status.code != 204 && reply.status.code != 304 { reply.headers[.contentLength] = "0" }
            try await writer.writeResponse(HTTPResponse(status: reply.status, headerFields: reply.headers))
            return 0
        case .stream(let type, let count, let write):
            reply.headers[.contentType] = type
            if let count { reply.headers[.contentLength] = String(count) }
            let head = HTTPResponse(status: reply.status, headerFields: reply.headers)
            guard !exchange.isHead else {
                var head = head
                if count == nil { head.headerFields[.contentLength] = "0" }
                try await writer.writeResponse(head)
                return 0
            }
            var body: any ResponseBodyWriter = CountingWriter(writer: try await writer.writeHead(head))
            try await write(&body)
            guard let counting = body as? CountingWriter else { throw ConnectionAborted() }
            // Fewer bytes were written than announced. The client must not take the next answer for the rest.
            if let count, Int64(counting.count) != count { throw ConnectionAborted() }
            try await counting.finish(nil)
            return counting.count
        }
    }

    private func write(
        _ bytes: [UInt8], _ reply: inout Reply, _ exchange: Exchange, _ writer: consuming ResponseWriter
    ) async throws -> Int {
        var bytes = bytes
        if bytes.count > 1_024 {
            if reply.headers[.vary] == nil { reply.headers[.vary] = "Accept-Encoding" }
            if exchange.acceptsGzip, let packed = Gzip.packed(bytes) {
                bytes = packed
                reply.headers[.contentEncoding] = "gzip"
            }
        }
        reply.headers[.contentLength] = String(bytes.count)
        let head = HTTPResponse(status: reply.status, headerFields: reply.headers)
        guard !exchange.isHead else {
            try await writer.writeResponse(head)
            return 0
        }
        try await writer.write(response: head, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        return bytes.count
    }
}

/// Counts the bytes that are written.
private struct CountingWriter: ResponseBodyWriter {
    var writer: any ResponseBodyWriter
    var count = 0

    mutating func write(_ buffer: ByteBuffer) async throws {
        count += buffer.readableBytes
        try await writer.write(buffer)
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { try await writer.finish(trailingHeaders) }
}
