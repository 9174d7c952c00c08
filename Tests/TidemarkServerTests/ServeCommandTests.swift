import Foundation
import TestSupport
import Testing

/// Goal: who starts a server wrongly is told how it is done, in the words that were typed. Method: the tool and the server's own program, with
/// options that can't be.
@Suite(.timeLimit(.minutes(30))) struct ServeCommandTests {
    private func ways() throws -> [(Tool, [String], String)] {
        [(try Tool(), ["serve"], "tidemark serve"), (try Tool(named: "tidemark-server"), [], "tidemark-server")]
    }

    @Test func `without a directory the usage is told, and not all of the help`() async throws {
        for (tool, words, name) in try ways() {
            let result = try await tool.run(words)
            #expect(result.status == 64 && result.output.isEmpty)
            let lines = result.errors.split(separator: "\n")
            #expect(lines.first == "\(name): say which cloud: --data <directory>")
            #expect(lines.dropFirst().first == "Usage: \(name) [<options>] --data <directory>")
            #expect(lines.count <= 3, "\(result.errors)")
        }
    }

    @Test func `the help names what was typed`() async throws {
        for (tool, words, name) in try ways() {
            let result = try await tool.run(words + ["--help"])
            #expect(result.status == 0)
            #expect(result.output.contains("USAGE: \(name) [<options>]"))
            #expect(result.output.contains("  \(name) --data /srv/cloud\n"))
        }
    }

    @Test func `limits that no body could meet are refused, and each can be raised alone`() async throws {
        let tool = try Tool(named: "tidemark-server")
        let place = ["--data", try Scratch()["none"].path]
        let wrong: [([String], String)] = [
            (["--body-size", "60000000", "--bodies-size", "100000000"], "--bodies-size is less than twice --body-size"),
            (["--bodies-size-of-address", "10000000"], "--bodies-size-of-address is less than twice --body-size"),
            (
                ["--bodies-size", "20000000", "--bodies-size-of-address", "30000000"],
                "--bodies-size, 20000000, is less than --bodies-size-of-address, 30000000"
            ),
            (["--connections-of-address", "-1"], "--connections-of-address"),
        ]
        for (options, reason) in wrong {
            let result = try await tool.run(place + options)
            #expect(result.status == 64 && result.errors.contains(reason), "\(options): \(result.errors)")
        }
        for options in [
            ["--body-size", "500000000"], ["--bodies-size", "20000000"], ["--bodies-size", "1000000000"],
            ["--bodies-size-of-address", "900000000"], ["--connections", "1"], ["--connections-of-address", "0"],
        ] {
            // What is missing is the cloud.
            let result = try await tool.run(place + options)
            #expect(result.status == 66, "\(options): \(result.errors)")
        }
    }

    @Test func `a file is no directory of a cloud`() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("mine", to: "file")
        let result = try await Tool().run(["serve", "--data", file.path])
        #expect(result.status == 66)
        #expect(result.errors == "tidemark serve: \(file.path) is a file: --data takes a cloud's directory\n")
        let none = try await Tool().run(["serve", "--data", scratch["none"].path])
        #expect(none.status == 66 && none.errors.contains("tidemark admin container add NAME"))
    }
}
