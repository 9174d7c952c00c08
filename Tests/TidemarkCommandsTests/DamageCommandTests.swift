import Foundation
import TestSupport
import Testing

/// Goal: the tool names damaged records, with the exit code of bad data, and repairs them. Method: bits of a database file are
/// flipped between real processes.
@Suite(.timeLimit(.minutes(30))) struct DamageCommandTests {
    private let tool: Tool
    private let scratch: Scratch
    private var container: String { scratch.container.path }

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    private func run(_ arguments: String...) async throws -> Tool.Result { try await tool.run(arguments) }

    /// Makes three records, and flips so many bits of record `b`.
    private func damage(bits: Int) async throws {
        let lines = ["a", "b", "c"].map {
            #"{"id": "\#($0)", "caption": "caption of \#($0)", "details": "details of \#($0): islands"}"#
        }
        let source = try scratch.writeLines(lines, to: "journal.jsonl")
        let result = try await run(
            "import", source.path, "--into", container, "--type", "Destination", "--id", "id", "--plain-ids")
        #expect(result.status == 0, "\(result.errors)")
        try await flip(bits: bits)
    }

    private func flip(bits: Int, after text: String = "details of b: ") async throws {
        try await Damage.checkpoint(scratch.container)
        let file = scratch["Test.tidemark/private.sqlite"]
        for byte in 0..<bits { try Damage.flip(file, after: text, byte: byte, bit: 1) }
    }

    @Test func `records, export, set and backup name a damaged record, and exit with 65`() async throws {
        try await damage(bits: 1)
        let records = try await run("records", "list", container, "--type", "Destination")
        #expect(records.status == 65 && records.errors.contains("Destination b is damaged"))
        let get = try await run("records", "get", container, "b")
        #expect(get.status == 65 && get.errors.contains("verify --repair"))
        let export = try await run("export", container, "--type", "Destination", "--to", scratch["out.jsonl"].path)
        #expect(export.status == 65 && export.errors.contains("Destination b is damaged, and was left out"))
        #expect(try String(contentsOf: scratch["out.jsonl"], encoding: .utf8).split(separator: "\n").count == 2)
        let set = try await run("records", "set", container, "b", "caption=edited")
        #expect(set.status == 65 && set.errors.contains("damaged"), "\(set.status) \(set.errors)")
        // A renamed copy would have a digest of its own.
        let renamed = try await run("records", "rename", container, "b", "d")
        #expect(renamed.status == 65 && renamed.errors.contains("damaged"), "\(renamed.status) \(renamed.errors)")
        let folder = try await run("export", container, "--to", scratch["all"].path)
        #expect(folder.status == 65 && folder.errors.contains("Destination b is damaged, and was left out"))
        let backup = try await run("store", "backup", container, scratch["copy.tidemark"].path)
        #expect(backup.status == 65 && backup.errors.contains("Destination b"))
        let copied = try await run("store", "backup", container, scratch["copy.tidemark"].path, "--allow-damage")
        #expect(copied.status == 0 && copied.errors.contains("Destination b is damaged, and copied as it is"))
    }

    @Test func `verify repairs one flipped bit, and says so`() async throws {
        try await damage(bits: 1)
        #expect(try await run("verify", container).status == 1)
        let repaired = try await run("verify", container, "--repair")
        #expect(repaired.status == 0, "\(repaired.errors)")
        #expect(repaired.output.contains("repaired: Destination b, in which one bit was flipped"))
        let json = try await run("verify", container, "--repair", "--json").json()
        #expect((json["repaired"] as? [Any])?.isEmpty == true && json["ok"] as? Bool == true)
        let record = try await run("records", "get", container, "b")
        #expect(record.status == 0 && record.output.contains("details of b: islands"))
    }

    @Test func `a record that can't be repaired stays named, and can be accepted or deleted`() async throws {
        try await damage(bits: 3)
        let repair = try await run("verify", container, "--repair")
        #expect(repair.status == 1 && repair.output.contains("record: the values of Destination b"))
        #expect(try await run("verify", container, "--accept", "a").status == 66)
        let accepted = try await run("verify", container, "--accept", "Destination/b")
        #expect(accepted.status == 0 && accepted.output.contains("accepted: Destination b, as it is"))
        try await flip(bits: 3)
        let json = try await run("verify", container, "--accept", "Destination/b", "--json").json()
        let again = try #require((json["repaired"] as? [[String: Any]])?.first)
        #expect(again["scope"] as? String == "private" && again["source"] as? String == "accepted")
        try await flip(bits: 3)
        try await flip(bits: 2)
        #expect(try await run("verify", container).status == 1)
        let deleted = try await run("records", "delete", container, "b")
        #expect(deleted.status == 0, "\(deleted.errors)")
        #expect(try await run("verify", container).status == 0)
    }

    @Test func `verify repairs from the cloud, and sync sends the rest and names damaged records`() async throws {
        try await damage(bits: 0)
        #expect(
            try await run(
                "account", "sign-in", container, "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--create"
            ).status == 0)
        #expect(try await run("sync", container).status == 0)
        try await flip(bits: 3)
        let repaired = try await run("verify", container, "--repair")
        #expect(repaired.status == 0, "\(repaired.output)\(repaired.errors)")
        #expect(repaired.output.contains("repaired: Destination b, from the cloud"))
        // A pending edit is in a field that is then damaged, so only the field's own digest can repair it.
        #expect(try await run("records", "set", container, "b", "details=edited details of b").status == 0)
        #expect(try await run("records", "set", container, "a", "caption=edited").status == 0)
        try await flip(bits: 3, after: "edited det")
        let sync = try await run("sync", container)
        #expect(sync.status == 75 && sync.output.contains("sent 1"), "\(sync.output)\(sync.errors)")
        let status = try await run("status", container)
        #expect(status.output.contains("damaged") && status.output.contains("Destination b"), "\(status.output)")
    }
}
