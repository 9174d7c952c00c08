import Foundation
import GRDB
import Synchronization
import Tidemark

/// Measures saves of many records by a container and by a context, and fetches of them, beside GRDB's `Codable` inserts and fetches.
struct BulkBench {
    /// A folder that exists.
    let folder: URL
    let count: Int

    /// Returns milliseconds by the name of the operation. Both sides are durable.
    func run() async throws -> [String: Double] {
        let records = (0..<count).map(Destination.init(number:))
        let changed = records.map {
            var it = $0
            it.rating += 1
            return it
        }
        var times: [String: Double] = [:]
        func time(_ name: String, _ body: () async throws -> Void) async rethrows {
            let start = StoreBench.now()
            try await body()
            times[name] = Double(StoreBench.now() - start) / 1e6
        }

        let peer = try peer()
        try await time("GRDB insert") {
            try await peer.write { db in for record in records { try Peer(record).insert(db) } }
        }
        let journal = try container("Bulk")
        try await time("save") { try await journal.save(records) }
        try await time("save unchanged") { try await journal.save(records) }
        try await time("save changed") { try await journal.save(changed) }
        try await fetches(journal, peer) { name, body in try await time(name, body) }

        let other = try container("Context")
        let inserting = other.newContext()
        try await time("context insert") {
            for record in records { await inserting.insert(record) }
            try await inserting.save()
        }
        let updating = other.newContext()
        _ = try await updating.fetchAll(Destination.self)
        try await time("context update") {
            for record in changed { try await updating.update(record) }
            try await updating.save()
        }
        // Small saves beside a million records say no more than beside 100,000.
        guard count <= 100_000 else { return times }
        times["longest wait"] = try await longestWait(records) { try await $0.saveInBatches(records) }
        times["longest wait, one save"] = try await longestWait(records) { try await $0.save(records) }
        return times
    }

    private func fetches(
        _ journal: PersistentContainer, _ peer: DatabasePool,
        _ time: (String, () async throws -> Void) async throws -> Void
    ) async throws {
        let count = count
        let (first, last) = (Date(timeIntervalSince1970: 1_600_000_000), min(count, 10_000))
        let end = first.addingTimeInterval(Double(last))
        // Of a large store only a part is fetched, which is what grows.
        try await time("GRDB fetch of 10,000") {
            let found = try await peer.read { db in
                try Peer.filter(Column("createdAt") < end).limit(last).fetchAll(db)
            }
            precondition(found.count == last)
        }
        try await time("fetch of 10,000") {
            let found = try await journal.fetchAll(Destination.self, where: \.createdAt < end, limit: last)
            precondition(found.count == last)
        }
        try await time("GRDB top ten") {
            let found = try await peer.read { db in
                try Peer.order(Column("createdAt").desc).limit(10).fetchAll(db)
            }
            precondition(found.count == min(10, count))
        }
        try await time("top ten") {
            let found = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 10)
            precondition(found.count == min(10, count))
        }
    }

    private func container(_ name: String) throws -> PersistentContainer {
        try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: folder.appendingPathComponent("\(name).tidemark")))
    }

    private func peer() throws -> DatabasePool {
        var configuration = Configuration()
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA page_size = 16384") }
        let peer = try DatabasePool(path: folder.appendingPathComponent("bulk.sqlite").path, configuration: configuration)
        // `DatabasePool` sets `synchronous` to NORMAL, which is not durable; restore FULL.
        try peer.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
        try peer.write(Peer.create)
        return peer
    }
}

extension BulkBench {
    /// Returns the longest wait of a small save while many records are saved, in milliseconds.
    fileprivate func longestWait(
        _ records: [Destination], _ save: @escaping @Sendable (PersistentContainer) async throws -> Void
    ) async throws -> Double {
        let journal = try container("Waiting-\(UUID())")
        let isDone = Flag()
        let bulk = Task {
            defer { isDone.raise() }
            try await save(journal)
        }
        var (longest, number) = (0.0, 0)
        while !isDone.isRaised {
            number += 1
            let start = StoreBench.now()
            try await journal.save(Small(id: "\(number)"))
            longest = max(longest, Double(StoreBench.now() - start) / 1e6)
            try await Task.sleep(for: .milliseconds(5))
        }
        try await bulk.value
        return longest
    }
}

/// What one task tells another, which waits for it.
private final class Flag: Sendable {
    private let value = Mutex(false)
    var isRaised: Bool {
        @inline(never) get { value.withLock(\.self) }
    }
    // Within an asynchronous function, a release build of Swift 6.3 may unlock for the thread that ran before a wait, which traps.
    @inline(never) func raise() { value.withLock { $0 = true } }
}

/// A record that is saved during the save of many.
private struct Small: Tidemark.Record, Identifiable {
    var id: String
}
