import Foundation

/// Reads a password for a command. It is never an argument, which everybody on the machine could read.
enum Password {
    private static let name = EnteredText.Name("password", option: "--password-stdin")

    /// - Parameters:
    ///   - isOnStandardInput: Whether the password is the first line of standard input; otherwise it is asked for on the
    ///     terminal.
    ///   - account: The account's address, for the question.
    static func read(isOnStandardInput: Bool, for account: String) throws -> String {
        let bytes =
            isOnStandardInput
            ? try EnteredText.line(of: STDIN_FILENO, name)
            : try EnteredText.typed("password of \(account): ", name, isShown: false)
        guard let password = String(validating: bytes, as: UTF8.self), !password.isEmpty else {
            throw ending("no password was given", .usage)
        }
        return password
    }
}

/// Reads a text for a command, from standard input or from the terminal.
enum EnteredText {
    /// The text's name in messages, and the way to give it without a terminal.
    struct Name {
        let text, option: String

        init(_ text: String, option: String) { (self.text, self.option) = (text, option) }
    }

    private static let sizeLimit = 1024

    /// Reads the next line of a file, and no more of it.
    static func line(of descriptor: Int32, _ name: Name) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let byte = next(descriptor), byte != 0x0a { try add(byte, to: &bytes, name) }
        if bytes.last == 0x0d { bytes.removeLast() }
        return bytes
    }

    /// Reads a line that is typed on the terminal.
    static func typed(_ prompt: String, _ name: Name, isShown: Bool) throws -> [UInt8] {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else {
            throw ending("there is no terminal to ask for the \(name.text) on; hand it over with \(name.option)", .usage)
        }
        defer { close(terminal) }
        if isShown {
            tell(prompt, terminal)
            return try line(of: terminal, name)
        }
        var before = termios()
        guard tcgetattr(terminal, &before) == 0 else {
            throw ending("the terminal can't be kept from showing the \(name.text); hand it over with \(name.option)", .usage)
        }
        var silent = before
        // Input is read byte by byte, so that Ctrl-C is read here, too, and the terminal's mode is always restored.
        silent.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
        tcsetattr(terminal, TCSAFLUSH, &silent)
        defer { tcsetattr(terminal, TCSAFLUSH, &before) }
        tell(prompt, terminal)
        defer { tell("\n", terminal) }
        var bytes: [UInt8] = []
        while let byte = next(terminal) {
            switch byte {
            case 0x0a, 0x0d, 0x04: return bytes
            case 0x03: throw ending("interrupted", .interrupted)
            // Removes all bytes of a UTF-8 character.
            case 0x08, 0x7f: while let last = bytes.popLast(), last & 0xc0 == 0x80 {}
            case 0x15: bytes = []
            default: try add(byte, to: &bytes, name)
            }
        }
        return bytes
    }

    private static func add(_ byte: UInt8, to bytes: inout [UInt8], _ name: Name) throws {
        guard bytes.count < sizeLimit else { throw ending("a \(name.text) has \(sizeLimit) bytes at the most", .usage) }
        bytes.append(byte)
    }

    private static func next(_ descriptor: Int32) -> UInt8? {
        var byte: UInt8 = 0
        while true {
            let count = Foundation.read(descriptor, &byte, 1)
            if count == 1 { return byte }
            guard count < 0, errno == EINTR else { return nil }
        }
    }

    private static func tell(_ text: String, _ descriptor: Int32) {
        _ = Array(text.utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    }
}
