import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension EmbeddedCloud {
    /// Removes everything that a container has in development, of all accounts, and replaces its schema by production's.
    ///
    /// After a failure, call it again to continue. Devices remove their copies with their next synchronisation.
    ///
    /// - Throws: `CloudError` `zoneBusy`, `serviceUnavailable`, `internalError`.
    /// - Complexity: O(accounts + records).
    package func resetDevelopment(of name: String) async throws(CloudError) -> Removed {
        let production = try await schema(of: name, environment: .production)
        let container = try await openedContainer(name, .development)
        let (engine, assetStorage) = (container.engine, container.assetStorage)
        var removed = Removed()
        for account in try await accounts.all() {
            let user = Self.userRecordName(account.id, in: name)
            let caller = CloudEngine.Caller(user: user, scope: .private, quota: .max, account: account)
            for zone in try await engine.zones(caller) {
                guard !zone.isDefault else {
                    removed.records += try await removeRecords(in: zone, engine, assetStorage, caller)
                    continue
                }
                let counts = try await engine.recordCounts(in: zone, caller)
                for (type, count) in counts where type != CloudShare.recordType { removed.records += count }
                _ = try await engine.modifyZones(saving: [], deleting: [zone], purging: true, assetStorage, caller)
                removed.zones += 1
            }
        }
        var administrator = CloudEngine.Caller(user: "_administrator", scope: .public, quota: .max, account: nil)
        administrator.isAdministrator = true
        removed.records += try await removeRecords(in: .default, engine, assetStorage, administrator)
        // Large zones, and records with many dependents, are removed in steps.
        while try await engine.removeNext(assetStorage) {}
        try await engine.reset(to: production)
        container.notifier.post()
        return removed
    }
}
