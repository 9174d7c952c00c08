import Foundation
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Sends local changes to the cloud, one batch after the other. A batch whose arrival is in doubt is sent again as it was, so that its
/// outcome becomes known.
actor ExportScheduler {
    let store: RecordStore
    let database: any CloudDatabase
    private let assets: AssetTransfer
    let resolver: ConflictResolver
    let mapping: RecordMapping
    private let environment: SyncEnvironment
    private let reaction: ExportReaction
    /// The share of the limits of a request that is used. It is halved when the cloud refuses a request as too large, and doubled when a
    /// request succeeds.
    private var share = 1.0
    /// A request that may or may not have arrived.
    private var outstanding: (request: SentRequest, batch: ExportBatch?)?
    /// Whether requests of an earlier process have been looked for.
    private var hasLooked = false
    private var hasRoom = true
    /// The request that goes next: it is noted as sent, and is not sent yet.
    private var next: Prepared?
    private var failures = RecordFailures()

    /// A request that was gathered while the one before was on its way.
    private struct Prepared: Sendable {
        let request: SentRequest
        let batch: ExportBatch
        /// `nil` where assets have to go up first.
        let operations: RequestOperations?
    }

    init(
        store: RecordStore, database: any CloudDatabase, assets: AssetTransfer, resolver: ConflictResolver,
        mapping: RecordMapping,
        environment: SyncEnvironment
    ) {
        self.store = store
        self.database = database
        self.assets = assets
        self.resolver = resolver
        self.mapping = mapping
        self.environment = environment
        reaction = ExportReaction(mapping: mapping, environment: environment)
    }

    /// Discards the gathered request, because the account or the state of its cloud may have changed. If the request was noted as sent, the
    /// store returns it.
    func forgetNext() {
        guard next != nil else { return }
        next = nil
        hasLooked = false
    }

    /// The outcome of a step.
    struct Outcome: Sendable {
        /// Whether there was something to send.
        var didWork = false
        /// Records that the cloud has now.
        var sent = 0
        var conflicts = 0
        /// The error of the whole step.
        var error: CloudError?
    }

    /// The limit for bytes of assets in a batch. They go up before their records, and a person's edit waits for no more than that.
    private static let assetBytes: Int64 = 16_000_000

    /// Sends a batch, or sends the last one again if its outcome is unknown.
    ///
    /// - Parameter hasRoom: Whether the cloud has room for the changes that wait in bulk. If not, only their deletions go.
    func step(limits: CloudLimits, hasRoom: Bool = true, progress: @Sendable (Int64) async -> Void) async throws -> Outcome {
        self.hasRoom = hasRoom
        let state = try await store.syncState(zone: mapping.number)
        // Nothing is sent while the import compares: the cloud was put back to an earlier state, and has lost the changes that
        // were sent since.
        // Nothing is sent before the first page either. The page names the incarnation, by which the device later knows which
        // changes the cloud has lost.
        if state.isComparing || state.awaitsFirstPage {
            forget()
            return Outcome()
        }
        if !hasLooked {
            for request in try await store.sentRequests(zone: mapping.number) { outstanding = (request, nil) }
            hasLooked = true
        }
        if let outstanding {
            return try await send(outstanding.request, of: outstanding.batch, limits: limits, progress: progress)
        }
        if let next {
            self.next = nil
            return try await send(next.request, of: next.batch, begun: next, limits: limits, progress: progress)
        }
        var conflicts = 0
        do throws(CloudError) {
            conflicts = try await applyDeferred(limits: limits)
        } catch {
            return Outcome(didWork: true, error: error)
        }
        let batch = try await store.nextExport(
            edits: size(limits), bulk: size(limits), deletesOnly: !hasRoom, zone: mapping.number)
        if !batch.damaged.isEmpty, try await repair(batch.damaged, limits: limits), batch.isEmpty {
            return Outcome(didWork: true, conflicts: conflicts)
        }
        guard !batch.isEmpty else { return Outcome(conflicts: conflicts) }
        let request = SentRequest(token: environment.identifier().uuidString, items: batch.items)
        var outcome = try await send(request, of: batch, limits: limits, progress: progress)
        outcome.conflicts += conflicts
        return outcome
    }

    /// Looks up records that came from the cloud while the outcome of their own requests was unknown.
    ///
    /// - Returns: The number of conflicts.
    private func applyDeferred(limits: CloudLimits) async throws(CloudError) -> Int {
        do {
            var (names, conflicts) = (try await store.deferUntilReply(zone: mapping.number)[...], 0)
            while !names.isEmpty {
                let some = names.prefix(max(1, limits.operationsPerRequest))
                let found = try await database.lookup(Array(some), in: mapping.zone, desiredKeys: nil)
                conflicts += try await resolver.apply(some, lookedUp: found, limits: limits).conflicts.count
                names = names.dropFirst(some.count)
            }
            return conflicts
        } catch {
            throw CloudError(transfer: error)
        }
    }

    /// The limits of a request.
    private func size(_ limits: CloudLimits) -> ExportLimits {
        ExportLimits(
            items: max(1, Int(Double(limits.operationsPerRequest) * share)),
            // Names of fields and times of edits come on top.
            bytes: max(1, Int(Double(limits.bytesPerRequest) * share * 0.8)), assetBytes: Self.assetBytes)
    }

    /// Gathers the request behind a batch. If that fails, the request is gathered when its turn comes, and its error is thrown
    /// then.
    private func prepare(behind batch: ExportBatch?, limits: CloudLimits) async -> Prepared? {
        guard environment.looksAhead, hasRoom, let batch,
            let next = try? await store.nextExport(behind: batch, bulk: size(limits), zone: mapping.number)
        else { return nil }
        let request = SentRequest(token: environment.identifier().uuidString, items: next.items)
        // Operations that need the cloud, or the store again, are made when their turn comes.
        let isWhole = next.items.allSatisfy { $0.assets.isEmpty && $0.cleared.isEmpty }
        let operations = isWhole ? RequestOperations(request, mapping: mapping, environment: environment) : nil
        return Prepared(request: request, batch: next, operations: operations)
    }

    /// - Parameter begun: The prepared request, if it is noted as sent already.
    private func send(
        _ request: SentRequest, of batch: ExportBatch?, begun: Prepared? = nil, limits: CloudLimits,
        progress: @Sendable (Int64) async -> Void
    ) async throws -> Outcome {
        let wasOutstanding = outstanding != nil
        var outcome = Outcome(didWork: true)
        do throws(CloudError) {
            let operations: RequestOperations
            if let made = begun?.operations {
                operations = made
            } else if wasOutstanding, let known = try await named(request) {
                // The request may have succeeded, and its assets may have been replaced since. Only the reply tells whether they have to go
                // up.
                operations = known
            } else {
                operations = try await upload(request, limits: limits, progress: progress)
            }
            if let refused = operations.refused {
                outstanding = nil
                try await stored {
                    try await self.store.applyReply(to: request, of: batch, results: refused, zone: self.mapping.number)
                }
                return outcome
            }
            if !wasOutstanding, begun == nil {
                // The zone may have been removed while assets went up.
                guard try await stored({ try await self.store.begin(request, zone: self.mapping.number) }) else {
                    return Outcome()
                }
            }
            outstanding = (request, batch)
            // The store is read while the cloud writes.
            async let ahead = prepare(behind: environment.aheadOrder == .behind ? nil : batch, limits: limits)
            if environment.aheadOrder == .before { _ = await ahead }
            let outcomes = try await database.modify(
                ModifyRecordsRequest(
                    zone: mapping.zone, operations: operations.all, isAtomic: true, clientToken: request.token, desiredKeys: []))
            guard ExportReaction.isAnswer(outcomes, to: request) else {
                throw CloudError(.internalError, "the cloud's reply does not match the request")
            }
            outstanding = nil
            var next = await ahead
            if environment.aheadOrder == .behind { next = await prepare(behind: batch, limits: limits) }
            let (sent, conflicts) = try await applyReply(outcomes, to: request, of: batch, next: next, limits: limits)
            outcome.sent = sent
            outcome.conflicts = conflicts
            if sent > 0 { share = min(1, share * 2) }
        } catch {
            outcome.error = error
            switch ErrorReaction(error.code) {
            case _ where error.storeError != nil:
                // The store's data decides what is known of the request.
                (outstanding, hasLooked) = (nil, false)
            case .resend where outstanding != nil, .retry where wasOutstanding,
                .ask where wasOutstanding && error.code != .quotaExceeded:
                // The failure of this try says nothing about the try before.
                break
            case .report where outstanding != nil && error.code == .internalError:
                // The request may have failed after it was performed.
                break
            case .halve where request.items.count > 1:
                share = max(share / 2, 0.001)
                try await abandon(request)
                outcome.error = nil
            case .halve:
                // A single record that is too large.
                try await refuse(request, of: batch, error, nextTry: nil)
                outcome.error = nil
            case .ask:
                try await refuse(request, of: batch, error, nextTry: environment.now() + ExportReaction.longPause)
            case .report where error.code != .internalError:
                try await split(request, of: batch, error)
                outcome.error = request.items.count > 1 ? nil : error
            default:
                try await abandon(request)
            }
        }
        return outcome
    }

    /// Sends the assets that a request names, and makes its operations.
    private func upload(
        _ request: SentRequest, limits: CloudLimits, progress: @Sendable (Int64) async -> Void
    ) async throws(CloudError) -> RequestOperations {
        do {
            let names = try await assets.upload(request.items, zone: mapping.zone, limits: limits, progress: progress)
            return try await operations(request, assets: names)
        } catch let error as CloudError where mapping.isRefusal(error) {
            return RequestOperations(
                refused: request.items.map { item in
                    item.assets.isEmpty ? .undone : .rejected(code: error.code.rawValue, reason: ExportReaction.reason(error))
                })
        } catch {
            throw CloudError(transfer: error)
        }
    }

    /// Makes the operations of a request whose assets are known, without uploading these.
    private func named(_ request: SentRequest) async throws(CloudError) -> RequestOperations? {
        do {
            guard let names = try await assets.names(in: request.items) else { return nil }
            return try await operations(request, assets: names)
        } catch {
            throw CloudError(transfer: error)
        }
    }

    private func operations(_ request: SentRequest, assets: [String: CloudAsset]) async throws -> RequestOperations {
        RequestOperations(
            request, mapping: mapping, environment: environment, assets: assets,
            foreign: try await foreignFields(request.items), whole: try await damaged(request.items))
    }

    /// Returns, for each record, the fields that are empty here only because the store can't hold the cloud's values. They must
    /// not be emptied in the cloud.
    private func foreignFields(_ items: [ExportItem]) async throws -> [String: Set<String>] {
        let names = Set(items.filter { !$0.cleared.isEmpty }.map(\.name))
        guard !names.isEmpty else { return [:] }
        let deferred = try await store.deferredRecords([.schema], zone: mapping.number).filter { names.contains($0.name) }
        guard !deferred.isEmpty else { return [:] }
        let types = Dictionary(
            try await store.types().map { type in
                (type.name, Dictionary(type.fields.map { ($0.name, $0.type) }, uniquingKeysWith: { one, _ in one }))
            }, uniquingKeysWith: { one, _ in one })
        return deferred.reduce(into: [:]) { fields, record in
            let held = types[record.type] ?? [:]
            // Nothing is known of a deferred record that can't be read. It comes again when it changes.
            guard let whole = try? mapping.record(record) else { return }
            fields[record.name] = Set(whole.fields.filter { name, value in held[name] != value.type }.keys)
        }
    }

    private func applyReply(
        _ outcomes: [RecordOutcome], to request: SentRequest, of batch: ExportBatch?, next: Prepared?, limits: CloudLimits
    ) async throws(CloudError) -> (sent: Int, conflicts: Int) {
        var results: [ExportResult] = []
        var changed: [ZoneChanges.Change] = []
        var sent = 0
        let hasCause = ExportReaction.hasCause(outcomes)
        for (item, outcome) in zip(request.items, outcomes) {
            switch outcome {
            case .saved(let record):
                results.append(.saved(tag: record.changeTag ?? ""))
                failures.end(item.name)
                sent += 1
            case .deleted:
                results.append(.deleted)
                failures.end(item.name)
                sent += 1
            case .failed(let error) where hasCause && error.code == .batchRequestFailed: results.append(.undone)
            case .failed(let error) where failures.failed(item.name, error.code):
                results.append(
                    .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + ExportReaction.pause))
            case .failed(let error):
                results.append(reaction.result(error, item, &changed))
                if results.last != .undone { failures.end(item.name) }
            }
        }
        do {
            // A refusal, or a conflict with another device's change, may change the next request: other records may wait for it.
            let next = sent == request.items.count ? next : nil
            if try await store.applyReply(to: request, of: batch, results: results, next: next?.request, zone: mapping.number) {
                self.next = next
            }
        } catch {
            throw CloudError(transfer: error)
        }
        var conflicts = 0
        do {
            let whole = try await damaged(request.items)
            let saved = zip(request.items, results).compactMap { item, result -> String? in
                if case .saved = result, whole.contains(item.name) { item.name } else { nil }
            }
            if !saved.isEmpty { try await store.endDamaged(saved, zone: mapping.number) }
        } catch {
            throw CloudError(transfer: error)
        }
        if !changed.isEmpty {
            do {
                conflicts = try await resolver.apply(changed, limits: limits).conflicts.count
            } catch {
                throw CloudError(transfer: error)
            }
        }
        return (sent, conflicts)
    }

    /// Forgets requests to a zone that is gone or belongs to another account. Their outcomes are not asked for.
    func forget() { (outstanding, next, hasLooked) = (nil, nil, false) }

    /// Gives up a request that the cloud has not performed: its changes are gathered again.
    private func abandon(_ request: SentRequest) async throws {
        outstanding = nil
        try await store.applyReply(to: request, of: nil, results: request.items.map { _ in .undone }, zone: mapping.number)
    }

    private func refuse(_ request: SentRequest, of batch: ExportBatch?, _ error: CloudError, nextTry: Int64?) async throws {
        outstanding = nil
        try await store.applyReply(
            to: request, of: batch,
            results: request.items.map { item in
                .refused(code: error.code.rawValue, reason: error.reason, nextTry: nextTry ?? reaction.nextTry(of: item, error))
            },
            zone: mapping.number)
    }

    /// Handles the refusal of a whole request that does not say which record is to blame: the next requests are smaller.
    private func split(_ request: SentRequest, of batch: ExportBatch?, _ error: CloudError) async throws {
        guard request.items.count > 1 else { return try await refuse(request, of: batch, error, nextTry: nil) }
        share = max(share / 2, 0.001)
        try await abandon(request)
    }

    @discardableResult
    private func stored<Result>(_ body: () async throws -> Result) async throws(CloudError) -> Result {
        do {
            return try await body()
        } catch {
            throw CloudError(transfer: error)
        }
    }
}
