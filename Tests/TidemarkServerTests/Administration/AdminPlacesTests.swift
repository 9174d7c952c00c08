import Foundation
import TestServers
import TestSupport
import Testing

/// Goal: whoever administers a cloud does so in the same way wherever it is stored. Method: each command once over a directory and once over a
/// database, by the built tool; what both say is compared, without identifiers and times.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct AdminPlacesTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws { (scratch, tool) = (try Scratch(), try Tool()) }

    /// The options that name a new place.
    private func places() throws -> [[String]] {
        let assets = scratch["assets"]
        try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
        let server = try PostgresServer.shared()
        return [
            ["--data", scratch["cloud"].path],
            ["--database", server.address(try server.makeDatabase()), "--assets", assets.path],
        ]
    }

    /// A text without what differs from run to run.
    private func compared(_ text: String) -> String {
        var text = text
        for pattern in [
            #"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}"#, #"[0-9a-f]{16,}"#,
            // A time has as many decimals as it needs, and blanks behind it in a column.
            #"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z? *"#,
            // Tokens, change tags, and times of records in what was before and after a change.
            #"[A-Za-z0-9_-]{40,}"#, #"[A-Za-z0-9_-]{22}"#, #"\d{13,}"#,
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

    @Test func `each command says the same of a directory and of a database`() async throws {
        let password = try scratch.write("correct horse\n", to: "password")
        let key = try scratch.write(
            """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
            6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
            -----END PUBLIC KEY-----

            """, to: "public.pem")
        let commands: [(words: String, status: Int32)] = [
            ("container list", 66), ("account list", 66), ("container add journal", 0), ("container add journal --json", 0),
            ("container list --json", 0),
            ("account add anna@example.org --password-stdin --json", 0), ("account add anna@example.org --no-password", 73),
            ("account add ben@example.org --name Ben --no-password", 0), ("account list --json", 0), ("account list", 0),
            ("account set anna@example.org --quota 1GB --phone +491234567 --discoverable on --json", 0),
            ("account set carl@example.org --quota 1GB", 66), ("account show anna@example.org --json", 0),
            ("account password ben@example.org --password-stdin --json", 0), ("account password ben@example.org --remove", 0),
            ("account recount --json", 0), ("account recount", 0),
            ("token add --container journal --name Web --callback https://journal.example.org/in --json", 0),
            ("token add --container other --name Web --callback https://journal.example.org/in", 66), ("token list --json", 0),
            ("token revoke zz", 66),
            ("key add --container journal --name Importer --public-key \(key.path) --json", 0), ("key list --json", 0),
            ("key revoke 00000000zz", 66), ("session list --json", 0), ("session end --all --json", 0), ("session end abc", 66),
            ("account identities anna@example.org --json", 0), ("account identities anna@example.org", 0),
            ("account identities anna@example.org --disconnect ab", 66),
            ("schema show --container journal --json", 0), ("schema show --container other", 66),
            ("schema export --container journal", 0), ("schema export --container other", 66),
            ("schema index --container journal --type None --field title --queryable", 66),
            ("schema freeze --container journal --json", 0), ("schema freeze --container journal --off", 0),
            ("schema add --container journal --type Trip --field days --kind int64 --json", 0),
            ("schema add --container journal --type Trip --field days --kind string", 64),
            ("schema import none.json --container journal", 66), ("schema diff --container journal --json", 0),
            ("schema diff --container journal", 0), ("schema deploy --container journal --dry-run", 0),
            ("schema deploy --container journal --json", 0), ("schema remove --container journal --type None", 66),
            ("records set oslo title=Oslo --type City --container journal", 0),
            ("records list --type City --container journal", 64),
            ("schema index --container journal --type City --field recordName --queryable", 0),
            ("records list --type City --container journal", 0),
            ("records list --type City --container journal --sort -title", 64),
            ("records set oslo title=Christiania --container journal", 0), ("zones --container journal --json", 0),
            ("zones --container journal --scope private --account anna@example.org --json", 0),
            ("shares --container journal --scope private --account anna@example.org", 0), ("usage --json", 0),
            ("usage --container journal", 0),
            ("links list --container journal --scope private --account anna@example.org", 0),
            ("links list --container journal --scope private --account anna@example.org --zone Trips --json", 66),
            ("links revoke abc --share none --container journal --scope private --account anna@example.org --zone Trips", 66),
            ("permissions ben@example.org --container journal --scope private --account anna@example.org --json", 0),
            ("permissions nobody@example.org --container journal", 0), ("permissions ben@example.org --container other", 66),
            ("records delete oslo --container journal --json", 0),
            ("records show oslo --container journal", 66),
            ("records set bergen title=Bergen --type Place --container journal", 0), ("schema reset --container journal", 64),
            ("schema reset --container journal --yes --json", 0), ("schema reset --container other --yes", 66),
            ("schema show --container journal --json", 0), ("records show bergen --container journal", 66),
            ("operator add anna@example.org --json", 0),
            ("operator add ben@example.org --role developer --container journal", 0), ("operator list --json", 0),
            ("operator remove ben@example.org --json", 0), ("operator remove ben@example.org", 66),
            ("verify --json", 0), ("verify", 0), ("resync --json", 0), ("resync", 0), ("audit --json", 0),
            ("audit --container journal", 0),
            ("audit --account anna@example.org", 0),
            ("secrets rotate --json", 0), ("secrets rotate --grace-days 3", 0),
            ("account remove ben@example.org --json", 0), ("account remove anna@example.org --with-data --yes", 77),
            ("operator remove anna@example.org", 64), ("operator remove anna@example.org --yes --json", 0),
            ("account remove anna@example.org --with-data --yes --json", 0),
            ("container remove journal --json", 0), ("container list", 0),
        ]
        var said: [[String]] = []
        for place in try places() {
            var lines: [String] = []
            for (words, status) in commands {
                let result = try await run(words, place, input: words.contains("--password-stdin") ? password : nil)
                #expect(result.status == status, "\(words) \(place): \(result.status) \(result.errors)")
                lines.append(
                    "\(words): \(compared(result.output))\(status == 0 ? "" : String(result.errors.count(where: { $0 == "\n" })))"
                )
            }
            let folder = scratch["export-\(said.count)"]
            #expect(try await run("account add dora@example.org --no-password", place, input: nil).status == 0)
            let exported = try await run("account export dora@example.org --to \(folder.path)", place, input: nil)
            #expect(exported.status == 0, "\(exported.errors)")
            // A time has as many decimals as it needs.
            lines.append(
                compared(exported.output.replacing(folder.path, with: "folder")).replacing(#/\d+ bytes/#, with: "bytes"))
            lines.append("\(try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted())")
            said.append(lines)
        }
        for (one, other) in zip(said[0], said[1]) { #expect(one == other) }
        // What a database's own programs do is said, and nothing is made.
        for words in ["backup \(scratch["backup"].path)", "restore \(scratch["cloud"].path)"] {
            let refused = try await run(words, try places()[1], input: nil)
            #expect(refused.status == 64 && refused.errors.contains("'tidemark admin move'"), "\(words): \(refused.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: scratch["backup"].path))
    }

    @Test func `a cloud can be named by the environment or a file, and by the command line before both`() async throws {
        let places = try places()
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

    @Test func `a place that can't be used is named with what helps`() async throws {
        let address = try places()[1][1]
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
}
