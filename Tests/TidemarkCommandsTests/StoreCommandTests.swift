import Foundation
import TestSupport
import Testing

/// Goal: `tidemark store` tells people and programs the same. Method: real processes.
@Suite(.timeLimit(.minutes(30))) struct StoreCommandTests {
    private let tool: Tool
    private let scratch: Scratch

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    private func run(_ arguments: String...) async throws -> Tool.Result {
        try await tool.run(["store"] + arguments, environment: ["XDG_DATA_HOME": scratch["data"].path])
    }

    private func importJournal(into path: String) async throws {
        let source = try scratch.writeLines([#"{"id": "a"}"#, #"{"id": "b"}"#], to: "journal.jsonl")
        let result = try await tool.run(
            ["import", source.path, "--into", scratch[path].path, "--type", "Destination", "--id", "id", "--plain-ids"])
        #expect(result.status == 0, "\(result.errors)")
    }

    @Test func `locate shows the candidates in order, and those that it skipped`() async throws {
        for path in ["tree/local/store", "tree/store", "data/tidemark"] {
            try await importJournal(into: "\(path)/Journal.tidemark")
        }
        try scratch.write("{", to: "tree/x/store/Journal.tidemark/container.json")
        let result = try await run("locate", "Journal", "--in", scratch["tree"].path)
        #expect(result.status == 0)
        #expect(
            result.output == """
                \(scratch["tree/store/Journal.tidemark"].path)
                    cloudBacked: it lies in a folder 'store': a cloud stands behind it
                \(scratch["tree/local/store/Journal.tidemark"].path)
                    local: it lies in 'local/store': it is kept on this device only
                \(scratch["data/tidemark/Journal.tidemark"].path)
                    default: it lies at the default location

                """)
        let broken = scratch["tree/x/store/Journal.tidemark"].path
        #expect(result.errors == "skipped: \(broken)/container.json is not the description of a Tidemark container\n")
        let json = try await run("locate", "Journal", "--in", scratch["tree"].path, "--json")
        #expect(json.errors.isEmpty)
        let object = try json.json()
        #expect(Set(object.keys) == ["candidates", "skipped", "complete"])
        let candidates = try #require(object["candidates"] as? [[String: String]])
        #expect(candidates.map { $0["kind"] } == ["cloudBacked", "local", "default"])
        #expect(Set(candidates[0].keys) == ["path", "kind", "reason", "identity", "environment"])
        let skipped = try #require(object["skipped"] as? [[String: String]])
        #expect(skipped.map { $0["path"] } == [broken])
        #expect(skipped.map { $0["code"] } == ["notAStore"])
        #expect(object["complete"] as? Bool == true)
    }

    @Test func `locate exits with 66 if there is none, 64 for invalid names, 77 for folders that are not to be trusted`()
        async throws
    {
        let none = try await run("locate", "Journal")
        #expect(none.status == 66)
        #expect(none.errors == "tidemark: there is no container 'Journal' in \(scratch["data/tidemark"].path)\n")
        let json = try await run("locate", "Journal", "--json")
        #expect(json.status == 66)
        #expect(json.output == "{\"candidates\":[],\"complete\":true,\"skipped\":[]}\n")
        #expect(try await run("locate", "Journal", "--in", scratch["nowhere"].path).status == 66)
        #expect(try await run("locate", "../Journal").status == 64)
        #expect(try await run("locate", "Journal", "--group", "..").status == 64)
        #expect(try await run("locate", "Journal", "--in", "").status == 64)
        let group = "data/tidemark-groups/group.com.example"
        try await importJournal(into: "\(group)/Journal.tidemark")
        for path in ["data/tidemark-groups", group] { chmod(scratch[path].path, 0o700) }
        let found = try await run("locate", "Journal", "--group", "group.com.example")
        #expect(found.output.hasPrefix(scratch["\(group)/Journal.tidemark"].path + "\n    default: "))
        chmod(scratch[group].path, 0o777)
        let refused = try await run("locate", "Journal", "--group", "group.com.example")
        #expect(refused.status == 77)
        #expect(refused.errors.hasPrefix("tidemark: others may write to \(scratch[group].path). "))
    }

    @Test func `info shows the contents of a container`() async throws {
        try await importJournal(into: "Journal.tidemark")
        let path = scratch["Journal.tidemark"].path
        let object = try await run("info", path, "--json").json()
        #expect(Set(object.keys) == ["name", "identity", "environment", "format", "path", "stores"])
        #expect(object["name"] as? String == "Journal")
        #expect(object["path"] as? String == path)
        let store = try #require((object["stores"] as? [[String: Any]])?.first)
        #expect(store["scope"] as? String == "private")
        #expect(store["records"] as? Int == 2)
        #expect(store["openElsewhere"] as? Bool == false)
        #expect(store["pagesInLog"] as? Int == 0)
        #expect((store["lastTransaction"] as? [String: Any])?["inserted"] as? Int == 2)
        let text = try await run("info", path)
        #expect(text.status == 0)
        #expect(text.output.contains("\nprivate.sqlite  "))
        #expect(text.output.contains("\n    type Destination: 2 records\n"))
        #expect(try await run("info", scratch["nowhere"].path).status == 66)
        #expect(try await run("info", scratch.url.path).status == 73)
    }

    @Test func `help shows the subcommands`() async throws {
        let locate = try await tool.run(["help", "store", "locate"])
        #expect(locate.output.contains("USAGE: tidemark store locate <name>"))
        #expect(try await tool.run(["help", "store"]).output.contains("SUBCOMMANDS:"))
        let none = try await tool.run(["help", "store", "nonsense"])
        #expect(none.status == 64)
        #expect(none.errors.hasPrefix("tidemark: there is no command 'store nonsense'"))
    }
}
