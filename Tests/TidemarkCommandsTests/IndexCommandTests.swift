import Foundation
import TestSupport
import Testing

/// Goal: the tool lists, adds and drops indexes, and a schema file declares them.
/// Method: the commands run as processes on containers of a few records.
@Suite(.timeLimit(.minutes(30))) struct IndexCommandTests {
    private let tool: Tool
    private let scratch: Scratch
    private var container: String { scratch.container.path }

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    private func run(_ arguments: String...) async throws -> Tool.Result { try await tool.run(arguments) }

    private func importing(schema: String? = nil) async throws -> Tool.Result {
        let lines = ["a", "b", "c"].map { #"{"id": "\#($0)", "caption": "fjord of \#($0)", "rating": 4}"# }
        let source = try scratch.writeLines(lines, to: "journal.jsonl")
        var arguments = ["import", source.path, "--into", container, "--type", "Destination", "--id", "id", "--plain-ids"]
        if let schema { arguments += ["--schema", try scratch.write(schema, to: "schema.json").path] }
        return try await tool.run(arguments)
    }

    private func listed() async throws -> [String] {
        let result = try await run("index", "list", container, "--json")
        let lines = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
        return lines.map { line in
            let fields = (line["fields"] as? [String])?.joined(separator: "+") ?? ""
            return "\(line["type"] ?? "") \(line["kind"] ?? "") \(fields) \(line["declaredBy"] ?? "")"
        }
    }

    @Test func `an index is added, listed and dropped`() async throws {
        #expect(try await importing().status == 0)
        #expect(try await run("index", "list", container).output.contains("no index is declared"))
        let added = try await run("index", "add", container, "--type", "Destination", "rating", "caption")
        #expect(
            added.status == 0 && added.output.contains("added the index of Destination on rating, caption"), "\(added.errors)")
        let text = try await run("index", "add", container, "--type", "Destination", "--full-text", "--language", "de", "caption")
        #expect(text.status == 0, "\(text.errors)")
        #expect(try await listed() == ["Destination values rating+caption command", "Destination fullText caption command"])
        let table = try await run("index", "list", container)
        #expect(table.output.contains("rating, caption") && table.output.contains("de"))
        // Records that are saved later are in the index.
        #expect(try await run("records", "set", container, "d", "--type", "Destination", "caption=another fjord").status == 0)
        #expect(try await run("verify", container).status == 0)
        let found = try await run("records", "search", container, "--type", "Destination", "Fjord", "another")
        #expect(found.status == 0 && found.output.contains("[another] [fjord]"), "\(found.output)\(found.errors)")
        let json = try await run("records", "search", container, "--type", "Destination", "fjo*", "--limit", "2", "--json")
        #expect((try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]])?.count == 2)
        #expect(
            try await run("records", "search", container, "--type", "Destination", "mountain").output.contains(
                "no record matches"))
        let dropped = try await run("index", "drop", container, "--type", "Destination", "--full-text", "caption")
        #expect(dropped.status == 0 && dropped.output.contains("dropped the full-text index of Destination on caption"))
        #expect(try await listed() == ["Destination values rating+caption command"])
        let again = try await run("index", "drop", container, "--type", "Destination", "--full-text", "caption")
        #expect(again.status == 66 && again.errors.contains("has no index"), "\(again.status) \(again.errors)")
        let unindexed = try await run("records", "search", container, "--type", "Destination", "fjord")
        #expect(
            unindexed.status == 64 && unindexed.errors.contains("no full-text index"), "\(unindexed.status) \(unindexed.errors)")
        let unknown = try await run("index", "add", container, "--type", "Destination", "ratin")
        #expect(unknown.status == 64 && unknown.errors.contains("has no field 'ratin'"), "\(unknown.status) \(unknown.errors)")
    }

    @Test func `a schema file declares indexes, and drops those that it no longer has`() async throws {
        func schema(_ indexes: String) -> String {
            """
            {"types": [{"name": "Destination", "nameField": "id",
                        "fields": [{"name": "caption", "type": "string"}, {"name": "rating", "type": "int64"}]\(indexes)}]}
            """
        }
        let both = try await importing(
            schema: schema(#", "indexes": [{"fields": ["rating"]}, {"fields": ["caption"], "fullText": true, "language": "en"}]"#)
        )
        #expect(both.status == 0, "\(both.errors)")
        #expect(try await listed() == ["Destination values rating schema", "Destination fullText caption schema"])
        #expect(try await importing(schema: schema("")).status == 0)
        #expect(try await listed().count == 2)
        #expect(try await importing(schema: schema(#", "indexes": [{"fields": ["rating"]}]"#)).status == 0)
        #expect(try await listed() == ["Destination values rating schema"])
        let wrong = try await importing(schema: schema(#", "indexes": [{"fields": ["stars"]}]"#))
        #expect(wrong.status == 65 && wrong.errors.contains("types[0].indexes[0].fields"), "\(wrong.status) \(wrong.errors)")
        #expect(try await run("verify", container).status == 0)
    }

    @Test func `verify names an index that does not match its records, and builds it again`() async throws {
        #expect(try await importing().status == 0)
        #expect(try await run("index", "add", container, "--type", "Destination", "caption").status == 0)
        try await Damage.checkpoint(scratch.container)
        let file = scratch["Test.tidemark/private.sqlite"]
        var data = try Data(contentsOf: file)
        let place = try #require(data.range(of: Data("fjord of b".utf8), options: .backwards)?.lowerBound)
        data[place] ^= 1
        try data.write(to: file)
        let found = try await run("verify", container)
        #expect(found.status == 1 && found.output.contains("index: the index tide_index_Destination.caption"), "\(found.output)")
        let repaired = try await run("verify", container, "--repair")
        #expect(repaired.status == 0, "\(repaired.output)\(repaired.errors)")
        #expect(repaired.output.contains("rebuilt: the index tide_index_Destination.caption, from the records"))
        let json = try await run("verify", container, "--repair", "--json").json()
        #expect((json["rebuiltIndexes"] as? [Any])?.isEmpty == true && json["ok"] as? Bool == true)
    }
}
