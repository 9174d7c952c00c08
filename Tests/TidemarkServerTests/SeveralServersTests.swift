import Foundation
import TestServers
import TestSupport
import Testing

/// Goal: servers over one database are one cloud. Method: two built servers and the built tool, as processes, over a PostgreSQL server.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct SeveralServersTests {
    @Test func `two machines of different servers share a journal with its pictures`() async throws {
        let place = try await ServedMachines.started(people: ["anna", "ben"], servers: 2, over: .shared())
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

    @Test func `a server whose database or assets can't be used says which and ends`() async throws {
        let (scratch, tool) = (try Scratch(), try Tool(named: "tidemark-server"))
        let address = try PostgresServer.shared().address(try PostgresServer.shared().makeDatabase())
        let wrong: [([String], Int32, String)] = [
            (["--database", "postgresql://tidemark@127.0.0.1:1/x", "--assets", scratch.url.path], 69, "127.0.0.1:1"),
            (["--database", address, "--assets", scratch["none"].path], 69, "the directory of assets"),
            (["--database", address], 64, "--database and --assets go together"),
            (["--database", "postgresql://a:secret@b/c", "--assets", scratch.url.path], 64, "contains a password"),
            (["--database", address, "--assets", "ftp://x"], 64, "--assets takes s3://bucket"),
        ]
        for (options, status, reason) in wrong {
            let result = try await tool.run(options + ["--port", "0"])
            #expect(result.status == status && result.errors.contains(reason), "\(options): \(result.status) \(result.errors)")
            #expect(!result.errors.contains("secret"))
        }
    }
}
