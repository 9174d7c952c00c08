import Foundation
import TidemarkModel

/// A terminal for a process, on which a test types.
public final class PseudoTerminal: Sendable {
    /// The path of the process's side.
    public let path: String
    private let side: Int32
    /// Keeps what was typed and shown while no process has its side open.
    private let otherSide: Int32
    private let seen = LockedValue<[UInt8]>([])

    /// - Parameter typed: The text that is typed ahead. `\u{4}` ends the input, as Ctrl-D does.
    public init(typing typed: String) throws {
        #if canImport(Darwin)
            side = posix_openpt(O_RDWR | O_NOCTTY)
            guard side >= 0, grantpt(side) == 0, unlockpt(side) == 0, let name = ptsname(side) else { throw POSIXError(.EIO) }
            path = String(cString: name)
        #else
            // <stdlib.h> has functions for this that are hidden from Swift here: they call TIOCSPTLCK and TIOCGPTN.
            side = open("/dev/ptmx", O_RDWR | O_NOCTTY)
            var (isLocked, number): (Int32, UInt32) = (0, 0)
            guard side >= 0, ioctl(side, 0x4004_5431, &isLocked) == 0, ioctl(side, 0x8004_5430, &number) == 0 else {
                throw POSIXError(.EIO)
            }
            path = "/dev/pts/\(number)"
        #endif
        otherSide = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard otherSide >= 0, fcntl(side, F_SETFD, FD_CLOEXEC) == 0, fcntl(side, F_SETFL, O_NONBLOCK) == 0,
            write(side, typed, typed.utf8.count) == typed.utf8.count
        else { throw POSIXError(.EIO) }
    }

    deinit {
        close(otherSide)
        close(side)
    }

    /// Waits until the terminal has shown a text.
    ///
    /// - Returns: Whether the text came.
    public func shows(_ text: String) async throws -> Bool {
        try await eventually { fetch().firstRange(of: Array(text.utf8)) != nil }
    }

    /// Types each answer once its question is shown.
    ///
    /// - Returns: Whether all questions came.
    public func answer(_ questions: [(String, String)]) async throws -> Bool {
        var rest = 0
        for (question, answer) in questions {
            let isAsked = try await eventually {
                let text = fetch()[rest...]
                guard let found = text.firstRange(of: Array(question.utf8)) else { return false }
                rest = found.upperBound
                return true
            }
            guard isAsked, write(side, answer + "\n", answer.utf8.count + 1) == answer.utf8.count + 1 else { return false }
        }
        return true
    }

    /// What the terminal has shown since the last call, typed text included.
    func shown() -> String {
        let bytes = fetch()
        seen.withLock { $0 = [] }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// What it has shown since ``shown()`` was called last.
    private func fetch() -> [UInt8] {
        seen.withLock { seen in
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(side, &buffer, buffer.count)
                guard count > 0 else { return seen }
                seen += buffer[..<count]
            }
        }
    }
}
