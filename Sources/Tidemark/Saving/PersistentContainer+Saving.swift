public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Saves of several records.
extension PersistentContainer {
    /// Saves records of several types: in each store all or none, the shared one first.
    ///
    /// ```swift
    /// let senja = Destination(caption: "Senja")
    /// try await journal.save([senja, Visit(destination: Reference(senja))])
    /// ```
    ///
    /// It is otherwise as a save of records of one type: what the store has by then is replaced, and fields that the Swift types do not have
    /// stay.
    ///
    /// - Parameters:
    ///   - records: Written in this order.
    ///   - scope: The store of new records; those that are there stay where they are. A new record of the shared store belongs to a share.
    /// - Returns: What was done; of the transactions, one for each store that was changed.
    /// - Throws: As ``save(_:in:)-(R,_)``. Then nothing is saved in the store that failed.
    /// - Complexity: O(n log n).
    @discardableResult
    public func save(_ records: [any Record], in scope: StoreScope = .private) throws -> SaveResult {
        try save(records, in: scope, share: nil).result
    }

    /// Saves a record, and returns it as the store has it then. As GRDB's `saveAndFetch`.
    ///
    /// That differs from what was given where a store keeps less than Swift, as of the time in a `Date`, which is kept to the microsecond; where
    /// an asset was ingested; where the store has a record of the same unique key. What is returned is equal to what a fetch returns.
    ///
    /// ```swift
    /// let senja = try await journal.saveAndFetch(Destination(caption: "Senja"))
    /// let fetched = try await journal.fetch(Destination.self, id: senja.id)   // is equal to `senja`
    /// ```
    ///
    /// - Parameters:
    ///   - record: As for ``save(_:in:)-(R,_)``.
    ///   - scope: The store of a new record.
    /// - Returns: The record as it is after the save's transaction.
    /// - Throws: As ``save(_:in:)-(R,_)``; then nothing is saved. `DecodingError` when the record that was saved can't be read as its type.
    @discardableResult
    public func saveAndFetch<R: Record>(_ record: R, in scope: StoreScope = .private) throws -> R {
        try saveAndFetch([record], in: scope)[0]
    }

    /// Saves records, all or none in each store, and returns them as the stores have them then; see ``saveAndFetch(_:in:)-(R,_)``.
    ///
    /// - Parameters:
    ///   - records: As for ``save(_:in:)-([R],_)``.
    ///   - scope: The store of new records.
    /// - Returns: The records as they are after the save's transactions, in the order given.
    /// - Throws: As ``save(_:in:)-([R],_)``. `DecodingError` when a record that was saved can't be read as its type.
    /// - Complexity: O(n log n); each record is read again.
    public func saveAndFetch<R: Record>(_ records: [R], in scope: StoreScope = .private) throws -> [R] {
        let committed = try save(records, in: scope, share: nil, tellingStates: true)
        // Assets of both stores lie in the container's folder.
        let assets = AssetPlace(folder: sources[scope].assets)
        return try records.map { record in
            let name = RecordName(type: R.recordType, name: record.recordName)
            guard let state = committed.saved[name] ?? nil else {
                throw StoreError(.notFound, "\(name.type) \(name.name) was saved, and is not in the store")
            }
            return try RecordDecoder<R>.record(committed.names[name] ?? name.name, values: state.values, assets: assets)
        }
    }

    /// Saves many records in batches, each of which is a save of its own: other saves have their turn between two batches, and need not wait
    /// for all of them.
    ///
    /// ```swift
    /// try await journal.saveInBatches(destinations) { saved in print("\(saved) of \(destinations.count)") }
    /// ```
    ///
    /// A batch is saved all or none, as by ``save(_:in:)-([R],_)``; the whole is not. If a batch fails or the task is cancelled, the batches
    /// before it stay saved, and none after it is begun: records that are saved again are compared and not written, so that the same call does
    /// the rest. History has a transaction for each batch.
    ///
    /// - Parameters:
    ///   - records: Saved in this order.
    ///   - batchSize: The number of records of a batch, at least 1. The more, the faster all of them are saved, and the longer others wait.
    ///   - scope: The store of new records.
    ///   - progress: Is called on the container's queue after each batch, with the number of the records that are saved; it should return
    ///     at once.
    /// - Returns: What all batches did; of their transactions, the last one in each store.
    /// - Throws: `CancellationError` when the task is cancelled, which is looked at before each batch; as ``save(_:in:)-([R],_)``.
    /// - Complexity: O(n log n), and a durable commit for each batch.
    @discardableResult
    public func saveInBatches<R: Record>(
        _ records: some Sequence<R> & Sendable, batchSize: Int = 500, in scope: StoreScope = .private,
        progress: (@Sendable (Int) -> Void)? = nil
    ) async throws -> SaveResult {
        var saves = BatchedSaves<R>(size: batchSize, progress: progress)
        for record in records where saves.add(record) { try await save(&saves, in: scope) }
        if !saves.batch.isEmpty { try await save(&saves, in: scope) }
        return saves.result
    }

    /// Saves the records of an asynchronous sequence in batches, as they come. It is otherwise as for a sequence that is there.
    ///
    /// - Parameters:
    ///   - records: Saved in this order. The last batch is saved when the sequence ends; if it throws, the records of an incomplete batch are not
    ///     saved.
    ///   - batchSize: The number of records of a batch, at least 1.
    ///   - scope: The store of new records.
    ///   - progress: Is called on the container's queue after each batch, with the number of the records that are saved.
    /// - Returns: What all batches did; of their transactions, the last one in each store.
    /// - Throws: What the sequence throws; `CancellationError` when the task is cancelled; as ``save(_:in:)-([R],_)``.
    /// - Complexity: As for a sequence; a single batch is in memory.
    @discardableResult
    public func saveInBatches<Records: AsyncSequence & Sendable>(
        _ records: Records, batchSize: Int = 500, in scope: StoreScope = .private, progress: (@Sendable (Int) -> Void)? = nil
    ) async throws -> SaveResult where Records.Element: Record {
        var saves = BatchedSaves<Records.Element>(size: batchSize, progress: progress)
        for try await record in records where saves.add(record) { try await save(&saves, in: scope) }
        if !saves.batch.isEmpty { try await save(&saves, in: scope) }
        return saves.result
    }

    private func save<R: Record>(_ saves: inout BatchedSaves<R>, in scope: StoreScope) async throws {
        try Task.checkCancellation()
        saves.note(try save(saves.batch, in: scope))
        // Those who wait for the container's queue are before this task then.
        await Task.yield()
    }

    /// - Parameters:
    ///   - share: The share of that store into which new records go.
    ///   - tellingStates: Whether the outcome tells what each record is now.
    func save(
        _ records: [any Record], in scope: StoreScope, share: SharePlace?, tellingStates: Bool = false
    ) throws -> Committed {
        var types: [ObjectIdentifier: any Record.Type] = [:]
        for record in records {
            let type = Swift.type(of: record)
            types[ObjectIdentifier(type)] = type
        }
        let policy = policies(
            nil,
            types: Dictionary(
                types.values.map { ($0.recordType, $0.mergePolicy) }, uniquingKeysWith: { one, other in one ?? other }))
        return try write(tellingStates: tellingStates) { assets in
            let preparation = RecordPreparation(assets)
            let prepared = try records.map { try preparation.prepare($0) }
            var parts: [StoreScope: [Int]] = [:]
            for (index, home) in try homes(of: prepared.map(\.record), default: scope).enumerated() {
                parts[home, default: []].append(index)
            }
            return parts.map { home, indices in
                StoreSave(
                    scope: home, edits: indices.map { prepared[$0].edit(.any, in: home == scope ? share?.zone : nil) },
                    schemas: Self.union(indices.lazy.map { prepared[$0].schema }), policy: policy,
                    validate: { db, source, matches in
                        if home == scope { try share?.check(db, source) }
                        let stored = StoredRecords(db, source)
                        for (index, match) in zip(indices, matches) { try stored.validate(records[index], match) }
                    })
            }
        }
    }
}

/// How far a save in batches has come.
private struct BatchedSaves<R: Record> {
    private let size: Int
    private let progress: (@Sendable (Int) -> Void)?
    private var count = 0
    private(set) var batch: [R] = []
    private(set) var result = SaveResult()

    init(size: Int, progress: (@Sendable (Int) -> Void)?) {
        precondition(size > 0, "a batch has at least one record")
        self.size = size
        self.progress = progress
    }

    /// Returns whether the batch is complete.
    mutating func add(_ record: R) -> Bool {
        batch.append(record)
        return batch.count == size
    }

    /// Notes that the batch is saved, and begins the next.
    mutating func note(_ saved: SaveResult) {
        result.add(saved)
        count += batch.count
        batch.removeAll(keepingCapacity: true)
        progress?(count)
    }
}
