import ArgumentParser
import Foundation

/// Prints a manual page, for `make install`.
struct Manual: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the manual page, in the language of man(7).",
        discussion: """
            Examples:
              tidemark manual > tidemark.1
              tidemark-server --experimental-dump-help | tidemark manual --of - > tidemark-server.8
            """,
        shouldDisplay: false)

    @Option(
        help: ArgumentHelp(
            "Of another program: what it prints for --experimental-dump-help; - for standard input.", valueName: "file"))
    var of: String?

    func run() throws {
        if let of {
            let data = try of == "-" ? FileHandle.standardInput.readToEnd() ?? Data() : Data(contentsOf: URL(fileURLWithPath: of))
            try Output.write(Self.page(data, section: 8, seeAlso: ["tidemark"]))
        } else {
            try Output.write(Self.page(Data(Tidemark._dumpHelp().utf8), section: 1, seeAlso: ["tidemark-server"]))
        }
    }

    /// - Throws: `ExitCode` where the text is no help.
    static func page(_ dump: Data, section: Int, seeAlso: [String]) throws -> [UInt8] {
        guard let help = try? JSONDecoder().decode(CommandHelp.Dump.self, from: dump) else {
            throw ending("that is not what a command prints for --experimental-dump-help", .dataError)
        }
        let page = ManualPage(of: help.command, section: section, version: Tidemark.configuration.version, seeAlso: seeAlso)
        return Array(page.text.utf8)
    }
}
