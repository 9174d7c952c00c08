import ArgumentParser
import Foundation

/// The options for a password: it is typed twice without being shown, or read from standard input. It is never an argument, which
/// other users could see.
struct PasswordEntry: ParsableArguments {
    @Flag(help: "Reads the password from one line of standard input.")
    var passwordStdin = false

    private static let sizeMax = 4096

    /// Reads the password of an account.
    func read(of email: String) throws -> String {
        if passwordStdin { return try line() }
        guard isatty(STDIN_FILENO) == 1 else {
            throw ending(
                "there is no terminal to ask for a password on: give it on standard input, with --password-stdin", .usage)
        }
        let first = try typed("password of \(email): ")
        guard try typed("once more: ") == first else { throw ending("the two are not the same; nothing was changed", .usage) }
        return first
    }

    /// The first line of standard input.
    private func line() throws -> String {
        var bytes: [UInt8] = []
        while let byte = try next(), byte != 0x0a {
            bytes.append(byte)
            guard bytes.count <= Self.sizeMax else {
                throw ending("the line of standard input is too long for a password", .usage)
            }
        }
        if bytes.last == 0x0d { bytes.removeLast() }
        return try text(bytes)
    }

    /// Reads a line from the terminal, which does not show it.
    ///
    /// The terminal passes each key on as it is, so that its mode is restored whatever key ends the entry.
    private func typed(_ prompt: String) throws -> String {
        var before = termios()
        guard tcgetattr(STDIN_FILENO, &before) == 0 else { throw ending("the terminal can't be read", .ioError) }
        var quiet = before
        quiet.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet)
        defer {
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
            Output.error("")
        }
        // If the question can't be shown, the answer is missing, and the command reports that.
        try? FileHandle.standardError.write(contentsOf: Array(Output.printable(prompt).utf8))
        var bytes: [UInt8] = []
        while let key = try next() {
            switch key {
            case 0x0a, 0x0d: return try text(bytes)
            case 0x03, 0x1c: throw ExitCode(ExitStatus.interrupted.rawValue)
            case 0x04 where bytes.isEmpty: throw ending("no password was given", .usage)
            case 0x15: bytes = []
            case 0x08, 0x7f:
                // Removes all bytes of a UTF-8 character.
                while let last = bytes.popLast(), last & 0xc0 == 0x80 {}
            default: if bytes.count < Self.sizeMax { bytes.append(key) }
            }
        }
        throw ending("no password was given", .usage)
    }

    private func next() throws -> UInt8? {
        var byte: UInt8 = 0
        while true {
            let count = Foundation.read(STDIN_FILENO, &byte, 1)
            if count == 1 { return byte }
            if count == 0 { return nil }
            guard errno == EINTR else {
                throw ending("cannot read standard input: \(String(cString: strerror(errno)))", .ioError)
            }
        }
    }

    private func text(_ bytes: [UInt8]) throws -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw ending("the password is not in UTF-8", .usage) }
        return text
    }
}
