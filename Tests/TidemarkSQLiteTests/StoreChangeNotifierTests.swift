import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: whoever listens is told of each commit of others, never of their own, whatever becomes of the folder. Method: real
/// processes that post notifications and listen, and real folders that are moved and removed.
@Suite(.timeLimit(.minutes(30))) struct StoreChangeNotifierTests {
    private let scratch: Scratch
    private let container: ContainerDirectory

    init() throws {
        scratch = try Scratch()
        container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
    }

    private var folder: URL { scratch["Test.tidemark/notifier"] }

    private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }

    private func runPoster(_ mode: String, _ count: Int = 1) async throws -> Tool.Result {
        try await Tool(named: "change-poster").run([mode, container.url.path, "\(count)"])
    }

    /// What the listener of a test has heard.
    private final class Ear: Sendable {
        let calls = LockedValue(0)
        private let stream: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation

        init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

        var count: Int { calls.withLock { $0 } }

        func hear() {
            calls.withLock { $0 += 1 }
            continuation.yield()
        }

        /// Ends with the first call that finds what is awaited.
        func wait(until isThere: () throws -> Bool) async rethrows {
            for await _ in stream where try isThere() { return }
        }
    }

    private func listen(_ ear: Ear, ignoring own: StoreChangeNotifier? = nil) throws -> StoreChangeListener {
        try StoreChangeListener(container: container, ignoring: own) { ear.hear() }
    }

    private func hasTold(_ transaction: Int64) -> Bool {
        (try? StoreChangeNotifier.readings(in: container))?.contains { $0.transactions[.private] == transaction } ?? false
    }

    @Test func `a notification of another process is heard, also when the folder comes after the listener`() async throws {
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        let ear = Ear()
        let listener = try listen(ear)
        async let child = runPoster("post", 7)
        await ear.wait { hasTold(7) }
        #expect(try await child.status == 0)
        listener.close()
        let notifications = try StoreChangeListener.notifications(at: container)
        async let another = runPoster("post", 8)
        for await _ in notifications where hasTold(8) { break }
        #expect(try await another.status == 0)
    }

    @Test func `of 10,000 notifications of two processes each, the last is always heard by the other`() async throws {
        async let first = runPoster("duet", 10_000)
        async let second = runPoster("duet", 10_000)
        #expect(try await [first.status, second.status] == [0, 0])
    }

    @Test func `a process that posts 10,000 times hears another one's single notification and none of its own`() async throws {
        let notifier = try StoreChangeNotifier(container: container, role: .app)
        let ear = Ear()
        let listener = try listen(ear, ignoring: notifier)
        async let child = runPoster("alone", 10_000)
        await ear.wait { hasTold(10_000) }
        notifier.post(transaction: 1, scope: .shared)
        #expect(try await child.status == 0)
        listener.close()
    }

    @Test func `several notifiers and listeners in one process hear each other and not themselves`() async throws {
        let notifiers = try (0..<2).map { _ in try StoreChangeNotifier(container: container, role: .app) }
        let ears = [Ear(), Ear(), Ear()]
        let listeners = [
            try listen(ears[0], ignoring: notifiers[0]), try listen(ears[1], ignoring: notifiers[1]), try listen(ears[2]),
        ]
        for number in 1...1000 { notifiers[0].post(transaction: Int64(number), scope: .private) }
        notifiers[1].post(transaction: 2000, scope: .private)
        // Events come in their order: with this one all before it have come.
        await ears[0].wait { hasTold(2000) }
        #expect(ears[0].count == 1)
        for ear in ears[1...] { await ear.wait { hasTold(1000) } }
        for listener in listeners { listener.close() }
    }

    @Test func `the file holds the last transaction of each scope, and only its owner may read it`() throws {
        let notifier = try StoreChangeNotifier(container: container, role: .import)
        notifier.post(transaction: 0x0102, scope: .private)
        notifier.post(transaction: 3, scope: .shared)
        notifier.post(transaction: 0x0103, scope: .private)
        let name = try #require(try names().first)
        #expect(name.wholeMatch(of: /import-[0-9a-f]{32}/) != nil)
        let zeros = [UInt8](repeating: 0, count: 8)
        #expect(
            Array(try Data(contentsOf: folder.appendingPathComponent(name))) == zeros + [
                3, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
            ])
        #expect(try StoreChangeNotifier.readings(in: container).map(\.transactions) == [[.private: 0x0103, .shared: 3]])
        let modes = try [folder, folder.appendingPathComponent(name)].map {
            try FileManager.default.attributesOfItem(atPath: $0.path)[.posixPermissions] as? Int
        }
        #expect(modes == [0o700, 0o600])
        notifier.close()
        #expect(try names().isEmpty)
    }

    @Test func `files of dead processes are removed, those of the living and those of others are not`() async throws {
        let living = try StoreChangeNotifier(container: container, role: .app)
        let name = try #require(try names().first)
        #expect(try await runPoster("post").status == 0)
        try Data().write(to: folder.appendingPathComponent("letter"))
        #expect(try names().count == 3)
        let another = try StoreChangeNotifier(container: container, role: .extension)
        let left = try names()
        #expect(left.count == 3)
        #expect(left.contains(name))
        #expect(left.contains("letter"))
        #expect(left.contains { $0.hasPrefix("extension-") })
        withExtendedLifetime((living, another)) {}
    }

    @Test func `a writer that dies before it posts is heard`() async throws {
        let ear = Ear()
        // The folder is there, so that nothing but the end of the process can be heard.
        let notifier = try StoreChangeNotifier(container: container, role: .app)
        let listener = try listen(ear, ignoring: notifier)
        async let child = runPoster("post", 0)
        await ear.wait { true }
        #expect(try await child.status == 0)
        listener.close()
    }

    @Test func `a folder that is removed, and a container that is moved, are watched again`() async throws {
        let ear = Ear()
        let notifier = try StoreChangeNotifier(container: container, role: .app)
        let listener = try listen(ear)
        notifier.post(transaction: 1, scope: .private)
        await ear.wait { hasTold(1) }
        try FileManager.default.removeItem(at: folder)
        notifier.post(transaction: 2, scope: .private)
        await ear.wait { hasTold(2) }
        notifier.post(transaction: 3, scope: .private)
        await ear.wait { hasTold(3) }
        try FileManager.default.moveItem(at: scratch.container, to: scratch["elsewhere"])
        try FileManager.default.moveItem(at: scratch["elsewhere"], to: scratch.container)
        notifier.post(transaction: 4, scope: .private)
        await ear.wait { hasTold(4) }
        // Another container in its place, below a folder that was gone as well.
        try FileManager.default.removeItem(at: scratch.url)
        #expect(try StoreChangeNotifier.readings(in: container).isEmpty)
        notifier.post(transaction: 5, scope: .private)
        #expect(notifier.failures == 1)
        #expect(!FileManager.default.fileExists(atPath: scratch.url.path))
        _ = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        notifier.post(transaction: 6, scope: .private)
        #expect(notifier.failures == 1)
        await ear.wait { hasTold(6) }
        notifier.post(transaction: 7, scope: .private)
        await ear.wait { hasTold(7) }
        listener.close()
    }

    @Test func `after more events than the system keeps, a new folder is heard`() async throws {
        let limit = try #require(
            Int(try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8).dropLast()))
        let notifiers = try (0..<2).map { _ in try StoreChangeNotifier(container: container, role: .app) }
        let (begins, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let ear = Ear()
        let isFirst = LockedValue(true)
        let listener = try StoreChangeListener(container: container) {
            if isFirst.withLock({ first in
                defer { first = false }
                return first
            }) {
                begins.signal()
                goesOn.wait()
            }
            ear.hear()
        }
        notifiers[0].post(transaction: 1, scope: .private)
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                begins.wait()
                continuation.resume()
            }
        }
        // Equal events that follow each other are merged; these do not.
        for number in 0...limit { notifiers[number % 2].post(transaction: 2, scope: .private) }
        for notifier in notifiers { notifier.close() }
        try FileManager.default.removeItem(at: folder)
        let another = try StoreChangeNotifier(container: container, role: .app)
        goesOn.signal()
        // What was heard before has been dealt with when the folder is watched again.
        await ear.wait { ear.count > 1 }
        another.post(transaction: 3, scope: .private)
        await ear.wait { hasTold(3) }
        another.post(transaction: 4, scope: .private)
        await ear.wait { hasTold(4) }
        listener.close()
    }

    @Test func `after closing nothing is heard, and closing within a call does not wait for itself`() async throws {
        let notifier = try StoreChangeNotifier(container: container, role: .app)
        let (ear, other) = (Ear(), Ear())
        let (listener, remaining) = (try listen(ear), try listen(other))
        notifier.post(transaction: 1, scope: .private)
        await ear.wait { hasTold(1) }
        listener.close()
        let calls = ear.count
        notifier.post(transaction: 2, scope: .private)
        await other.wait { hasTold(2) }
        #expect(ear.count == calls)
        remaining.close()
        notifier.close()
        notifier.post(transaction: 3, scope: .private)
        #expect(notifier.failures == 0)

        let third = Ear()
        let itself = LockedValue<StoreChangeListener?>(nil)
        let closing = try StoreChangeListener(container: container) {
            itself.withLock { $0?.close() }
            third.hear()
        }
        itself.withLock { $0 = closing }
        let another = try StoreChangeNotifier(container: container, role: .app)
        another.post(transaction: 4, scope: .private)
        await third.wait { true }
        another.post(transaction: 5, scope: .private)
        closing.close()
        #expect(third.count == 1)
        itself.withLock { $0 = nil }
    }

    @Test func `no descriptor is left behind`() async throws {
        let result = try await runPoster("descriptors", 100)
        #expect(result.status == 0, "\(result.output)")
    }

    @Test func `a role is a short word`() {
        #expect(StoreChangeNotifier.Role(rawValue: "app") == .app)
        for name in ["", "App", "a-b", "a/b", "ä", String(repeating: "a", count: 33)] {
            #expect(StoreChangeNotifier.Role(rawValue: name) == nil, "\(name)")
        }
    }

    @Test func `a container that has lost its description may have a notifier`() throws {
        try FileManager.default.removeItem(at: scratch["Test.tidemark/container.json"])
        #expect(throws: Never.self) { _ = try StoreChangeNotifier(container: container, role: .app) }
        #expect(throws: Never.self) { _ = try ContainerDirectory(openingOrCreatingAt: scratch.container) }
    }
}
