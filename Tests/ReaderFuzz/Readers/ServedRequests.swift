import Foundation
import Logging
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkServer

/// A server in this process, to which hostile requests are sent.
///
/// An input is a request: a line such as `POST /database/1/{container}/development/private/records/query`, lines of headers, an empty line, and the body.
/// `{container}` and `{token}` stand for what the server has given out. `Host` and `Content-Length` are added. Each request has to be answered, or its
/// connection closed; an answer of 500 is a fault of the server, and ends the process.
final class ServedRequests: Sendable {
    static let shared = ServedRequests()

    private static let container = "iCloud.org.example.journal"
    private let port: UInt16
    private let token: String

    private init() {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("reader-fuzz-\(UUID().uuidString)")
        let listening = Listening()
        let ready = DispatchSemaphore(value: 0)
        Task {
            do {
                let cloud = try EmbeddedCloud(at: folder)
                let access = try CredentialStore(at: folder)
                try await access.addContainer(Self.container)
                let account = try await cloud.addAccount("anna@example.org")
                let session = try await access.makeSession(
                    account: account.id, container: Self.container, environment: .development, kind: .device)
                var configuration = ServerConfiguration(directory: folder, port: 0)
                configuration.limits.requestsPerSecond = 0
                configuration.limits.signInAttempts = 0
                let server = try CloudServer(configuration, logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }) {
                    listening.found(port: UInt16($0), token: session.text)
                    ready.signal()
                }
                try await server.run()
            } catch {
                fatalError("the server has ended: \(error)")
            }
        }
        ready.wait()
        (port, token) = listening.values
    }

    /// Sends a request, and reads its answer.
    ///
    /// - Returns: The answer's status; `nil` where the server has sent none.
    @discardableResult
    func send(_ input: [UInt8]) -> Int? {
        guard let request = request(input) else { return nil }
        // One for each request: where an answer ends, only who reads its head knows.
        let socket = connected()
        defer { close(socket) }
        guard write(request, to: socket), let status = status(from: socket) else { return nil }
        demand(status != 500, "the server has failed")
        return status
    }

    /// The bytes of a request; `nil` for an input that is none.
    private func request(_ input: [UInt8]) -> [UInt8]? {
        let text = String(decoding: input, as: UTF8.self)
        guard let end = text.range(of: "\n\n") else { return nil }
        let head = text[..<end.lowerBound].split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let body = Array(text[end.upperBound...].replacing("{container}", with: Self.container).utf8)
        guard let line = head.first else { return nil }
        let lines =
            [line.replacing("{container}", with: Self.container) + " HTTP/1.1", "Host: 127.0.0.1:\(port)", "Connection: close"]
            + head.dropFirst().map { $0.replacing("{token}", with: token) }
            + (body.isEmpty ? [] : ["Content-Length: \(body.count)"])
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
    }

    private func connected() -> Int32 {
        let made = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        // What waits for changes is not waited for.
        var patience = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(made, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        demand(made >= 0 && status == 0, "the server takes no connection: \(String(cString: strerror(errno)))")
        return made
    }

    private func write(_ bytes: [UInt8], to socket: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// The status of an answer; `nil` where none comes. The answer is read to its end.
    private func status(from socket: Int32) -> Int? {
        var head: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            if head.count < 12 { head += buffer[..<count].prefix(12) }
        }
        guard head.count >= 12 else { return nil }
        return Int(String(decoding: head[9..<12], as: UTF8.self))
    }

    /// Where the server listens, as it says itself.
    private final class Listening: Sendable {
        private let known = LockedValue<(UInt16, String)>((0, ""))
        var values: (port: UInt16, token: String) { known.withLock { ($0.0, $0.1) } }
        func found(port: UInt16, token: String) { known.withLock { $0 = (port, token) } }
    }
}
