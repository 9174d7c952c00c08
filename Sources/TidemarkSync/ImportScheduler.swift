import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Fetches the changes of others page by page, and has them applied.
actor ImportScheduler {
    private let store: RecordStore
    private let database: any CloudDatabase
    private let resolver: ConflictResolver
    private let zone: CloudZoneID
    /// The zone's number in the store.
    private let number: Int64
    private let order: SyncEnvironment.AheadOrder
    /// The page after the one that was fetched last, on its way.
    private var ahead: (token: String, page: Task<Result<ZoneChanges, CloudError>, Never>)?

    init(
        store: RecordStore, database: any CloudDatabase, resolver: ConflictResolver, mapping: RecordMapping,
        order: SyncEnvironment.AheadOrder
    ) {
        self.store = store
        self.database = database
        self.resolver = resolver
        zone = mapping.zone
        number = mapping.number
        self.order = order
    }

    struct Outcome: Sendable {
        var records = 0
        var conflicts = 0
        /// Whether the import has left something to send.
        var leavesExports = false
        var moreComing = false
        var error: CloudError?
    }

    /// Discards the page that was fetched ahead: the cloud has accepted a change since, so the page is fetched again.
    func forget() {
        ahead?.page.cancel()
        ahead = nil
    }

    private func page(since token: String?) async throws(CloudError) -> ZoneChanges {
        if let ahead, let token, ahead.token == token {
            self.ahead = nil
            return try await ahead.page.value.get()
        }
        forget()
        return try await database.zoneChanges(zone, since: token.map { CloudToken(rawValue: $0) }, limit: nil, desiredKeys: nil)
    }

    private func fetchAhead(since token: CloudToken) async {
        let (database, zone) = (database, zone)
        let page = Task { () async -> Result<ZoneChanges, CloudError> in
            do throws(CloudError) {
                return .success(try await database.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil))
            } catch {
                return .failure(error)
            }
        }
        if order != .beside { _ = await page.value }
        ahead = (token.rawValue, page)
    }

    /// Fetches one page.
    ///
    /// - Parameter looksAhead: Whether the next page is fetched while this one is applied. If so, call ``forget()`` before you send
    ///   anything.
    func step(limits: CloudLimits, looksAhead: Bool, progress: @Sendable (Int64) async -> Void) async throws -> Outcome {
        var outcome = Outcome()
        let state = try await store.syncState(zone: number)
        let token = state.token
        // Without a token the cloud reports no deletions: a record that it had before, or that was sent before, may be gone by then.
        if token == nil, !state.isRefetching { try await store.beginRefetch(zone: number) }
        do throws(CloudError) {
            let page = try await page(since: token)
            guard !page.moreComing || page.token.rawValue != token else {
                throw CloudError(.internalError, "the cloud says that more is coming, and gives the same token again")
            }
            if let incarnation = page.incarnation, let known = state.incarnation,
                CloudIncarnationName(incarnation).isToBeCompared(with: CloudIncarnationName(known))
            {
                // The cloud was put back to an earlier state, or another device has made a lost zone again.
                do {
                    try await store.beginComparing(in: incarnation, zone: number)
                } catch {
                    throw CloudError(transfer: error)
                }
                if token != nil {
                    forget()
                    outcome.moreComing = true
                    return outcome
                }
            }
            let looksAhead = looksAhead && page.moreComing
            if looksAhead, order != .behind { await fetchAhead(since: page.token) }
            do {
                // A record that the cloud can't return is not gone.
                if try await store.noteDamaged(page.failed.map { (name: $0.id.recordName, tag: $0.changeTag) }, zone: number) > 0
                {
                    outcome.leavesExports = true
                }
                let taken = try await resolver.apply(page.changes, limits: limits, occasion: .page, progress: progress) { state in
                    state.token = page.token.rawValue
                    state.incarnation = page.incarnation
                    guard !page.moreComing else { return }
                    state.isComparing = false
                    state.initialImportIsComplete = true
                    state.isRefetching = false
                    state.hasNewChanges = false
                }
                outcome.records = taken.counts.inserted + taken.counts.updated + taken.counts.deleted
                outcome.conflicts = taken.conflicts.count
                outcome.leavesExports = outcome.leavesExports || taken.leavesExports || state.awaitsFirstPage
            } catch {
                throw CloudError(transfer: error)
            }
            if looksAhead, order == .behind { await fetchAhead(since: page.token) }
            outcome.moreComing = page.moreComing
        } catch {
            if ErrorReaction(error.code) == .refetch, token != nil {
                try await store.beginRefetch(zone: number)
                outcome.moreComing = true
            } else {
                outcome.error = error
            }
        }
        return outcome
    }
}
