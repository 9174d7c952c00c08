import Foundation
import TidemarkModel

/// A proxy on a loopback port that passes bytes on, or behaves like a bad network.
public final class TCPProxy: Sendable {
    /// What happens to bytes.
    public enum Mode: Sendable {
        /// They are passed on.
        case pass
        /// Nothing is passed on, and connections stay open.
        case stall
        /// What the client sends is passed on; what the server answers is not.
        case swallowAnswers
        /// New connections are closed at once.
        case refuse
        /// Instead of the server's answers the client gets these bytes.
        case garbage([UInt8])
        /// Bytes are passed on, some of them replaced, in each direction.
        case replace(sent: Replacement, answered: Replacement)
    }

    /// Bytes, and the bytes that replace them wherever they occur in a piece.
    public struct Replacement: Sendable {
        fileprivate let old, new: Data

        public init(_ old: some Sequence<UInt8>, by new: some Sequence<UInt8>) { (self.old, self.new) = (Data(old), Data(new)) }

        fileprivate func applied(to bytes: ArraySlice<UInt8>) -> [UInt8] {
            var (rest, changed) = (Data(bytes), Data())
            while let found = rest.range(of: old) {
                changed += rest[..<found.lowerBound] + new
                rest = Data(rest[found.upperBound...])
            }
            return Array(changed + rest)
        }
    }

    /// How a connection ends after a piece of what its client sends.
    private struct PlannedCut {
        let passesLast: Bool
        let action: (@Sendable () -> Void)?
    }

    /// Sockets are closed and shut down under the lock of this state: as soon as one is closed, another test's socket may get its
    /// number.
    private struct State {
        var mode = Mode.pass
        var isListening = true
        var sockets: Set<Int32> = []
        var accepted = 0
        var swallowed = 0
        /// How many more pieces from clients pass before a connection is cut; `nil` if none is to be cut.
        var piecesLeft: Int?
        var nextCut = PlannedCut(passesLast: false, action: nil)
        var hasCut = false
        var pieces = 0
    }

    public let port: Int
    private let target: Int
    private let listening: Int32
    private let state = LockedValue(State())

    #if canImport(Glibc)
        private static let stream = Int32(SOCK_STREAM.rawValue)
    #else
        private static let stream = SOCK_STREAM
    #endif

    /// - Parameter target: The port of the server.
    public init(to target: Int) throws {
        self.target = target
        listening = socket(AF_INET, Self.stream, 0)
        _ = fcntl(listening, F_SETFD, FD_CLOEXEC)
        var address = Self.address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listening
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 100) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw PostgresServer.Failure(description: "the proxy has no port: errno \(errno)") }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in accept() }
    }

    private static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    /// How many connections it has accepted.
    public var accepted: Int { state.withLock { $0.accepted } }

    /// How many pieces of the server's answers were swallowed or replaced by garbage.
    public var swallowed: Int { state.withLock { $0.swallowed } }

    public func set(_ mode: Mode) { state.withLock { $0.mode = mode } }

    /// Closes all connections.
    public func cut() {
        state.withLock { state in
            for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    /// Cuts a connection once, when a client sends a certain piece on it. A piece is one statement, or several that are sent
    /// together.
    ///
    /// - Parameters:
    ///   - count: How many pieces of all connections pass before the piece at which the connection is cut, counted from now.
    ///   - passesLast: Whether the server gets the piece; its answer is lost then.
    ///   - action: Called on the proxy's thread before the connection is cut; if the server gets the piece, after its answer.
    public func cut(afterPieces count: Int, passingLast passesLast: Bool, doing action: (@Sendable () -> Void)? = nil) {
        let cut = PlannedCut(passesLast: passesLast, action: action)
        state.withLock { state in (state.piecesLeft, state.nextCut, state.hasCut) = (count, cut, false) }
    }

    /// Forgets a cut that has not come yet. ``hasCut`` stays as it is.
    public func forgetCut() { state.withLock { $0.piecesLeft = nil } }

    /// Whether a connection was cut since the last call of ``cut(afterPieces:passingLast:doing:)``.
    public var hasCut: Bool { state.withLock { $0.hasCut } }

    /// How many pieces clients have sent.
    public var pieces: Int { state.withLock { $0.pieces } }

    /// Counts a piece of what a client sends.
    ///
    /// - Returns: `nil` if the piece is passed on as usual; otherwise how the connection is cut.
    private func cutAtPiece() -> PlannedCut? {
        state.withLock { state in
            state.pieces += 1
            guard let left = state.piecesLeft else { return nil }
            state.piecesLeft = left == 0 ? nil : left - 1
            guard left == 0 else { return nil }
            state.hasCut = true
            return state.nextCut
        }
    }

    /// Waits until the server sends something, for so many seconds at the most.
    private static func waitForAnswer(_ server: Int32, seconds: Int32) {
        var waiting = pollfd(fd: server, events: Int16(POLLIN), revents: 0)
        _ = poll(&waiting, 1, seconds * 1000)
    }

    /// Closes all connections, and accepts no more.
    public func end() {
        state.withLock { state in
            if state.isListening { shutdown(listening, Int32(SHUT_RDWR)) }
        }
        cut()
    }

    private var mode: Mode { state.withLock { $0.mode } }

    private func accept() {
        while true {
            let client = Foundation.accept(listening, nil, nil)
            guard client >= 0 else { break }
            _ = fcntl(client, F_SETFD, FD_CLOEXEC)
            state.withLock { $0.accepted += 1 }
            if case .refuse = mode {
                close(client)
                continue
            }
            let server = socket(AF_INET, Self.stream, 0)
            _ = fcntl(server, F_SETFD, FD_CLOEXEC)
            var address = Self.address(target)
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            guard isConnected else {
                close(client)
                close(server)
                continue
            }
            state.withLock { $0.sockets.formUnion([client, server]) }
            Thread.detachNewThread { [self] in carry(client, server) }
        }
        state.withLock { state in
            state.isListening = false
            close(listening)
        }
    }

    private func carry(_ client: Int32, _ server: Int32) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var isOpen = true
        while isOpen {
            let mode = mode
            var waiting = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0), pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            if case .stall = mode { for index in 0..<2 { waiting[index].events = 0 } }
            // The mode may change meanwhile, so the wait is short.
            guard poll(&waiting, 2, 20) >= 0 else { break }
            for (from, to) in [(0, server), (1, client)] where waiting[from].revents != 0 {
                let count = read(waiting[from].fd, &buffer, buffer.count)
                guard count > 0 else {
                    isOpen = false
                    break
                }
                if from == 0, let cut = cutAtPiece() {
                    if cut.passesLast { _ = Self.send(buffer, count, to) }
                    if let action = cut.action {
                        if cut.passesLast { Self.waitForAnswer(server, seconds: 10) }
                        action()
                    }
                    isOpen = false
                    break
                }
                // The mode may have changed during the wait. A stalled connection is not to be read.
                var current = self.mode
                if case .stall = current { current = mode }
                switch (current, from) {
                case (.swallowAnswers, 1): state.withLock { $0.swallowed += 1 }
                case (.stall, _): continue
                case (.garbage(let bytes), 1):
                    state.withLock { $0.swallowed += 1 }
                    isOpen = Self.send(bytes, bytes.count, to)
                case (.replace(let sent, let answered), _):
                    let bytes = (from == 0 ? sent : answered).applied(to: buffer[..<count])
                    isOpen = Self.send(bytes, bytes.count, to)
                default: isOpen = Self.send(buffer, count, to)
                }
            }
        }
        state.withLock { state in
            state.sockets.subtract([client, server])
            close(client)
            close(server)
        }
    }

    private static func send(_ bytes: [UInt8], _ count: Int, _ descriptor: Int32) -> Bool {
        var sent = 0
        while sent < count {
            let written = bytes.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
            }
            guard written > 0 else { return false }
            sent += written
        }
        return true
    }
}
