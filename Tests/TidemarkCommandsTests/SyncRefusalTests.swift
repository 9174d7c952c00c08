import Foundation
import TestSupport
import Testing

/// Goal: a refusal by the cloud is shown with the remedy that loses nothing, and no report counts refused records as sent.
/// Method: the tool, with two containers whose fields differ, an account that is switched off, and a quota that is too small.
@Suite(.timeLimit(.minutes(30))) struct SyncRefusalTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    /// Runs a command line; `a` and `b` stand for containers.
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

    /// What `status` prints about the field that has different types in the two containers.
    private func remedies() -> [String] {
        let path = scratch["b.tidemark"].path
        return [
            "    Destination.rating is string here and int64 in the cloud: give it the cloud's type, or another name",
            "      tidemark schema retype \(path) --type Destination rating int64",
            "      tidemark schema rename \(path) --type Destination rating <name>",
            "      tidemark sync \(path)   (brings the cloud's values)",
        ]
    }

    @Test func `a field with another type is shown with the rename, after which all values are sent and fetched`() async throws {
        try await run("records set a senja --type Destination caption=Senja rating:int64=5")
        try await run("records set b oslo --type Destination rating:string=good")
        try await signIn("a", "b")
        try await run("sync a")
        try await run("sync b", expecting: 75)
        let status = try await run("status b").output
        #expect(status.contains("to be sent: 1 change: 1 refused or waiting for a refused one\n"))
        // The error at the refusal names the container as well.
        let renames = status.components(separatedBy: "tidemark schema rename \(scratch["b.tidemark"].path) --type Destination")
        #expect(renames.count == 3 && !status.contains("<path>"), "\(status)")
        let cause = "the field rating is string here and int64 in the cloud"
        #expect(status.contains("  deferred: Destination senja: \(cause)\n"), "\(status)")
        #expect(status.contains(remedies().joined(separator: "\n")), "\(status)")
        #expect(status.contains("export  nothing sent  1 refused\n") && !status.contains("export  done"), "\(status)")
        #expect(try await run("events b").output.contains("export  nothing sent  1 refused\n"))
        #expect(
            try await run("status b --check", expecting: 75).output.contains(
                "left in the cloud: Destination.rating of 1 record: it is string here and int64 in the cloud\n"))

        try await run("schema rename b --type Destination rating ratingText")
        try await run("sync b")
        #expect(try await run("status b --check").output == "in sync, as far as the container knows\n")
        #expect(try await run("records get b senja").output.contains("    rating: 5\n"))
        #expect(try await run("status b --check --json").json()["ignoredFields"] as? [String] == [])
        #expect(try await run("status a --check").output == "in sync, as far as the container knows\n")
        #expect(try await run("events b").output.contains("export  done  1 record\n"))
    }

    @Test func `records with the same reason share a line, and a field can get the cloud's type`() async throws {
        for name in ["senja", "odda", "mefjord"] { try await run("records set a \(name) --type Destination rating:int64=5") }
        try await run("records set b oslo --type Destination rating:string=good")
        try await signIn("a", "b")
        try await run("sync a")
        try await run("sync b", expecting: 75)
        let status = try await run("status b").output
        let cause = "the field rating is string here and int64 in the cloud"
        let line = "  deferred: 3 records of Destination: \(cause)\n"
        #expect(status.contains(line + remedies().joined(separator: "\n")), "\(status)")
        #expect(!status.contains("deferred: Destination senja"))
        let all = try await run("status b --all").output
        #expect(all.contains("  deferred: Destination odda: \(cause)\n  deferred: Destination senja: \(cause)\n"), "\(all)")
        let left = try await run("status b --check --json", expecting: 75).json()["leftInCloud"] as? [[String: Any]]
        #expect(left?.first?["records"] as? Int == 3 && left?.first?["field"] as? String == "rating")

        #expect(try await run("schema retype b --type Destination rating int64", expecting: 65).errors.contains("oslo"))
        try await run("records set b oslo rating=4")
        try await run("schema retype b --type Destination rating int64")
        try await run("sync b")
        try await run("status b --check")
        try await run("sync a")
        for container in ["a", "b"] {
            #expect(try await run("records get \(container) oslo").output.contains("    rating: 4\n"))
            #expect(try await run("records get \(container) senja").output.contains("    rating: 5\n"))
        }
    }

    @Test func `a renamed field is reported as passed over, with the number of its values in the cloud`() async throws {
        try await run("records set a senja --type Destination caption=Senja")
        try await run("records set b oslo --type Destination caption=Oslo")
        try await signIn("a", "b")
        try await run("sync a")
        try await run("sync b")
        // This record is not in the cloud yet, so it has no value there.
        try await run("records set b odda --type Destination caption=Odda")
        try await run("schema rename b --type Destination caption title")
        try await run("sync b")
        #expect(
            try await run("status b --check").output
                == "in sync, as far as the container knows\n"
                + "passed over: the values of 1 field that was renamed or dropped here: "
                + "Destination.caption (2 records at that time)\n")
        let check = try await run("status b --check --json").json()
        #expect(check["ignoredFields"] as? [String] == ["Destination.caption"])
        let passedOver = try #require((check["passedOver"] as? [[String: Any]])?.first)
        #expect(passedOver["type"] as? String == "Destination" && passedOver["field"] as? String == "caption")
        #expect(passedOver["records"] as? Int == 2)
    }

    @Test func `a deferred record with unreadable fields shows the general reason, and does not hide others`() async throws {
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

    @Test func `records that are held back are counted beside refused ones`() async throws {
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

    @Test func `a file that exceeds the quota is reported with its size`() async throws {
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
