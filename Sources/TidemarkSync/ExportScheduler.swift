import Foundation
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Sends local changes to the cloud, one batch after the other. A batch whose arrival is in doubt is sent again as it was, so that its
/// outcome becomes known.
actor ExportScheduler {
    private let store: RecordStore
    private let database: any CloudDatabase
    private let assets: AssetTransfer
    private let resolver: ConflictResolver
    private let mapping: RecordMapping
    private let environment: SyncEnvironment
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

    /// A request that was gathered while the one before was on its way.
    private struct Prepared: Sendable {
        let request: SentRequest
        let batch: ExportBatch
        /// `nil` where assets have to go up first.
        let operations: Operations?
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
    /// The pause of a record that was refused for a reason that may pass.
    private static let pause: Int64 = 60_000_000
    /// The pause of a record for which a person has to act.
    private static let longPause: Int64 = 600_000_000

    /// Sends a batch, or sends the last one again if its outcome is unknown.
    ///
    /// - Parameter hasRoom: Whether the cloud has room for the changes that wait in bulk. If not, only their deletions go.
    func step(limits: CloudLimits, hasRoom: Bool = true, progress: @Sendable (Int64) async -> Void) async throws -> Outcome {
        self.hasRoom = hasRoom
        let state = try await store.syncState(zone: mapping.number)
        // Nothing is sent while the import compares: the cloud was put back to an earlier state, and has lost the changes that were sent
        // since. Nothing is
        // sent before the first page either: the page names the incarnation, by which a device knows later which changes the cloud has
        // lost.
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

    /// Repairs records that were found damaged when they were to be sent.
    ///
    /// - Returns: Whether a record was repaired, and is to be sent.
    private func repair(_ found: [ExportBatch.Damaged], limits: CloudLimits) async throws -> Bool {
        let rows = try await store.damagedRows(found)
        do {
            _ = try await repair(rows, limits: limits)
        } catch let error as StoreError {
            throw error
        } catch {
            // The cloud can't be reached, or does not have the records. Records that need it for their repair stay in the sync issues.
        }
        return try await store.stillDamaged(rows).count < rows.count
    }

    /// Repairs damaged records of the zone from the store, and otherwise from the cloud's versions.
    func repair(_ rows: [DamagedRow], limits: CloudLimits) async throws -> [RepairReport.Repaired] {
        var repaired = try await store.repair(rows)
        var left = try await store.stillDamaged(rows).filter { $0.tag != nil }[...]
        while !left.isEmpty {
            let some = Array(left.prefix(max(1, limits.operationsPerRequest)))
            let found = try await database.lookup(some.map(\.name), in: mapping.zone, desiredKeys: nil)
            repaired += try await resolver.repair(some, lookedUp: found, limits: limits)
            left = left.dropFirst(some.count)
        }
        return repaired
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

    /// Gathers the request behind a batch. After a failure it is gathered when its turn comes, and fails then.
    private func prepare(behind batch: ExportBatch?, limits: CloudLimits) async -> Prepared? {
        guard environment.looksAhead, hasRoom, let batch,
            let next = try? await store.nextExport(behind: batch, bulk: size(limits), zone: mapping.number)
        else { return nil }
        let request = SentRequest(token: environment.identifier().uuidString, items: next.items)
        // Operations that need the cloud, or the store again, are made when their turn comes.
        let isWhole = next.items.allSatisfy { $0.assets.isEmpty && $0.cleared.isEmpty }
        return Prepared(request: request, batch: next, operations: isWhole ? operations(request, assets: [:], foreign: [:]) : nil)
    }

    /// - Parameter begun: The prepared request, if it is noted as sent already.
    private func send(
        _ request: SentRequest, of batch: ExportBatch?, begun: Prepared? = nil, limits: CloudLimits,
        progress: @Sendable (Int64) async -> Void
    ) async throws -> Outcome {
        let wasOutstanding = outstanding != nil
        var outcome = Outcome(didWork: true)
        do throws(CloudError) {
            var operations = Operations()
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
            guard Self.isAnswer(outcomes, to: request) else {
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
                // The store decides what is known of the request.
                (outstanding, hasLooked) = (nil, false)
            case .resend where outstanding != nil, .retry where wasOutstanding,
                .ask where wasOutstanding && error.code != .quotaExceeded:
                // The failure of this try says nothing of the one before.
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
                try await refuse(request, of: batch, error, nextTry: environment.now() + Self.longPause)
            case .report where error.code != .internalError:
                try await split(request, of: batch, error)
                outcome.error = request.items.count > 1 ? nil : error
            default:
                try await abandon(request)
            }
        }
        return outcome
    }

    /// Whether a reply has an outcome of the right kind for each item.
    private static func isAnswer(_ outcomes: [RecordOutcome], to request: SentRequest) -> Bool {
        outcomes.count == request.items.count
            && zip(request.items, outcomes).allSatisfy { item, outcome in
                switch outcome {
                case .saved: item.key.kind == .save
                case .deleted: item.key.kind == .delete
                case .failed: true
                }
            }
    }

    private struct Operations: Sendable {
        var all: [RecordOperation] = []
        /// The results to note instead of sending, if some operations could not be made.
        var refused: [ExportResult]?
    }

    /// Sends the assets that a request names, and makes its operations.
    private func upload(
        _ request: SentRequest, limits: CloudLimits, progress: @Sendable (Int64) async -> Void
    ) async throws(CloudError) -> Operations {
        do {
            let names = try await assets.upload(request.items, zone: mapping.zone, limits: limits, progress: progress)
            return operations(
                request, assets: names, foreign: try await foreignFields(request.items), whole: try await damaged(request.items))
        } catch let error as CloudError where mapping.isRefusal(error) {
            return Operations(
                refused: request.items.map { item in
                    item.assets.isEmpty ? .undone : .rejected(code: error.code.rawValue, reason: Self.reason(error))
                })
        } catch {
            throw CloudError(transfer: error)
        }
    }

    /// The operations of a request whose assets are known, without sending these.
    private func named(_ request: SentRequest) async throws(CloudError) -> Operations? {
        do {
            guard let names = try await assets.names(in: request.items) else { return nil }
            return operations(
                request, assets: names, foreign: try await foreignFields(request.items), whole: try await damaged(request.items))
        } catch {
            throw CloudError(transfer: error)
        }
    }

    /// Fields, by record, that are empty here only because the store can't hold the cloud's values. They must not be emptied in the cloud.
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

    /// Records that are damaged in the cloud and whole here: they replace the cloud's versions.
    private func damaged(_ items: [ExportItem]) async throws -> Set<String> {
        let deferred = try await store.deferredRecords([.damagedInCloud], zone: mapping.number)
        guard !deferred.isEmpty else { return [] }
        let tags = Dictionary(deferred.map { ($0.name, $0.tag) }, uniquingKeysWith: { one, _ in one })
        return Set(items.filter { $0.key.kind == .save && $0.tag != nil && tags[$0.name] == $0.tag }.map(\.name))
    }

    /// - Parameter whole: Records that are sent with all of their fields.
    private nonisolated func operations(
        _ request: SentRequest, assets: [String: CloudAsset], foreign: [String: Set<String>], whole: Set<String> = []
    ) -> Operations {
        var made = Operations()
        var results: [ExportResult] = []
        // Records that came together were mostly edited at the same time.
        var edited: (times: EditTimes, text: String)?
        for item in request.items {
            if edited?.times != item.edited { edited = (item.edited, item.edited.description) }
            do throws(CloudError) {
                var operation = try mapping.operation(item, assets: assets, edited: edited?.text ?? "")
                if let fields = foreign[item.name] {
                    operation = RecordOperation(operation.kind, operation.record, clearing: operation.cleared.subtracting(fields))
                }
                if whole.contains(item.name) { operation = RecordOperation(.replace, operation.record) }
                made.all.append(operation)
                results.append(.undone)
            } catch {
                // A file may come back.
                let isOfAssets = item.assets.contains { assets[$0] == nil }
                results.append(
                    .refused(
                        code: isOfAssets ? CloudError.Code.assetNotAvailable.rawValue : error.code.rawValue,
                        reason: isOfAssets
                            ? "a file that it names is missing or damaged here, or the cloud does not take it" : error.reason,
                        nextTry: isOfAssets ? environment.now() + Self.pause : nil))
            }
        }
        if made.all.count < request.items.count { made.refused = results }
        return made
    }

    private func applyReply(
        _ outcomes: [RecordOutcome], to request: SentRequest, of batch: ExportBatch?, next: Prepared?, limits: CloudLimits
    ) async throws(CloudError) -> (sent: Int, conflicts: Int) {
        var results: [ExportResult] = []
        var changed: [ZoneChanges.Change] = []
        var sent = 0
        for (item, outcome) in zip(request.items, outcomes) {
            switch outcome {
            case .saved(let record):
                results.append(.saved(tag: record.changeTag ?? ""))
                sent += 1
            case .deleted:
                results.append(.deleted)
                sent += 1
            case .failed(let error):
                results.append(result(error, item, &changed))
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

    private func result(
        _ error: CloudError, _ item: ExportItem, _ changed: inout [ZoneChanges.Change]
    ) -> ExportResult {
        switch ErrorReaction(error.code) {
        // The cloud can't have deleted a record that it never had: it lacks something else, such as the type in production.
        case .merge where error.serverRecord == nil && item.key.kind == .save && item.tag == nil && error.code == .unknownItem:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.pause)
        case .merge:
            if let record = error.serverRecord {
                changed.append(.saved(record))
            } else if item.key.kind == .delete {
                // The record is gone already.
                return .deleted
            } else {
                changed.append(.deleted(.init(id: CloudRecordID(item.name, in: mapping.zone), type: item.type)))
            }
            return .undone
        case .innocent, .retry, .resend, .uploadAssets, .remakeZone, .wipe, .refetch: return .undone
        case .park:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.pause)
        // In a zone of another owner, the cloud's refusal is final: the change is reverted here.
        case .ask where mapping.isRefusal(error): return .rejected(code: error.code.rawValue, reason: Self.reason(error))
        case .ask:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.longPause)
        case .halve, .report: return .refused(code: error.code.rawValue, reason: error.reason, nextTry: nil)
        }
    }

    private static func reason(_ error: CloudError) -> String {
        guard let denial = error.denial else { return error.reason }
        return denial.reason + (denial.remedy.map { "; \($0.text)" } ?? "")
    }

    /// Forgets requests to a zone that is gone, or of another account: their outcomes are not asked for.
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
            results: request.items.map { _ in .refused(code: error.code.rawValue, reason: error.reason, nextTry: nextTry) },
            zone: mapping.number)
    }

    /// Handles the refusal of a whole request that names no record: the next requests are smaller.
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
