import Foundation
import TestSupport
import Testing

/// Goal: a synchronisation that can't store a download says so, and the next one stores it. Method: the tool as separate
/// processes, over one cloud; one process may write no file as long as the content.
@Suite(.timeLimit(.minutes(30))) struct FullDiskTests {
    @Test func `a download that can't be stored ends the synchronisation, and the error names the file`() async throws {
        let (scratch, tool) = (try Scratch(), try Tool())
        func run(_ arguments: String...) async throws -> Tool.Result {
            let result = try await tool.run(arguments)
            #expect(result.status == 0, "\(arguments): \(result.output)\(result.errors)")
            return result
        }
        let (a, b) = (scratch["a.tidemark"].path, scratch["b.tidemark"].path)
        for path in [a, b] {
            _ = try await run(
                "account", "sign-in", path, "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--create")
        }
        try Data((0..<8_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }).write(to: scratch["large.bin"])
        let file = try scratch.writeLines([#"{"id":"senja","caption":"Senja","image":"large.bin"}"#], to: "one.jsonl")
        _ = try await run(
            "import", file.path, "--into", a, "--type", "Destination", "--id", "id", "--plain-ids", "--asset", "image")
        _ = try await run("sync", a)

        try scratch.write("", to: "errors")
        // The limit is in blocks of 512 or 1,024 bytes. With the signal ignored, a longer write fails as on a full disk.
        let status = try ChildProcess.run(
            "/bin/sh", ["-c", "ulimit -f 4096; trap '' XFSZ; exec \"$@\"", "sh", tool.executable.path, "sync", b],
            errors: scratch["errors"])
        let errors = try String(contentsOf: scratch["errors"], encoding: .utf8)
        #expect(status == 74, "\(errors)")
        #expect(errors.contains("/b.tidemark/downloads/") && errors.contains("File too large"), "\(errors)")
        _ = try await run("sync", b)
        #expect(try await run("records", "list", b, "--type", "Destination", "--json").output.contains(#""image""#))
        #expect(try await run("verify", b).output.contains("1 asset"))
    }
}
