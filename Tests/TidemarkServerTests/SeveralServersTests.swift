import AsyncHTTPClient
import Foundation
import TestServers
import TestSupport
import Testing

/// Goal: servers over one database are one cloud. Method: two built servers and the built tool, as processes, over a PostgreSQL server, and over a
/// directory or a bucket of SeaweedFS.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct SeveralServersTests {
    @Test func `two machines of different servers share a journal with its pictures`() async throws {
        let place = try await ServedMachines.started(people: ["anna", "ben"], servers: 2, over: .shared())
        try await shareJournal(place)
    }

    @Test(.enabled(if: SeaweedServer.isInstalled, "\(SeaweedServer.whyNot)"))
    func `two machines of different servers share a journal whose pictures are in a bucket, and commands read them`() async throws
    {
        let bucket = try await SeaweedServer.started()
        let place = try await ServedMachines.started(people: ["anna", "ben"], servers: 2, over: .shared(), bucket)
        try await shareJournal(place)
        let verified = try await place.runAdmin("verify", "--json")
        let report = try verified.json()
        #expect(verified.status == 0 && report["assets"] as? Int == 60, "\(verified.output)\(verified.errors)")
        let pictures = try Set(place.pictures("laptop").values)
        #expect(pictures.count == 60)
        #expect(report["bytes"] as? Int == pictures.reduce(0) { $0 + $1.count }, "\(verified.output)")
        let folder = place.scratch["export"]
        let exported = try await place.runAdmin("account", "export", "anna@example.org", "--to", folder.path, "--json")
        let summary = try exported.json()
        #expect(exported.status == 0 && summary["assets"] as? Int == 60, "\(exported.output)\(exported.errors)")
        #expect(summary["problems"] as? [String] == [], "\(exported.output)")
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
            $0.contains("/assets/") && $0.hasSuffix(".png")
        }
        #expect(try Set(files.map { try Data(contentsOf: folder.appendingPathComponent($0)) }) == pictures)

        // A bucket that refuses a command is reported, not treated as one without contents.
        let wrong = ["AWS_SECRET_ACCESS_KEY": "wrong"]
        let refused = try await place.runAdmin("verify", environment: wrong)
        #expect(refused.status == 75 && refused.errors.contains("refuses the keys"), "\(refused.status) \(refused.errors)")
        #expect(!refused.output.contains("missing") && !refused.errors.contains(SeaweedServer.secret), "\(refused.output)")
        let half = place.scratch["half"]
        let unexported = try await place.runAdmin(
            "account", "export", "anna@example.org", "--to", half.path, environment: wrong)
        #expect(unexported.status == 75 && unexported.errors.contains("refuses the keys"), "\(unexported.errors)")
        // A partial file could be taken for the whole.
        #expect(!FileManager.default.fileExists(atPath: half.path))
    }

    /// Lets two machines of Anna, at different servers, sync a journal with 60 pictures, and Ben accept a share of one record.
    private func shareJournal(_ place: ServedMachines) async throws {
        try await place.signIn("laptop", as: "anna", at: 0)
        try await place.signIn("phone", as: "anna", at: 1)
        try await place.importRecords("laptop", count: 300, pictureEvery: 5)
        #expect(try await place.run("sync", place.path("laptop"), "--json").json()["exported"] as? Int == 300)
        #expect(try await place.run("sync", place.path("phone"), "--json").json()["imported"] as? Int == 300)
        var expected = try await place.records("laptop")
        #expect(expected.count == 300)
        #expect(try await place.records("phone") == expected)
        #expect(try place.pictures("phone") == place.pictures("laptop"))
        try await place.run("records", "set", place.path("phone"), "r1", "caption=of the phone")
        try await place.run("records", "delete", place.path("laptop"), "r2")
        try await place.sync("phone", "laptop", "phone")
        expected["r1"]?["caption"] = "of the phone"
        expected["r2"] = nil
        for machine in ["laptop", "phone"] { #expect(try await place.records(machine) == expected, "\(machine)") }
        try await place.checkAtRest("laptop", "phone")

        // Ben's server is the other one. Behind a proxy both would have one address.
        try await place.signIn("tablet", as: "ben", at: 1)
        try await place.run("share", "create", place.path("laptop"), "r3")
        let invited = try await place.run(
            "share", "invite", place.path("laptop"), "r3", "ben@example.org", "--read-write", "--json"
        ).json()
        let link = try #require((invited["links"] as? [[String: Any]])?.first?["link"] as? String)
        try await place.run("share", "accept", place.path("tablet"), place.link(link, from: 0, to: 1))
        try await place.sync("tablet")
        #expect(try await place.records("tablet", "shared").keys.sorted() == ["r3"])
    }

    @Test func `a server names the database or assets that it can't use, and ends`() async throws {
        let (scratch, tool) = (try Scratch(), try Tool(named: "tidemark-server"))
        let postgres = try PostgresServer.shared()
        let (address, occupied) = (postgres.address(try postgres.makeDatabase()), try postgres.makeDatabase())
        try postgres.sql("CREATE TABLE accounts (n int8)", in: occupied)
        let wrong: [([String], Int32, String)] = [
            (["--database", "postgresql://tidemark@127.0.0.1:1/x", "--assets", scratch.url.path], 69, "127.0.0.1:1"),
            (["--database", "mysql://x/y", "--assets", scratch.url.path], 64, "such as 'postgresql://USER@HOST/DATABASE'"),
            (
                ["--database", postgres.address(occupied), "--assets", scratch.url.path], 69,
                "has tables of something else (accounts); give Tidemark a database or a schema of its own"
            ),
            (["--database", address, "--assets", scratch["none"].path], 69, "the directory of assets"),
            (["--database", address], 64, "--assets is missing"),
            (["--assets", scratch.url.path], 64, "--database is missing"),
            (
                ["--database", address, "--assets", scratch.url.path, "--database-direct", address], 64,
                "--database-direct needs --database-pooler"
            ),
            (
                ["--database", address, "--assets", scratch.url.path, "--database-pooler"], 64,
                "--database-direct is missing: a server behind a pooler needs the database's own address as well"
            ),
            (["--database", address, "--assets", "s3:/journal"], 64, "--assets takes s3://bucket"),
            (["--database", "postgresql://a:secret@b/c", "--assets", scratch.url.path], 64, "contains a password"),
            (["--database", address, "--assets", "ftp://x"], 64, "--assets takes s3://bucket"),
        ]
        for (options, status, reason) in wrong {
            let result = try await tool.run(options + ["--port", "0"])
            #expect(result.status == status && result.errors.contains(reason), "\(options): \(result.status) \(result.errors)")
            #expect(!result.errors.contains("secret") && !result.errors.contains("SQLSTATE"))
            #expect(!result.errors.contains("Is the server running"))
        }
        // The message does not blame the variable that is set.
        let half = try await tool.run(["--port", "0"], environment: ["TIDEMARK_DATABASE": address])
        #expect(
            half.status == 64 && half.errors.contains("--assets is missing") && !half.errors.contains("is wrong"),
            "\(half.errors)")
    }

    @Test func `a server does not start over a newer or read-only database, and says which it is`() async throws {
        let (scratch, tool, postgres) = (try Scratch(), try Tool(named: "tidemark-server"), try PostgresServer.shared())
        let refused: [(change: (String) -> String, reason: String)] = [
            (
                { _ in
                    "INSERT INTO tidemark_migrations (component, number, name, oldest_user) VALUES ('records', 99, 'of later', 99)"
                },
                "by a newer Tidemark"
            ),
            ({ "ALTER DATABASE \"\($0)\" SET default_transaction_read_only = on" }, "read-only"),
        ]
        for (change, reason) in refused {
            let name = try postgres.makeDatabase()
            try FileManager.default.createDirectory(at: scratch[name], withIntermediateDirectories: true)
            let place = ["--database", postgres.address(name), "--assets", scratch[name].path]
            let made = try await Tool().run(["admin", "container", "add", "iCloud.org.example.journal"] + place)
            #expect(made.status == 0, "\(made.errors)")
            try postgres.sql(change(name), in: name)
            let result = try await tool.run(place + ["--port", "0"])
            #expect(result.status == 69 && result.errors.contains(reason), "\(reason): \(result.status) \(result.errors)")
        }
    }

    @Test(.enabled(if: SeaweedServer.isInstalled, "\(SeaweedServer.whyNot)"))
    func `a server does not start with a missing bucket, or wrong keys, and says which it is`() async throws {
        let (tool, bucket) = (try Tool(named: "tidemark-server"), try await SeaweedServer.started())
        let address = try PostgresServer.shared().address(try PostgresServer.shared().makeDatabase())
        let wrong: [(bucket: String, secret: String, reason: String)] = [
            ("nowhere", SeaweedServer.secret, "nowhere"), ("journal", "another", "refuses the keys"),
        ]
        for (name, secret, reason) in wrong {
            let result = try await tool.run(
                ["--database", address, "--assets", "s3://\(name)", "--s3-endpoint", bucket.endpoint, "--port", "0"],
                environment: SeaweedServer.environment.merging(["AWS_SECRET_ACCESS_KEY": secret]) { $1 })
            #expect(result.status == 69 && result.errors.contains(reason), "\(name): \(result.status) \(result.errors)")
            #expect(!result.errors.contains(SeaweedServer.secret))
        }
    }

    @Test(.enabled(if: PgBouncer.isInstalled, "\(PgBouncer.whyNot)"))
    func `commands of administration work through a pooler with the same address`() async throws {
        let (scratch, postgres, tool) = (try Scratch(), try PostgresServer.shared(), try Tool())
        let database = try postgres.makeDatabase()
        let bouncer = try PgBouncer(before: postgres, connections: 2)
        defer { bouncer.stop() }
        let cloud = [
            "--database", postgres.address(database, port: bouncer.port), "--assets", scratch.url.path, "--database-pooler",
        ]
        for (command, output) in [
            (["container", "add", "iCloud.org.example.journal"], "iCloud.org.example.journal is served"),
            (["account", "add", "anna@example.org", "--no-password"], "added anna@example.org"),
            (["account", "list"], "anna@example.org"), (["container", "list"], "iCloud.org.example.journal"),
            (["verify"], "no problem"),
        ] {
            let result = try await tool.run(["admin"] + command + cloud)
            #expect(result.status == 0 && result.output.contains(output), "\(command): \(result.output)\(result.errors)")
        }
    }

    @Test func `a server starts without its bucket, with a warning, and serves records`() async throws {
        let (scratch, postgres) = (try Scratch(), try PostgresServer.shared())
        let (address, port) = (postgres.address(try postgres.makeDatabase()), scratch["port"])
        let bucket = ["--database", address, "--assets", "s3://journal", "--s3-endpoint", "http://127.0.0.1:1"]
        let keys = ["AWS_ACCESS_KEY_ID": "AKTEST", "AWS_SECRET_ACCESS_KEY": "secret"]
        // Accounts can be administered without the bucket and without its keys.
        let tool = try Tool()
        #expect(try await tool.run(["admin", "container", "add", "journal"] + bucket).status == 0)
        #expect(try await tool.run(["admin", "account", "add", "anna@example.org", "--no-password"] + bucket).status == 0)
        let listed = try await tool.run(["admin", "account", "list"] + bucket)
        #expect(listed.status == 0 && listed.output.contains("anna@example.org"), "\(listed.errors)")
        let server = try Tool(named: "tidemark-server").start(
            bucket + ["--port", "0", "--port-file", port.path, "--data", scratch["data"].path], environment: keys)
        let isListening = try await eventually { FileManager.default.fileExists(atPath: port.path) }
        try #require(isListening)
        let number = try String(contentsOf: port, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        for (path, status) in [("/ready", 503), ("/ready?without=assets", 200)] {
            let request = HTTPClientRequest(url: "http://127.0.0.1:\(number)\(path)")
            let answer = try await StubbedServer.client.execute(request, timeout: .seconds(120))
            #expect(Int(answer.status.code) == status, "\(path)")
        }
        #expect(await server.terminate() == 0)
    }

    @Test func `a server reports what it can't reach, counts its connections, and leaves no folder behind`() async throws {
        let postgres = try PostgresServer()
        defer { postgres.stop() }
        let (scratch, name) = (try Scratch(), try postgres.makeDatabase())
        let (assets, temporary, port) = (scratch["assets"], scratch["temporary"], scratch["port"])
        for folder in [assets, temporary] {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }
        let server = try Tool(named: "tidemark-server").start(
            [
                "--database", postgres.address(name), "--assets", assets.path, "--port", "0", "--port-file",
                port.path, "--request-rate", "0",
                "--metrics-token-file", try scratch.write("0123456789abcdef\n", to: "token").path, "--log-level", "error",
            ], environment: ["TMPDIR": temporary.path])
        let isListening = try await eventually { FileManager.default.fileExists(atPath: port.path) }
        #expect(isListening)
        let number = try String(contentsOf: port, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        func text(_ path: String) async throws -> String {
            var request = HTTPClientRequest(url: "http://127.0.0.1:\(number)\(path)")
            request.headers.add(name: "Authorization", value: "Bearer 0123456789abcdef")
            let answer = try await StubbedServer.client.execute(request, timeout: .seconds(60))
            return String(buffer: try await answer.body.collect(upTo: 1 << 20))
        }
        func becomes(_ wanted: String, at path: String = "/ready") async throws {
            for _ in 0..<600 {
                if try await text(path) == "\(wanted)\n" { return }
                try await Task.sleep(for: .milliseconds(100))
            }
            Issue.record("not '\(wanted)': \(try await text(path))")
        }
        try await becomes("ready")
        let marker = try Data(contentsOf: assets.appendingPathComponent(".tidemark-assets"))
        try FileManager.default.removeItem(at: assets)
        try await becomes("the place of the assets can't be reached or used")
        // Records are still served.
        #expect(try await text("/ready?without=assets") == "ready\n")
        // An empty directory in the same place does not belong to the database until it has the identifying file.
        try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
        try await Task.sleep(for: .seconds(2))
        try await becomes("the place of the assets can't be reached or used")
        try marker.write(to: assets.appendingPathComponent(".tidemark-assets"))
        try await becomes("ready")
        postgres.stop()
        try await becomes("the database can't be reached or used")
        try await becomes("the database can't be reached or used", at: "/ready?without=assets")
        try postgres.start()
        try await becomes("ready")
        try postgres.sql(
            "INSERT INTO tidemark_migrations (component, number, name, oldest_user) VALUES ('records', 99, 'of later', 99)",
            in: name)
        try await becomes("a newer version of the server has migrated the database")
        try await becomes("a newer version of the server has migrated the database", at: "/ready?without=assets")
        try postgres.sql("DELETE FROM tidemark_migrations WHERE number = 99", in: name)
        try await becomes("ready")
        try postgres.sql("ALTER SYSTEM SET default_transaction_read_only = on")
        try postgres.sql("SELECT pg_reload_conf()")
        try await becomes("the database takes no writes: it is read-only")
        try postgres.sql("ALTER SYSTEM RESET default_transaction_read_only")
        try postgres.sql("SELECT pg_reload_conf()")
        try await becomes("ready")
        let figures = try await text("/metrics")
        #expect(figures.contains("\ntidemark_database_connections_opened_total "))
        #expect(figures.contains("\ntidemark_database_lock_wait_seconds_bucket{"))
        #expect(figures.contains("\ntidemark_database_lock_timeouts_total 0\n"))
        #expect(!figures.contains("\ntidemark_database_connections_failed_total 0\n"), "\(figures)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path).count == 1)
        #expect(await server.terminate() == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
    }
}
