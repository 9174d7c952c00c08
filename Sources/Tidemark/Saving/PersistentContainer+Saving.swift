public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Saves of several records.
extension PersistentContainer {
    /// Saves records of several types. Each store saves all of its records or none; the shared store is first.
    ///
    /// ```swift
    /// let senja = Destination(caption: "Senja")
    /// try await journal.save([senja, Visit(destination: Reference(senja))])
    /// ```
    ///
    /// Otherwise the save works like a save of records of one type: it replaces the stored values, and keeps fields that the Swift
    /// types do not have.
    ///
    /// - Parameters:
    ///   - records: The records, which are written in this order.
    ///   - scope: The store for new records. Existing records stay in their store. A new record in the shared store must belong to
    ///     a share.
    /// - Returns: The result of the save, with one transaction for each store that has changed.
    /// - Throws: The errors of ``save(_:in:)-(R,_)``. The store that fails saves nothing.
    /// - Note: Of several records of one name, the last one is saved.
    /// - Complexity: O(n log n).
    @discardableResult
    public func save(_ records: [any Record], in scope: StoreScope = .private) throws -> SaveResult {
        try save(records, in: scope, share: nil).result
    }

    /// Saves a record, and returns it as the store has it after the save, like GRDB's `saveAndFetch`.
    ///
    /// The returned record equals the result of a fetch. It can differ from the given record: the store rounds a `Date` to the
    /// microsecond, ingests assets, and merges a record with another one of the same unique key.
    ///
    /// ```swift
    /// let senja = try await journal.saveAndFetch(Destination(caption: "Senja"))
    /// let fetched = try await journal.fetch(Destination.self, id: senja.id)   // is equal to `senja`
    /// ```
    ///
    /// - Parameters:
    ///   - record: The record to save.
    ///   - scope: The store for a new record.
    /// - Returns: The record as the store has it after the save's transaction.
    /// - Throws: The errors of ``save(_:in:)-(R,_)``; then nothing is saved. `DecodingError` when the saved record can't be read as
    ///   its type, and ``StoreError`` `notFound` when it is gone; the record stays saved then.
    @discardableResult
    public func saveAndFetch<R: Record>(_ record: R, in scope: StoreScope = .private) throws -> R {
        try saveAndFetch([record], in: scope)[0]
    }

    /// Saves records, and returns them as the stores have them after the save; see ``saveAndFetch(_:in:)-(R,_)``. Each store saves
    /// all of its records or none.
    ///
    /// - Parameters:
    ///   - records: The records to save.
    ///   - scope: The store for new records.
    /// - Returns: The records as the stores have them after the save's transactions, in the given order.
    /// - Throws: The errors of `save(_:in:)` of several records. `DecodingError` when a saved record can't be read as its type,
    ///   and ``StoreError`` `notFound` when it is gone; all records stay saved then.
    /// - Complexity: O(n log n); each record is read again.
    public func saveAndFetch<R: Record>(_ records: [R], in scope: StoreScope = .private) throws -> [R] {
        let committed = try save(records, in: scope, share: nil, tellingStates: true)
        // The assets of both stores are in the container's folder.
        let assets = AssetPlace(folder: sources[scope].assets)
        return try records.map { record in
            let name = RecordName(record)
            guard let state = committed.saved[name] ?? nil else {
                throw StoreError(.notFound, "\(name.type) \(name.name) was saved but is not in the store")
            }
            return try RecordDecoder<R>.record(committed.names[name] ?? name.name, values: state.values, assets: assets)
        }
    }

    /// Saves many records in batches. Each batch is a separate save, and other saves can run between two batches.
    ///
    /// ```swift
    /// try await journal.saveInBatches(destinations) { saved in print("\(saved) of \(destinations.count)") }
    /// ```
    ///
    /// Each batch is saved as a whole or not at all, like several records by `save(_:in:)`. If a batch fails or the task is cancelled,
    /// the batches before it stay saved, and no batch after it is started. The same call then saves the rest: records
    /// that are saved already are compared and not written. History has one transaction for each batch.
    ///
    /// - Parameters:
    ///   - records: The records, which are saved in this order.
    ///   - batchSize: The number of records in a batch, at least 1. Larger batches save faster, and other saves wait longer for
    ///     each batch.
    ///   - scope: The store for new records.
    ///   - progress: Called on the container's queue after each batch, with the number of records saved so far. It should return
    ///     quickly.
    /// - Returns: The results of all batches together, with the last transaction of each store.
    /// - Throws: `CancellationError` when the task is cancelled, which is checked before each batch; the errors of
    ///   `save(_:in:)` of several records.
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

    /// Saves the records of an asynchronous sequence in batches, as they arrive. Otherwise it works like the method for a sequence.
    ///
    /// - Parameters:
    ///   - records: The records, which are saved in this order. The last batch is saved when the sequence ends. If the sequence
    ///     throws, an incomplete batch is not saved.
    ///   - batchSize: The number of records in a batch, at least 1.
    ///   - scope: The store for new records.
    ///   - progress: Called on the container's queue after each batch, with the number of records saved so far. It should return
    ///     quickly.
    /// - Returns: The results of all batches together, with the last transaction of each store.
    /// - Throws: The errors of the sequence; `CancellationError` when the task is cancelled; the errors of `save(_:in:)` of several
    ///   records.
    /// - Complexity: As for a sequence. Only one batch is in memory.
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
        // Tasks that wait for the container's queue run before this one.
        await Task.yield()
    }

    /// Saves records of any types.
    ///
    /// - Parameters:
    ///   - records: The records to save.
    ///   - scope: The store for new records.
    ///   - share: The share in that store for new records; `nil` for none.
    ///   - tellingStates: Whether the outcome has the new state of each record.
    /// - Returns: The results of the stores.
    /// - Throws: The errors of ``save(_:in:)-(R,_)``.
    func save(
        _ records: [any Record], in scope: StoreScope, share: SharePlace?, tellingStates: Bool = false
    ) throws -> Committed {
        var types: [ObjectIdentifier: any Record.Type] = [:]
        var last: (any Record.Type)?
        for record in records {
            let type = Swift.type(of: record)
            guard last != type else { continue }
            types[ObjectIdentifier(type)] = type
            last = type
        }
        let policy = policies(
            nil,
            types: Dictionary(
                types.values.map { ($0.recordType, $0.mergePolicy) }, uniquingKeysWith: { one, other in one ?? other }))
        return try write(tellingStates: tellingStates) { assets in
            let prepared = try RecordPreparation(assets).prepare(records)
            var parts: [StoreScope: [Int]] = [:]
            let replaced = Self.replaced(prepared)
            let homes = try homes(of: prepared, records, in: scope, isShared: share != nil)
            for (index, home) in homes.enumerated() where !replaced.contains(index) {
                parts[home, default: []].append(index)
            }
            return parts.map { home, indices in
                StoreSave(
                    scope: home, edits: indices.map { prepared[$0].edit(.any, in: home == scope ? share?.zone : nil) },
                    schemas: Self.union(of: indices.lazy.map { prepared[$0].shape }), policy: policy,
                    validate: { db, source, matches in
                        if home == scope { try share?.check(db, source) }
                        let stored = StoredRecords(db, source)
                        for (index, match) in zip(indices, matches) { try stored.validate(records[index], match) }
                    })
            }
        }
    }
}

extension PersistentContainer {
    /// Returns the places of the records that a later one replaces: of several records of one name, the last one is saved.
    private static func replaced(_ records: [PreparedRecord]) -> Set<Int> {
        var replaced: Set<Int> = []
        // Most records are of one type.
        if let type = records.first?.record.type, records.allSatisfy({ $0.record.type == type }) {
            var names = Set<String>(minimumCapacity: records.count)
            for index in records.indices.reversed() where !names.insert(records[index].record.name).inserted {
                replaced.insert(index)
            }
        } else {
            var names = Set<RecordName>(minimumCapacity: records.count)
            for index in records.indices.reversed() where !names.insert(records[index].record).inserted {
                replaced.insert(index)
            }
        }
        return replaced
    }

    /// Returns the store of each record; see ``homes(of:default:)``.
    ///
    /// - Parameter isShared: Whether new records go into a share that was named, and not to their owners.
    private func homes(
        of prepared: [PreparedRecord], _ records: [any Record], in scope: StoreScope, isShared: Bool
    ) throws -> [StoreScope] {
        guard try scope != .private || hasRecordsOfOthers else { return records.map { _ in scope } }
        let owners = isShared ? records.map { _ in nil } : try DeclaredRelationships.owners(of: records)
        return try homes(of: Array(zip(prepared.map(\.record), owners)), default: scope)
    }
}

/// The state of a save in batches.
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

    /// Adds a record to the batch. Returns whether the batch is complete.
    mutating func add(_ record: R) -> Bool {
        batch.append(record)
        return batch.count == size
    }

    /// Records that the batch is saved, and starts the next one.
    mutating func note(_ saved: SaveResult) {
        result.add(saved)
        count += batch.count
        batch.removeAll(keepingCapacity: true)
        progress?(count)
    }
}
