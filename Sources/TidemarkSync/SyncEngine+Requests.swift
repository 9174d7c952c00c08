import Foundation
import TidemarkCloud
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// Requests of a person between synchronisations.
extension SyncEngine {
    /// Has the next synchronisation fetch everything again. Changes that are not sent yet stay, and are sent.
    ///
    /// - Throws: ``StoreError``; ``ContainerEvent/Failure`` 134417 while it synchronises.
    public func refetch() async throws {
        try claim()
        defer { release() }
        for zoneSync in try await zoneSyncs.all() {
            await zoneSync.imports.forget()
            try await store.beginRefetch(zone: zoneSync.zone.id)
        }
        // The cloud names all zones again, and not only those that have changed.
        try await store.recordZoneChanges(zoneSyncs.all().map(\.zone.id), token: nil)
        machine.begin()
    }

    /// Imports the cloud's changes, and sends nothing.
    ///
    /// - Throws: ``ContainerEvent/Failure`` when setting up fails.
    func preview() async throws {
        switch try await accounts.check() {
        case .available: break
        case .unavailable(let failure, _): throw failure
        case .stopped(let failures): throw failures[0]
        }
        limits = try await database.limits().bounded
        let zones = try await database.zones()
        let hasDefault = zones.contains { $0.zoneName == configuration.zoneName }
        try await fetchRounds { !$0.isDefault || hasDefault }
    }

    /// Resolves conflicts that the merge policy left to a person.
    ///
    /// - Parameters:
    ///   - record: The name of a record with a conflict; `nil` for all.
    ///   - policy: A policy other than the one that left the conflicts.
    /// - Returns: The resolved conflicts. The next synchronisation sends the outcome.
    @discardableResult
    public func resolveConflicts(of record: String? = nil, policy: MergePolicy) async throws -> [DeferredRecord] {
        try claim()
        defer { release() }
        limits = try await database.limits().bounded
        var resolved: [DeferredRecord] = []
        for zoneSync in try await zoneSyncs.all() {
            resolved += try await zoneSync.resolver.resolve(record: record, policy: policy, limits: limits)
        }
        await assets.close()
        return resolved
    }

    /// Repairs the damaged records of the store: each from itself or its history, if the digest proves the result, and otherwise from the
    /// cloud.
    ///
    /// - Returns: The repaired records, and those that could not be repaired.
    /// - Throws: ``ContainerEvent/Failure`` 134417 while it synchronises already, and where no account is signed in;
    ///   `CloudError`; ``StoreError``. Repairs that were made before the error stay.
    /// - Complexity: Reads the whole store.
    public func repair() async throws -> RepairReport {
        try claim()
        defer { release() }
        var report = RepairReport()
        report.repaired = try await store.repair(try await store.damagedRows())
        var remaining = try await store.damagedRows()
        if remaining.contains(where: { $0.tag != nil }) {
            switch try await accounts.check() {
            case .available: break
            case .unavailable(let failure, _): throw failure
            case .stopped(let failures): throw failures[0]
            }
            limits = try await database.limits().bounded
            for zoneSync in try await zoneSyncs.all() {
                report.repaired += try await zoneSync.exports.repair(
                    remaining.filter { $0.zone == zoneSync.zone.id && $0.tag != nil }, limits: limits)
            }
            await assets.close()
            remaining = try await store.damagedRows()
        }
        report.remaining = remaining.map { DamagedRecord(record: $0.record, scope: store.scope, isPending: $0.isPending) }
        return report
    }

    /// Checks which account is signed in, and makes the store belong to it. Records of another account are set aside.
    ///
    /// - Throws: ``ContainerEvent/Failure`` when no account is signed in, or a person has to decide; `CloudError`; ``StoreError``.
    public func adoptAccount() async throws {
        try claim()
        defer { release() }
        switch try await accounts.check() {
        case .available: await zoneSyncs.forgetExports()
        case .unavailable(let failure, _): throw failure
        case .stopped(let failures): throw failures[0]
        }
    }

    /// Makes the store belong to the account that is signed in. If the store is being synchronised, waits for the set-up that
    /// does so.
    ///
    /// - Parameter startsByItself: Whether ``run()`` is about to be called, if it was not yet.
    /// - Returns: Whether the store belongs to it; `false` where the synchronisation ended before.
    /// - Throws: As ``adoptAccount()``, but not 134417; `CancellationError`.
    func waitForAccount(startsByItself: Bool) async throws -> Bool {
        guard isRunning || startsByItself else {
            try await adoptAccount()
            return true
        }
        guard !machine.isSetUp else { return true }
        let events = recorder.broadcaster.stream(replaying: false)
        requestSyncSoon()
        for await event in events where event.kind == .setup && event.end != nil {
            if let failure = event.failure { throw failure }
            return true
        }
        try Task.checkCancellation()
        return false
    }

    /// Calls `body` with the store while nothing is synchronised. Afterwards the engine checks again which account the records belong to.
    func alone<Result: Sendable>(_ body: @Sendable (RecordStore) async throws -> Result) async throws -> Result {
        try claim()
        defer { release() }
        let result = try await body(store)
        await zoneSyncs.forgetExports()
        await zoneSyncs.forgetImports()
        machine.begin()
        return result
    }
}
