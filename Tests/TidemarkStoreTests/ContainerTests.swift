import Dispatch
import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: a directory that is not a container of this format is refused with its path and the reason. Method: real directories and
/// databases.
@Suite(.timeLimit(.minutes(30))) struct ContainerTests {
    private func openingError(_ url: URL) -> StoreError? {
        do {
            _ = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: url))
            return nil
        } catch {
            return error
        }
    }

    @Test func `a newer container is refused with its format`() throws {
        let scratch = try Scratch()
        try scratch.write(#"{"format": 99, "unknown": true}"#, to: "Test.tidemark/container.json")
        let error = try #require(openingError(scratch.container))
        #expect(error.code == .newerFormat)
        #expect(
            error.message.hasSuffix(
                "has format 99; this version reads up to \(ContainerDirectory.format). Update Tidemark to open it"))
    }

    @Test func `a description of five gigabytes is not read`() throws {
        let scratch = try Scratch()
        let file = try scratch.write("{", to: "Test.tidemark/container.json")
        // The file is sparse: it takes no room, but reading it whole would take as much memory as a full one.
        try #require(truncate(file.path, 5 << 30) == 0)
        let error = try #require(openingError(scratch.container))
        #expect(error.code == .notAStore)
        #expect(error.message.hasSuffix("container.json is longer than 65536 bytes, which is more than it can have"))
    }

    @Test func `several processes that make a container at once in an empty folder get the same one`() throws {
        let scratch = try Scratch()
        for round in 0..<3000 {
            let url = scratch["\(round).tidemark"]
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            let made = LockedValue<[Result<UUID, StoreError>]>([])
            DispatchQueue.concurrentPerform(iterations: 3) { _ in
                let result = Result { () throws(StoreError) in
                    try ContainerDirectory(openingOrCreatingAt: url).description.identity
                }
                made.withLock { $0.append(result) }
            }
            let identities = try made.withLock { $0 }.map { try $0.get() }
            #expect(Set(identities).count == 1, "round \(round)")
            try FileManager.default.removeItem(at: url)
        }
    }

    @Test func `a container is made although its folder is removed again and again in the meantime`() async throws {
        let scratch = try Scratch()
        let urls = (0..<200).map { scratch["\($0).tidemark"] }
        let isOver = LockedValue(false)
        // A process that made a container for an import that was refused does this: it removes the folder if that is empty. The
        // number of such processes is limited: on a busy machine an endless loop would remove each folder that is made.
        let remover = Thread {
            var removals = [Int](repeating: 0, count: urls.count)
            while !isOver.withLock({ $0 }) {
                for (index, url) in urls.enumerated() where removals[index] < ContainerDirectory.attempts - 1 {
                    if rmdir(url.path) == 0 { removals[index] += 1 }
                }
            }
        }
        remover.start()
        defer { isOver.withLock { $0 = true } }
        for url in urls {
            let container = try ContainerDirectory(openingOrCreatingAt: url)
            #expect(try ContainerDirectory(openingAt: url).description.identity == container.description.identity)
        }
    }

    @Test func `work on a container that another process removes is done on a new one`() throws {
        let scratch = try Scratch()
        var identities: [UUID] = []
        let store = try ContainerDirectory.withContainer(openingOrCreatingAt: scratch.container) {
            container throws(StoreError) in
            identities.append(container.description.identity)
            if identities.count < 4 {
                do {
                    try FileManager.default.removeItem(at: scratch.container)
                } catch {
                    Issue.record(error)
                }
            }
            return try RecordStore(container: container)
        }
        #expect(Set(identities).count == 4)
        #expect(store.container.description.identity == identities.last)
        #expect(try ContainerDirectory(openingAt: scratch.container).description.identity == identities.last)
    }

    @Test func `an error of the work on a container is thrown at once`() throws {
        let scratch = try Scratch()
        var calls = 0
        let error = #expect(throws: StoreError.self) {
            try ContainerDirectory.withContainer(openingOrCreatingAt: scratch.container) { _ throws(StoreError) in
                calls += 1
                throw StoreError(.invalid, "refused")
            }
        }
        #expect(error?.message == "refused" && calls == 1)
    }

    @Test func `objects that were opened before a move name the new place of the container`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], .destination())
        let container = try ContainerDirectory(openingAt: scratch.container)
        let reader = try StoreReader(container: container)
        _ = try StoreMover(from: scratch.container, to: scratch["Moved.tidemark"]).run()
        for body in [
            { _ = try StoreReader(container: container) }, { _ = try reader.types() },
            { _ = try StoreReader(container: container, scope: .shared) }, { _ = try reader.read { _ in } },
        ] {
            let error = #expect(throws: StoreError.self) { try body() }
            #expect(error?.code == .moved)
            #expect(error?.message.contains("has moved to \(scratch["Moved.tidemark"].path)") == true)
        }
    }

    @Test
    func
        `small files that killed processes left are removed when the store is opened for writing, and those being written stay`()
        throws
    {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        _ = try RecordStore(container: container)
        func name(_ file: String) -> String { "Test.tidemark/.\(file).\(UUID().uuidString).tmp" }
        let left = ["container.json", "cloud-session", "cloud-session-device", "damaged-log-of-private.sqlite-1"].map(name)
        let stays = [name("cloud-session"), name("others"), "Test.tidemark/.cloud-session.notes.tmp"]
        for file in left + stays { try scratch.write("half", to: file) }
        // The process that has this file open still runs.
        let written = open(scratch[stays[0]].path, O_RDWR)
        defer { close(written) }
        try #require(flock(written, LOCK_EX | LOCK_NB) == 0)
        _ = try StoreReader(container: container)
        #expect((left + stays).allSatisfy { FileManager.default.fileExists(atPath: scratch[$0].path) })
        _ = try RecordStore(container: container)
        #expect((left + stays).filter { FileManager.default.fileExists(atPath: scratch[$0].path) } == stays)
    }

    @Test func `a newer database in an older container is refused`() throws {
        let scratch = try Scratch()
        _ = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container))
        let queue = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try queue.inDatabase { try $0.execute(sql: "PRAGMA user_version = 7") }
        try queue.close()
        #expect(openingError(scratch.container)?.code == .newerFormat)
    }

    @Test func `another application's database is refused and left as it is`() throws {
        let scratch = try Scratch()
        _ = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        let path = scratch["Test.tidemark/private.sqlite"].path
        let queue = try DatabaseQueue(path: path)
        try queue.inDatabase { try $0.execute(sql: "CREATE TABLE theirs (a)") }
        try queue.close()
        #expect(openingError(scratch.container)?.code == .notAStore)
    }

    @Test func `a folder with other files in it does not become a container`() throws {
        let scratch = try Scratch()
        try scratch.write("mine", to: "Test.tidemark/letter.txt")
        #expect(openingError(scratch.container)?.code == .cannotCreate)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.container.path) == ["letter.txt"])
    }

    @Test func `a file is not a container`() throws {
        let scratch = try Scratch()
        try scratch.write("mine", to: "Test.tidemark")
        #expect(openingError(scratch.container)?.code == .cannotCreate)
    }

    @Test func `a container is made below missing folders, and only its owner can read it`() throws {
        let scratch = try Scratch()
        _ = try ContainerDirectory(openingOrCreatingAt: scratch["new/./folders/Test.tidemark"])
        let attributes = try FileManager.default.attributesOfItem(atPath: scratch["new/folders/Test.tidemark"].path)
        #expect(attributes[.posixPermissions] as? Int == 0o700)
        try scratch.write("mine", to: "file")
        #expect(throws: StoreError(.cannotCreate, "")) {
            _ = try ContainerDirectory(openingOrCreatingAt: scratch["file/Test.tidemark"])
        }
    }

    @Test func `a description that is no JSON is named`() throws {
        let scratch = try Scratch()
        try scratch.write("not json", to: "Test.tidemark/container.json")
        let error = try #require(openingError(scratch.container))
        #expect(error.code == .notAStore)
        #expect(error.message.contains("container.json"))
    }

    @Test func `a store that another process keeps locked is busy after the allowed time`() throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        _ = try RecordStore(container: container)
        let lock = try StoreLock(at: scratch["Test.tidemark/private.sqlite-lock"])
        try lock.acquire(shared: false, timeout: .zero)
        defer { lock.release() }
        do {
            _ = try RecordStore(container: container, lockTimeout: .milliseconds(50))
            Issue.record("the store was opened")
        } catch {
            #expect(error.code == .busy)
        }
    }

    // Root may read everything.
    @Test(.enabled(if: geteuid() != 0)) func `a container that can't be read is not reported as missing`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a"}"#], .destination())
        chmod(scratch.container.path, 0)
        defer { chmod(scratch.container.path, 0o700) }
        #expect(throws: StoreError(.unreadable, "")) { _ = try ContainerDirectory(openingAt: scratch.container) }
    }
}
