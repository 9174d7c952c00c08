import TidemarkCloud
import TidemarkModel
import TidemarkStore

/// Fetches what others have changed, page by page, and has it taken in.
actor ImportScheduler {
    private let store: RecordStore
    private let database: any CloudDatabase
    private let resolver: ConflictResolver
    private let zone: CloudZoneID

    init(store: RecordStore, database: any CloudDatabase, resolver: ConflictResolver, zone: CloudZoneID) {
        self.store = store
        self.database = database
        self.resolver = resolver
        self.zone = zone
    }

    struct Outcome: Sendable {
        var records = 0
        var conflicts = 0
        var moreComing = false
        var error: CloudError?
    }

    /// Fetches one page.
    func step(limits: CloudLimits, progress: @Sendable (Int64) async -> Void) async throws -> Outcome {
        var outcome = Outcome()
        let state = try await store.syncState()
        let token = state.token
        // Without a token nobody tells of deletions: what was sent before everything has come may be gone again by then.
        if token == nil, !state.isRefetching { try await store.beginRefetch() }
        do throws(CloudError) {
            let page = try await database.zoneChanges(
                zone, since: token.map { CloudToken(rawValue: $0) }, limit: nil, desiredKeys: nil)
            do {
                let taken = try await resolver.take(page.changes, limits: limits, isPage: true, progress: progress) { state in
                    state.token = page.token.rawValue
                    guard !page.moreComing else { return }
                    state.initialImportIsComplete = true
                    state.isRefetching = false
                    state.isDeploying = false
                }
                outcome.records = taken.counts.inserted + taken.counts.updated + taken.counts.deleted
                outcome.conflicts = taken.conflicts.count
            } catch {
                throw CloudError(transfer: error)
            }
            outcome.moreComing = page.moreComing
        } catch {
            if ErrorReaction(error.code) == .refetch {
                try await store.beginRefetch()
                outcome.moreComing = true
            } else {
                outcome.error = error
            }
        }
        return outcome
    }
}
