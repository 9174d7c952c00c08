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

    @OptionGroup var outcome: Outcome

    func run() throws {
        let (page, section): ([UInt8], Int)
        if let of {
            let data = try of == "-" ? FileHandle.standardInput.readToEnd() ?? Data() : Data(contentsOf: URL(fileURLWithPath: of))
            (page, section) = (try Self.page(data, section: 8, seeAlso: ["tidemark"]), 8)
        } else {
            (page, section) = (try Self.page(Data(Tidemark._dumpHelp().utf8), section: 1, seeAlso: ["tidemark-server"]), 1)
        }
        guard outcome.json else { return try Output.write(page) }
        try outcome.tell("manual", ["section": section, "page": String(decoding: page, as: UTF8.self)])
    }

    /// - Throws: `ExitCode` if the data is no help of a command.
    static func page(_ dump: Data, section: Int, seeAlso: [String]) throws -> [UInt8] {
        guard let help = try? JSONDecoder().decode(CommandHelp.Dump.self, from: dump) else {
            throw ending("that is not what a command prints for --experimental-dump-help", .dataError)
        }
        let page = ManualPage(of: help.command, section: section, version: Tidemark.configuration.version, seeAlso: seeAlso)
        return Array(page.text.utf8)
    }
}
