import Foundation
import TestSupport
import Testing
import TidemarkContainers
import TidemarkSQLite
import TidemarkStore

/// Goal: a person lists, fetches and removes contents with the tool, and a removal that is killed leaves a whole container.
/// Method: the tool as separate processes, over one cloud.
@Suite(.timeLimit(.minutes(30))) struct AssetsCommandTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    private func path(_ name: String) -> String { scratch["\(name).tidemark"].path }

    @discardableResult
    private func run(
        _ arguments: String..., expecting status: Int32 = 0, environment: [String: String] = [:]
    ) async throws -> Tool.Result {
        let result = try await tool.run(arguments, environment: environment)
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    /// A container with some pictures that are in the cloud.
    private func make(_ name: String, pictures: Int) async throws {
        try scratch.writeLines(
            (0..<pictures).map { #"{"id": "r\#($0)", "image": "pictures/\#($0).png"}"# }, to: "manifest.jsonl")
        for number in 0..<pictures { try scratch.write(Picture.png(number), to: "pictures/\(number).png") }
        try await run(
            "import", scratch["manifest.jsonl"].path, "--into", path(name), "--type", "Destination", "--id", "id", "--plain-ids",
            "--asset", "image")
        try await signIn(name)
        try await run("sync", path(name))
    }

    private func signIn(_ name: String) async throws {
        try await run(
            "account", "sign-in", path(name), "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--create")
    }

    private func verified(_ name: String) throws -> VerificationReport {
        let report = try StoreVerification(of: ContainerDirectory(openingAt: scratch["\(name).tidemark"])).run()
        #expect(report.problems == [])
        return report
    }

    @Test func `contents that are left in the cloud are listed, fetched and removed again`() async throws {
        try await make("a", pictures: 3)
        try await signIn("b")
        try await run("sync", path("b"), "--assets", "on-demand")
        let status = try await run("status", path("b"))
        #expect(status.output.contains("contents: 0 here (0 bytes), 3 in the cloud alone"))
        let listed = try await run("assets", "list", path("b"), "--not-downloaded", "--json").output.split(separator: "\n")
        #expect(listed.count == 3 && listed.allSatisfy { $0.contains(#""downloaded":false"#) })
        #expect(try await run("assets", "list", path("b"), "r1").output.contains("in the cloud"))
        let verified = try await run("verify", path("b"))
        #expect(verified.output.contains("3 contents") && verified.output.contains("not downloaded"))

        // Contents that are not here are not exported, and the remedy is named.
        let export = try await run(
            "export", path("b"), "--type", "Destination", "--to", scratch["out/out.jsonl"].path, "--assets", scratch["out"].path,
            expecting: 65)
        #expect(export.errors.contains("tidemark assets download"))

        #expect(
            try await run("assets", "download", path("b"), "r1", "--dry-run").output.contains("would be downloaded: 1 content"))
        #expect(try await run("assets", "download", path("b"), "r1", "--json").json()["downloaded"] as? Int == 1)
        #expect(try self.verified("b").notDownloaded == 2)
        try await run("assets", "download", path("b"), "nobody", expecting: 66)
        try await run("assets", "download", path("b"))
        #expect(try self.verified("b").notDownloaded == 0)
        #expect(try await run("assets", "evict", path("b"), "--dry-run", "--json").json()["removed"] as? Int == 3)
        #expect(try self.verified("b").notDownloaded == 0)
        #expect(try await run("assets", "evict", path("b"), "r2", "--json").json()["removed"] as? Int == 1)
        #expect(try await run("assets", "evict", path("b"), "--to", "0", "--json").json()["removed"] as? Int == 2)
        #expect(try self.verified("b").notDownloaded == 3)

        try await run("sync", path("b"), "--assets", "sometimes", expecting: 64)
        try await run("account", "sign-out", path("b"), "--records", "keep")
        try await run("assets", "download", path("b"), expecting: 69)
    }

    @Test func `status names the record, the field and the reason of a content that can't be fetched`() async throws {
        try await make("a", pictures: 2)
        try await signIn("b")
        let containers = scratch["cloud/containers"]
        let names = try FileManager.default.subpathsOfDirectory(atPath: containers.path)
        let assets = try #require(names.first { $0.hasSuffix("/development/assets") })
        let (place, aside) = (containers.appendingPathComponent(assets), scratch["aside"])
        try FileManager.default.moveItem(at: place, to: aside)
        try await run("sync", path("b"))
        let common = "the content of the field image could not be fetched: assetNotAvailable"
        let all = try await run("status", path("b"), "--all").output
        for name in ["r0", "r1"] {
            let line = try Regex("  deferred: Destination \(name): \(common): the asset [0-9a-f]{64} is not there; ")
            #expect(all.contains(line), "\(all)")
        }
        #expect(try await run("status", path("b")).output.contains("  deferred: 2 records of Destination: \(common) ('--all'"))
        let one = try await run("status", path("b"), "--record", "r1").output
        #expect(one.contains("Destination r1 is deferred, as the cloud has it: \(common): the asset "), "\(one)")
        let report = try await run("status", path("b"), "--json").json()
        let reasons = (report["deferred"] as? [[String: Any]])?.compactMap { $0["reason"] as? String } ?? []
        #expect(reasons.count == 2 && reasons.allSatisfy { $0.hasPrefix(common) }, "\(reasons)")
        try FileManager.default.moveItem(at: aside, to: place)
        try await run("sync", path("b"))
        #expect(try await !run("status", path("b")).output.contains("deferred"))
        #expect(try verified("b").notDownloaded == 0)
    }

    @Test func `a limit is kept by each synchronisation`() async throws {
        try await make("a", pictures: 3)
        let size = Int64(Picture.png(0).count)
        try await run("sync", path("a"), "--asset-limit", "\(size + 10)")
        #expect(try verified("a").notDownloaded == 2)
    }

    @Test(arguments: AssetCleaning.Step.allCases)
    func `a removal that is killed leaves a whole container, and the next one finishes it`(
        at step: AssetCleaning.Step
    ) async throws {
        try await make("a", pictures: 3)
        let killed = try await tool.run(["assets", "evict", path("a")], environment: ["TIDEMARK_KILL_AT": step.rawValue])
        #expect(killed.signal == SIGKILL)
        _ = try verified("a")
        try await run("assets", "evict", path("a"))
        #expect(try verified("a").notDownloaded == 3)
        try await run("assets", "download", path("a"))
        #expect(try verified("a").notDownloaded == 0)

        // Contents that no record names any more.
        for number in 0..<3 { try await run("records", "delete", path("a"), "r\(number)") }
        try await run("sync", path("a"))
        try await run("records", "set", path("a"), "n", "--type", "Note", "text=last")
        let container = try ContainerDirectory(openingAt: scratch["a.tidemark"])
        _ = try await RecordStore(container: container).purgeHistory(olderThan: .zero, keepingAtLeast: .zero)
        let again = try await tool.run(["assets", "clean", path("a")], environment: ["TIDEMARK_KILL_AT": step.rawValue])
        #expect(again.signal == SIGKILL)
        try BlobStore.recover(container)
        _ = try verified("a")
        try await run("assets", "clean", path("a"))
        #expect(try verified("a").assets == 0)
        #expect(try AssetFiles(in: container.assets).ids == [])
    }
}
