import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkEmbeddedCloud

/// Goal: a program synchronises its container and sees the changes of other devices. Method: two containers of typed records over
/// one cloud.
@Suite(.timeLimit(.minutes(30))) struct ContainerSyncTests {
    @Test func `records with pictures arrive, and the container reports them as changes from the cloud`() async throws {
        let scratch = try Scratch()
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let account = try await cloud.addAccount("anna@example.org")
        func journal(_ name: String) throws -> PersistentContainer {
            try PersistentContainer(
                directory: ContainerDirectory(openingOrCreatingAt: scratch["\(name).tidemark"]), author: "test")
        }
        func database() throws -> EmbeddedDatabase {
            try cloud.database(.private, of: "iCloud.org.example.journal", account: account.id)
        }
        let (a, b) = (try journal("a"), try journal("b"))
        var senja = Destination("senja", caption: "Senja")
        senja.image = Asset(data: Picture.png(1))
        senja.position = Location(latitude: 69.3, longitude: 17.1)
        senja.tags = ["island", "north"]
        try await a.save(senja)
        #expect(try a.syncIssues(record: "senja").first?.code == nil)
        #expect(try a.syncIssues(record: "senja").count == 1)
        let engine = try await a.syncEngine(with: database())
        #expect(try await engine.sync().isComplete)
        #expect(try a.syncIssues().isEmpty)

        let token = try b.historyToken()
        var changes = b.changes(since: token).makeAsyncIterator()
        let other = try await b.syncEngine(with: database())
        #expect(try await other.sync().imported == 1)
        let change = try await changes.next()
        #expect(change?.origin == .cloud)
        #expect(change?.changes.map(\.record.name) == ["senja"])
        let found = try await b.fetch(Destination.self, named: "senja")
        #expect(found?.caption == "Senja")
        #expect(try found?.image?.data() == Picture.png(1))
        #expect(found?.position == senja.position)
        #expect(found?.tags == senja.tags)
    }

    private struct Visit: Tidemark.Record {
        static let mergePolicy: MergePolicy? = .mergeByPropertyStoreTrump
        var id: String
        var title: String
        var recordName: String { id }
    }

    @Test func `conflicts are resolved by a type's policy, even with a configuration that names no policy`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let devices = [try await place.person("anna", device: "1"), try await place.person("anna", device: "2")]
        var configuration = SyncConfiguration()
        configuration.assets = .upTo(bytes: 1000)
        func sync(_ device: Person) async throws {
            let sync = try await device.container.sync(with: device.databases, configuration: configuration)
            defer { sync.close() }
            _ = try await sync.sync()
        }
        try await devices[0].container.save(Visit(id: "v", title: "before"))
        for device in devices { try await sync(device) }
        for (device, title) in zip(devices, ["first", "second"]) {
            try await device.container.save(Visit(id: "v", title: title))
        }
        for _ in 0..<2 { for device in devices { try await sync(device) } }
        // By the container's own policy the device that synchronises later would win.
        for device in devices {
            #expect(try await device.container.fetch(Visit.self, named: "v")?.title == "first")
        }
    }

    @Test func `a context's edit is merged with changes of the cloud by the container's policy`() async throws {
        let scratch = try Scratch()
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let account = try await cloud.addAccount("anna@example.org")
        let a = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: scratch["a.tidemark"]), author: "test",
            mergePolicy: .mergeByPropertyStoreTrump)
        let b = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: scratch["b.tidemark"]), author: "test",
            mergePolicy: .mergeByPropertyStoreTrump)
        let engines = try await [a, b].asyncMap { container in
            try await container.syncEngine(
                with: cloud.database(.private, of: "iCloud.org.example.journal", account: account.id))
        }
        try await a.save(Destination("senja", caption: "Senja"))
        for engine in engines { _ = try await engine.sync() }
        var (mine, theirs) = (Destination("senja", caption: "of A"), Destination("senja", caption: "of B"))
        mine.rating = 1
        theirs.elevation = 2
        try await a.save(mine)
        try await b.save(theirs)
        for _ in 0..<2 { for engine in engines { _ = try await engine.sync() } }
        let (one, other) = (
            try await a.fetch(Destination.self, named: "senja"), try await b.fetch(Destination.self, named: "senja")
        )
        #expect(one == other)
        #expect(one?.caption == "of A")
        #expect(one?.rating == 1)
        #expect(one?.elevation == 2)
        #expect(try b.history().conflicts().map(\.field) == ["caption"])
    }

    @Test func `a second synchronisation of one engine is cancelled with 134417`() async throws {
        let scratch = try Scratch()
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let account = try await cloud.addAccount("anna@example.org")
        let a = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: scratch["a.tidemark"]), author: "test")
        let engine = try await a.syncEngine(
            with: cloud.database(.private, of: "iCloud.org.example.journal", account: account.id))
        let running = Task { try await engine.run() }
        for await event in engine.events where event.kind == .setup && event.end != nil { break }
        await #expect(throws: ContainerEvent.Failure.self) { try await engine.sync() }
        do {
            _ = try await engine.sync()
        } catch let failure as ContainerEvent.Failure {
            #expect(failure.code == 134417)
        }
        running.cancel()
        _ = await running.result
        #expect(try await engine.sync().isComplete)
    }
}

extension Sequence {
    fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await transform(element)) }
        return results
    }
}
