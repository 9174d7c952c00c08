import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Of what a synchronisation that goes on tells, what is new.
struct SyncNews {
    /// Why a kind of event fails, and of which stores: what stands in the way of both is told once, and once when it does no more.
    private var failures: [ContainerEvent.Kind: [ContainerEvent.Failure: Set<UUID>]] = [:]
    private var hasSetUp = false
    /// What was left for the next set-up of a store to explain, and whether that has succeeded since: then it has explained nothing.
    private var heldBack: [HeldBack: Bool] = [:]
    private var refused: [RefusedKey: Refusal] = [:]
    private var deferred: Set<DeferredRecord> = []
    /// What others share; `nil` before it was looked at.
    private var shares: [Share]?

    private var saves: Set<RefusedSave> = []

    private struct HeldBack: Hashable {
        let store: UUID
        let kind: ContainerEvent.Kind
    }

    private struct RefusedKey: Hashable {
        let type, record: String
        let kind: ExportKind
    }

    private struct Refusal: Hashable {
        let code, reason, waitsFor: String?
        /// When it was tried, where only a change of the record has it be tried again: then it is another change that was refused.
        let time: Int64?
    }

    /// Whether an event that has ended is to be told: something has come of it, or it fails or succeeds as it did not before.
    mutating func tells(_ event: ContainerEvent) -> Bool {
        let hasCounts = event.records > 0 || event.bytes > 0 || event.conflicts > 0
        if event.kind == .setup { noteSetUp(event) }
        let key = HeldBack(store: event.store, kind: event.kind)
        if let failure = event.failure {
            // Setting up anew, which comes next, says what is the matter with the session; where it found nothing, this is what there is to tell.
            if event.kind != .setup, failure.code == SyncErrorCode.noAccount, !failure.isPassing, heldBack[key] != true {
                heldBack[key] = false
                return hasCounts
            }
            var known = failures[event.kind] ?? [:]
            let isNew = known[failure] == nil
            // What it failed by before is over for this store, and news when it comes again.
            known = known.mapValues { $0.subtracting([event.store]) }.filter { !$0.value.isEmpty }
            known[failure, default: []].insert(event.store)
            failures[event.kind] = known
            return isNew || hasCounts
        }
        heldBack[key] = nil
        let before = failures[event.kind] ?? [:]
        let left = before.mapValues { $0.subtracting([event.store]) }.filter { !$0.value.isEmpty }
        failures[event.kind] = left
        let isMended = left.count < before.count
        guard event.kind == .setup else { return isMended || hasCounts }
        guard left.isEmpty, isMended || !hasSetUp else { return false }
        hasSetUp = true
        return true
    }

    private mutating func noteSetUp(_ event: ContainerEvent) {
        for key in heldBack.keys where key.store == event.store { heldBack[key] = event.failure == nil ? true : nil }
    }

    /// Those that were refused, or wait, for another reason than they were when this was asked last. What is tried again has no news yet.
    mutating func new(_ entries: [SyncIssue]) -> [SyncIssue] {
        var (now, new): ([RefusedKey: Refusal], [SyncIssue]) = ([:], [])
        for entry in entries where !entry.isAwaitingRetry {
            // Between two tries of these is an edit, or a day.
            let isSeldom = entry.nextTry == nil || entry.code == CloudError.Code.limitExceeded.rawValue
            let key = RefusedKey(type: entry.type, record: entry.record, kind: entry.kind)
            let refusal = Refusal(
                code: entry.code, reason: entry.reason, waitsFor: entry.waitsFor,
                time: isSeldom && entry.waitsFor == nil ? entry.lastTry : nil)
            now[key] = refusal
            if refused[key] != refusal { new.append(entry) }
        }
        refused = now
        return new
    }

    /// What others share now, and did not the last time, and the other way round; the first time nothing is new.
    mutating func change(of now: [Share]) -> ShareNews {
        defer { shares = now }
        return ShareNews(from: shares ?? now, to: now)
    }

    /// Saves that the cloud has refused, and were not among those of the last time.
    mutating func new(_ refused: [RefusedSave]) -> [RefusedSave] {
        defer { saves = Set(refused) }
        return refused.filter { !saves.contains($0) }
    }

    /// Records of the cloud that could not be imported, and were not among those of the last time.
    mutating func new(_ records: [DeferredRecord]) -> [DeferredRecord] {
        defer { deferred = Set(records) }
        return records.filter { !deferred.contains($0) }
    }
}

/// What others have begun to share, and share no more.
struct ShareNews {
    let begun, ended: [Share]

    init(from before: [Share], to now: [Share]) {
        func isIn(_ shares: [Share]) -> (Share) -> Bool {
            { share in shares.contains { ($0.zone, $0.name) == (share.zone, share.name) } }
        }
        begun = now.filter { !isIn(before)($0) }
        ended = before.filter { !isIn(now)($0) }
    }

    var lines: [String] {
        func name(_ share: Share) -> String { "\"\(share.caption)\" of \(share.owner?.identity.title ?? "somebody")" }
        return begun.map { "shared with you: \(name($0))" } + ended.map { "not shared with you any more: \(name($0))" }
    }
}
