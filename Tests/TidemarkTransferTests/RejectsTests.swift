import Foundation
import TestSupport
import Testing
import TidemarkTransfer

/// Goal: a rejects file does not overwrite other files, and is on disk before its batch is committed. Method: paths that lead
/// elsewhere, and files that can't be written.
@Suite(.timeLimit(.minutes(30))) struct RejectsTests {
    private static let rows = [#"{"id": "a"}"#, "nonsense"]

    private func options(_ rejects: URL, resumes: Bool = false) -> ImportOptions {
        .destination {
            $0.rejects = rejects
            $0.resumes = resumes
        }
    }

    @Test(arguments: ["manifest.jsonl", "hard", "soft", "folder/../manifest.jsonl"], [true, false])
    func `rejects do not overwrite the source, by whatever path`(name: String, isDryRun: Bool) async throws {
        let scratch = try Scratch()
        let source = try scratch.writeLines(Self.rows, to: "manifest.jsonl")
        let files = FileManager.default
        try files.linkItem(at: source, to: scratch["hard"])
        try files.createSymbolicLink(atPath: scratch["soft"].path, withDestinationPath: "hard")
        try files.createDirectory(at: scratch["folder"], withIntermediateDirectories: true)
        var options = options(scratch[name])
        options.isDryRun = isDryRun
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(source, options) }
        #expect(error?.code == .options)
        #expect(error?.message.contains("that is the source") == true)
        #expect(try String(contentsOf: source, encoding: .utf8) == "{\"id\": \"a\"}\nnonsense\n")
        #expect(!files.fileExists(atPath: scratch.container.path))
    }

    @Test(
        arguments: ["Test.tidemark/private.sqlite", "Test.tidemark/new", "Test.tidemark/assets/new", "link/new"], [true, false])
    func `rejects do not go into the container`(path: String, isThere: Bool) async throws {
        let scratch = try Scratch()
        let source = try scratch.writeLines(Self.rows, to: "manifest.jsonl")
        if isThere { try await scratch.importing(source, .destination()) }
        try FileManager.default.createSymbolicLink(atPath: scratch["link"].path, withDestinationPath: "Test.tidemark")
        // A dangling link leads nowhere.
        guard isThere || !path.hasPrefix("link") else { return }
        let error = await #expect(throws: ImportError.self) { try await scratch.importing(source, options(scratch[path])) }
        #expect(error?.code == .options)
        #expect(error?.message.contains("in the container") == true)
        #expect(FileManager.default.fileExists(atPath: scratch.container.path) == isThere)
        if isThere { #expect(try scratch.verification().isOK) }
    }

    @Test func `a folder beside the container whose name begins with the container's is not part of it`() async throws {
        let scratch = try Scratch()
        let source = try scratch.writeLines(Self.rows, to: "manifest.jsonl")
        try FileManager.default.createDirectory(at: scratch["Test.tidemark-rejects"], withIntermediateDirectories: true)
        try await scratch.importing(source, options(scratch["Test.tidemark-rejects/rejects.jsonl"]))
        #expect(try scratch.rejects("Test.tidemark-rejects/rejects.jsonl").map(\.line) == [2])
    }

    @Test func `an import empties the rejects of another`() async throws {
        let scratch = try Scratch()
        let source = try scratch.writeLines(Self.rows, to: "manifest.jsonl")
        try scratch.write(String(repeating: "old\n", count: 1000), to: "rejects.jsonl")
        try await scratch.importing(source, options(scratch["rejects.jsonl"]))
        #expect(try scratch.rejects().map(\.line) == [2])
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
    func `rejects that can't be written keep their batch from being committed`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "before"}"#], .destination())
        let source = try scratch.writeLines(Self.rows, to: "manifest.jsonl")
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(source, options(URL(fileURLWithPath: "/dev/full")))
        }
        #expect(error?.code == .writing)
        #expect(error?.message == "cannot write the rejects to /dev/full: No space left on device")
        #expect(try scratch.reader().transactions(limit: nil).count == 1)
    }

    #if os(Linux)
        @Test func `rejects that can't be emptied are not appended to the file`() async throws {
            let scratch = try Scratch()
            let source = try scratch.writeLines(Self.rows, to: "manifest.jsonl")
            // Swift declares neither memfd_create nor its constants: it makes a file in memory that can be protected against
            // shrinking.
            typealias Make = @convention(c) (UnsafePointer<CChar>, UInt32) -> Int32
            let make = unsafeBitCast(try #require(dlsym(nil, "memfd_create")), to: Make.self)
            let file = make("rejects", 2)
            defer { close(file) }
            #expect(write(file, "old\n", 4) == 4)
            #expect(fcntl(file, 1033, 2) == 0)
            let error = await #expect(throws: ImportError.self) {
                try await scratch.importing(source, options(URL(fileURLWithPath: "/proc/self/fd/\(file)")))
            }
            #expect(error?.code == .output)
            #expect(lseek(file, 0, SEEK_END) == 4)
        }
    #endif
}
