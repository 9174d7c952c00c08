import Foundation
import TestServers
import TestSupport
import Testing

/// Goal: an operator administers a cloud in the same way wherever it is stored. Method: each command once over a directory and
/// once over a database, by the built tool; the outputs are compared, without identifiers and times.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct AdminPlacesTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws { (scratch, tool) = (try Scratch(), try Tool()) }

    /// New places: a directory and a database.
    private func places() throws -> [AdministeredPlace] {
        let assets = scratch["assets"]
        try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
        let server = try PostgresServer.shared()
        return [
            .directory(scratch["cloud"]), .database(address: server.address(try server.makeDatabase()), assets: assets),
        ]
    }

    /// A text without the parts that differ from run to run.
    private func compared(_ text: String) -> String {
        var text = text
        for pattern in [
            #"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}"#, #"[0-9a-f]{16,}"#,
            // A time has a varying number of decimals, with blanks behind it in a column.
            #"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z? *"#,
            // Tokens, change tags, and times of records in the values before and after a change.
            #"cloudkit\.zoneshare/[0-9a-f]+…"#, #"[A-Za-z0-9_-]{40,}"#, #"[A-Za-z0-9_-]{22}"#, #"\d{13,}"#,
            // A directory names the file of a content, a database its digest and its owner.
            #"the content of [^"\n]*? is missing"#,
        ] {
            text = text.replacingOccurrences(of: pattern, with: "•", options: .regularExpression)
        }
        return text
    }

    private func run(
        _ words: String, _ place: [String], input: URL?, environment: [String: String] = [:]
    ) async throws -> Tool.Result {
        try await tool.run(
            ["admin"] + words.split(separator: " ").map(String.init) + place, input: input, environment: environment)
    }

    /// A word of the table as an argument.
    ///
    /// - Parameters:
    ///   - answers: The last answers of commands over the place.
    ///   - export: The path that `@export` stands for.
    private func argument(_ word: String, _ answers: [String: String], _ export: URL) throws -> String {
        switch word {
        case "@export": return export.path
        case "@public-key", "@schema": return scratch[word].path
        default: break
        }
        guard let (command, member) = AdminStep.identifiers[word] else { return word.replacing("~", with: " ") }
        let line = try #require(answers[command]?.split(separator: "\n").first, "'\(command)' has shown nothing")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return try #require(object?[member] as? String, "\(line)")
    }

    /// The files of an exported account, without the parts that differ from run to run; empty if there is no such folder.
    private func archive(_ folder: URL) throws -> String {
        guard FileManager.default.fileExists(atPath: folder.path) else { return "" }
        return try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted().map { path in
            let file = folder.appendingPathComponent(path)
            guard try file.resourceValues(forKeys: [.isDirectoryKey]).isDirectory != true else { return path }
            let contents = try Data(contentsOf: file)
            return "\(path): \(compared(String(decoding: contents, as: UTF8.self)))"
        }.joined(separator: "\n")
    }

    /// Runs all steps over a place, and returns the output of each command.
    ///
    /// - Parameter name: The name for the folders of exports.
    private func runSteps(over place: AdministeredPlace, _ name: String, password: URL) async throws -> [String] {
        var (said, answers): ([String], [String: String]) = ([], [:])
        for (index, step) in AdminStep.all.enumerated() {
            guard case .command(let words, let status) = step else {
                if case .change(let change) = step { try await place.make(change) }
                continue
            }
            let export = scratch["export-\(name)-\(index)"]
            let arguments = try words.split(separator: " ").map { try argument(String($0), answers, export) }
            let result = try await tool.run(
                ["admin"] + arguments + place.options, input: words.contains("--password-stdin") ? password : nil)
            #expect(result.status == status, "\(words) \(place): \(result.status) \(result.output)\(result.errors)")
            answers[words] = result.output
            var output = result.output
            if words.contains("@export") {
                // Times have a varying number of decimals.
                output = output.replacing(export.path, with: "folder")
                    .replacing(#/"bytes":\d+|[\d.]+ (?:bytes|kB)/#, with: "bytes")
                output += try archive(export)
            }
            let errors = status == 0 ? "" : String(result.errors.count(where: { $0 == "\n" }))
            said.append("\(words): \(compared(output))\(errors)")
        }
        return said
    }

    @Test func `each command says the same of a directory and of a database`() async throws {
        let password = try scratch.write("correct horse\n", to: "password")
        try scratch.write(
            """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
            6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
            -----END PUBLIC KEY-----

            """, to: "@public-key")
        try scratch.write(
            """
            {"types":[
              {"name":"Trip","fields":[{"name":"days","type":"int64"},{"name":"title","type":"string"}]},
              {"name":"Junk","fields":[{"name":"note","type":"string"},{"name":"number","type":"double"}]}]}

            """, to: "@schema")
        let places = try places()
        let ofDirectory = try await runSteps(over: places[0], "directory", password: password)
        let ofDatabase = try await runSteps(over: places[1], "database", password: password)
        #expect(ofDirectory.count == ofDatabase.count)
        for (one, other) in zip(ofDirectory, ofDatabase) { #expect(one == other) }
    }

    @Test func `the tool does not back up or restore a database, and names the programs that do`() async throws {
        let place = try places()[1]
        for (words, program) in [
            ("backup \(scratch["backup"].path)", "pg_basebackup"), ("restore \(scratch["cloud"].path)", "PostgreSQL's own means"),
        ] {
            let refused = try await run(words, place.options, input: nil)
            #expect(refused.status == 64 && refused.errors.contains("'tidemark admin move'"), "\(words): \(refused.errors)")
            #expect(refused.errors.contains(program), "\(words): \(refused.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: scratch["backup"].path))
    }

    /// A command with its subcommands, as the parser prints it.
    private struct CommandHelp: Decodable {
        struct Dump: Decodable { let command: CommandHelp }

        let commandName: String
        let subcommands: [CommandHelp]?

        /// The commands below this one that have no subcommands, each as its words.
        func leaves(behind path: [String] = []) -> [String] {
            // The parser adds the command that shows help.
            (subcommands ?? []).filter { $0.commandName != "help" }.flatMap { command in
                let path = path + [command.commandName]
                return command.subcommands?.isEmpty ?? true ? [path.joined(separator: " ")] : command.leaves(behind: path)
            }
        }
    }

    @Test func `each command of the tool is run over both places, and succeeds there`() async throws {
        let help = try await tool.run(["admin", "--experimental-dump-help"])
        try #require(help.status == 0, "\(help.errors)")
        let dump = try JSONDecoder().decode(CommandHelp.Dump.self, from: Data(help.output.utf8))
        #expect(dump.command.commandName == "admin")
        let leaves = dump.command.leaves()
        #expect(leaves.count > 40, "\(leaves)")
        #expect(AdminStep.ofOnePlace.isSubset(of: leaves), "\(leaves)")
        let succeeding = AdminStep.all.compactMap(\.succeedingCommand)
        for leaf in leaves where !AdminStep.ofOnePlace.contains(leaf) {
            #expect(
                succeeding.contains { "\($0) ".hasPrefix("\(leaf) ") },
                "AdminStep has no command that begins with '\(leaf)' and succeeds")
        }
    }

    @Test func `a cloud can be named by the environment or a file, and the command line overrides both`() async throws {
        let places = try places().map(\.options)
        for place in places {
            let made = try await run("container add \(place[0] == "--data" ? "of-data" : "of-database")", place, input: nil)
            #expect(made.status == 0 && made.errors.hasPrefix("note: made a cloud"), "\(made.errors)")
        }
        let variables = [
            "TIDEMARK_DATABASE": places[1][1], "TIDEMARK_ASSETS": places[1][3], "TIDEMARK_DATA": scratch["none"].path,
        ]
        #expect(try await run("container list", [], input: nil, environment: variables).output == "of-database\n")
        #expect(try await run("container list", places[0], input: nil, environment: variables).output == "of-data\n")
        #expect(
            try await run("container list", [], input: nil, environment: ["TIDEMARK_DATA": scratch["cloud"].path]).output
                == "of-data\n")
        let file = try scratch.write(
            "# the server's\nport = 8080\ndatabase = \(places[1][1])\nassets = \(places[1][3])\n", to: "conf")
        #expect(try await run("container list --config \(file.path)", [], input: nil).output == "of-database\n")
        let wrong = try await run(
            "container list", [], input: nil, environment: variables.merging(["TIDEMARK_S3_STYLE": "x"]) { $1 })
        #expect(wrong.status == 64 && wrong.errors.contains("TIDEMARK_S3_STYLE is wrong"), "\(wrong.errors)")
    }

    @Test func `a place that can't be used is named with the remedy`() async throws {
        let address = try places()[1].options[1]
        let wrong: [([String], Int32, String)] = [
            ([], 64, "say which cloud"),
            (["--data", "x", "--database", address, "--assets", scratch.url.path], 64, "name two clouds"),
            (["--database", "postgresql://tidemark@127.0.0.1:1/x", "--assets", scratch.url.path], 69, "127.0.0.1:1"),
            (["--database", address, "--assets", scratch["nowhere"].path], 69, "the directory of assets"),
            (["--database", address], 64, "--assets is missing"),
            (["--database", "postgresql://a:secret@b/c", "--assets", scratch.url.path], 64, "contains a password"),
            (["--database", address, "--assets", "ftp://x"], 64, "--assets takes s3://bucket"),
        ]
        for (options, status, reason) in wrong {
            let result = try await run("container add journal", options, input: nil)
            #expect(result.status == status && result.errors.contains(reason), "\(options): \(result.status) \(result.errors)")
            #expect(!result.errors.contains("secret") && !result.errors.contains("Fatal"))
        }
    }
    @Test func `each option that takes an address refuses one with a password, and does not print it`() async throws {
        let places = try places()
        let (cloud, database) = (places[0].options[1], places[1].options)
        let (address, assets) = (database[1], ["--assets", database[3]])
        #expect(try await run("container add journal", places[0].options, input: nil).status == 0)
        func expectRefusal(_ arguments: [String], _ environment: [String: String] = [:]) async throws {
            let result = try await tool.run(arguments, killingAfter: .seconds(60), environment: environment)
            #expect(
                result.status == 64 && result.errors.contains("contains a password"),
                "\(arguments) \(environment): \(result.status) \(result.errors)")
            #expect(!result.errors.contains("secret") && !result.output.contains("secret"), "\(arguments) \(environment)")
        }
        let (add, serve) = (["admin", "container", "add", "journal"], ["serve", "--port", "0"])
        for wrong in [
            "postgresql://a:secret@b/c", "postgresql://b/c?user=a&password=secret", "host=b user=a password=secret dbname=c",
            "host=b sslpassword=secret dbname=c",
        ] {
            for program in [add, serve] {
                try await expectRefusal(program + ["--database", wrong] + assets)
                try await expectRefusal(
                    program + ["--database", wrong, "--database-pooler", "--database-direct", address] + assets)
                try await expectRefusal(
                    program + ["--database", address, "--database-pooler", "--database-direct", wrong] + assets)
                try await expectRefusal(program, ["TIDEMARK_DATABASE": wrong, "TIDEMARK_ASSETS": database[3]])
            }
            try await expectRefusal(add + ["--database", wrong, "--database-pooler"] + assets)
            try await expectRefusal(["admin", "move", "--from", cloud, "--to", wrong] + assets)
            try await expectRefusal(["admin", "move", "--from", wrong, "--to", scratch["new"].path] + assets)
        }
        // No cloud is made, and the cloud that was to be moved is as it was.
        #expect(!FileManager.default.fileExists(atPath: scratch["new"].path))
        #expect(try await run("container list", database, input: nil).status == 66)
        #expect(try await run("container list", places[0].options, input: nil).output == "journal\n")
    }
}
