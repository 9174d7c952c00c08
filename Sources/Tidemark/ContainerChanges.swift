import Foundation
import TidemarkModel
import TidemarkStore

/// What one transaction changed in a container, as a process hears of it.
public struct ContainerChange: Hashable, Sendable {
    /// Where it came from, as seen from here.
    public enum Origin: Hashable, Sendable {
        case thisProcess, anotherProcess, `import`, cloud
    }

    public let scope: DatabaseScope
    public let transaction: HistoryTransaction
    public let origin: Origin
    /// Exactly the records that it changed.
    public let changes: [RecordChange]
    /// The place behind it in its store's history.
    public let token: HistoryToken
}

/// Places in the histories of a container's stores: everything before them has been seen.
public struct ContainerToken: Hashable, Codable, Sendable {
    var tokens: [DatabaseScope: HistoryToken]

    /// The place in one store.
    public subscript(scope: DatabaseScope) -> HistoryToken? { tokens[scope] }
}

extension ContainerToken: LosslessStringConvertible {
    /// `private=<token>,shared=<token>`.
    public var description: String {
        ContainerDirectory.scopes.compactMap { scope in tokens[scope].map { "\(scope.name)=\($0)" } }.joined(separator: ",")
    }

    public init?(_ description: String) {
        var tokens: [DatabaseScope: HistoryToken] = [:]
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
/// It fails with ``StoreError`` `historyTokenExpired` when the token is too old: then fetch all records anew, and begin without one.
public struct ContainerChanges: AsyncSequence, Sendable {
    public typealias Element = ContainerChange

    let readers: [StoreReader]
    let rings: @Sendable () throws(StoreError) -> AsyncStream<Void>
    /// The openings of the stores that belong to this process.
    let own: [DatabaseScope: UUID]
    let withOwn: Bool
    let start: ContainerToken?

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    public struct Iterator: AsyncIteratorProtocol {
        private let sequence: ContainerChanges
        private let reading: ChangeReading
        private var rings: AsyncStream<Void>.Iterator?
        private var ready: [ContainerChange] = []
        /// What has been handed out.
        public private(set) var token: ContainerToken

        init(_ sequence: ContainerChanges) {
            self.sequence = sequence
            token = sequence.start ?? ContainerToken(tokens: [:])
            reading = ChangeReading(sequence)
        }

        public mutating func next() async throws -> ContainerChange? {
            if rings == nil {
                // Listening comes first, so that nothing is missed between reading and listening.
                rings = try sequence.rings().makeAsyncIterator()
                token = try await reading.prime()
            }
            while ready.isEmpty {
                let page = try await reading.next()
                ready = page.changes
                if !ready.isEmpty || page.hasMore { continue }
                guard await rings?.next(isolation: nil) != nil else { return nil }
            }
            let change = ready.removeFirst()
            token.tokens[change.scope] = change.token
            return change
        }
    }
}

/// Reads on in the histories of a container, off the threads that Swift's tasks share.
private actor ChangeReading {
    private nonisolated let executor = StoreExecutor(label: "tidemark.changes")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let readers: [StoreReader]
    private let own: [DatabaseScope: UUID]
    private let withOwn: Bool
    /// What has been read.
    private var tokens: [DatabaseScope: HistoryToken]

    init(_ sequence: ContainerChanges) {
        readers = sequence.readers
        own = sequence.own
        withOwn = sequence.withOwn
        tokens = sequence.start?.tokens ?? [:]
    }

    /// Without a token it begins with what comes from now on.
    func prime() throws -> ContainerToken {
        for reader in readers where tokens[reader.scope] == nil { tokens[reader.scope] = try reader.historyToken() }
        return ContainerToken(tokens: tokens)
    }

    func next() throws -> (changes: [ContainerChange], hasMore: Bool) {
        var (changes, hasMore) = ([ContainerChange](), false)
        for reader in readers {
            let own = own[reader.scope]
            let page = try reader.changes(since: tokens[reader.scope], without: withOwn ? nil : own, limit: 100)
            changes += page.transactions.map { it in
                ContainerChange(
                    scope: reader.scope, transaction: it.transaction, origin: .init(it.transaction, own: own),
                    changes: it.changes,
                    token: HistoryToken(page.token, transaction: it.transaction.id))
            }
            tokens[reader.scope] = page.token
            hasMore = hasMore || page.hasMore
        }
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
        let bell = changeBell
        return ContainerChanges(
            readers: readers, rings: { () throws(StoreError) in bell.rings(withOwn: withOwn) }, own: stores.mapValues(\.writer),
            withOwn: withOwn,
            start: token)
    }

    /// The place behind everything that is committed.
    public nonisolated func historyToken() throws(StoreError) -> ContainerToken {
        var tokens: [DatabaseScope: HistoryToken] = [:]
        for reader in readers { tokens[reader.scope] = try reader.historyToken() }
        return ContainerToken(tokens: tokens)
    }

    nonisolated var readers: [StoreReader] {
        ContainerDirectory.scopes.compactMap { scope in stores[scope].map { StoreReader($0) } }
    }
}
