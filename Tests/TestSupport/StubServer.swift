import Foundation
import TidemarkHTTP
import TidemarkModel

/// A reserved port of this machine: no other socket gets it as long as this object exists. Connections to it are refused unless a
/// stub server listens there.
package final class ReservedPort: Sendable {
    package let number: Int
    private let bound: Int32

    package init() throws { (bound, number) = try boundSocket(0, isShared: true) }

    deinit { close(bound) }
}

/// A socket at a port of this machine, and the port's number.
///
/// - Parameters:
///   - port: The port; 0 for any free one.
///   - isShared: Whether other sockets with this option may have the same port.
private func boundSocket(_ port: Int, isShared: Bool) throws -> (Int32, Int) {
    #if canImport(Glibc)
        let opened = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
        let opened = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var isOn: Int32 = isShared ? 1 : 0
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            setsockopt(opened, SOL_SOCKET, SO_REUSEPORT, &isOn, socklen_t(MemoryLayout<Int32>.size)) == 0
                && bind(opened, $0, length) == 0 && getsockname(opened, $0, &length) == 0
        }
    }
    guard isBound else {
        close(opened)
        throw POSIXError(.EADDRNOTAVAIL)
    }
    return (opened, Int(UInt16(bigEndian: address.sin_port)))
}

/// A server that answers with any bytes that a test wants, on threads of its own.
package final class StubServer: Sendable {
    package struct Request: Sendable {
        package let head: String
        package let body: String

        /// `POST /path`.
        package var line: String {
            head.split(separator: "\r\n").first.map { $0.split(separator: " ").prefix(2).joined(separator: " ") } ?? ""
        }

        package func header(_ name: String) -> String? {
            for line in head.split(separator: "\r\n").dropFirst() where line.lowercased().hasPrefix(name.lowercased() + ":") {
                return line.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            }
            return nil
        }
    }

    package enum Reply: Sendable {
        case bytes([UInt8])
        /// The bytes are sent, then the connection is closed.
        case last([UInt8])
        /// The connection breaks.
        case broken
        /// The start is sent, then the other bytes again and again, until the client closes the connection.
        case endless(start: [UInt8], [UInt8])
        /// No answer is sent.
        case silence

        package static func json(_ text: String, status: String = "200 OK", headers: [String] = []) -> Reply {
            let lines = ["HTTP/1.1 \(status)", "Content-Type: application/json", "Content-Length: \(text.utf8.count)"] + headers
            return .bytes(Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + text).utf8))
        }

        package static func page(_ status: String, headers: [String] = []) -> Reply {
            .json("<html><body>\(status)</body></html>", status: status, headers: headers)
        }
    }

    package let port: Int
    private let listening: Int32
    private let answer: @Sendable (Request, Int) -> Reply
    private let seen = LockedValue<[Request]>([])

    /// - Parameters:
    ///   - reserved: The port at which the server listens; by default any free one.
    ///   - answer: Called with a request and the number of requests before it.
    package init(at reserved: ReservedPort? = nil, _ answer: @escaping @Sendable (Request, Int) -> Reply) throws {
        self.answer = answer
        let (listening, port) = try boundSocket(reserved?.number ?? 0, isShared: reserved != nil)
        guard listen(listening, 64) == 0 else {
            close(listening)
            throw POSIXError(.EADDRNOTAVAIL)
        }
        (self.listening, self.port) = (listening, port)
        Thread.detachNewThread { [weak self] in
            while true {
                let connection = accept(listening, nil, nil)
                guard connection >= 0 else {
                    // Only this thread closes the socket: once it is closed, another socket may get its number.
                    close(listening)
                    return
                }
                guard let self else {
                    close(connection)
                    return
                }
                Thread.detachNewThread { self.serve(connection) }
            }
        }
    }

    deinit {
        shutdown(listening, Int32(SHUT_RDWR))
    }

    package var address: ServerAddress {
        get throws { try ServerAddress("http://127.0.0.1:\(port)") }
    }

    package var requests: [Request] { seen.withLock { $0 } }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        var pending: [UInt8] = []
        while let request = read(connection, &pending) {
            let number = seen.withLock { seen in
                seen.append(request)
                return seen.count - 1
            }
            switch answer(request, number) {
            case .bytes(let bytes):
                guard write(bytes, connection) else { return }
            case .last(let bytes):
                _ = write(bytes, connection)
                return
            case .broken:
                var linger = linger(l_onoff: 1, l_linger: 0)
                setsockopt(connection, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
                return
            case .endless(let start, let more):
                guard write(start, connection) else { return }
                while write(more, connection) {}
                return
            case .silence:
                // Waits until the client closes the connection.
                var byte: UInt8 = 0
                while recv(connection, &byte, 1, 0) > 0 {}
                return
            }
        }
    }

    private func read(_ connection: Int32, _ pending: inout [UInt8]) -> Request? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let text = String(decoding: pending, as: UTF8.self)
            if let end = text.range(of: "\r\n\r\n") {
                let head = String(text[..<end.lowerBound])
                let length = Request(head: head, body: "").header("Content-Length").flatMap { Int($0) } ?? 0
                let start = text[..<end.upperBound].utf8.count
                if pending.count >= start + length {
                    let body = String(decoding: pending[start..<start + length], as: UTF8.self)
                    pending.removeFirst(start + length)
                    return Request(head: head, body: body)
                }
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            pending += buffer[..<count]
        }
    }

    private func write(_ bytes: [UInt8], _ connection: Int32) -> Bool {
        var done = 0
        while done < bytes.count {
            #if canImport(Glibc)
                let flags = Int32(MSG_NOSIGNAL)
            #else
                let flags: Int32 = 0
            #endif
            let count = bytes.withUnsafeBytes { send(connection, $0.baseAddress! + done, bytes.count - done, flags) }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
