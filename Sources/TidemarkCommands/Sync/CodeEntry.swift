import ArgumentParser
import Foundation
import TidemarkCloud

/// The options for the code of an account's second factor.
struct CodeEntry: ParsableArguments {
    @Flag(help: "Reads the code of the account's second factor from standard input: the line after the password.")
    var codeStdin = false

    @Option(
        help: ArgumentHelp(
            "The file whose first line is the code of the account's second factor. (default: TIDEMARK_CODE in the environment)",
            valueName: "file"))
    var codeFile: String?

    private static let variable = "TIDEMARK_CODE"
    private static let name = EnteredText.Name("code", option: "--code-stdin, --code-file or \(variable)")
    /// How many times the code is asked for.
    private static let entries = 3

    func validate() throws {
        if codeStdin, codeFile != nil { throw ValidationError("--code-stdin and --code-file exclude each other") }
    }

    /// Whether one of the options is given.
    var isNamed: Bool { codeStdin || codeFile != nil }

    /// The options as they stand on a command line.
    var words: [String] { (codeStdin ? ["--code-stdin"] : []) + (codeFile.map { ["--code-file=\($0)"] } ?? []) }

    /// Signs in with the code from the options. Without one, it asks for the code if the server needs it.
    ///
    /// - Parameters:
    ///   - mayAsk: Whether the code may be asked for on the terminal.
    ///   - account: The account's address, for the question.
    func signIn(
        mayAsk: Bool, for account: String, _ signIn: (_ code: String?) async throws -> Void
    ) async throws {
        var code = try given()
        var left = code == nil && mayAsk ? Self.entries : 0
        while true {
            do {
                return try await signIn(code)
            } catch let error as CloudError where error.code == .secondFactorRequired {
                guard left > 0 else {
                    let help = code == nil ? "hand it over with \(Self.name.option)" : "take the next one that the app shows"
                    throw ending("\(error); \(help)", error.exitStatus)
                }
                if code != nil { Output.error(error.reason) }
                left -= 1
                code = try Self.text(try EnteredText.typed("code of \(account): ", Self.name, isShown: true))
            }
        }
    }

    /// The code from the options; `nil` without one.
    private func given() throws -> String? {
        if codeStdin { return try Self.text(try EnteredText.line(of: STDIN_FILENO, Self.name)) }
        if let codeFile {
            let url = try fileURL(codeFile, "the file of the code")
            guard let file = try? FileHandle(forReadingFrom: url) else {
                throw ending("\(url.path), the file of --code-file, can't be read", .noInput)
            }
            defer { try? file.close() }
            return try Self.text(try EnteredText.line(of: file.fileDescriptor, Self.name))
        }
        return ProcessInfo.processInfo.environment[Self.variable].flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func text(_ bytes: [UInt8]) throws -> String {
        guard let code = String(validating: bytes, as: UTF8.self), !code.isEmpty else {
            throw ending("no code was given", .usage)
        }
        return code
    }
}
