import Foundation
import TestSupport
import Testing

/// Goal: a person who starts a server wrongly learns how to do it, in the words that were typed. Method: the tool and the
/// server's own program, with impossible options.
@Suite(.timeLimit(.minutes(30))) struct ServeCommandTests {
    private func ways() throws -> [(Tool, [String], String)] {
        [(try Tool(), ["serve"], "tidemark serve"), (try Tool(named: "tidemark-server"), [], "tidemark-server")]
    }

    @Test func `without a directory the server prints the usage, not the whole help`() async throws {
        for (tool, words, name) in try ways() {
            let result = try await tool.run(words)
            #expect(result.status == 64 && result.output.isEmpty)
            let lines = result.errors.split(separator: "\n")
            #expect(lines.first == "\(name): say which cloud: --data <directory>")
            #expect(lines.dropFirst().first == "Usage: \(name) [<options>] --data <directory>")
            // Two lines of usage, and where the help is.
            #expect(lines.count <= 4, "\(result.errors)")
        }
    }

    @Test func `the help names the program as it was typed`() async throws {
        for (tool, words, name) in try ways() {
            let result = try await tool.run(words + ["--help"])
            #expect(result.status == 0)
            #expect(result.output.contains("USAGE: \(name) [<options>]"))
            #expect(result.output.contains("  \(name) --data /srv/cloud\n"))
        }
    }

    @Test func `contradictory limits are refused, and each limit can be raised alone`() async throws {
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
            // Only the cloud is missing.
            let result = try await tool.run(place + options)
            #expect(result.status == 66, "\(options): \(result.errors)")
        }
    }

    @Test func `an impossible way to read assets is refused, in arguments and in the environment`() async throws {
        let tool = try Tool(named: "tidemark-server")
        let bucket = ["--database", "postgresql://tidemark@127.0.0.1:1/x", "--assets", "s3://journal"]
        let (signed, secure) = (["--asset-reads", "signed"], ["--public-url", "https://cloud.example.org"])
        let wrong: [([String], String)] = [
            (bucket + ["--asset-reads", "direct"], "--asset-reads takes server or signed"),
            (bucket + ["--s3-public-endpoint", "https://s3.example.org"], "--s3-public-endpoint needs --asset-reads signed"),
            (["--data", "/x"] + signed, "--asset-reads signed needs a bucket"),
            (["--database", "dbname=x", "--assets", "/x"] + signed, "--asset-reads signed needs a bucket"),
            (bucket + signed + secure + ["--s3-endpoint", "http://10.0.0.5:8333"], "clients that come by https"),
            (bucket + signed + secure + ["--s3-public-endpoint", "HTTP://s3.example.org"], "clients that come by https"),
        ]
        for (options, reason) in wrong {
            let result = try await tool.run(options)
            #expect(result.status == 64 && result.errors.contains(reason), "\(options): \(result.errors)")
        }
        let variable = try await tool.run(["--data", "/x"], environment: ["TIDEMARK_ASSET_READS": "direct"])
        #expect(variable.status == 64 && variable.errors.contains("TIDEMARK_ASSET_READS is wrong:"), "\(variable.errors)")
        // Only the database is missing.
        let endpoints = ["--s3-endpoint", "http://10.0.0.5:8333", "--s3-public-endpoint", "https://s3.example.org"]
        let right = try await tool.run(bucket + signed + secure + endpoints)
        #expect(right.status == 69 && right.errors.contains("127.0.0.1:1"), "\(right.errors)")
    }

    @Test func `a file is refused as the directory of a cloud`() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("mine", to: "file")
        let result = try await Tool().run(["serve", "--data", file.path])
        #expect(result.status == 66)
        #expect(result.errors == "tidemark serve: \(file.path) is a file: --data takes a cloud's directory\n")
        let none = try await Tool().run(["serve", "--data", scratch["none"].path])
        #expect(none.status == 66 && none.errors.contains("tidemark admin container add NAME"))
    }

    @Test func `options can be set in a file and in the environment, and the command line overrides both`() async throws {
        let (scratch, tool) = (try Scratch(), try Tool(named: "tidemark-server"))
        let file = try scratch.write(
            """
            # where the cloud is
            data = \(scratch["of-file"].path)
            --port=0
              log-level =  error
            trust-proxy = yes
            """, to: "server.conf")
        /// The directory that the server's message names.
        func directory(_ options: [String], _ environment: [String: String] = [:]) async throws -> String {
            let result = try await tool.run(options, environment: environment)
            #expect(result.status == 66, "\(result.errors)")
            return result.errors.contains("has no cloud")
                ? String(result.errors.split(separator: " ")[1].split(separator: "/").last ?? "") : result.errors
        }
        let variable = ["TIDEMARK_DATA": scratch["of-environment"].path]
        #expect(try await directory(["--config", file.path]) == "of-file")
        #expect(try await directory(["--config=\(file.path)"], variable) == "of-environment")
        #expect(try await directory([], ["TIDEMARK_CONFIG": file.path]) == "of-file")
        #expect(try await directory(["--config", file.path, "--data", scratch["given"].path], variable) == "given")
        #expect(try await directory(["--data=\(scratch["given"].path)"], variable) == "given")
    }

    @Test func `a wrong option in a file or in the environment is named with its place`() async throws {
        let (scratch, tool) = (try Scratch(), try Tool(named: "tidemark-server"))
        let wrong: [(String, String)] = [
            ("data = /x\nprot = 8080", "server.conf, line 2: there is no option 'prot' here"),
            ("data /x", "server.conf, line 1: is not of the form 'option = value'"),
            ("port = 1\n\nport = 2", "server.conf, line 3: 'port' stands in line 1 already"),
            ("trust-proxy = perhaps", "server.conf, line 1: 'trust-proxy' takes true or false, not 'perhaps'"),
            ("data = /x\nport = many", "server.conf, line 2 is wrong:"),
            ("data = /x\nport = 70000", "server.conf, line 2 is wrong:"),
            ("config = other.conf", "server.conf, line 1: there is no option 'config' here"),
        ]
        for (text, reason) in wrong {
            let file = try scratch.write(text, to: "server.conf")
            let result = try await tool.run(["--config", file.path])
            #expect(result.status == 64 && result.errors.contains(reason), "\(text): \(result.errors)")
        }
        let variable = try await tool.run(["--data", "/x"], environment: ["TIDEMARK_LOG_LEVEL": "loud"])
        #expect(variable.status == 64 && variable.errors.contains("TIDEMARK_LOG_LEVEL is wrong:"), "\(variable.errors)")
        let missing = try await tool.run(["--config", scratch["none"].path])
        #expect(
            missing.status == 66 && missing.errors.contains("can't be read: No such file or directory"),
            "\(missing.errors)")
        let folder = try await tool.run(["--config", scratch.url.path])
        #expect(folder.status == 66 && folder.errors.contains("can't be read: "), "\(folder.errors)")
        try Data([0xff, 0xfe, 0x41]).write(to: scratch["bytes"])
        let bytes = try await tool.run(["--config", scratch["bytes"].path])
        #expect(bytes.status == 66 && bytes.errors.contains("its bytes are not UTF-8"), "\(bytes.errors)")
    }

    @Test func `impossible options of an identity provider are named, and its secret can't be an argument`() async throws {
        let (scratch, tool) = (try Scratch(), try Tool(named: "tidemark-server"))
        let place = ["--data", scratch["none"].path, "--public-url", "https://cloud.example.org"]
        let provider = ["--identity-provider", "https://id.example.org", "--identity-client-id", "tidemark"]
        let (secret, empty) = (try scratch.write("geheim\n", to: "secret"), try scratch.write("a\nb\n", to: "two-lines"))
        let wrong: [([String], Int32, String)] = [
            (place + ["--identity-provider", "https://id.example.org"], 64, "go together"),
            (place + ["--identity-client-id", "tidemark"], 64, "go together"),
            (place + ["--identity-sign-up"], 64, "need --identity-provider"),
            (place + ["--identity-name", "A"], 64, "need --identity-provider"),
            (["--data", scratch["none"].path] + provider, 64, "needs --public-url"),
            (
                place + ["--identity-provider", "http://id.example.org", "--identity-client-id", "a"], 64,
                "is no identity provider"
            ),
            (place + provider + ["--identity-client-secret-file", scratch["no-file"].path], 74, "can't be read"),
            (place + provider + ["--identity-client-secret-file", empty.path], 64, "has no secret: one line"),
            (place + provider + ["--identity-ca", secret.path], 64, "no certificate in PEM"),
            (place + provider + ["--identity-name", ""], 64, "1 to 100 bytes"),
            (place + provider + ["--identity-client-secret", "geheim"], 64, "--identity-client-secret"),
            // Only the cloud is missing.
            (place + provider + ["--identity-client-secret-file", secret.path, "--identity-sign-up"], 66, "has no cloud"),
        ]
        for (options, status, reason) in wrong {
            let result = try await tool.run(options)
            #expect(result.status == status && result.errors.contains(reason), "\(options): \(result.status) \(result.errors)")
        }
        let given = try await tool.run(
            place + ["--identity-client-id", "tidemark"], environment: ["TIDEMARK_IDENTITY_PROVIDER": "https://id.example.org/"])
        #expect(given.status == 66, "\(given.errors)")
    }
}
