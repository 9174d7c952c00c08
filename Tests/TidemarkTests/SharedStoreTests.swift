import Foundation
import TestSupport
import Testing
import TidemarkEmbeddedCloud

@testable import Tidemark
@testable import TidemarkSync

/// Goal: a container and its synchronisation write through one store object for each file, and each is notified of the other's
/// writes. Method: containers of two devices over one cloud.
@Suite(.timeLimit(.minutes(30))) struct SharedStoreTests {
    private let scratch: Scratch
    private let fixture: TwoUserFixture

    init() throws {
        scratch = try Scratch()
        fixture = try TwoUserFixture(scratch)
    }

    @Test func `a container that synchronises has one store object for each scope`() async throws {
        let anna = try await fixture.person("anna")
        let (own, others) = (await anna.container.privateStore, await anna.container.sharedStore)
        let both = try await anna.container.sync(with: anna.databases)
        #expect(await both.privateEngine.store === own)
        #expect(await both.sharedEngine.store === others)
        both.close()
        let engine = try await anna.container.syncEngine(with: anna.databases.private)
        #expect(await engine.store === own)
        engine.close()
    }

    @Test
    func `fetched records are reported once as a change from the cloud, and saved ones as the container's own`() async throws {
        let (laptop, phone) = (try await fixture.person("anna", device: "1"), try await fixture.person("anna", device: "2"))
        for name in ["a", "b"] { try await laptop.container.save(Destination(name, caption: name)) }
        try await laptop.sync()
        let token = try phone.container.historyToken()
        var heard = phone.container.changes(since: token).makeAsyncIterator()
        try await phone.container.save(Destination("own", caption: "own"))
        try await phone.sync()
        let fetched = try #require(try await heard.next())
        #expect(fetched.origin == .cloud && Set(fetched.changes.map(\.record.name)) == ["a", "b"])
        var all = phone.container.changes(since: token, withOwn: true).makeAsyncIterator()
        let origins = [try await all.next()?.origin, try await all.next()?.origin]
        #expect(origins == [.thisProcess, .cloud])
        // There is no third change: the position behind the last one is the end of history.
        #expect(try phone.container.historyToken()[.private] == fetched.token[.private])
    }

    @Test func `an observation shows what the synchronisation of the same container fetches`() async throws {
        let (laptop, phone) = (try await fixture.person("anna", device: "1"), try await fixture.person("anna", device: "2"))
        var shown = phone.container.observe(Destination.self).makeAsyncIterator()
        #expect(try await shown.next()?.records == [])
        try await laptop.container.save(Destination("a", caption: "from the laptop"))
        try await laptop.sync()
        try await phone.sync()
        #expect(try await shown.next()?.map(\.caption) == ["from the laptop"])
    }

    @Test func `a save wakes the synchronisation of its own container`() async throws {
        let (laptop, phone) = (try await fixture.person("anna", device: "1"), try await fixture.person("anna", device: "2"))
        let sync = try await phone.container.sync(with: phone.databases)
        let events = sync.events
        let running = Task { try await sync.run() }
        defer { running.cancel() }
        // The synchronisation has nothing to do by then.
        for await event in events where event.kind == .export && event.end != nil { break }
        try await phone.container.save(Destination("a", caption: "from the phone"))
        for await event in events where event.kind == .export && event.end != nil && event.records > 0 { break }
        try await laptop.sync()
        #expect(try await laptop.captions() == ["a": "from the phone"])
    }

    @Test func `a synchronisation posts with its own notifier, and saves post with the container's`() async throws {
        let (laptop, phone) = (try await fixture.person("anna", device: "1"), try await fixture.person("anna", device: "2"))
        try await laptop.container.save(Destination("a", caption: "from the laptop"))
        try await laptop.sync()
        let sync = try await phone.container.sync(with: phone.databases)
        func posted() throws -> [String: Int64] {
            var posted: [String: Int64] = [:]
            for reading in try StoreChangeNotifier.readings(in: phone.container.directory) {
                if let transaction = reading.transactions[.private] { posted[reading.role] = transaction }
            }
            return posted
        }
        let result = try await phone.container.save(Destination("own", caption: "own"))
        let saved = try #require(result.transactions[.private])
        #expect(try posted() == ["app": saved])
        _ = try await sync.sync()
        let history = try StoreReader(container: phone.container.directory).transactions()
        let last = try #require(history.map(\.id).max())
        #expect(try posted() == ["app": saved, "sync": last])
        #expect(last > saved)
        // Its notifier must not be released before this.
        sync.close()
    }
}
