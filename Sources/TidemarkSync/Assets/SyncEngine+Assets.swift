import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A content that can be downloaded, with the zones whose records name it.
struct AssetSource: Sendable {
    let content: RemoteAsset
    let zones: [CloudZoneID]
    let engine: SyncEngine
}

extension SyncEngine {
    /// Makes sure that the account's switches are on.
    ///
    /// - Throws: ``ContainerEvent/Failure``.
    private func requireAccount() throws {
        if let failure = configuration.accountState().setupFailures.first { throw failure }
    }

    /// Returns the limits of the cloud, and asks the cloud unless that was done.
    private func currentLimits() async throws(CloudError) -> CloudLimits {
        if !isSetUp { limits = try await database.limits().bounded }
        return limits
    }

    /// Returns contents that can be downloaded, with their zones.
    ///
    /// - Parameter ids: Identifiers. Those that the store does not know from its cloud are left out.
    func sources(of ids: Set<String>) async throws -> [AssetSource] {
        let contents = try await store.remoteAssets(ids)
        guard !contents.isEmpty else { return [] }
        let named = try await store.zones(naming: Set(contents.map(\.id)))
        let cloudZones = Dictionary(
            try await zoneSyncs.all().map { ($0.zone.id, $0.cloudZone) }, uniquingKeysWith: { one, _ in one })
        return contents.map { content in
            AssetSource(content: content, zones: (named[content.id] ?? []).compactMap { cloudZones[$0.id] }, engine: self)
        }
    }

    /// Downloads a content.
    func download(_ source: AssetSource, priority: TaskPriority, progress: @escaping @Sendable (Int64) -> Void) async throws {
        try requireAccount()
        do {
            try await downloads.download(
                source.content, zones: source.zones, limits: currentLimits(), priority: priority, progress: progress)
        } catch let error as CloudError where error.code == .assetNotAvailable {
            // The signed-in account may be another one than the store's.
            let (user, known) = (try await database.account().userRecordName, try await store.syncState().user)
            guard user == nil || known != nil && user != known else { throw error }
            throw ContainerEvent.Failure(
                code: SyncErrorCode.noAccount,
                reason:
                    "the account is not signed in whose cloud has the content of the asset \(source.content.id). Sign in, then try again",
                cause: .signedOut)
        }
    }

    /// Returns the contents that the store may evict, as far as it knows. Zones that are being compared or fetched again are left
    /// out: what the store knows of the cloud there may be wrong.
    func evictable() async throws -> [String: (asset: RemoteAsset, zones: Set<Int64>)] {
        var trusted: Set<Int64> = []
        for zone in try await store.zones() {
            let state = try await store.syncState(zone: zone.id)
            if !state.isComparing, !state.isRefetching, !state.awaitsFirstPage, !state.isPurged { trusted.insert(zone.id) }
        }
        return try await store.evictable().compactMapValues { asset, zones in
            let zones = zones.intersection(trusted)
            return zones.isEmpty ? nil : (asset, zones)
        }
    }

    /// Returns those of some contents that the cloud confirms it has.
    ///
    /// - Throws: ``ContainerEvent/Failure`` where no account is signed in; `CloudError`.
    func confirmed(_ contents: [String: (asset: RemoteAsset, zones: Set<Int64>)]) async throws -> Set<String> {
        guard !contents.isEmpty else { return [] }
        try requireAccount()
        let most = max(1, try await currentLimits().operationsPerRequest)
        let cloudZones = Dictionary(
            try await zoneSyncs.all().map { ($0.zone.id, $0.cloudZone) }, uniquingKeysWith: { one, _ in one })
        var confirmed: Set<String> = []
        for (zone, all) in Dictionary(grouping: contents.values, by: { $0.zones.min() ?? 0 }).sorted(by: { $0.key < $1.key }) {
            guard let cloudZone = cloudZones[zone] else { continue }
            let assets = all.map(\.asset).sorted { $0.id < $1.id }
            for start in stride(from: 0, to: assets.count, by: most) {
                let some = assets[start..<min(assets.count, start + most)]
                let missing = try await database.missingAssets(
                    some.map { CloudAsset(digest: $0.sha256, size: $0.size) }, in: cloudZone)
                for asset in some where missing[CloudAsset(digest: asset.sha256, size: asset.size)] == nil {
                    confirmed.insert(asset.id)
                }
            }
        }
        return confirmed
    }
}
