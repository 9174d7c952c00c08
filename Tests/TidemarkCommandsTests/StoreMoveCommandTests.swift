import Foundation
import TestSupport
import Testing

/// Goal: `tidemark store` does what its help says, for people and for programs. Method: real processes.
@Suite(.timeLimit(.minutes(30))) struct StoreMoveCommandTests {
    private let tool: Tool
    private let scratch: Scratch
    private let container: String
    private let target: String

    init() async throws {
        tool = try Tool()
        scratch = try Scratch()
        let root = String(cString: realpath(scratch.url.path, nil))
        (container, target) = ("\(root)/Test.tidemark", "\(root)/New.tidemark")
        try scratch.write(Picture.png(1), to: "1.png")
        try await scratch.importing(
            lines: [#"{"id": "a", "image": "1.png"}"#, #"{"id": "b"}"#], .destination { $0.assetFields = ["image"] })
    }

    @Test func `a dry run of a move shows the plan, and an obstacle is an error`() async throws {
        let plan = try await tool.run(["store", "move", container, target, "--dry-run"])
        #expect(plan.status == 0, "\(plan.errors)")
        #expect(plan.output.hasPrefix("Would move \(container) to \(target):\n  private.sqlite  "))
        #expect(plan.output.contains("\n  1 asset  "))
        #expect(plan.output.contains("\nTo be copied: "))
        let object = try await tool.run(["store", "move", container, target, "--dry-run", "--json"]).json()
        #expect(
            Set(object.keys) == [
                "from", "to", "state", "stores", "assets", "assetBytes", "bytes", "free", "reasonsAgainst", "staying",
            ])
        #expect(object["state"] as? String == "new")
        try scratch.write("mine", to: "New.tidemark/letter.txt")
        let refused = try await tool.run(["store", "move", container, target, "--dry-run"])
        #expect(refused.status == 73)
        #expect(refused.errors.hasPrefix("tidemark: against it: \(target) holds other files, letter.txt among them"))
        let moved = try await tool.run(["store", "move", container, target])
        #expect(moved.status == 73)
        #expect(moved.errors.hasPrefix("tidemark: \(target) holds other files, letter.txt among them"))
    }

    @Test func `a move says what it did, and the old place says where the container is`() async throws {
        let moved = try await tool.run(["store", "move", container, target])
        #expect(moved.status == 0, "\(moved.errors)")
        #expect(moved.output.hasPrefix("Moved 1 store and 1 asset, "))
        #expect(moved.output.hasSuffix(", to \(target).\n"))
        let old = try await tool.run(["records", container, "--type", "Destination"])
        #expect(old.status == 66)
        #expect(old.errors == "tidemark: the container that was at \(container) has moved to \(target); open it there\n")
        #expect(
            try await tool.run(["store", "move", container, target]).output == "\(container) has already moved to \(target).\n")
        let plan = try await tool.run(["store", "move", container, target, "--dry-run"])
        #expect(plan.output == "\(container) has moved to \(target) already.\n")
        #expect(try await tool.run(["store", "verify", target]).output == "Verified 2 records and 1 asset: no problem.\n")
        let elsewhere = try await tool.run(["store", "move", container, "\(target)2"])
        #expect(elsewhere.status == 73)
        #expect(
            elsewhere.errors == "tidemark: the container has moved from \(container) to \(target), not to \(target)2\n")
    }

    @Test func `old files are kept, restored and deleted on request, without naming the target again`() async throws {
        let kept = try await tool.run(["store", "move", container, target, "--keep-source"])
        #expect(kept.output.hasSuffix(". The old files are kept; --finish deletes them, --rollback goes back to them.\n"))
        let back = try await tool.run(["store", "move", container, "--rollback", "--json"])
        #expect(try back.json()["rolledBack"] as? Bool == true, "\(back.errors)")
        #expect(try await tool.run(["verify", container]).status == 0)
        #expect(try await tool.run(["verify", target]).status == 66)
        #expect(try await tool.run(["store", "move", container, target, "--keep-source"]).status == 0)
        let finished = try await tool.run(["store", "move", container, "--finish", "--json"])
        #expect(try finished.json()["sourceIsDeleted"] as? Bool == true)
        #expect(try await tool.run(["verify", target]).status == 0)
        let nothing = try await tool.run(["store", "move", target, "--rollback"])
        #expect(nothing.status == 73)
        #expect(nothing.errors == "tidemark: \(target) does not say where it was to move; name the target\n")
    }

    static let wrong: [[String]] = [
        ["store", "move", "CONTAINER"], ["store", "move", "CONTAINER", "TARGET", "--finish", "--rollback"],
        ["store", "move", "CONTAINER", "TARGET", "--dry-run", "--keep-source"], ["store", "move", "CONTAINER", ""],
        ["store", "backup", "CONTAINER"], ["store", "restore", "CONTAINER", ""], ["store", "nonsense"],
    ]

    @Test(arguments: wrong) func `wrong usage is reported as such`(arguments: [String]) async throws {
        let result = try await tool.run(arguments.map { ["CONTAINER": container, "TARGET": target][$0] ?? $0 })
        #expect(result.status == 64)
        #expect(result.errors.hasPrefix("tidemark: "))
    }

    @Test func `a backup is restored`() async throws {
        let backup = "\(target).backup"
        let made = try await tool.run(["store", "backup", container, backup])
        #expect(
            made.output.hasPrefix("Backed up 1 store and 1 asset, ") && made.output.hasSuffix(", to \(backup).\n"),
            "\(made.errors)")
        #expect(try await tool.run(["store", "backup", container, backup]).status == 73)
        let there = try await tool.run(["store", "restore", backup, container])
        #expect(there.status == 73)
        #expect(
            there.errors == "tidemark: there is, or was, a container at \(container); to have it replaced, say so (--replace)\n")
        let replaced = try await tool.run(["store", "restore", backup, container, "--replace"])
        #expect(
            replaced.output.hasPrefix("Restored 2 records and 1 asset, ")
                && replaced.output.hasSuffix(" The previous container was removed.\n"))
        let object = try await tool.run(["store", "restore", backup, target, "--json"]).json()
        #expect(object["records"] as? Int == 2 && object["hasReplaced"] as? Bool == false)
        for place in [container, target, backup] { #expect(try await tool.run(["verify", place]).status == 0) }
        // A moved container is restored at its old place only if it is lost at the new one.
        #expect(try await tool.run(["store", "move", container, "\(target)2"]).status == 0)
        #expect(try await tool.run(["store", "restore", backup, container, "--replace"]).status == 66)
        try FileManager.default.removeItem(atPath: "\(target)2")
        let again = try await tool.run(["store", "restore", backup, container, "--replace"])
        #expect(again.status == 0, "\(again.errors)")
        #expect(try await tool.run(["verify", container]).status == 0)
        let missing = try await tool.run(["store", "restore", "/nowhere/at.all", "\(target)3"])
        #expect(missing.status == 66)
    }
}
