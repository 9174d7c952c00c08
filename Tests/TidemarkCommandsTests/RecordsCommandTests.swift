import Foundation
import TestSupport
import Testing

/// Goal: `tidemark records set` and `tidemark history` do to one record what they say. Method: real processes.
@Suite(.timeLimit(.minutes(30))) struct RecordsCommandTests {
    private let tool: Tool
    private let scratch: Scratch
    private var container: String { scratch.container.path }

    init() async throws {
        tool = try Tool()
        scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        try await scratch.importing(
            lines: [#"{"id": "a", "caption": "0", "image": "1.png"}"#], .destination { $0.assetFields = ["image"] })
    }

    @Test func `a picture can be set from any path`() async throws {
        try scratch.write(Picture.png(2), to: "elsewhere/2.png")
        try FileManager.default.createSymbolicLink(at: scratch["link"], withDestinationURL: scratch["elsewhere"])
        let set = ["records", "set", container, "a"]
        #expect(try await tool.run(set + ["image=\(scratch["elsewhere/2.png"].path)"]).output == "Destination a: changed\n")
        #expect(try await tool.run(set + ["image=\(scratch["link/2.png"].path)"]).output == "Destination a: unchanged\n")
        #expect(try await tool.run(set + ["image=\(scratch["elsewhere/../1.png"].path)"]).output == "Destination a: changed\n")
        let missing = try await tool.run(set + ["image=\(scratch["none.png"].path)"])
        #expect(missing.status == 64)
        #expect(missing.errors.contains("image: cannot read \(scratch["none.png"].path): No such file or directory"))
        #expect(try await tool.run(set + ["image="]).output == "Destination a: changed\n")
    }

    @Test func `a record's history is shown up to the given limit`() async throws {
        for number in 1...4 { _ = try await tool.run(["records", "set", container, "a", "caption=\(number)"]) }
        let history = ["history", container, "--record", "a", "--json"]
        #expect(try (await tool.run(history).json()["changes"] as? [Any])?.count == 5)
        #expect(try (await tool.run(history + ["--limit", "2"]).json()["changes"] as? [Any])?.count == 2)
    }
}
