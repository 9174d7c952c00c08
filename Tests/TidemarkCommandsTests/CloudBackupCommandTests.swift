import Foundation
import TestSupport
import Testing

/// Goal: one line each backs a cloud up, examines it and restores it, and devices lose nothing. Method: the tool as separate
/// processes, over a cloud in a directory that a program has open.
@Suite(.timeLimit(.minutes(30))) struct CloudBackupCommandTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    @discardableResult
    private func run(_ arguments: String..., expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(arguments)
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func path(_ name: String) -> String { scratch["\(name).tidemark"].path }

    private func set(_ name: String, _ record: String, _ caption: String) async throws {
        try scratch.writeLines([#"{"id":"\#(record)","caption":"\#(caption)"}"#], to: "one.jsonl")
        try await run("import", scratch["one.jsonl"].path, "--into", path(name), "--type", "Destination", "--id", "id")
    }

    private func captions(_ name: String) async throws -> [String] {
        let result = try await run("records", "list", path(name), "--type", "Destination", "--json", "--limit", "10000")
        let records = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
        // A store that has only fetched has the id as part of the record's name, behind the type.
        return records.map { record in
            let name = "\(record["id"] ?? record["_name"] ?? "")".split(separator: ":").last ?? ""
            return "\(name) \(record["caption"] ?? "")"
        }.sorted()
    }

    @Test func `a cloud is backed up and restored, and gets from its devices what it lacks`() async throws {
        let (cloud, backup) = (scratch["cloud"].path, scratch["backup"].path)
        for name in ["a", "b"] {
            try await run("account", "sign-in", path(name), "--cloud", cloud, "--email", "anna@example.org", "--create")
        }
        try await set("a", "one", "first")
        try await run("sync", path("a"))
        try await run("sync", path("b"))
        #expect(
            try await run("admin", "verify", "--data", cloud).output.hasSuffix("of 1 container, 1 environment: no problem.\n"))
        let made = try await run("admin", "backup", backup, "--data", cloud, "--json").json()
        #expect(made["records"] as? Int == 1)
        try await run("admin", "backup", backup, "--data", cloud, expecting: 73)
        try await set("a", "one", "second")
        try await set("a", "two", "new")
        try await run("sync", path("a"))

        let refused = try await run("admin", "restore", backup, "--data", cloud, expecting: 73)
        #expect(refused.errors.contains("--replace"))
        let restored = try await run("admin", "restore", backup, "--data", cloud, "--replace")
        #expect(restored.output.contains("The previous cloud is in \(cloud).replaced-"))
        for name in ["b", "a", "b", "a"] { try await run("sync", path(name)) }
        #expect(try await captions("a") == ["one second", "two new"])
        #expect(try await captions("b") == ["one second", "two new"])
        try await run("admin", "restore", scratch["none"].path, "--data", scratch["other"].path, expecting: 66)
        try await run("admin", "verify", "--data", scratch["other"].path, expecting: 66)
    }

    @Test func `after a restoration by hand and a resync, a device that has only sent records sends them again`() async throws {
        let (cloud, copy) = (scratch["cloud"], scratch["copy"])
        for name in ["a", "b"] {
            try await run("account", "sign-in", path(name), "--cloud", cloud.path, "--email", "anna@example.org", "--create")
        }
        try await set("a", "one", "first")
        for name in ["a", "b"] { try await run("sync", path(name)) }
        try FileManager.default.copyItem(at: cloud, to: copy)
        try await set("a", "two", "new")
        try await run("sync", path("a"))
        try FileManager.default.removeItem(at: cloud)
        try FileManager.default.moveItem(at: copy, to: cloud)
        let said = try await run("admin", "resync", "--data", cloud.path, "--json").json()
        #expect(said["done"] as? String == "admin resync" && said["containers"] as? Int == 1)
        #expect(said["environments"] as? Int == 1)
        for name in ["a", "b"] { try await run("sync", path(name)) }
        #expect(try await captions("b") == ["one first", "two new"])
        try await run("admin", "resync", "--data", scratch["none"].path, expecting: 66)
    }

    @Test func `damaged records are reported, and devices send them again`() async throws {
        let cloud = scratch["cloud"].path
        for name in ["a", "b"] {
            try await run("account", "sign-in", path(name), "--cloud", cloud, "--email", "anna@example.org", "--create")
        }
        try await set("a", "one", "first")
        try await set("a", "two", "second")
        try await run("sync", path("a"))
        let containers = try FileManager.default.subpathsOfDirectory(atPath: cloud).filter { $0.hasSuffix("records.sqlite") }
        let database = try #require(containers.first)
        try DamagedRows.flip(in: scratch["cloud/\(database)"], record: "one")
        let found = try await run("admin", "verify", "--data", cloud, "--json", expecting: 1).json()
        let problems = try #require(found["problems"] as? [[String: Any]])
        #expect(problems.count == 1 && problems[0]["kind"] as? String == "record")
        let asked = try await run("admin", "verify", "--data", cloud, "--repair", expecting: 1)
        #expect(asked.errors.contains("devices are notified of 1 damaged record"))
        try await run("sync", path("a"))
        try await run("admin", "verify", "--data", cloud)
        try await run("sync", path("b"))
        #expect(try await captions("b") == ["one first", "two second"])
    }
}
