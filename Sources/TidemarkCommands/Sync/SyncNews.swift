import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Finds the news in the events of a running synchronisation.
struct SyncNews {
    /// The present failures of each kind of event, with the stores that have them. A failure of both stores is reported once, and
    /// its end once.
    private var failures: [ContainerEvent.Kind: [ContainerEvent.Failure: Set<UUID>]] = [:]
    private var hasSetUp = false
    /// The failures that were not reported, because the next set-up of the store should explain them. The value is whether that
    /// set-up has succeeded, and so has explained nothing.
    private var heldBack: [HeldBack: Bool] = [:]
    private var refused: [RefusedKey: Refusal] = [:]
    private var deferred: Set<DeferredRecord> = []
    /// The shares of others; `nil` before the first reading.
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
        /// The time of the try, for a refusal after which only a change of the record is tried again. A later time then means
        /// that another change was refused.
        let time: Int64?
    }

    /// Whether an event that has ended is to be reported: it has moved records, or it fails or succeeds unlike the one before.
    mutating func tells(_ event: ContainerEvent) -> Bool {
        let hasCounts = event.records > 0 || event.bytes > 0 || event.conflicts > 0
        if event.kind == .setup { noteSetUp(event) }
        let key = HeldBack(store: event.store, kind: event.kind)
        if let failure = event.failure {
            // The set-up that comes next reports the fault of the session. If it has found none, this failure is reported.
            if event.kind != .setup, failure.code == SyncErrorCode.noAccount, !failure.isPassing, heldBack[key] != true {
                heldBack[key] = false
                return hasCounts
            }
            var known = failures[event.kind] ?? [:]
            let isNew = known[failure] == nil
            // The store's earlier failure is over. It is news when it comes again.
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

    /// Returns the issues that are new, or have another reason than at the last call. An issue that waits for its next try has no
    /// news yet.
    mutating func new(_ entries: [SyncIssue]) -> [SyncIssue] {
        var (now, new): ([RefusedKey: Refusal], [SyncIssue]) = ([:], [])
        for entry in entries where !entry.isAwaitingRetry {
            // Such an issue is tried again only after an edit, or after a day.
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

    /// Returns the shares of others that have begun and ended since the last call. At the first call nothing is new.
    mutating func change(of now: [Share]) -> ShareNews {
        defer { shares = now }
        return ShareNews(from: shares ?? now, to: now)
    }

    /// Returns the refused saves that were not there at the last call.
    mutating func new(_ refused: [RefusedSave]) -> [RefusedSave] {
        defer { saves = Set(refused) }
        return refused.filter { !saves.contains($0) }
    }

    /// Returns the deferred records that were not there at the last call.
    mutating func new(_ records: [DeferredRecord]) -> [DeferredRecord] {
        defer { deferred = Set(records) }
        return records.filter { !deferred.contains($0) }
    }
}

/// The shares of others that have begun, and those that have ended.
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
