import Foundation
import TestSupport
import Testing
import Tidemark

/// Goal: a program ends its container: by closing it, deleting it, or making it temporary. Method: the files afterwards, and the
/// errors of the remaining objects.
@Suite(.timeLimit(.minutes(30))) struct ClosingTests {
    private func entries(_ url: URL) throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() }

    @Test func `a closed container throws, its streams end, and another opening has all records`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Destination("a", caption: "a"))
        let before = try journal.snapshot()
        let (changes, events) = (journal.changes(since: try journal.historyToken(), withOwn: true), journal.events())
        let following = Task { for try await _ in changes {} }
        try await journal.close()
        try await journal.close()
        for await _ in events {}
        _ = await following.result
        await #expect(throws: StoreError(.closed, "")) { try await journal.save(Destination("b", caption: "b")) }
        let context = journal.newContext()
        await context.insert(Destination("c", caption: "c"))
        await #expect(throws: StoreError.self) { try await context.save() }
        await #expect(throws: StoreError(.closed, "")) { try await journal.fetchAll(Destination.self) }
        #expect(try await before.fetchAll(Destination.self).map(\.id) == ["a"])
        let again = try scratch.journal()
        #expect(try await again.fetchAll(Destination.self).map(\.id) == ["a"])
    }

    @Test func `a destroyed container is gone with its files, and a new one can be made in its place`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        var senja = Destination("senja", caption: "Senja")
        senja.image = Asset(data: Picture.png(1))
        try await journal.save(senja)
        let other = try scratch.journal()
        try await journal.destroy()
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
        await #expect(throws: StoreError(.moved, "")) { try await other.save(Destination("b", caption: "b")) }
        #expect(throws: StoreError(.notFound, "")) { try ContainerDirectory.destroy(at: scratch.container) }
        let new = try scratch.journal()
        #expect(try await new.fetchAll(Destination.self).isEmpty)
        try await new.close()
        // Other files stay.
        try scratch.write("mine", to: "Test.tidemark/notes.txt")
        try ContainerDirectory.destroy(at: scratch.container)
        #expect(try entries(scratch.container) == ["notes.txt"])
    }

    @Test func `a link in the place of a container's folder is not followed when the container is destroyed`() async throws {
        let scratch = try Scratch()
        try await scratch.journal().close()
        try scratch.write("mine", to: "elsewhere/notes.txt")
        let downloads = scratch["Test.tidemark/downloads"]
        try? FileManager.default.removeItem(at: downloads)
        try FileManager.default.createSymbolicLink(at: downloads, withDestinationURL: scratch["elsewhere"])
        try ContainerDirectory.destroy(at: scratch.container)
        #expect(try entries(scratch["elsewhere"]) == ["notes.txt"])
        #expect(try entries(scratch.container) == ["downloads"])
    }

    // Root may open everything.
    @Test(.enabled(if: geteuid() != 0)) func `a folder that can't be opened ends the deletion with an error`() async throws {
        let scratch = try Scratch()
        try await scratch.journal().close()
        try scratch.write("half", to: "Test.tidemark/downloads/half.part")
        chmod(scratch["Test.tidemark/downloads"].path, 0)
        defer { chmod(scratch["Test.tidemark/downloads"].path, 0o700) }
        let error = #expect(throws: StoreError.self) { try ContainerDirectory.destroy(at: scratch.container) }
        #expect(error?.message.contains("downloads") == true)
    }

    @Test func `a temporary container works like others, and leaves no files when it is closed or released`() async throws {
        let scratch = try Scratch()
        do {
            let journal = try PersistentContainer.temporary(in: scratch.url)
            var senja = Destination("senja", caption: "Senja")
            senja.image = Asset(data: Picture.png(1))
            try await journal.save(senja)
            #expect(try await journal.fetch(Destination.self, named: "senja")?.image?.data() == Picture.png(1))
            #expect(try entries(scratch.url).count == 1)
        }
        #expect(try await eventually { try entries(scratch.url).isEmpty })
        let journal = try PersistentContainer.temporary(in: scratch.url)
        try await journal.close()
        #expect(try entries(scratch.url).isEmpty)
    }
}
