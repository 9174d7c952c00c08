import Foundation
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// The changes of one transaction in a container.
public struct ContainerChange: Hashable, Sendable {
    /// The origin of a transaction, from the point of view of this process.
    public enum Origin: Hashable, Sendable {
        /// A save of this container object, a save of another one, a bulk import, or changes that were fetched from the cloud.
        case thisProcess, anotherProcess, `import`, cloud
    }

    /// The store that was changed.
    public let scope: StoreScope
    /// The transaction in the history: its author, its time, its number.
    public let transaction: HistoryTransaction
    /// The origin of the transaction.
    public let origin: Origin
    /// The changed records, and no others.
    public let changes: [RecordChange]
    /// The position after this transaction and all earlier ones of the sequence. A program keeps it, to begin there the next
    /// time.
    public let token: ContainerToken
}

/// The positions in the histories of a container's stores up to which changes were read.
public struct ContainerToken: Hashable, Codable, Sendable {
    var tokens: [StoreScope: HistoryToken]

    /// The position in the history of one store.
    public subscript(scope: StoreScope) -> HistoryToken? { tokens[scope] }
}

extension ContainerToken: LosslessStringConvertible {
    /// The token as text: `private=<token>,shared=<token>`.
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

/// The changes of a container as they are committed, transaction by transaction. Each transaction appears once.
///
/// ```swift
/// for try await change in journal.changes(since: savedToken) {
///     show(change.changes.map(\.record))
/// }
/// ```
///
/// The sequence begins with the changes since the token, then waits for new ones. No change is lost while the process sleeps, and
/// no thread wakes up while no process writes. Keep the ``ContainerChange/token`` of the last change that you have processed, to
/// continue from there after the next start.
///
/// Iteration throws ``StoreError`` `historyTokenExpired` when the token is too old: fetch all records again, and begin without a
/// token. It throws `moved` when the container has moved away or was replaced: open it again.
public struct ContainerChanges: AsyncSequence, Sendable {
    public typealias Element = ContainerChange

    let directory: ContainerDirectory
    let readers: [StoreReader]
    let notifications: @Sendable () throws(StoreError) -> AsyncStream<Void>
    /// The identifiers with which this container object writes to the stores.
    let own: [StoreScope: UUID]
    let withOwn: Bool
    let start: ContainerToken?

    /// Makes an iterator that begins at the sequence's token. Each iterator gets every change.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Waits for changes. Only one task may use it at a time.
    public struct Iterator: AsyncIteratorProtocol {
        private let sequence: ContainerChanges
        private let reading: ChangeReading
        private var notifications: AsyncStream<Void>.Iterator?
        private var ready: [ContainerChange] = []
        /// The position after the last change that was returned.
        public private(set) var token: ContainerToken

        init(_ sequence: ContainerChanges) {
            self.sequence = sequence
            token = sequence.start ?? ContainerToken(tokens: [:])
            reading = ChangeReading(sequence)
        }

        /// Returns the next change. It waits if there is none yet, and returns `nil` when the task is cancelled or the container
        /// was closed.
        ///
        /// - Throws: ``StoreError`` `historyTokenExpired`, `moved`, and the errors of reading.
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

/// Reads the histories of a container, on a queue of its own and not on the threads of Swift's tasks.
private actor ChangeReading {
    private nonisolated let executor = StoreExecutor(label: "tidemark.changes")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let directory: ContainerDirectory
    private var readers: [StoreReader]
    private let own: [StoreScope: UUID]
    private let withOwn: Bool
    /// The positions up to which the stores were read. A store without a position is read from its beginning.
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

    /// Sets the positions to begin with. Without a token, that is the present end of each history. A store that a token does not
    /// name did not exist when the token was made, and is read from its beginning.
    func prime() throws -> ContainerToken {
        for reader in readers where !hasStart { tokens[reader.scope] = try reader.historyToken() }
        return ContainerToken(tokens: tokens)
    }

    /// Opens stores that were created since.
    private func openNew() throws {
        for scope in ContainerDirectory.scopes where !readers.contains(where: { $0.scope == scope }) {
            guard directory.hasStore(scope) else { continue }
            readers.append(try StoreReader(container: directory, scope: scope))
        }
    }

    func next() throws -> (changes: [ContainerChange], hasMore: Bool) {
        try openNew()
        var (changes, hasMore) = ([ContainerChange](), false)
        // The positions are only stored at the end. If one store can't be read, both are read again.
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
    /// Returns the changes of other processes and container objects as they are committed; on request, also the changes of this
    /// object.
    ///
    /// - Parameters:
    ///   - token: The position to begin with: changes since then come first. `nil` begins with changes from now on.
    ///   - withOwn: Whether changes of this container object are included.
    public nonisolated func changes(since token: ContainerToken? = nil, withOwn: Bool = false) -> ContainerChanges {
        return ContainerChanges(
            directory: directory, readers: readers,
            notifications: { [self] () throws(StoreError) in try notifications(withOwn: withOwn) },
            own: Dictionary(uniqueKeysWithValues: stores.all.map { ($0.scope, $0.writer) }),
            withOwn: withOwn,
            start: token)
    }

    /// Returns a stream with an element whenever something may have been committed.
    nonisolated func notifications(withOwn: Bool) throws(StoreError) -> AsyncStream<Void> {
        let notifications = changeBroadcaster.notifications(withOwn: withOwn)
        try listen()
        return notifications
    }

    /// Returns the position after everything that is committed.
    public nonisolated func historyToken() throws(StoreError) -> ContainerToken {
        var tokens: [StoreScope: HistoryToken] = [:]
        for reader in readers { tokens[reader.scope] = try reader.historyToken() }
        return ContainerToken(tokens: tokens)
    }

    nonisolated var readers: [StoreReader] {
        stores.all.map { StoreReader($0) }
    }
}
