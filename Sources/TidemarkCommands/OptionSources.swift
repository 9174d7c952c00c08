package import ArgumentParser
import Foundation

/// The options of a command from a configuration file and the environment, as arguments of the command.
///
/// An option on the command line goes before the environment, and the environment before the file. The file has lines of the form
/// `option = value`, with the options' long names; a line that begins with `#` is a comment. In the environment an option `port-file` is
/// `TIDEMARK_PORT_FILE`.
package struct OptionSources {
    /// An invalid file or variable.
    package struct Failure: Error {
        package let message: String
        /// Whether the file itself can't be read.
        package let isOfFile: Bool
    }

    /// An option that the command line does not have.
    private struct Source {
        /// The argument for the command line with the same meaning.
        let argument: String
        /// The option's place, for errors.
        let place: String
    }

    /// Whether an option is a flag, by its long name.
    private let isFlag: [String: Bool]
    /// Whether the file may have options of other commands.
    private let isShared: Bool
    private var sources: [String: Source] = [:]

    /// Reads the environment and the file that `--config` or `TIDEMARK_CONFIG` names.
    ///
    /// - Parameter names: The options that are read, if not all of the command's are. Other options in the file belong to other
    ///   commands.
    /// - Throws: ``Failure``.
    package init(
        of command: any ParsableCommand.Type, given: [String], environment: [String: String], only names: Set<String>? = nil
    ) throws {
        isFlag = try Self.options(of: command).filter { names?.contains($0.key) ?? true }
        isShared = names != nil
        let named = given.enumerated().compactMap { index, argument -> String? in
            if argument == "--config" { return index + 1 < given.count ? given[index + 1] : nil }
            return argument.hasPrefix("--config=") ? String(argument.dropFirst("--config=".count)) : nil
        }
        if let path = named.last ?? environment[Self.variable("config")], !path.isEmpty { try read(path) }
        for name in isFlag.keys.sorted() {
            let variable = Self.variable(name)
            if let value = environment[variable] { try add(name, value, variable) }
        }
        for argument in given where argument.hasPrefix("--") {
            let name = argument.dropFirst(2).prefix { $0 != "=" }
            sources[String(name)] = nil
        }
    }

    /// The arguments of the file and the environment, which have to stand before those of the command line.
    package var arguments: [String] { sources.sorted { $0.key < $1.key }.map(\.value.argument) }

    /// The place of the option that a message of the parser is about; `nil` for an option on the command line.
    package func place(of message: String) -> String? {
        sources.first { name, _ in
            message.firstRange(of: "--\(name)").map { found in
                message[found.upperBound...].first.map { !$0.isLetter && $0 != "-" } ?? true
            } ?? false
        }?.value.place
    }

    /// Whether the file or the environment has an option.
    package func has(_ name: String) -> Bool { sources[name] != nil }

    /// Removes options that the file or the environment has.
    package mutating func remove(_ names: some Sequence<String>) { for name in names { sources[name] = nil } }

    private mutating func read(_ path: String) throws {
        let text = try Self.text(of: path)
        var lines: [String: Int] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces.union(["\r"]))
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            let place = "\(path), line \(index + 1)"
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard parts.count == 2, !parts[0].isEmpty else {
                throw Failure(message: "\(place): is not of the form 'option = value'", isOfFile: false)
            }
            let name = parts[0].hasPrefix("--") ? String(parts[0].dropFirst(2)) : parts[0]
            if isShared, isFlag[name] == nil { continue }
            guard isFlag[name] != nil, name != "config" else {
                throw Failure(
                    message: "\(place): there is no option '\(name.prefix(50))' here; see 'tidemark serve --help'",
                    isOfFile: false)
            }
            if let other = lines[name] {
                throw Failure(message: "\(place): '\(name)' stands in line \(other) already", isOfFile: false)
            }
            lines[name] = index + 1
            try add(name, parts[1], place)
        }
    }

    private mutating func add(_ name: String, _ value: String, _ place: String) throws {
        guard isFlag[name] == true else {
            sources[name] = Source(argument: "--\(name)=\(value)", place: place)
            return
        }
        switch value.lowercased() {
        case "true", "yes", "on", "1": sources[name] = Source(argument: "--\(name)", place: place)
        case "false", "no", "off", "0", "": sources[name] = nil
        default:
            throw Failure(message: "\(place): '\(name)' takes true or false, not '\(value.prefix(50))'", isOfFile: false)
        }
    }

    private static func variable(_ name: String) -> String { "TIDEMARK_" + name.uppercased().replacing("-", with: "_") }

    private static func text(of path: String) throws -> String {
        func failure(_ reason: String) -> Failure {
            Failure(message: "the file of --config, \(path), can't be read: \(reason)", isOfFile: true)
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(String(cString: strerror(errno))) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let bytes: Data
        do {
            bytes = try file.read(upToCount: 1 << 20) ?? Data()
        } catch {
            throw failure("\(error.localizedDescription)")
        }
        guard bytes.count < 1 << 20 else { throw failure("it has more than 1 MiB") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw failure("its bytes are not UTF-8") }
        return text
    }

    /// The long names of a command's options, without those that print something and end the program.
    private static func options(of command: any ParsableCommand.Type) throws -> [String: Bool] {
        struct Dump: Decodable {
            struct Command: Decodable { let arguments: [Argument] }
            struct Argument: Decodable {
                struct Name: Decodable { let kind, name: String }
                let kind: String
                let names: [Name]?
            }
            let command: Command
        }
        let dump = try JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8))
        var options: [String: Bool] = [:]
        for argument in dump.command.arguments {
            for name in argument.names ?? [] where name.kind == "long" { options[name.name] = argument.kind == "flag" }
        }
        for name in ["help", "version"] { options[name] = nil }
        return options
    }
}
