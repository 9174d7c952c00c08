import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres

/// A cloud that the built server serves in a process of its own, and machines: folders that share nothing and know only the
/// server's address. The tool runs on them, in processes.
final class ServedMachines: Sendable {
    static let password = "kurz vor Tromsø"
    private static let container = "iCloud.org.example.journal"

    let scratch: Scratch
    let tool: Tool
    /// The options that say where the cloud is, and the environment that its commands need.
    private let place: [String]
    private let environment: [String: String]
    private let servers: LockedValue<[RunningTool]>
    private let urls: [String]

    private init(
        _ scratch: Scratch, _ tool: Tool, _ servers: [(RunningTool, String)], place: [String], environment: [String: String] = [:]
    ) {
        (self.scratch, self.tool, self.place, self.environment) = (scratch, tool, place, environment)
        self.servers = LockedValue(servers.map(\.0))
        urls = servers.map(\.1)
    }

    /// Kills the servers.
    func stop() async {
        let running = servers.withLock { servers in
            defer { servers = [] }
            return servers
        }
        for server in running { await server.kill() }
    }

    /// Starts a server at the address of the first one, which was stopped.
    func serve(_ options: [String], environment: [String: String] = [:]) async throws {
        let port = try #require(urls[0].split(separator: ":").last.map(String.init))
        let (server, _) = try await Self.server(
            options, scratch["port-\(UUID().uuidString)"], port: port, environment: environment)
        servers.withLock { $0.append(server) }
    }

    /// - Parameter people: The people with accounts: `ben` is Ben Berg, ben@example.org.
    static func started(people: [String]) async throws -> ServedMachines {
        let (scratch, tool) = (try Scratch(), try Tool())
        let input = try scratch.write(password + "\n", to: "password")
        let cloud = scratch["cloud"].path
        var commands = [["container", "add", container]]
        commands += people.map {
            ["account", "add", "\($0)@example.org", "--name", "\($0.capitalized) Berg", "--password-stdin"]
        }
        for words in commands {
            let result = try await tool.run(["admin"] + words + ["--data", cloud], input: input)
            try #require(result.status == 0, "\(words): \(result.errors)")
        }
        let place = ["--data", cloud]
        return ServedMachines(scratch, tool, [try await server(place, scratch["port"])], place: place)
    }

    /// Several servers, each a process, over one database.
    ///
    /// - Parameter bucket: The bucket for the contents of assets; by default they are in a directory that the servers share.
    static func started(
        people: [String], servers count: Int, over postgres: PostgresServer, _ bucket: SeaweedServer? = nil
    ) async throws -> ServedMachines {
        let (scratch, tool) = (try Scratch(), try Tool())
        try scratch.write(password + "\n", to: "password")
        let address = postgres.address(try postgres.makeDatabase())
        var place = ["--database", address]
        if let bucket {
            place += ["--assets", "s3://journal/several/\(UUID().uuidString)", "--s3-endpoint", bucket.endpoint]
        } else {
            let assets = scratch["assets"]
            try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
            place += ["--assets", assets.path]
        }
        let environment = bucket == nil ? [:] : SeaweedServer.environment
        var servers: [(RunningTool, String)] = []
        for number in 0..<count {
            servers.append(try await server(place, scratch["port\(number)"], environment: environment))
        }
        let database = PostgresDatabase(PostgresConfiguration(try PostgresAddress(address)))
        let accounts = Accounts(try await PostgresAccountStorage.open(database))
        let credentials = try CredentialStore(try await PostgresCredentialStorage.open(database))
        try await credentials.addContainer(container)
        for person in people {
            let account = try await accounts.add(
                "\(person)@example.org", phone: nil, name: PersonName(givenName: person.capitalized, familyName: "Berg"),
                quota: .max)
            try await credentials.setPassword(password, of: account.id)
        }
        await database.close()
        return ServedMachines(scratch, tool, servers, place: place, environment: environment)
    }

    private static func server(
        _ options: [String], _ portFile: URL, port fixed: String = "0", environment: [String: String] = [:]
    ) async throws -> (RunningTool, String) {
        let server = try Tool(named: "tidemark-server").start(
            options + [
                "--port", fixed, "--port-file", portFile.path, "--request-rate", "0", "--sign-in-attempts", "0", "--log-level",
                "error",
            ], environment: environment)
        _ = try await eventually { port(portFile) != nil }
        let listening = try #require(port(portFile), "the server does not listen")
        return (server, "http://127.0.0.1:\(listening)")
    }

    private static func port(_ file: URL) -> Int? {
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
        return Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// The container of a machine.
    func path(_ machine: String) -> String { scratch["\(machine)/Journal.tidemark"].path }

    /// A file of a machine; makes the folders of its path.
    @discardableResult
    func write(_ data: Data, to path: String) throws -> URL { try scratch.write(data, to: path) }

    /// - Parameter status: The expected exit code; `nil` for any.
    @discardableResult
    func run(_ words: String..., status: Int32? = 0, input: URL? = nil, in folder: URL? = nil) async throws -> Tool.Result {
        let result = try await tool.run(words, input: input, in: folder)
        #expect(result.status == status ?? result.status, "\(words): \(result.output)\(result.errors)")
        for text in [result.output, result.errors] { #expect(!text.contains(Self.password)) }
        return result
    }

    /// A server's link, as another server's link.
    func link(_ link: String, from server: Int, to other: Int) -> String {
        link.replacing(urls[server], with: urls[other])
    }

    func signIn(_ machine: String, as person: String, at server: Int = 0) async throws {
        try FileManager.default.createDirectory(at: scratch[machine], withIntermediateDirectories: true)
        try await run(
            "account", "sign-in", path(machine), "--server", urls[server], "--email", "\(person)@example.org", "--container",
            Self.container, "--password-stdin", input: scratch["password"])
    }

    /// Changes an account as the operator of the server.
    func administer(_ person: String, _ option: String, _ value: String) async throws {
        try await run("admin", "account", "set", "\(person)@example.org", option, value, "--data", scratch["cloud"].path)
    }

    /// Runs a command of the operator, where the cloud is.
    ///
    /// - Parameter environment: Variables that differ from those of the servers.
    func runAdmin(_ words: String..., environment: [String: String] = [:]) async throws -> Tool.Result {
        try await tool.run(["admin"] + words + place, environment: self.environment.merging(environment) { $1 })
    }

    /// Imports records with captions, every so many of them with a picture of its own.
    func importRecords(_ machine: String, count: Int, pictureEvery: Int) async throws {
        var lines: [String] = []
        for number in 0..<count {
            var image = ""
            if number % pictureEvery == 0 {
                try write(Picture.png(number), to: "\(machine)/pictures/\(number).png")
                image = #","image":"pictures/\#(number).png""#
            }
            lines.append(#"{"id":"r\#(number)","caption":"Place \#(number)","visits":\#(number % 7)\#(image)}"#)
        }
        let manifest = try scratch.writeLines(lines, to: "\(machine)/journal.jsonl")
        try await run(
            "import", manifest.path, "--into", path(machine), "--type", "Destination", "--id", "id", "--plain-ids", "--asset",
            "image")
    }

    /// Imports a record with fields of text.
    func importRecord(_ machine: String, _ name: String, type: String = "Destination", _ fields: [String: String]) async throws {
        let line = try JSONSerialization.data(withJSONObject: fields.merging(["id": name]) { $1 })
        let manifest = try write(line + Data("\n".utf8), to: "\(machine)/record.jsonl")
        try await run("import", manifest.path, "--into", path(machine), "--type", type, "--id", "id", "--plain-ids")
    }

    func sync(_ machines: String...) async throws {
        for machine in machines { try await run("sync", path(machine)) }
    }

    /// All records of a store by name, whichever field has the name.
    func records(_ machine: String, _ scope: String = "private") async throws -> [String: [String: String]] {
        let list = try await tool.run([
            "records", "list", path(machine), "--type", "Destination", "--scope", scope, "--json", "--limit", "10000",
        ])
        // A store without fetched records knows no types.
        guard list.status == 0 else { return [:] }
        let all = try JSONSerialization.jsonObject(with: Data(list.output.utf8)) as? [[String: Any]] ?? []
        return all.reduce(into: [:]) { records, record in
            let name = "\(record["id"] ?? record["_name"] ?? "")"
            records[name] = record.filter { $0.key != "id" && $0.key != "_name" }.mapValues { "\($0)" }
        }
    }

    /// The pictures of a machine, by the names of their files.
    func pictures(_ machine: String) throws -> [String: Data] {
        let folder = URL(fileURLWithPath: path(machine)).appendingPathComponent("assets", isDirectory: true)
        var pictures: [String: Data] = [:]
        for assetStorage in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            let files = try? FileManager.default.contentsOfDirectory(at: assetStorage, includingPropertiesForKeys: nil)
            for file in files ?? [] {
                pictures[file.lastPathComponent] = try Data(contentsOf: file)
            }
        }
        return pictures
    }

    /// The saves of a machine that the cloud has refused.
    func refused(_ machine: String) async throws -> [[String: Any]] {
        try await run("refused", path(machine), "--json").output.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }
    }

    /// Checks that a machine has no pending changes and no damage.
    func checkAtRest(_ machines: String...) async throws {
        for machine in machines {
            #expect(try await run("status", path(machine), "--json").json()["pending"] as? Int == 0)
            #expect(try await run("verify", path(machine)).output.contains("no problem"))
        }
    }
}
