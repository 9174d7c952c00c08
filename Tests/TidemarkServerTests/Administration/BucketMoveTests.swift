import Foundation
import TestServers
import TestSupport
import Testing

/// Goal: a cloud moves from a directory into PostgreSQL and a bucket and back, with all contents of its assets. Method: the built
/// tool and server as processes, and a bucket in memory, which stops answering in the middle, and loses contents.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct BucketMoveTests {
    private let bucket = try! StubBucket()
    /// The part of a key between the move's prefix and the name of a content.
    private static let folder = "/iCloud.org.example.journal/development/"

    /// The requests for contents with a method. Before it begins, a move stores and reads an object of its own.
    private func requests(_ method: String) -> [String] {
        bucket.arrivals.filter { $0.method == method && $0.path.contains(Self.folder) }.map(\.path)
    }

    private var contents: [String] { bucket.keys.filter { $0.hasPrefix("moved\(Self.folder)") } }

    /// A cloud with records, some of them with contents, and a machine with the same records.
    private func served(records: Int, pictureEvery each: Int) async throws -> ServedMachines {
        let place = try await ServedMachines.started(people: ["anna"])
        try await place.signIn("laptop", as: "anna")
        try await place.importRecords("laptop", count: records, pictureEvery: each)
        try await place.sync("laptop")
        return place
    }

    /// Imports a record with a content on the laptop.
    private func importContent(_ content: Data, as name: String, _ place: ServedMachines) async throws {
        try place.write(content, to: "laptop/more/\(name).png")
        let line = #"{"id":"\#(name)","caption":"Place \#(name)","visits":1,"image":"more/\#(name).png"}"#
        let manifest = try place.write(Data("\(line)\n".utf8), to: "laptop/\(name).jsonl")
        try await place.run(
            "import", manifest.path, "--into", place.path("laptop"), "--type", "Destination", "--id", "id", "--plain-ids",
            "--asset", "image")
    }

    @Test func `a cloud moves into a database and a bucket, is served there, and moves back with all contents`() async throws {
        defer { bucket.end() }
        let place = try await served(records: 40, pictureEvery: 4)
        try await place.signIn("phone", as: "anna")
        // A large content, which is read in pieces and stored in parts.
        try await importContent(Picture.png(1_000) + AssetStorageContract.content(9_000_000, 1), as: "large", place)
        try await place.sync("laptop")
        await place.stop()
        let (cloud, back) = (place.scratch["cloud"].path, place.scratch["back"].path)
        let database = try MovedDatabase(over: bucket, prefix: "moved")

        let into = try await database.move(place.tool, cloud, database.address)
        #expect(into.status == 0, "\(into.errors)")
        let moved = try into.json()
        #expect(moved["records"] as? Int == 41 && moved["assets"] as? Int == 11)
        #expect(contents.count == 11 && bucket.keys == contents && bucket.uploadCount == 0, "\(bucket.keys)")
        let again = try await database.move(place.tool, cloud, database.address)
        #expect(again.status == 0 && again.output == into.output, "\(again.errors)")
        let verified = try await place.tool.run(["admin", "verify"] + database.options, environment: database.environment)
        #expect(verified.status == 0, "\(verified.output)\(verified.errors)")

        try await place.serve(database.options, environment: database.environment)
        try await place.sync("phone")
        #expect(try await place.records("phone") == place.records("laptop"))
        let fetched = try place.pictures("phone")
        #expect(fetched.count == 11)
        #expect(try fetched == place.pictures("laptop"))
        // A content that is uploaded while the cloud is in the bucket.
        try await importContent(Picture.png(1_001), as: "late", place)
        try await place.sync("laptop")
        #expect(contents.count == 12)
        await place.stop()
        try database.eventuallyUnused()

        let returned = try await database.move(place.tool, database.address, back)
        #expect(returned.status == 0, "\(returned.errors)")
        let movedBack = try returned.json()
        #expect(movedBack["records"] as? Int == 42 && movedBack["assets"] as? Int == 12)
        #expect(contents.count == 12, "the source has changed")
        let verifiedBack = try await place.tool.run(["admin", "verify", "--data", back])
        #expect(verifiedBack.status == 0, "\(verifiedBack.output)")
        try await place.serve(["--data", back])
        try await place.signIn("watch", as: "anna")
        try await place.sync("phone", "watch")
        for machine in ["phone", "watch"] {
            #expect(try await place.records(machine) == place.records("laptop"))
            let fetched = try place.pictures(machine)
            #expect(fetched.count == 12)
            #expect(try fetched == place.pictures("laptop"))
        }
        try await place.checkAtRest("laptop", "phone", "watch")
        await place.stop()
        #expect(bucket.problems == [])
    }

    @Test func `a move that is killed while it copies contents of a bucket is continued, in both directions`() async throws {
        defer { bucket.end() }
        let place = try await served(records: 60, pictureEvery: 3)
        await place.stop()
        let (cloud, back) = (place.scratch["cloud"].path, place.scratch["back"].path)
        let database = try MovedDatabase(over: bucket, prefix: "moved")
        var digests: Set<String> = []
        for (method, from, to) in [("PUT", cloud, database.address), ("GET", database.address, back)] {
            // Contents are sent in the order of their digests, several at once. Those of the greater half are answered after the
            // kill.
            let isHeld: @Sendable (String) -> Bool = { path in path.split(separator: "/").last.map { $0 >= "8" } ?? false }
            bucket.fail(.silence(90), times: 20) { request in
                request.method == method && request.path.contains(Self.folder) && isHeld(request.path)
            }
            let move = try database.start(place.tool, from, to)
            #expect(try await eventually { requests(method).contains(where: isHeld) }, "\(method)")
            await move.kill()
            bucket.forgetFaults()
            #expect(!FileManager.default.fileExists(atPath: back))
            let rest = try await database.move(place.tool, from, to)
            #expect(rest.status == 0, "\(rest.errors)")
            let report = try rest.json()
            #expect(report["records"] as? Int == 60 && report["assets"] as? Int == 20)
            digests.insert(try #require(report["digest"] as? String))
        }
        #expect(digests.count == 1)
        // Contents that had arrived when the move was killed are not sent again.
        let sent = requests("PUT")
        #expect(Set(sent).count == 20 && sent.count == 20, "\(sent)")
        #expect(try await place.tool.run(["admin", "verify", "--data", back]).status == 0)
        #expect(bucket.problems == [])
    }

    @Test func `a bucket that refuses the keys ends a move, which is continued once it accepts them`() async throws {
        defer { bucket.end() }
        let place = try await served(records: 12, pictureEvery: 3)
        await place.stop()
        let cloud = place.scratch["cloud"].path
        let database = try MovedDatabase(over: bucket, prefix: "moved")
        bucket.fail(.status(403, code: "AccessDenied"), times: 100) { $0.method == "PUT" && $0.path.contains(Self.folder) }
        let refused = try await database.move(place.tool, cloud, database.address)
        #expect(refused.status == 69 && refused.errors.contains("journal"), "\(refused.status) \(refused.errors)")
        for text in [refused.output, refused.errors] { #expect(!text.contains(SeaweedServer.secret)) }
        #expect(contents == [])
        bucket.forgetFaults()
        let rest = try await database.move(place.tool, cloud, database.address)
        #expect(rest.status == 0 && contents.count == 4, "\(rest.errors)")
    }

    @Test func `missing contents of a bucket are named, and the others are moved back`() async throws {
        defer { bucket.end() }
        let place = try await served(records: 20, pictureEvery: 5)
        await place.stop()
        let database = try MovedDatabase(over: bucket, prefix: "moved")
        #expect(try await database.move(place.tool, place.scratch["cloud"].path, database.address).status == 0)
        let key = try #require(contents.first)
        bucket.remove(key)
        let returned = try await database.move(place.tool, database.address, place.scratch["back"].path)
        #expect(returned.status == 1, "\(returned.errors)")
        let problems = try #require(try returned.json()["problems"] as? [String])
        #expect(problems.count == 1 && problems[0].contains(key.suffix(64)) && problems[0].hasSuffix("is missing"), "\(problems)")
        let verified = try await place.tool.run(["admin", "verify", "--data", place.scratch["back"].path])
        #expect(verified.status == 1 && verified.output.contains("1 problem"), "\(verified.output)")
    }

    @Test func `a move, a verification and an account's export name damaged contents of a bucket`() async throws {
        defer { bucket.end() }
        let place = try await served(records: 20, pictureEvery: 5)
        await place.stop()
        let database = try MovedDatabase(over: bucket, prefix: "moved")
        #expect(try await database.move(place.tool, place.scratch["cloud"].path, database.address).status == 0)
        let keys = contents
        #expect(keys.count == 4)
        var damaged = try #require(bucket.content(keys[0]))
        damaged[damaged.count / 2] ^= 1
        bucket.replace(keys[0], damaged)
        let whole = try #require(bucket.content(keys[1]))
        bucket.replace(keys[1], whole.dropLast())
        let verified = try await place.tool.run(["admin", "verify"] + database.options, environment: database.environment)
        #expect(verified.status == 1 && verified.output.contains("2 problems"), "\(verified.output)\(verified.errors)")
        let exported = try await place.tool.run(
            ["admin", "account", "export", "anna@example.org", "--to", place.scratch["export"].path, "--json"] + database.options,
            environment: database.environment)
        #expect(exported.status == 1, "\(exported.status) \(exported.output)\(exported.errors)")
        let returned = try await database.move(place.tool, database.address, place.scratch["back"].path)
        #expect(returned.status == 1, "\(returned.errors)")
        let report = try returned.json()
        let problems = try #require(report["problems"] as? [String])
        for key in keys.prefix(2) {
            #expect(problems.contains { $0.contains(key.suffix(64)) && $0.contains("is damaged") }, "\(problems)")
        }
        #expect(report["assets"] as? Int == 4 && problems.count == 2)
    }
}
