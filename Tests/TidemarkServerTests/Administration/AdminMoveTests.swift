import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity

/// Goal: a cloud moves from a directory into a database and back without the devices noticing; a move that was stopped can be
/// continued. Method: the built tool and server as processes, machines that sync before and after, a move that is killed again
/// and again, wrong places.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct AdminMoveTests {
    /// The files of a folder with their contents.
    private func contents(_ folder: URL) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
            // A log may be checkpointed in the meantime; the digest covers the rows.
            guard !path.contains(".sqlite"), !path.hasSuffix("-lock") else { continue }
            contents[path] = try? Data(contentsOf: folder.appendingPathComponent(path))
        }
        return contents
    }

    @Test func `devices continue a sync over a database, and again over a directory`() async throws {
        let place = try await ServedMachines.started(people: ["anna", "ben"])
        let cloud = place.scratch["cloud"]
        for machine in ["laptop", "phone"] { try await place.signIn(machine, as: "anna") }
        try await place.signIn("tablet", as: "ben")
        try await place.importRecords("laptop", count: 120, pictureEvery: 5)
        try await place.sync("laptop", "phone")
        try await place.run("share", "create", place.path("laptop"), "r3")
        try await place.run("share", "create", place.path("laptop"), "r4")
        try await place.sync("laptop")
        func invite(_ record: String) async throws -> String {
            let invited = try await place.run(
                "share", "invite", place.path("laptop"), record, "ben@example.org", "--read-write", "--json"
            ).json()
            return try #require((invited["links"] as? [[String: Any]])?.first?["link"] as? String)
        }
        try await place.run("share", "accept", place.path("tablet"), try await invite("r3"))
        // An invitation that is accepted only after the move.
        let pending = try await invite("r4")
        try await place.sync("tablet", "phone")
        // A change that one device has sent and the other has not fetched, and a change that is pending on the other.
        try await place.run("records", "set", place.path("laptop"), "r1", "caption=of the laptop")
        try await place.run("records", "delete", place.path("laptop"), "r2")
        try await place.sync("laptop")
        try await place.run("records", "set", place.path("phone"), "r5", "caption=of the phone")
        await place.stop()
        // An identity at an identity provider, which can sign in to an account.
        let key = IdentityKey(issuer: "https://id.example.org", subject: "anna-1")
        let account = try #require(try await EmbeddedCloud(at: cloud).account("anna@example.org")).id
        #expect(try await CredentialStore(at: cloud).connect(key, label: "Anna ä", to: account) == .connected)

        let database = try MovedDatabase(in: place.scratch)
        let before = try contents(cloud)
        let into = try await database.move(place.tool, cloud.path, database.address)
        #expect(into.status == 0, "\(into.errors)")
        #expect(into.errors == "")
        #expect(try contents(cloud) == before, "the source has changed")
        let moved = try into.json()
        #expect(
            moved["accounts"] as? Int == 2 && moved["assets"] as? Int == 24 && (moved["problems"] as? [String])?.isEmpty == true)
        #expect(try #require(moved["records"] as? Int) >= 120)
        // The second run compares.
        let again = try await database.move(place.tool, cloud.path, database.address)
        #expect(again.status == 0 && again.output == into.output, "\(again.errors)")

        try await place.serve(database.options)
        let sync = try await place.run("sync", place.path("phone"), "--json").json()
        #expect(sync["imported"] as? Int == 2 && sync["exported"] as? Int == 1, "\(sync)")
        try await place.sync("laptop")
        #expect(try await place.records("phone") == place.records("laptop"))
        #expect(try await place.records("phone")["r1"]?["caption"] == "of the laptop")
        #expect(try await place.records("laptop")["r5"]?["caption"] == "of the phone")
        #expect(try await place.records("phone")["r2"] == nil)
        try await place.run("share", "accept", place.path("tablet"), pending)
        try await place.run("records", "set", place.path("tablet"), "r3", "caption=of Ben", "--scope", "shared")
        try await place.sync("tablet", "laptop")
        #expect(try await place.records("tablet", "shared").keys.sorted() == ["r3", "r4"])
        #expect(try await place.records("laptop")["r3"]?["caption"] == "of Ben")
        // Zones and shares that were made in the database are moved into a directory.
        try await place.importRecords("tablet", count: 10, pictureEvery: 2)
        try await place.run("share", "create", place.path("tablet"), "r9")
        try await place.sync("tablet")
        let served = try await database.move(place.tool, database.address, place.scratch["back"].path)
        #expect(served.status == 75 && served.errors.contains("is in use"), "\(served.status) \(served.errors)")
        await place.stop()
        try database.eventuallyUnused()

        let back = try await database.move(place.tool, database.address, place.scratch["back"].path)
        #expect(back.status == 0, "\(back.errors)")
        let identities = try await CredentialStore(at: place.scratch["back"]).identities(of: account)
        #expect(identities.map(\.key) == [key] && identities.first?.label == "Anna ä")
        let sessions = try await CredentialStore(at: place.scratch["back"]).sessions()
        #expect(!sessions.isEmpty && sessions.allSatisfy { !$0.system.isEmpty && !$0.device.isEmpty }, "\(sessions)")
        let verified = try await place.tool.run(["admin", "verify", "--data", place.scratch["back"].path])
        #expect(verified.status == 0, "\(verified.output)")
        try await place.serve(["--data", place.scratch["back"].path])
        let still = try await place.run("sync", place.path("laptop"), "--json").json()
        #expect(still["imported"] as? Int == 0 && still["exported"] as? Int == 0, "\(still)")
        try await place.run("records", "set", place.path("laptop"), "r6", "caption=at home again")
        try await place.sync("laptop", "phone", "tablet")
        #expect(try await place.records("phone")["r6"]?["caption"] == "at home again")
        try await place.checkAtRest("laptop", "phone", "tablet")
        // A new device gets all records.
        try await place.signIn("watch", as: "anna")
        try await place.sync("watch")
        #expect(try await place.records("watch") == place.records("laptop"))
        #expect(try place.pictures("watch") == place.pictures("laptop"))
        await place.stop()

        // Moving into another database makes both sides equal again.
        let other = try MovedDatabase(in: place.scratch)
        let twice = try await other.move(place.tool, place.scratch["back"].path, other.address)
        let twiceBack = try await other.move(place.tool, other.address, place.scratch["back-2"].path)
        #expect(try twice.json()["digest"] as? String == twiceBack.json()["digest"] as? String && twice.status == 0)
    }

    @Test func `a move that is killed again and again is continued, into a database and back`() async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        try await place.signIn("laptop", as: "anna")
        try await place.importRecords("laptop", count: 3_000, pictureEvery: 10)
        try await place.sync("laptop")
        await place.stop()
        let database = try MovedDatabase(in: place.scratch)
        var (digests, isTried): (Set<String>, Bool) = ([], false)
        for (from, to) in [(place.scratch["cloud"].path, database.address), (database.address, place.scratch["back"].path)] {
            var (kills, delay) = (0, Duration.milliseconds(50))
            while true {
                let result = try await database.move(place.tool, from, to, killingAfter: delay)
                if result.signal == nil {
                    #expect(result.status == 0, "\(result.errors)")
                    let report = try result.json()
                    #expect(report["records"] as? Int == 3_000 && report["assets"] as? Int == 300)
                    digests.insert(try #require(report["digest"] as? String))
                    break
                }
                kills += 1
                // The delay adapts, so that the move is killed often enough on a fast machine, and not too often on a slow one.
                delay = kills < 8 ? delay + .milliseconds(10) : delay * 5 / 4
                // A server does not serve a partial cloud.
                if !isTried, to == database.address, database.hasBegun {
                    isTried = true
                    let served = try await Tool(named: "tidemark-server").run(
                        database.options + ["--port", "0"], killingAfter: .seconds(20))
                    #expect(
                        served.status == 69 && served.errors.contains("is being moved into"), "\(served.status) \(served.errors)")
                    let administered = try await place.tool.run(["admin", "account", "list"] + database.options)
                    #expect(administered.status == 69, "\(administered.errors)")
                }
                #expect(!FileManager.default.fileExists(atPath: place.scratch["back"].path))
                try database.eventuallyUnused()
            }
            #expect(kills > 3, "\(kills) kills")
        }
        #expect(digests.count == 1 && isTried)
        #expect(try await place.tool.run(["admin", "verify", "--data", place.scratch["back"].path]).status == 0)
    }

    @Test func `damaged and missing contents are named, and the rest is moved`() async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        try await place.signIn("laptop", as: "anna")
        try await place.importRecords("laptop", count: 20, pictureEvery: 5)
        try await place.sync("laptop")
        await place.stop()
        let assets = try FileManager.default.subpathsOfDirectory(atPath: place.scratch["cloud"].path)
            .filter { $0.contains("/assets/") }.map { place.scratch["cloud"].appendingPathComponent($0) }
            .filter { (try? Data(contentsOf: $0))?.isEmpty == false }.sorted { $0.path < $1.path }
        #expect(assets.count == 4)
        var damaged = try Data(contentsOf: assets[0])
        damaged[damaged.count / 2] ^= 1
        try damaged.write(to: assets[0])
        try FileManager.default.removeItem(at: assets[1])
        let database = try MovedDatabase(in: place.scratch)
        let result = try await database.move(place.tool, place.scratch["cloud"].path, database.address)
        #expect(result.status == 1)
        let problems = try #require(try result.json()["problems"] as? [String])
        #expect(problems.count == 2)
        #expect(
            problems.contains { $0.contains(assets[0].lastPathComponent.prefix(32)) && $0.hasSuffix("is damaged") }, "\(problems)"
        )
        #expect(
            problems.contains { $0.contains(assets[1].lastPathComponent.prefix(32)) && $0.hasSuffix("is missing") }, "\(problems)"
        )
        let verified = try await place.tool.run(["admin", "verify"] + database.options)
        #expect(verified.status == 1 && verified.output.contains("2 problems"), "\(verified.output)\(verified.errors)")
    }

    @Test func `a place that is wrong, occupied or in use is refused, and nothing changes`() async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        let (cloud, tool) = (place.scratch["cloud"].path, place.tool)
        let (database, other) = (try MovedDatabase(in: place.scratch), try MovedDatabase(in: place.scratch))
        func expect(_ from: String, _ to: String, _ status: Int32, _ reason: String) async throws {
            let result = try await database.move(tool, from, to)
            #expect(result.status == status && result.errors.contains(reason), "\(from) \(to): \(result.status) \(result.errors)")
            #expect(result.output == "")
        }
        try await expect(cloud, database.address, 75, "is in use")
        await place.stop()
        try await expect(place.scratch["none"].path, database.address, 66, "there is no cloud at")
        try await expect(database.address, place.scratch["none"].path, 66, "holds no cloud")
        try await expect(cloud, place.scratch["none"].path, 64, "two directories")
        try await expect(database.address, other.address, 64, "two databases")
        try await expect(cloud, "postgresql://tidemark@127.0.0.1:1/x", 69, "127.0.0.1:1")
        try await expect(cloud, "postgresql://a:secret@b/c", 64, "contains a password")
        // A database with a different cloud.
        let made = try await tool.run(["admin", "container", "add", "other"] + database.options)
        #expect(made.status == 0, "\(made.errors)")
        try await expect(cloud, database.address, 73, "holds another cloud")
        #expect(try await other.move(tool, cloud, other.address).status == 0)
        for folder in ["cloud-2", "files"] {
            try FileManager.default.createDirectory(at: place.scratch[folder], withIntermediateDirectories: true)
        }
        try place.scratch.write("mine", to: "files/file")
        #expect(try await tool.run(["admin", "container", "add", "other", "--data", place.scratch["cloud-2"].path]).status == 0)
        let result = try await other.move(tool, other.address, place.scratch["cloud-2"].path)
        #expect(result.status == 73 && result.errors.contains("holds another cloud"), "\(result.errors)")
        let files = try await other.move(tool, other.address, place.scratch["files"].path)
        #expect(files.status == 73 && files.errors.contains("holds other files"), "\(files.errors)")
        // A cloud that has changed since it was moved.
        #expect(try await tool.run(["admin", "account", "add", "eva@example.org", "--no-password"] + other.options).status == 0)
        let changed = try await other.move(tool, cloud, other.address)
        #expect(changed.status == 73 && changed.errors.contains("has changed since it was moved"), "\(changed.errors)")
    }
}
