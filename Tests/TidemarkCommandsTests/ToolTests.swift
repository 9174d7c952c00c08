import Foundation
import TestSupport
import Testing

/// Goal: the tool does what its help says, for people and for programs. Method: real processes.
@Suite struct ToolTests {
    private let tool: Tool

    init() throws { tool = try Tool() }

    private func journal(_ scratch: Scratch) throws -> URL {
        try scratch.write(Picture.png(1), to: "1.png")
        return try scratch.writeLines(
            [#"{"id": "a", "caption": "one", "image": "1.png"}"#, #"{"id": "b", "caption": "two"}"#], to: "journal.jsonl")
    }

    private func importing(_ scratch: Scratch, _ source: URL, _ more: [String] = []) -> [String] {
        ["import", source.path, "--into", scratch.container.path, "--type", "Destination", "--id", "id", "--asset", "image"]
            + more
    }

    @Test func `import prints one JSON object with the counts`() async throws {
        let scratch = try Scratch()
        let result = try await tool.run(importing(scratch, try journal(scratch), ["--json"]))
        #expect(result.status == 0, "\(result.errors)")
        let object = try result.json()
        #expect(Set(object.keys) == ["read", "inserted", "updated", "unchanged", "rejected", "dryRun", "seconds", "assets"])
        #expect(object["inserted"] as? Int == 2)
        #expect(object["dryRun"] as? Bool == false)
        let assets = object["assets"] as? [String: Int] ?? [:]
        #expect(Set(assets.keys) == ["referenced", "stored", "deduplicated", "bytes"])
        #expect(result.errors.isEmpty)
    }

    @Test func `refused rows make it exit with 65, and the rest is there`() async throws {
        let scratch = try Scratch()
        let file = try scratch.writeLines([#"{"id": "a", "n": 1}"#, "nonsense"], to: "journal.jsonl")
        let result = try await tool.run(importing(scratch, file, ["--rejects", scratch["rejects.jsonl"].path]))
        #expect(result.status == 65)
        #expect(result.errors.contains("line 2: the row is not a JSON object"))
        #expect(try scratch.records("Destination").count == 1)
        #expect(try scratch.rejects().count == 1)
    }

    static let endings: [([String], Int32)] = [
        (["import", "/nowhere/journal.jsonl", "--into", "CONTAINER", "--type", "T"], 66),
        (["import", "SOURCE", "--into", "/proc/nowhere.tidemark", "--type", "T"], 73),
        (["import", "SOURCE", "--into", "CONTAINER", "--type", "no type"], 64),
        (["import", "SOURCE", "--into", "CONTAINER", "--batch", "0"], 64),
        (["import", "SOURCE"], 64), (["import", "SOURCE", "--into", "CONTAINER", "--map", "x"], 64), (["nonsense"], 64),
        (["import", "SOURCE", "--into", "CONTAINER", "--format", "photos"], 66),
        (["import", "SOURCE", "--into", "CONTAINER", "--schema", "/nowhere"], 66),
        (["import", "SOURCE", "--into", "CONTAINER", "--schema", "SOURCE"], 65),
        (["import", "SOURCE", "--into", "CONTAINER", "--rejects", "/nowhere/rejects"], 73),
        (["verify", "CONTAINER"], 66), (["records", "CONTAINER", "--type", "T"], 66), (["--help"], 0), (["import", "--help"], 0),
    ]

    @Test(arguments: endings)
    func `exit codes are those of sysexits`(arguments: [String], status: Int32) async throws {
        let scratch = try Scratch()
        let source = try journal(scratch)
        let result = try await tool.run(
            arguments.map { $0 == "SOURCE" ? source.path : $0 == "CONTAINER" ? scratch.container.path : $0 })
        #expect(result.status == status, "\(result.errors)")
        #expect(result.errors.isEmpty == (status == 0))
    }

    @Test func `records, export, history and verify read what import wrote`() async throws {
        let scratch = try Scratch()
        let source = try journal(scratch)
        _ = try await tool.run(importing(scratch, source))
        let container = scratch.container.path
        let records = try await tool.run(["records", container, "--type", "Destination", "--where", "caption = 'two'", "--json"])
        #expect(records.output == "[\n{\"id\":\"b\",\"caption\":\"two\"}\n]\n")
        let export = try await tool.run(["export", container, "--type", "Destination", "--to", "-", "--format", "csv"])
        #expect(export.output.hasPrefix("id,image,caption\r\na,asset:"))
        let history = try await tool.run(["history", container, "--json"]).json()
        #expect((history["transactions"] as? [[String: Any]])?.first?["inserted"] as? Int == 2)
        let verify = try await tool.run(["verify", container, "--json"])
        #expect(verify.output == "{\"assets\":1,\"ok\":true,\"problems\":[],\"records\":2}\n")
        #expect(verify.status == 0)
    }

    @Test func `verify exits with 1 when something is wrong`() async throws {
        let scratch = try Scratch()
        _ = try await tool.run(importing(scratch, try journal(scratch)))
        try scratch.write("x", to: "Test.tidemark/assets/stray")
        let verify = try await tool.run(["verify", scratch.container.path, "--json"])
        #expect(verify.status == 1)
        #expect(try verify.json()["ok"] as? Bool == false)
    }

    @Test(arguments: ["1) UNION SELECT 1, 2 --", "nonsense(", "1; DROP TABLE Destination", "zzz = 1"])
    func `a condition that is no expression is an error and harmless`(condition: String) async throws {
        let scratch = try Scratch()
        _ = try await tool.run(importing(scratch, try journal(scratch)))
        let result = try await tool.run(["records", scratch.container.path, "--type", "Destination", "--where", condition])
        #expect(result.status == 64, "\(result.errors)")
        #expect(try scratch.records("Destination").count == 2)
    }

    @Test func `standard input is read`() async throws {
        let scratch = try Scratch()
        let file = try scratch.writeLines([#"{"id": "a", "n": 1}"#], to: "journal.jsonl")
        let result = try await tool.run(
            ["import", "-", "--into", scratch.container.path, "--type", "Destination", "--id", "id", "--json"], input: file)
        #expect(try result.json()["inserted"] as? Int == 1)
    }

    @Test(.enabled(if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount")))
    func `a full disk keeps what was committed, and resume finishes elsewhere`() async throws {
        let scratch = try Scratch()
        try FileManager.default.createDirectory(at: scratch["disk"], withIntermediateDirectories: true)
        func system(_ command: [String]) throws -> Int32 {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: command[0])
            process.arguments = Array(command.dropFirst())
            try process.run()
            process.waitUntilExit()
            return process.terminationStatus
        }
        // Not every root may mount.
        guard try system(["/bin/mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", scratch["disk"].path]) == 0 else { return }
        defer { _ = try? system(["/bin/umount", "-l", scratch["disk"].path]) }
        let text = String(repeating: "x", count: 1000)
        let file = try scratch.writeLines((0..<12_000).map { #"{"id": "r\#($0)", "caption": "\#(text)"}"# }, to: "journal.jsonl")
        let container = scratch["disk/Test.tidemark"].path
        let arguments = [
            "import", file.path, "--into", container, "--type", "Destination", "--id", "id", "--batch", "500", "--json",
        ]
        let full = try await tool.run(arguments)
        #expect(full.status == 74, "\(full.errors)")
        #expect(full.errors.contains("full"))
        let verify = try await tool.run(["verify", container, "--json"])
        #expect(try verify.json()["ok"] as? Bool == true, "\(verify.output)\(verify.errors)")
        let kept = try verify.json()["records"] as? Int ?? 0
        #expect(kept > 0 && kept < 12_000)
        #expect(try system(["/bin/mount", "-o", "remount,size=64m", scratch["disk"].path]) == 0)
        let resumed = try await tool.run(arguments + ["--resume"])
        #expect(resumed.status == 0, "\(resumed.errors)")
        #expect(try resumed.json()["inserted"] as? Int == 12_000)
        #expect(try await tool.run(["verify", container]).status == 0)
    }
}
