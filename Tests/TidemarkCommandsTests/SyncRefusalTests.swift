import Foundation
import TestSupport
import Testing

/// Goal: what a cloud has refused is told with the way that loses nothing, and no report counts it as sent. Method: the tool, with two
/// containers whose fields differ, an account that is switched off, and a quota that is too small.
@Suite(.timeLimit(.minutes(30))) struct SyncRefusalTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    /// Runs words that spaces separate; `a` and `b` are containers.
    @discardableResult
    private func run(_ words: String, expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(
            words.split(separator: " ").map { ["a", "b"].contains($0) ? scratch["\($0).tidemark"].path : String($0) })
        #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
        return result
    }

    private func signIn(_ names: String...) async throws {
        for name in names {
            try await run("account sign-in \(name) --cloud \(scratch["cloud"].path) --email anna@example.org --create")
        }
    }

    @Test func `a field of another type is told with the rename, which lets all of it go and come`() async throws {
        try await run("records set a senja --type Destination caption=Senja rating:int64=5")
        try await run("records set b oslo --type Destination rating:string=good")
        try await signIn("a", "b")
        try await run("sync a")
        try await run("sync b", expecting: 75)
        let status = try await run("status b").output
        #expect(status.contains("to be sent: 1 change: 1 refused or waiting for a refused one\n"))
        #expect(status.contains("tidemark schema rename <container> --type Destination rating <name>"))
        #expect(
            status.contains(
                "deferred: Destination senja: the field rating is string here and int64 in the cloud; give it another name here: "
                    + "'tidemark schema rename <container> --type Destination rating <name>'"), "\(status)")
        #expect(status.contains("export  nothing sent  1 refused\n") && !status.contains("export  done"), "\(status)")
        #expect(try await run("events b").output.contains("export  nothing sent  1 refused\n"))
        try await run("status b --check", expecting: 75)

        try await run("schema rename b --type Destination rating ratingText")
        try await run("sync b")
        #expect(
            try await run("status b --check").output
                == "in sync, as far as the container knows\nleft in the cloud: the values of 1 field that was renamed, dropped or given "
                + "another type here: Destination.rating\n")
        #expect(try await run("status b --check --json").json()["ignoredFields"] as? [String] == ["Destination.rating"])
        #expect(try await run("status a --check").output == "in sync, as far as the container knows\n")
        #expect(try await run("events b").output.contains("export  done  1 record\n"))
    }

    @Test func `a deferred record whose fields can't be read has the general reason, and hides no other`() async throws {
        try await run("records set a odda --type Destination rating:int64=4")
        try await run("records set a senja --type Destination rating:int64=5")
        try await run("records set b oslo --type Destination rating:string=good")
        try await signIn("a", "b")
        try await run("sync a")
        try await run("sync b", expecting: 75)
        try DamagedRows.cutDeferredRecord(named: "odda", in: scratch["b.tidemark/private.sqlite"])
        let status = try await run("status b").output
        #expect(status.contains("deferred: Destination odda: the store lacks its type or some of its fields"), "\(status)")
        #expect(
            status.contains("deferred: Destination senja: the field rating is string here and int64 in the cloud"), "\(status)")
    }

    @Test func `what is held back is counted beside what was refused`() async throws {
        try await run("records set a senja --type Destination rating:int64=5")
        try await run("records set b oslo --type Destination rating:string=good")
        try await signIn("a", "b")
        try await run("sync a")
        try await run("sync b", expecting: 75)
        try await run("account set b --app off")
        try await run("records set b odda caption=Odda --type Destination")
        let status = try await run("status b").output
        #expect(
            status.contains(
                "to be sent: 2 changes: 1 refused or waiting for a refused one, 1 held back, because nothing is sent\n"),
            "\(status)")
    }

    @Test func `a file that does not fit into the quota is told with its size`() async throws {
        try scratch.write(String(repeating: "x", count: 40_000), to: "photo.txt")
        try await run("admin container add default --data \(scratch["cloud"].path)")
        try await run("admin account add anna@example.org --no-password --quota 30kB --data \(scratch["cloud"].path)")
        try await run("records set a senja --type Destination photo:asset=\(scratch["photo.txt"].path)")
        try await run("account sign-in a --cloud \(scratch["cloud"].path) --email anna@example.org")
        try await run("sync a", expecting: 75)
        let status = try await run("status a").output
        #expect(
            status.firstMatch(
                of: /an asset needs 4\d{4} bytes, and does not fit into the account's storage: \d+ of 30000 bytes are used/)
                != nil, "\(status)")
    }
}
