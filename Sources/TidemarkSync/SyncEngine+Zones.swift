import Foundation
import Logging
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension SyncEngine {
    // Fetching

    /// Fetches the next page of a zone that has changes. The first call of a round asks which zones have changes.
    func nextPage(looksAhead: Bool) async throws -> ImportScheduler.Outcome {
        if !machine.knowsChangedZones {
            machine.willAskForChangedZones()
            try await store.beginImportRound()
            do throws(CloudError) {
                try await findChangedZones()
                machine.noteChangedZones(areKnown: true)
            } catch {
                var outcome = ImportScheduler.Outcome()
                outcome.error = error
                return outcome
            }
        }
        var waiting = try await zoneSyncsWithChanges()
        guard !waiting.isEmpty else {
            machine.noteChangedZones(areKnown: false)
            var outcome = ImportScheduler.Outcome()
            try await endRound(&outcome)
            return outcome
        }
        let zoneSync = waiting.removeFirst()
        var outcome = try await zoneSync.imports.step(limits: limits, looksAhead: looksAhead) { [recorder] bytes in
            await recorder.add(bytes, to: .import)
        }
        if let error = outcome.error, try await isGone(zoneSync, error) { outcome.error = nil }
        if outcome.error != nil {
            // The next round asks again which zones have changed meanwhile.
            machine.noteChangedZones(areKnown: false)
        } else if !outcome.moreComing {
            if waiting.isEmpty {
                machine.noteChangedZones(areKnown: false)
                try await endRound(&outcome)
            } else {
                outcome.moreComing = true
            }
        }
        return outcome
    }

    /// Ends a round, in which all zones were fetched to their ends. A record that had moved between zones when the round began
    /// has arrived by now, so the deletions of all others are applied. Then the relationships of the fetched records are
    /// resolved.
    private func endRound(_ outcome: inout ImportScheduler.Outcome) async throws {
        try await endAwaitedMoves(&outcome)
        for zoneSync in try await zoneSyncs.all() {
            if try await store.resolveRelationships(zone: zoneSync.zone.id) { outcome.leavesExports = true }
        }
        if await store.needsImportRound { machine.wantImport() }
    }

    private func endAwaitedMoves(_ outcome: inout ImportScheduler.Outcome) async throws {
        for zoneSync in try await zoneSyncs.all() {
            for ended in try await zoneSync.resolver.endAwaitedMoves() {
                outcome.records += ended.counts.inserted + ended.counts.updated + ended.counts.deleted
                outcome.conflicts += ended.conflicts.count
                if ended.leavesExports { outcome.leavesExports = true }
            }
        }
    }

    /// Fetches all zones that have changed, once, or until nothing waits for another round.
    ///
    /// - Parameter isFetched: Whether a zone is there to be fetched.
    func fetchRounds(where isFetched: (ZoneSync) -> Bool) async throws {
        repeat {
            try await store.beginImportRound()
            for zoneSync in try await changedZoneSyncs() where isFetched(zoneSync) {
                var isComplete = false
                while !isComplete {
                    let outcome = try await zoneSync.imports.step(limits: limits, looksAhead: environment.looksAhead) { _ in }
                    if let error = outcome.error, try await !isGone(zoneSync, error) { throw error }
                    isComplete = outcome.error != nil || !outcome.moreComing
                }
            }
            var outcome = ImportScheduler.Outcome()
            try await endAwaitedMoves(&outcome)
        } while await store.needsImportRound
    }

    /// Whether an error says that a zone is gone: its participant has left it, or its owner has deleted it or stopped sharing it. Then the
    /// store removes it, too. The default zone is handled elsewhere.
    func isGone(_ zoneSync: ZoneSync, _ error: CloudError) async throws -> Bool {
        guard !zoneSync.isDefault, [.remakeZone, .wipe].contains(ErrorReaction(error.code)) else { return false }
        log.debug("a zone is gone", metadata: ["zone": "\(zoneSync.cloudZone)"])
        try await store.removeZone(
            zoneSync.zone,
            reason: store.scope == .shared ? "what was shared is shared no more, or no longer with you" : "the zone was deleted",
            code: error.code.rawValue, author: configuration.author)
        return true
    }

    /// Asks which zones have changes.
    func changedZoneSyncs() async throws -> [ZoneSync] {
        try await findChangedZones()
        return try await zoneSyncsWithChanges()
    }

    /// Marks everything in the default zone to be sent again.
    func remakeDefaultZone() async throws {
        await zoneSyncs.forget(StoreFormat.defaultZone)
        guard let known = try await store.syncState().incarnation else {
            return try await store.forgetZone(StoreFormat.defaultZone)
        }
        // Another device may make the zone first, and the cloud may have been put back to a state from before it was made.
        try await store.beginComparing(in: known, isLost: true)
    }

    /// Removes the records of the default zone, so that none of them is ever sent again. If the store has no other zone, its history is
    /// removed, too.
    ///
    /// Changes that no cloud has are kept: as a `Quarantine` of the whole store, or, if other zones stay, as `RefusedSave`.
    ///
    /// - Returns: A sentence for people about the unsent changes; empty if there were none.
    func purgeDefaultZone(_ error: CloudError) async throws -> String {
        await zoneSyncs.forget(StoreFormat.defaultZone)
        let zones = try await store.zones()
        let user = try await store.syncState().user
        let purged: @Sendable (inout SyncState) -> Void = { state in
            state.user = user
            state.isPurged = true
        }
        let hasMore = if zones.count > 1 { true } else { try await store.refusedCount() > 0 }
        if hasMore, let zone = zones.first(where: { $0.name == .default }) {
            let before = try await store.refusedCount()
            try await store.removeZone(
                zone, reason: error.reason, code: error.code.rawValue, author: configuration.author, state: purged)
            let count = try await store.refusedCount() - before
            return count > 0
                ? "; \(count == 1 ? "1 unsent change is" : "\(count) unsent changes are") kept: 'tidemark refused' shows them"
                : ""
        }
        let (quarantine, pending) = try await store.setAsideUnsent(reason: error.reason, then: purged)
        guard let quarantine else { return "" }
        let id = quarantine.id.uuidString.lowercased().prefix(8)
        return
            "; \(pending == 1 ? "1 unsent change was" : "\(pending) unsent changes were") set aside: 'tidemark quarantine restore \(store.container.url.path) \(id)' brings them back after you sign in again"
    }

    private func zoneSyncsWithChanges() async throws -> [ZoneSync] {
        var waiting: [ZoneSync] = []
        for zoneSync in try await zoneSyncs.all() {
            let state = try await store.syncState(zone: zoneSync.zone.id)
            // A zone that was never fetched needs no notice.
            if state.hasNewChanges || state.token == nil { waiting.append(zoneSync) }
        }
        return waiting
    }

    /// Asks which zones have changed, and notes them. Zones that are gone are fetched, too: the error says how they went.
    private func findChangedZones() async throws(CloudError) {
        do {
            var token = try await store.databaseToken()
            var beginsAnew = token == nil
            // The zones that the cloud lists, if its incarnation is another one than before. It has lost the zones that it does
            // not list.
            var told: Set<ZoneName>?
            let incarnation = try await store.databaseIncarnation()
            while true {
                guard let page = try await changedZones(since: token) else {
                    (token, beginsAnew) = (nil, true)
                    continue
                }
                guard !page.moreComing || page.token.rawValue != token else {
                    throw CloudError(.internalError, "the cloud says that more is coming, and gives the same token again")
                }
                if told == nil, let now = page.incarnation, let incarnation, now != incarnation {
                    guard beginsAnew else {
                        // The listing was interrupted: the zones of its first pages are not known any more.
                        (token, beginsAnew) = (nil, true)
                        continue
                    }
                    told = []
                }
                told?.formUnion((page.changed + page.deleted + page.purged).map { name(of: $0) })
                if !page.moreComing {
                    if let now = page.incarnation, now != incarnation {
                        if let told { try await remakeZones(besides: told, in: now) }
                        try await store.noteDatabaseIncarnation(now)
                    }
                }
                try await note(page, tellsAll: beginsAnew)
                token = page.token.rawValue
                if !page.moreComing { return }
                beginsAnew = false
            }
        } catch {
            throw CloudError(transfer: error)
        }
    }

    /// Creates the account's own zones again that the cloud has lost, and marks everything in them to be sent again. Their shares are lost.
    private func remakeZones(besides told: Set<ZoneName>, in incarnation: String) async throws {
        guard store.scope == .private else { return }
        for zoneSync in try await zoneSyncs.all() where !zoneSync.isDefault && !told.contains(zoneSync.zone.name) {
            log.warning("the cloud has lost a zone, and the zone is created again", metadata: ["zone": "\(zoneSync.cloudZone)"])
            try await database.modifyZones(saving: [zoneSync.cloudZone], deleting: [])
            await zoneSyncs.forget(zoneSync.zone.id)
            try await store.beginComparing(in: incarnation, isLost: true, zone: zoneSync.zone.id)
        }
    }

    /// Returns the changed zones; `nil` when the token has expired.
    private func changedZones(since token: String?) async throws(CloudError) -> DatabaseChanges? {
        do throws(CloudError) {
            return try await database.databaseChanges(since: token.map { CloudToken(rawValue: $0) }, limit: nil)
        } catch {
            guard ErrorReaction(error.code) == .refetch, token != nil else { throw error }
            return nil
        }
    }

    private func note(_ page: DatabaseChanges, tellsAll: Bool) async throws {
        let known = try await store.zones()
        var news = Set(tellsAll ? known.map(\.id) : [])
        for zone in page.changed {
            let name = name(of: zone)
            if let there = known.first(where: { $0.name == name }) {
                news.insert(there.id)
            } else if store.scope == .shared || name.isOfShare {
                news.insert(try await store.zone(name).id)
            }
        }
        for zone in page.deleted + page.purged {
            if let there = known.first(where: { $0.name == name(of: zone) }) { news.insert(there.id) }
        }
        if store.scope == .shared { news.subtract(known.filter { $0.name == .default }.map(\.id)) }
        guard try await store.databaseToken() != page.token.rawValue || !news.isEmpty else { return }
        try await store.recordZoneChanges(news.sorted(), token: page.token.rawValue)
    }

    /// Returns the store's name of a zone of the cloud.
    private func name(of zone: CloudZoneID) -> ZoneName {
        store.scope == .private && zone.zoneName == configuration.zoneName ? .default : ZoneName(zone, scope: store.scope)
    }

    // Sending

    /// Sends the next batch of a zone that has something to send.
    func nextBatch(hasRoom: Bool) async throws -> ExportScheduler.Outcome {
        var conflicts = 0
        for zoneSync in try await zoneSyncs.byTurns() {
            var outcome = try await zoneSync.exports.step(limits: limits, hasRoom: hasRoom) { [recorder] bytes in
                await recorder.add(bytes, to: .export)
            }
            conflicts += outcome.conflicts
            guard outcome.didWork || outcome.error != nil else { continue }
            outcome.conflicts = conflicts
            if let error = outcome.error, try await isGone(zoneSync, error) { outcome.error = nil }
            await zoneSyncs.served(zoneSync)
            return outcome
        }
        return ExportScheduler.Outcome(conflicts: conflicts)
    }
}
