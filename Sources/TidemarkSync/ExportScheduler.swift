import Foundation
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Sends what was changed here to the cloud: one batch after the other, and each so that nobody can be in doubt whether it arrived.
actor ExportScheduler {
    private let store: RecordStore
    private let database: any CloudDatabase
    private let assets: AssetTransfer
    private let resolver: ConflictResolver
    private let mapping: RecordMapping
    private let environment: SyncEnvironment
    /// Of what a request may have; halved when the cloud says that it is too much, until it has taken one.
    private var share = 1.0
    /// A request that may have arrived or not.
    private var outstanding: (request: SentRequest, batch: ExportBatch?)?
    /// Requests of an earlier process have been looked for.
    private var hasLooked = false
    private var hasRoom = true
    /// What is sent next: noted as sent, and not sent yet.
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

    /// The account, or what is known of its cloud, may have changed: what was gathered for it is gathered anew. If it was noted as sent, the
    /// store tells.
    func forgetNext() {
        guard next != nil else { return }
        next = nil
        hasLooked = false
    }

    /// What one step has come to.
    struct Outcome: Sendable {
        /// There was something to send.
        var didWork = false
        /// Records that the cloud has now.
        var sent = 0
        var conflicts = 0
        /// Why the whole of it did not work.
        var error: CloudError?
    }

    /// Bytes of assets that go up before their records do, in one batch: so long a person's edit waits at the most.
    private static let assetBytes: Int64 = 16_000_000
    /// How long a record waits that was refused for a reason that may pass.
    private static let pause: Int64 = 60_000_000
    /// And where a person has to do something.
    private static let longPause: Int64 = 600_000_000

    /// Sends a batch, or asks again what became of the last.
    ///
    /// - Parameter hasRoom: Whether the cloud has room for what waits in bulk; if not, only deletions go of that.
    func step(limits: CloudLimits, hasRoom: Bool = true, progress: @Sendable (Int64) async -> Void) async throws -> Outcome {
        self.hasRoom = hasRoom
        let state = try await store.syncState(zone: mapping.number)
        // Nothing is sent while the import compares: the cloud was put back to an earlier state, and has lost what was sent since. Nothing is
        // sent before the first page either: the page names the incarnation, by which a device knows later what the cloud has lost.
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
    /// - Returns: Whether one was repaired, and is to be sent.
    private func repair(_ found: [ExportBatch.Damaged], limits: CloudLimits) async throws -> Bool {
        let rows = try await store.damagedRows(found)
        do {
            _ = try await repair(rows, limits: limits)
        } catch let error as StoreError {
            throw error
        } catch {
            // The cloud is not there, or knows nothing of them: what could not be repaired without it stays in the sync issues.
        }
        return try await store.stillDamaged(rows).count < rows.count
    }

    /// Repairs damaged records of the zone: from what the store knows, and else from what the cloud has of them.
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

    /// Looks up records that came while it was not known what had become of what was sent of them.
    ///
    /// - Returns: How many conflicts there were.
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

    /// How much goes into a request.
    private func size(_ limits: CloudLimits) -> ExportLimits {
        ExportLimits(
            items: max(1, Int(Double(limits.operationsPerRequest) * share)),
            // Names of fields, and what tells when they were edited, come on top.
            bytes: max(1, Int(Double(limits.bytesPerRequest) * share * 0.8)), assetBytes: Self.assetBytes)
    }

    /// Gathers what comes behind a batch. Where that fails it is gathered when its turn comes, and fails then.
    private func prepare(behind batch: ExportBatch?, limits: CloudLimits) async -> Prepared? {
        guard environment.looksAhead, hasRoom, let batch,
            let next = try? await store.nextExport(behind: batch, bulk: size(limits), zone: mapping.number)
        else { return nil }
        let request = SentRequest(token: environment.identifier().uuidString, items: next.items)
        // What needs the cloud, or another look into the store, is made when its turn comes.
        let isWhole = next.items.allSatisfy { $0.assets.isEmpty && $0.cleared.isEmpty }
        return Prepared(request: request, batch: next, operations: isWhole ? operations(request, assets: [:], foreign: [:]) : nil)
    }

    /// - Parameter begun: The request, if it is noted as sent already.
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
                // It may have been done, and its assets replaced since: only the answer tells whether they are to go up.
                operations = known
            } else {
                operations = try await upload(request, limits: limits, progress: progress)
            }
            if let refused = operations.refused {
                outstanding = nil
                try await stored { try await self.store.settle(request, of: batch, results: refused, zone: self.mapping.number) }
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
            let (settled, conflicts) = try await settle(request, of: batch, outcomes, next: next, limits: limits)
            outcome.sent = settled
            outcome.conflicts = conflicts
            if settled > 0 { share = min(1, share * 2) }
        } catch {
            outcome.error = error
            switch ErrorReaction(error.code) {
            case _ where error.storeError != nil:
                // What the store has of the request counts.
                (outstanding, hasLooked) = (nil, false)
            case .resend where outstanding != nil, .retry where wasOutstanding,
                .ask where wasOutstanding && error.code != .quotaExceeded:
                // That this try has failed says nothing of the one before.
                break
            case .report where outstanding != nil && error.code == .internalError:
                // It may have failed after it was done.
                break
            case .halve where request.items.count > 1:
                share = max(share / 2, 0.001)
                try await abandon(request)
                outcome.error = nil
            case .halve:
                // One record that is too much by itself.
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

    /// Whether an answer has an outcome of its kind for each item.
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
        /// Where some could not be made: what is to be noted, instead of sending.
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

    /// Fields, by record, that are empty here only because the store can't hold what the cloud has in them: they are not to be emptied there.
    private func foreignFields(_ items: [ExportItem]) async throws -> [String: Set<String>] {
        let names = Set(items.filter { !$0.cleared.isEmpty }.map(\.name))
        guard !names.isEmpty else { return [:] }
        let kept = try await store.deferredRecords([.schema], zone: mapping.number).filter { names.contains($0.name) }
        guard !kept.isEmpty else { return [:] }
        let types = Dictionary(
            try await store.types().map { type in
                (type.name, Dictionary(type.fields.map { ($0.name, $0.type) }, uniquingKeysWith: { one, _ in one }))
            }, uniquingKeysWith: { one, _ in one })
        return kept.reduce(into: [:]) { fields, record in
            let held = types[record.type] ?? [:]
            // Of one that can't be read nothing is known, and it comes anew when it changes.
            guard let whole = try? mapping.record(record) else { return }
            fields[record.name] = Set(whole.fields.filter { name, value in held[name] != value.type }.keys)
        }
    }

    /// Records that are damaged in the cloud, and whole here: they replace what is there.
    private func damaged(_ items: [ExportItem]) async throws -> Set<String> {
        let kept = try await store.deferredRecords([.damagedInCloud], zone: mapping.number)
        guard !kept.isEmpty else { return [] }
        let tags = Dictionary(kept.map { ($0.name, $0.tag) }, uniquingKeysWith: { one, _ in one })
        return Set(items.filter { $0.key.kind == .save && $0.tag != nil && tags[$0.name] == $0.tag }.map(\.name))
    }

    /// - Parameter whole: Records that are sent with all of their fields.
    private nonisolated func operations(
        _ request: SentRequest, assets: [String: CloudAsset], foreign: [String: Set<String>], whole: Set<String> = []
    ) -> Operations {
        var made = Operations()
        var results: [ExportResult] = []
        // Records that came together were mostly edited together.
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

    private func settle(
        _ request: SentRequest, of batch: ExportBatch?, _ outcomes: [RecordOutcome], next: Prepared?, limits: CloudLimits
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
            // What was refused, or has met another's change, changes what can be sent next: others may wait for it.
            let next = sent == request.items.count ? next : nil
            if try await store.settle(request, of: batch, results: results, next: next?.request, zone: mapping.number) {
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
        // A record that the cloud never had can't have been deleted there: it lacks something else, as the type in production.
        case .merge where error.serverRecord == nil && item.key.kind == .save && item.tag == nil && error.code == .unknownItem:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.pause)
        case .merge:
            if let record = error.serverRecord {
                changed.append(.saved(record))
            } else if item.key.kind == .delete {
                // It is gone already.
                return .deleted
            } else {
                changed.append(.deleted(.init(id: CloudRecordID(item.name, in: mapping.zone), type: item.type)))
            }
            return .undone
        case .innocent, .retry, .resend, .uploadAssets, .remakeZone, .wipe, .refetch: return .undone
        case .park:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.pause)
        // In a zone of another owner the cloud decides: the store reverts the change.
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

    /// What was sent to a zone that is no more, or for somebody else, is not asked for again.
    func forget() { (outstanding, next, hasLooked) = (nil, nil, false) }

    /// The cloud has not done it: it is gathered anew.
    private func abandon(_ request: SentRequest) async throws {
        outstanding = nil
        try await store.settle(request, of: nil, results: request.items.map { _ in .undone }, zone: mapping.number)
    }

    private func refuse(_ request: SentRequest, of batch: ExportBatch?, _ error: CloudError, nextTry: Int64?) async throws {
        outstanding = nil
        try await store.settle(
            request, of: batch,
            results: request.items.map { _ in .refused(code: error.code.rawValue, reason: error.reason, nextTry: nextTry) },
            zone: mapping.number)
    }

    /// The request as a whole was refused, and nobody says because of which record: the next ones are smaller.
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

extension CloudError {
    /// What has gone wrong on the way; a failure of the store is no failure of the cloud, and ends the synchronisation.
    init(transfer error: any Error) {
        if let error = error as? CloudError {
            self = error
            return
        }
        let failure = error as? StoreError ?? StoreError(.io, "\(error)")
        self.init(.storeFailure, failure.message)
        localCause = failure
    }

    /// The failure of the store on this side that it carries.
    var storeError: StoreError? { localCause as? StoreError }
}

extension CloudError.Code {
    /// The store on this side has failed. A cloud never answers with it.
    static let storeFailure = CloudError.Code(rawValue: "storeFailure")
}
