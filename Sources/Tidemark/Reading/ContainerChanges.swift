import Foundation
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// What one transaction changed in a container, as a process hears of it.
public struct ContainerChange: Hashable, Sendable {
    /// Where it came from, as seen from here.
    public enum Origin: Hashable, Sendable {
        /// A save of this process, a save of another one, a bulk import, or what was fetched from the cloud.
        case thisProcess, anotherProcess, `import`, cloud
    }

    /// The store that was changed.
    public let scope: StoreScope
    /// The transaction, as history has it: its author, its time, its number.
    public let transaction: HistoryTransaction
    /// Where the change came from.
    public let origin: Origin
    /// Exactly the records that it changed.
    public let changes: [RecordChange]
    /// The place behind it, and behind all that was told before it: to be kept, and begun with the next time.
    public let token: ContainerToken
}

/// Places in the histories of a container's stores: everything before them has been seen.
public struct ContainerToken: Hashable, Codable, Sendable {
    var tokens: [StoreScope: HistoryToken]

    /// The place in one store.
    public subscript(scope: StoreScope) -> HistoryToken? { tokens[scope] }
}

extension ContainerToken: LosslessStringConvertible {
    /// `private=<token>,shared=<token>`.
    public var description: String {
        ContainerDirectory.scopes.compactMap { scope in tokens[scope].map { "\(scope.name)=\($0)" } }.joined(separator: ",")
    }

    /// Reads the text that ``description`` makes; `nil` for any other text.
    public init?(_ description: String) {
        var tokens: [StoreScope: HistoryToken] = [:]
        for part in description.split(separator: ",", omittingEmptySubsequences: false) {
            let halves = part.split(separator: "=", omittingEmptySubsequences: false)
            guard halves.count == 2, let scope = ContainerDirectory.scopes.first(where: { $0.name == halves[0] }),
                let token = HistoryToken(String(halves[1])), tokens.updateValue(token, forKey: scope) == nil
            else { return nil }
        }
        self.tokens = tokens
    }
}

/// The changes of a container as they are committed, transaction by transaction, and never one twice.
///
/// ```swift
/// for try await change in journal.changes(since: savedToken) {
///     show(change.changes.map(\.record))
/// }
/// ```
///
/// It begins with what came since the token, then waits; nothing is lost while a process sleeps, and nothing wakes up while nobody writes.
/// Keep ``ContainerChange/token`` of the last change that you have dealt with, to go on from there after the next start.
///
/// It fails with ``StoreError`` `historyTokenExpired` when the token is too old: then fetch all records anew, and begin without one; with
/// `moved` when the container has moved away or was replaced: open it again.
public struct ContainerChanges: AsyncSequence, Sendable {
    public typealias Element = ContainerChange

    let directory: ContainerDirectory
    let readers: [StoreReader]
    let notifications: @Sendable () throws(StoreError) -> AsyncStream<Void>
    /// The openings of the stores that belong to this process.
    let own: [StoreScope: UUID]
    let withOwn: Bool
    let start: ContainerToken?

    /// An iterator that begins at the sequence's token. Each iterator sees every change.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Waits for changes; one task at a time.
    public struct Iterator: AsyncIteratorProtocol {
        private let sequence: ContainerChanges
        private let reading: ChangeReading
        private var notifications: AsyncStream<Void>.Iterator?
        private var ready: [ContainerChange] = []
        /// What has been handed out.
        public private(set) var token: ContainerToken

        init(_ sequence: ContainerChanges) {
            self.sequence = sequence
            token = sequence.start ?? ContainerToken(tokens: [:])
            reading = ChangeReading(sequence)
        }

        /// The next change; waits where there is none yet, and returns `nil` when the task is cancelled.
        ///
        /// - Throws: ``StoreError`` `historyTokenExpired`, `moved`, and those of reading.
        public mutating func next() async throws -> ContainerChange? {
            if notifications == nil {
                // Listening comes first, so that nothing is missed between reading and listening.
                notifications = try sequence.notifications().makeAsyncIterator()
                token = try await reading.prime()
            }
            while ready.isEmpty {
                let page = try await reading.next()
                ready = page.changes
                if !ready.isEmpty || page.hasMore { continue }
                guard await notifications?.next(isolation: nil) != nil else { return nil }
            }
            let change = ready.removeFirst()
            token = change.token
            return change
        }
    }
}

/// Reads on in the histories of a container, off the threads that Swift's tasks share.
private actor ChangeReading {
    private nonisolated let executor = StoreExecutor(label: "tidemark.changes")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let directory: ContainerDirectory
    private var readers: [StoreReader]
    private let own: [StoreScope: UUID]
    private let withOwn: Bool
    /// What has been read. A store without one is read from its beginning.
    private var tokens: [StoreScope: HistoryToken]
    private let hasStart: Bool

    init(_ sequence: ContainerChanges) {
        directory = sequence.directory
        readers = sequence.readers
        hasStart = sequence.start != nil
        own = sequence.own
        withOwn = sequence.withOwn
        tokens = sequence.start?.tokens ?? [:]
    }

    /// Without a token it begins with what comes from now on. A store that a token does not name was not there when it was given out.
    func prime() throws -> ContainerToken {
        for reader in readers where !hasStart { tokens[reader.scope] = try reader.historyToken() }
        return ContainerToken(tokens: tokens)
    }

    /// Opens stores that have come since.
    private func openNew() throws {
        for scope in ContainerDirectory.scopes where !readers.contains(where: { $0.scope == scope }) {
            guard directory.hasStore(scope) else { continue }
            readers.append(try StoreReader(container: directory, scope: scope))
        }
    }

    func next() throws -> (changes: [ContainerChange], hasMore: Bool) {
        try openNew()
        var (changes, hasMore) = ([ContainerChange](), false)
        // Where a store can't be read, what was read of the other is read again.
        var (read, told) = (tokens, ContainerToken(tokens: tokens))
        for reader in readers {
            let own = own[reader.scope]
            let page = try reader.changes(since: tokens[reader.scope], without: withOwn ? nil : own, limit: 100)
            for it in page.transactions {
                told.tokens[reader.scope] = HistoryToken(page.token, transaction: it.transaction.id)
                changes.append(
                    ContainerChange(
                        scope: reader.scope, transaction: it.transaction, origin: .init(it.transaction, own: own),
                        changes: it.changes, token: told))
            }
            read[reader.scope] = page.token
            hasMore = hasMore || page.hasMore
        }
        tokens = read
        return (changes, hasMore)
    }
}

extension ContainerChange.Origin {
    init(_ transaction: HistoryTransaction, own: UUID?) {
        switch transaction.origin {
        case .import: self = .import
        case .cloud: self = .cloud
        case .save, .undo: self = transaction.writer == own ? .thisProcess : .anotherProcess
        }
    }
}

extension PersistentContainer {
    /// The changes that others commit, as they do; and one's own, if wanted.
    ///
    /// - Parameters:
    ///   - token: Where to begin: what came since is told first. `nil` begins with what comes from now on.
    ///   - withOwn: Whether changes of this container object are told, too.
    public nonisolated func changes(since token: ContainerToken? = nil, withOwn: Bool = false) -> ContainerChanges {
        return ContainerChanges(
            directory: directory, readers: readers,
            notifications: { [self] () throws(StoreError) in try notifications(withOwn: withOwn) },
            own: Dictionary(uniqueKeysWithValues: stores.all.map { ($0.scope, $0.writer) }),
            withOwn: withOwn,
            start: token)
    }

    /// Something may have been committed.
    nonisolated func notifications(withOwn: Bool) throws(StoreError) -> AsyncStream<Void> {
        let notifications = changeBroadcaster.notifications(withOwn: withOwn)
        try listen()
        return notifications
    }

    /// The place behind everything that is committed.
    public nonisolated func historyToken() throws(StoreError) -> ContainerToken {
        var tokens: [StoreScope: HistoryToken] = [:]
        for reader in readers { tokens[reader.scope] = try reader.historyToken() }
        return ContainerToken(tokens: tokens)
    }

    nonisolated var readers: [StoreReader] {
        stores.all.map { StoreReader($0) }
    }
}
