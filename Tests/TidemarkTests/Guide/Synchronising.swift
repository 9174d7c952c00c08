import Foundation
import Tidemark
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkTesting

/// Examples of containers that synchronise by themselves, of pinned contexts and of temporary containers. Not run: they open the user's own
/// container.
enum Synchronising {
    struct Destination: Record, Identifiable {
        var id = UUID()
        var caption: String
        static var shareTitle: KeyPath<Destination, String>? { \.caption }
    }

    struct Trip: Record, Identifiable {
        var id = UUID()
        var title: String
    }

    struct Stop: Record, Identifiable {
        var id = UUID()
        var trip: Reference<Trip>
    }

    static func open(_ databases: CloudDatabases) throws -> PersistentContainer {
        let journal = try PersistentContainer(named: "Journal", cloud: databases)
        return journal
    }

    static func start(
        _ journal: PersistentContainer, _ databases: CloudDatabases, show: (ContainerEvent) -> Void
    ) async {
        journal.startSyncing(with: databases)
        for await event in journal.events() { show(event) }
    }

    static func once(_ journal: PersistentContainer, _ databases: CloudDatabases) async throws -> SyncReport {
        let both = try await journal.sync(with: databases)
        let report = try await both.sync()
        return report
    }

    static func onDemand(_ journal: PersistentContainer, _ databases: CloudDatabases) {
        var configuration = SyncConfiguration()
        configuration.assets = .upTo(bytes: 64 << 10) // thumbnails come with their records
        configuration.assetLimit = 2_000_000_000
        journal.startSyncing(with: databases, configuration: configuration)
    }

    struct Picture: Record, Identifiable {
        var id = UUID()
        var image: Asset?
    }

    static func view(_ journal: PersistentContainer, _ destination: Picture, show: (Data) -> Void) async throws {
        if let image = destination.image {
            try await journal.download(image)
            show(try image.data())
        }
    }

    static func viewIfNeeded(_ journal: PersistentContainer, _ destination: Picture, show: (Data) -> Void) async throws {
        if let image = destination.image {
            if !image.isDownloaded { try await journal.download(image) }
            show(try image.data())
        }
    }

    static func prefetch(_ journal: PersistentContainer) async throws {
        try await journal.downloadAssets(of: journal.fetchAll(Destination.self, limit: 50))
    }

    static func many(_ journal: PersistentContainer) async throws -> Int {
        let all = try await journal.fetchAll(Destination.self) { count in print("\(count) read") }
        return all.count
    }

    static func temporary() async throws {
        let journal = try PersistentContainer.temporary()
        try await journal.save(Destination(caption: "Senja"))
    }

    static func pinned(_ journal: PersistentContainer) async throws -> Int {
        let context = journal.newContext()
        try await context.setQueryGeneration(.current)
        let trips = try await context.fetchAll(Trip.self)
        let stops = try await context.fetchAll(Stop.self) // as they were beside these trips
        return trips.count + stops.count
    }

    static func guide() async throws {
        let cloud = try EmbeddedCloud(at: URL(fileURLWithPath: "cloud"))
        let ada = try await cloud.addAccount("ada@example.org")
        let databases = try cloud.databases(of: "iCloud.org.example.journal", account: ada.id)

        // Synchronises from now on: after saves, when the cloud has changes, when the network is back.
        let journal = try PersistentContainer(named: "Journal", cloud: databases)

        // What goes on, and what goes wrong. Each call of events() has a stream of its own.
        Task {
            for await event in journal.events() where event.end != nil {
                if event.failure?.cause == .offline { print("offline; tried again by itself") }
                if case .signedOut? = event.accountChange { print("signed out") }
            }
        }

        // Is everything in sync, and if not, what is missing?
        let status = try journal.syncStatus()
        if !status.isInSync { for obstacle in status.obstacles { print(obstacle) } }
    }

    static func test(_ database: any CloudDatabase, _ journal: PersistentContainer) async throws -> SyncReport {
        let clock = TestClock(movesWhenWaiting: true)
        let nasty = FaultyDatabase(database, plan: .all(rate: 0.2, seed: 42), sleep: clock.sleep)
        let engine = try await journal.syncEngine(with: nasty, environment: clock.environment)
        let report = try await engine.sync(patience: .seconds(3600))
        return report
    }
}
