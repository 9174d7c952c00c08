import Foundation
import TestSupport
import Testing

/// Goal: a person synchronises containers with the tool, and learns what is wrong. Method: the tool as separate processes, over
/// one cloud.
@Suite(.timeLimit(.minutes(30))) struct SyncCommandTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    private func path(_ name: String) -> String { scratch["\(name).tidemark"].path }

    @discardableResult
    private func run(_ arguments: String..., expecting status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(arguments)
        #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func signIn(_ names: String..., email: String = "anna@example.org") async throws {
        for name in names {
            try await run("account", "sign-in", path(name), "--cloud", scratch["cloud"].path, "--email", email, "--create")
        }
    }

    private func set(_ name: String, _ record: String, _ field: String, type: String = "Destination") async throws {
        let halves = field.split(separator: "=", maxSplits: 1).map(String.init)
        try scratch.writeLines([#"{"id":"\#(record)","\#(halves[0])":"\#(halves[1])"}"#], to: "one.jsonl")
        try await run("import", scratch["one.jsonl"].path, "--into", path(name), "--type", type, "--id", "id", "--plain-ids")
    }

    private func captions(_ name: String) async throws -> [String] {
        let result = try await run("records", "list", path(name), "--type", "Destination", "--json", "--limit", "10000")
        let records = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
        return records.map { "\($0["id"] ?? $0["_name"] ?? "") \($0["caption"] ?? "")" }.sorted()
    }

    @Test func `two containers are synchronised, and status, events and conflicts say so`() async throws {
        try await signIn("a", "b")
        try await set("a", "senja", "caption=Senja")
        let waiting = try await run("status", path("a"), "--record", "senja")
        #expect(waiting.output.contains("queued since"))
        let preview = try await run("sync", path("a"), "--dry-run", "--json").json()
        #expect(preview["toSendCount"] as? Int == 1)
        #expect(try await run("sync", path("a"), "--json").json()["exported"] as? Int == 1)
        #expect(try await run("sync", path("b"), "--json").json()["imported"] as? Int == 1)
        #expect(try await captions("b") == ["senja Senja"])
        let done = try await run("status", path("a"), "--record", "senja")
        #expect(done.output.contains("synchronised"))

        try await set("a", "senja", "caption=of A")
        try await set("b", "senja", "caption=of B")
        try await run("sync", path("a"))
        let decided = try await run("sync", path("b"), "--dry-run")
        #expect(decided.output.contains("would be resolved: 1 conflict"))
        #expect(decided.output.contains("local won (mergeByPropertyObjectTrump)"))
        #expect(try await captions("b") == ["senja of B"])
        try await run("sync", path("b"))
        try await run("sync", path("a"))
        #expect(try await captions("a") == ["senja of B"])
        let conflicts = try await run("conflicts", path("b"))
        #expect(conflicts.output.contains("senja caption: was \"Senja\", here \"of B\", there \"of A\"; local won"))
        let events = try await run("events", path("b"), "--json").output.split(separator: "\n")
        #expect(events.contains { $0.contains(#""type":"import""#) && $0.contains(#""succeeded":true"#) })
        #expect(try await run("verify", path("a")).output.contains("no problem"))
    }

    @Test func `status says whether all is in sync, and sync fetches everything again on request`() async throws {
        try await signIn("a", "b")
        try await set("a", "senja", "caption=Senja")
        let waiting = try await run("status", path("a"), "--check", expecting: 75)
        #expect(waiting.output.contains("1 change waits to be sent"))
        try await run("sync", path("a"))
        #expect(try await run("status", path("a"), "--check").output.hasPrefix("in sync"))
        try await run("sync", path("b"))
        #expect(try await run("status", path("b"), "--check", "--json").json()["isInSync"] as? Bool == true)
        try await set("b", "senja", "caption=of B")
        #expect(try await run("sync", path("b"), "--refetch", "--json").json()["exported"] as? Int == 1)
        #expect(try await captions("b") == ["senja of B"])
        try await run("sync", path("b"), "--refetch", "--dry-run", expecting: 64)
    }

    @Test func `TIDEMARK_LOG makes the tool trace statements to standard error`() async throws {
        try await set("a", "senja", "caption=Senja")
        let arguments = ["records", "list", path("a"), "--type", "Destination", "--json"]
        let traced = try await tool.run(arguments, environment: ["TIDEMARK_LOG": "error,sql"])
        #expect(traced.errors.contains("ms private.sqlite: SELECT"))
        let plain = try await tool.run(arguments, environment: ["TIDEMARK_LOG": "error"])
        #expect(plain.errors == "")
        #expect(plain.output == traced.output)
    }

    @Test func `without an account, or with sync switched off, nothing is sent and the exit code says so`() async throws {
        try await set("a", "senja", "caption=Senja")
        let none = try await run("sync", path("a"), expecting: 69)
        #expect(none.errors.contains("134400"))
        #expect(none.errors.contains("tidemark account sign-in"))
        try await signIn("a")
        try await run("account", "set", path("a"), "--drive", "off", "--app", "off")
        let off = try await run("sync", path("a"), expecting: 69)
        #expect(off.errors.contains("134405"))
        let status = try await run("account", "status", path("a"), expecting: 69)
        #expect(status.output.contains("noAccount"))
        #expect(status.output.contains("134405"))
        #expect(status.output.contains("134400"))
        // The status of a single record gives the reason, too.
        let why = try await run("status", path("a"), "--record", "senja").output
        #expect(
            why.contains("queued since") && why.contains("nothing is sent: 134405") && why.contains("switched off"),
            "\(why)")
        try await run("account", "set", path("a"), "--app", "on")
        #expect(try await run("status", path("a"), "--record", "senja").output.contains("the last try to send failed at"))
        #expect(try await run("sync", path("a"), "--json").json()["exported"] as? Int == 1)
        #expect(try await run("status", path("a"), "--json").json()["lastFailure"] == nil)
    }

    @Test func `a refused record is reported with its reason, and the exit code is 75`() async throws {
        try await signIn("a")
        try scratch.writeLines([#"{"id":"large","caption":"\#(String(repeating: "x", count: 2_000_000))"}"#], to: "large.jsonl")
        try await run(
            "import", scratch["large.jsonl"].path, "--into", path("a"), "--type", "Destination", "--id", "id", "--plain-ids")
        try await set("a", "senja", "caption=Senja")
        let refused = try await run("sync", path("a"), expecting: 75)
        #expect(refused.errors.contains("1 change could not be sent"))
        let status = try await run("status", path("a"))
        #expect(status.output.contains("save Destination large: refused since"))
        #expect(status.output.contains("limitExceeded"))
        #expect(status.output.contains("tried again when it is changed"))
    }

    @Test func `an account that signs out leaves no records, and gets back its unsent ones`() async throws {
        try await signIn("a")
        try await set("a", "senja", "caption=Senja")
        try await run("sync", path("a"))
        try await set("a", "senja", "caption=edited")
        try await run("account", "sign-out", path("a"))
        #expect(try await captions("a") == [])
        let list = try await run("quarantine", "list", path("a"), "--json").json()
        #expect(list["pending"] as? Int == 1)
        let id = try #require(list["identifier"] as? String)

        try await signIn("a", email: "ben@example.org")
        try await run("sync", path("a"))
        let foreign = try await run("quarantine", "restore", path("a"), id, expecting: 77)
        #expect(foreign.errors.contains("another account"))
        try await run("account", "sign-out", path("a"))

        try await signIn("a")
        try await run("sync", path("a"))
        #expect(try await captions("a") == ["senja Senja"])
        try await run("quarantine", "restore", path("a"), String(id.prefix(8)))
        #expect(try await captions("a") == ["senja edited"])
        try await run("sync", path("a"))
        #expect(try await run("quarantine", "list", path("a")).output.isEmpty)
    }

    @Test func `an import sends records to the cloud as it reads them`() async throws {
        try await signIn("a", "b")
        try scratch.writeLines((0..<2000).map { #"{"id":"r\#($0)","caption":"\#($0)"}"# }, to: "records.jsonl")
        let report = try await run(
            "import", scratch["records.jsonl"].path, "--into", path("a"), "--type", "Destination", "--id", "id", "--plain-ids",
            "--sync",
            "--batch", "300", "--json"
        ).json()
        #expect((report["sync"] as? [String: Any])?["exported"] as? Int == 2000)
        #expect(try await run("sync", path("b"), "--json").json()["imported"] as? Int == 2000)
        #expect(try await captions("a") == captions("b"))
    }

    @Test func `an import sends records that it has read while it waits for more`() async throws {
        try await signIn("a", "b")
        let pipe = scratch["pipe"]
        try #require(mkfifo(pipe.path, 0o600) == 0)
        // Opened for reading, too, so that neither end waits for the other one to be opened.
        let descriptor = open(pipe.path, O_RDWR | O_CLOEXEC)
        let input = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        func write(_ numbers: Range<Int>) throws {
            for number in numbers {
                try input.write(contentsOf: Data("{\"id\":\"r\(number)\",\"caption\":\"\(number)\"}\n".utf8))
            }
        }
        async let report = tool.run(
            [
                "import", "-", "--into", path("a"), "--type", "Destination", "--id", "id", "--plain-ids", "--sync", "--batch",
                "100", "--json",
            ],
            input: pipe)
        try write(0..<1000)
        var (fetched, tries) = (0, 0)
        while fetched == 0, tries < 600 {
            fetched = try await run("sync", path("b"), "--json").json()["imported"] as? Int ?? 0
            tries += 1
        }
        #expect(fetched > 0)
        try write(1000..<1500)
        try input.close()
        let sync = try await report.json()["sync"] as? [String: Any]
        #expect(sync?["exported"] as? Int == 1500)
        try await run("sync", path("b"))
        #expect(try await captions("a") == captions("b"))
    }

    @Test func `open conflicts are reported beforehand, and resolved by a sync with a merge policy`() async throws {
        try await signIn("a", "b")
        try await set("a", "senja", "caption=Senja")
        for name in ["a", "b"] { try await run("sync", path(name)) }
        try await set("a", "senja", "caption=of A")
        try await set("b", "senja", "caption=of B")
        try await run("sync", path("a"))
        try await run("account", "set", path("b"), "--merge-policy", "error")
        let preview = try await run("sync", path("b"), "--dry-run")
        #expect(preview.output.contains("would be left: 1 conflict\n  Destination senja: both sides changed it"))
        let left = try await run("sync", path("b"), "--json", expecting: 75).json()
        #expect(left["deferred"] as? Int == 1)
        #expect(left["isComplete"] as? Bool == false)
        #expect(left["isFullyImported"] as? Bool == false)

        let decided = try await run("sync", path("b"), "--merge-policy", "mergeByPropertyObjectTrump", "--dry-run", "--json")
            .json()
        #expect((decided["left"] as? [Any])?.count == 0)
        #expect((decided["conflicts"] as? [[String: Any]])?.map { $0["winner"] as? String } == ["local"])
        #expect(decided["toSendCount"] as? Int == 1)
        #expect(try await run("conflicts", path("b"), "--limit", "0").output.contains("left: Destination senja"))
        let resolved = try await run("sync", path("b"), "--merge-policy", "mergeByPropertyObjectTrump", "--json").json()
        #expect(resolved["deferred"] as? Int == 0)
        #expect(resolved["conflicts"] as? Int == 1)
        #expect(resolved["exported"] as? Int == 1)
        #expect(resolved["isFullyImported"] as? Bool == true)
        try await run("sync", path("a"))
        #expect(try await captions("a") == ["senja of B"])
    }

    @Test func `a continuous sync prints what it sends, fetches and has refused, each once`() async throws {
        try await signIn("a")
        let watching = try tool.start(["sync", path("a"), "--watch", "--json"])
        #expect(await watching.line()?.contains(#""type":"setup""#) == true)
        try scratch.writeLines([#"{"id":"large","caption":"\#(String(repeating: "x", count: 2_000_000))"}"#], to: "large.jsonl")
        try await run(
            "import", scratch["large.jsonl"].path, "--into", path("a"), "--type", "Destination", "--id", "id", "--plain-ids")
        let refused = await watching.line()
        #expect(refused?.hasPrefix(#"{"refused":{"#) == true, "\(refused ?? "")")
        #expect(refused?.contains(#""code":"limitExceeded""#) == true)
        #expect(refused?.contains(#""record":"large""#) == true)
        for name in ["senja", "geysir"] {
            try await set("a", name, "caption=\(name)")
            let sent = await watching.line()
            #expect(sent?.contains(#""type":"export""#) == true, "\(sent ?? "")")
            #expect(sent?.contains(#""records":1,"#) == true)
        }
        // The same record is changed, so it is reported again that it is refused.
        try scratch.writeLines([#"{"id":"large","caption":"\#(String(repeating: "y", count: 2_000_000))"}"#], to: "large.jsonl")
        try await run(
            "import", scratch["large.jsonl"].path, "--into", path("a"), "--type", "Destination", "--id", "id", "--plain-ids")
        #expect(await watching.line()?.hasPrefix(#"{"refused":{"#) == true)
        #expect(await watching.kill() == [])
    }

    @Test func `a cloud that can't be written to is named, with the remedy`() async throws {
        try await signIn("a")
        let cloud = scratch["cloud"]
        let isRoot = geteuid() == 0
        if isRoot {
            // Not every root process may mount.
            guard try ChildProcess.run("/bin/mount", ["--bind", cloud.path, cloud.path]) == 0 else { return }
            guard try ChildProcess.run("/bin/mount", ["-o", "remount,bind,ro", cloud.path]) == 0 else {
                _ = try ChildProcess.run("/bin/umount", ["-l", cloud.path])
                return
            }
        } else {
            chmod(cloud.path, 0o500)
        }
        defer {
            if isRoot { _ = try? ChildProcess.run("/bin/umount", ["-l", cloud.path]) } else { chmod(cloud.path, 0o700) }
        }
        let refused = try await run("sync", path("a"), expecting: isRoot ? 74 : 77)
        #expect(refused.errors.contains("the cloud \(cloud.path) can't be written to"))
        #expect(refused.errors.contains(isRoot ? "mounted for writing" : "have its owner let you write to it"))
    }

    @Test(arguments: [["events"], ["status"], ["conflicts", "list"], ["history"], ["records", "list"]])
    func `a limit below 0 is refused`(_ command: [String]) async throws {
        let type = command[0] == "records" ? ["--type", "Destination"] : []
        let result = try await tool.run(command + [path("a")] + type + ["--limit", "-1"])
        #expect(result.status == 64)
        #expect(result.errors.contains("--limit takes a number from 0 on"), "\(result.errors)")
    }

    @Test func `an account without a limit has no quota`() async throws {
        try await signIn("a")
        let status = try await run("account", "status", path("a"), "--json").json()
        #expect(status["quota"] == nil)
        #expect(status["used"] as? Int == 0)
        #expect(try await run("account", "status", path("a")).output.contains("no limit"))
    }

    @Test func `a second process that synchronises a container gets error 134410, and changes come over at once`() async throws {
        try await signIn("a", "b")
        let watching = ["a", "b"].map { name in Result { try tool.start(["sync", path(name), "--watch", "--json"]) } }
        let (a, b) = (try watching[0].get(), try watching[1].get())
        // Both processes have set up.
        #expect(await a.line()?.contains(#""type":"setup""#) == true)
        #expect(await b.line()?.contains(#""type":"setup""#) == true)
        let second = try await run("sync", path("a"), expecting: 75)
        #expect(second.errors.contains("134410"))
        try await set("a", "senja", "caption=Senja")
        var line = await b.line()
        while let it = line, !it.contains(#""records":1"#) { line = await b.line() }
        #expect(line?.contains(#""type":"import""#) == true)
        #expect(try await captions("b") == ["senja Senja"])
        await a.kill()
        await b.kill()
    }
}
