import Foundation
import ReisebuchModel
import Tidemark
import TidemarkEmbeddedCloud

/// A device of a person: a book that synchronises by itself.
struct Device: Sendable {
    let name: String
    let book: TravelBook
    let sharing: TripSharing
    private let databases: CloudDatabases

    init(_ name: String, of email: String, in folder: URL, cloud: EmbeddedCloud) async throws {
        self.name = name
        book = try await TravelBook(in: folder.appendingPathComponent(name, isDirectory: true), device: name)
        let account = try await cloud.addAccount(email, name: PersonName(givenName: Self.givenName(email)))
        databases = try cloud.databases(of: Account.container, account: account.id)
        sharing = TripSharing(book, with: databases)
    }

    private static func givenName(_ email: String) -> String { email.prefix { $0 != "@" }.capitalized }

    var container: PersistentContainer { book.container }
    var folder: URL { container.directory.url.deletingLastPathComponent() }

    func goOnline() {
        var configuration = SyncConfiguration()
        // An app leaves it at half a second; the story is not to wait.
        configuration.exportDelay = .milliseconds(20)
        PhotoAlbum.configure(&configuration)
        container.startSyncing(with: databases, configuration: configuration)
    }

    func goOffline() async { await container.stopSyncing() }

    /// Waits until something has come: nobody asks again and again, the container tells of changes.
    func waits(_ isThere: @escaping @Sendable (TravelBook) async throws -> Bool) async throws {
        let book = book
        for try await isThere in container.observe(changesOf: TravelBook.types, fetch: { try await isThere(book) }) where isThere
        {
            return
        }
    }

    /// Waits until so many records have come.
    func waits<R: Record>(for count: Int, _ type: R.Type, where condition: RecordPredicate<R>? = nil) async throws {
        for try await now in container.observeCount(type, where: condition) where now == count { return }
    }

    /// Waits until the container knows shares as they are wanted.
    func waits(forShares areWanted: @Sendable ([Share]) -> Bool) async throws {
        let changes = try await container.permissions.changes()
        if areWanted(try await container.fetchShares()) { return }
        for try await _ in changes { if areWanted(try await container.fetchShares()) { return } }
    }

    /// Waits until the cloud has everything that was saved here.
    func sent() async throws {
        let events = container.events()
        if try container.isInSync() { return }
        for await event in events where event.end != nil { if try container.isInSync() { return } }
    }

    func trip(_ title: String) async throws -> Trip {
        guard let trip = try await book.trip(title) else { throw Missing(what: title) }
        return trip
    }

    func stops(of title: String) async throws -> [Stop] { try await container.fetchAll(Trip.stops, of: trip(title)) }

    struct Missing: LocalizedError {
        let what: String
        var errorDescription: String? { "„\(what)“ ist nicht da." }
    }
}
