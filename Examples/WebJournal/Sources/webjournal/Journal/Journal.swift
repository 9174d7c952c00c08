import Foundation
import Synchronization
import Tidemark

/// A person's journal on this server: a device of that person, with a store of its own that synchronises by itself.
actor Journal {
    nonisolated let person: Person
    nonisolated let container: PersistentContainer
    private let connection: Mutex<CloudDatabases>
    private let changes = JournalChanges()
    private var edits: [(id: String, context: EditingContext)] = []

    /// Opens the store of a person, and begins to synchronise it.
    init(of person: Person, in folder: URL, with databases: CloudDatabases) throws {
        self.person = person
        connection = Mutex(databases)
        container = try PersistentContainer(named: "Journal", at: .directory(folder), author: "webjournal")
        connect(databases)
        Task { [changes, container] in await changes.begin(container) }
    }

    /// The databases of the session with the cloud that the journal has now.
    nonisolated var databases: CloudDatabases { connection.withLock { $0 } }

    /// Synchronises the store with the databases of another session of the same person from now on.
    nonisolated func connect(_ databases: CloudDatabases) {
        connection.withLock { $0 = databases }
        var configuration = SyncConfiguration()
        // Other people are watching.
        configuration.exportDelay = .milliseconds(50)
        container.startSyncing(with: databases, configuration: configuration)
    }

    /// Calls back each time that the cloud refuses the session, until the journal is closed.
    nonisolated func onRefusal(_ body: @escaping @Sendable () async -> Void) {
        let events = container.events()
        Task { for await event in events where event.failure?.cause == .signedOut { await body() } }
    }

    func close() async throws {
        await changes.end()
        edits = []
        try await container.close()
    }

    /// A stream of its own for each caller, with an element for each change of records or of shares.
    nonisolated func changed() async -> AsyncStream<Void> { await changes.stream() }

    // Reading

    /// Rows of two, three and four are full.
    static let pageSize = 48

    /// A page of one's own destinations and those of others, newest first, with what the person may do: all of one moment.
    ///
    /// - Parameter cursor: What the page before says of the next one; `nil` for the first page.
    /// - Throws: `PageError` for what is no cursor of this list.
    nonisolated func gallery(after cursor: String?) async throws -> Gallery {
        let now = try container.snapshot()
        let page: RecordPage<Destination>
        do {
            page = try await now.fetchPage(
                Destination.self, sortedBy: [.descending(\.createdAt), .ascending(\.caption)],
                after: cursor.map { text in
                    guard let cursor = PageCursor(text) else { throw PageError.noPage }
                    return cursor
                }, limit: Self.pageSize)
        } catch let error as StoreError where error.code == .invalid {
            throw PageError.noPage
        }
        var cards: [Card] = []
        for destination in page.records {
            cards.append(Card(destination: destination, permission: try await now.permissions.permission(of: destination)))
        }
        return Gallery(cards: cards, isFirst: cursor == nil, next: page.next?.description)
    }

    /// A destination, what the person may do with it, and who takes part.
    ///
    /// - Throws: `PageError` where there is none.
    nonisolated func detail(_ id: UUID) async throws -> Detail {
        guard let destination = try await container.fetch(Destination.self, id: id),
            let permission = try await container.permissions.permission(of: destination)
        else { throw PageError.gone }
        return Detail(
            card: Card(destination: destination, permission: permission), share: try await container.fetchShare(of: destination))
    }

    /// Where the content of a destination lies, and nothing else that is in the store.
    nonisolated func picture(of id: UUID, isThumbnail: Bool) async throws -> Asset {
        guard let destination = try await container.fetch(Destination.self, id: id) else { throw PageError.gone }
        let asset = isThumbnail ? destination.imageThumbnail ?? destination.image : destination.image
        if !asset.isDownloaded { try await container.download(asset, priority: .userInitiated) }
        return asset
    }

    // Writing

    nonisolated func add(_ destination: Destination) async throws { try await container.save(destination) }

    nonisolated func delete(_ id: UUID) async throws {
        guard let destination = try await container.fetch(Destination.self, id: id) else { throw PageError.gone }
        try await container.delete(destination)
    }

    // Editing

    private static let editLimit = 32

    /// Begins to edit a destination. Between the form and its answer a context remembers the values that the form began with, so that
    /// the save merges with what others have saved meanwhile. A person has the last 32 of them.
    ///
    /// - Returns: The name of the edit, for ``finishEdit(_:overwriting:_:)``, and the values.
    func beginEdit(_ id: UUID) async throws -> (edit: String, destination: Destination) {
        let context = container.newContext()
        guard let destination = try await context.fetch(Destination.self, id: id) else { throw PageError.gone }
        let edit = Secret.make()
        edits.append((edit, context))
        if edits.count > Self.editLimit { edits.removeFirst() }
        return (edit, destination)
    }

    /// What became of an edit.
    enum EditResult {
        case saved
        /// Others have changed the same fields meanwhile; the person decides.
        case conflict(fields: [String], theirs: Destination)
        /// Nobody knows any more what the form began with: the server was started again, or many other edits came since.
        case forgotten
    }

    /// Saves an edit on top of what others have saved since it began.
    ///
    /// - Parameter isOverwriting: Whether these values go before theirs.
    func finishEdit(
        _ edit: String, of id: UUID, overwriting isOverwriting: Bool, _ change: @Sendable (inout Destination) -> Void
    ) async throws -> EditResult {
        guard let context = edits.first(where: { $0.id == edit })?.context,
            var edited = try await context.fetch(Destination.self, id: id)
        else { return .forgotten }
        change(&edited)
        try edited.validate()
        try await context.update(edited)
        do {
            try await context.save(mergePolicy: isOverwriting ? .mergeByPropertyObjectTrump : .error)
            edits.removeAll { $0.id == edit }
            return .saved
        } catch let conflicts as UnresolvedConflicts {
            guard let theirs = try await container.fetch(Destination.self, id: id) else { throw PageError.gone }
            return .conflict(fields: conflicts.records.flatMap(\.fields).sorted(), theirs: theirs)
        }
    }
}

/// A page of destinations.
struct Gallery: Sendable {
    let cards: [Card]
    let isFirst: Bool
    /// Where the next page begins; `nil` behind the last one.
    let next: String?
}

/// A destination in a list, and what the person may do with it.
struct Card: Sendable {
    let destination: Destination
    /// `nil` in the moment between its save and the next look.
    let permission: RecordPermission?

    var isShared: Bool { permission?.isShared ?? false }
    /// The name of whose it is; `nil` for one's own.
    var owner: String? { permission.flatMap { $0.isOwner || $0.owner == nil ? nil : $0.owner?.title } }
}

/// A destination with all that its page shows.
struct Detail: Sendable {
    let card: Card
    let share: Share?

    var destination: Destination { card.destination }
    var isOwner: Bool { card.permission.map { $0.isOwner || !$0.isShared } ?? true }

    /// Why the person may not do something, and what would help; `nil` where they may.
    func obstacle(to operation: SharePolicy.Operation) -> String? {
        guard let decision = card.permission?.decision(for: operation), !decision.isAllowed else { return nil }
        let sentences = [decision.sentence(in: .english), decision.remedy?.sentence(in: .english)]
        return sentences.compactMap(\.self).joined(separator: " ")
    }
}
