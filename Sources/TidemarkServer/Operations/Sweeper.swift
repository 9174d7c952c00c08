import Logging
import TidemarkAdministration
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// Removes what nothing needs from the served containers: when the server begins, and each hour until it ends. Of the servers of
/// one database, one sweeps the contents of assets, once a day.
final class Sweeper: Sendable {
    private let sweep: @Sendable () async throws -> EmbeddedCloud.Sweep
    private let rest: @Sendable () async throws -> Void
    private let metrics: ServerMetrics
    private let logger: Logger?
    private let task = LockedValue<Task<Void, Never>?>(nil)

    convenience init(
        _ cloud: EmbeddedCloud, _ access: CredentialStore, _ subscriptions: SubscriptionStore? = nil, _ metrics: ServerMetrics,
        _ logger: Logger?
    ) {
        self.init(
            metrics, logger, rest: { try await Task.sleep(for: .seconds(3_600)) },
            sweep: { try await Sweeper.sweepServed(cloud, access, subscriptions) })
    }

    /// Removes once what nothing needs from the served containers.
    ///
    /// - Returns: The removed contents; the first error of the removals, which does not end the others.
    /// - Throws: `CredentialError`, with nothing removed, where the credentials can't be read or a newer version has migrated the
    ///   database.
    static func sweepServed(
        _ cloud: EmbeddedCloud, _ access: CredentialStore, _ subscriptions: SubscriptionStore? = nil
    ) async throws -> EmbeddedCloud.Sweep {
        await PersonArchive.removeLeftovers()
        // As for a request, a server that is too old for its database changes nothing.
        try await access.refresh()
        let containers = try access.containers()
        var failure: (any Error)?
        do {
            try await subscriptions?.forgetAccounts(goneFrom: cloud)
            try await access.sweepSyncFailures { try await cloud.account(id: $0) != nil }
        } catch {
            // Contents fill the disk, so they are removed all the same.
            failure = error
        }
        // A content stays for 25 hours at least. More than one sweep a day would only cost requests to a bucket.
        let sweep = await cloud.sweepLeftovers(of: Set(containers), every: .seconds(23 * 3_600))
        guard let failure else { return sweep }
        return .init(removed: sweep.removed, failure: sweep.failure ?? CloudError(.internalError, "\(failure)"))
    }

    /// - Parameters:
    ///   - rest: Waits until it is time to sweep again.
    ///   - sweep: Sweeps once.
    init(
        _ metrics: ServerMetrics, _ logger: Logger?, rest: @escaping @Sendable () async throws -> Void,
        sweep: @escaping @Sendable () async throws -> EmbeddedCloud.Sweep
    ) {
        (self.metrics, self.logger, self.rest, self.sweep) = (metrics, logger, rest, sweep)
    }

    /// Starts the sweeps, unless they have started.
    func begin() {
        task.withLock { task in
            guard task == nil else { return }
            task = Task { [sweep, rest, metrics, logger] in
                while !Task.isCancelled {
                    await Self.once(sweep, metrics, logger)
                    do { try await rest() } catch { return }
                }
            }
        }
    }

    func end() {
        task.withLock { task in
            task?.cancel()
            task = nil
        }
    }

    deinit { end() }

    private static func once(
        _ sweep: @Sendable () async throws -> EmbeddedCloud.Sweep, _ metrics: ServerMetrics, _ logger: Logger?
    ) async {
        do {
            let swept = try await sweep()
            metrics.count(.assetsRemoved, swept.removed)
            if let failure = swept.failure { throw failure }
        } catch {
            guard !Task.isCancelled else { return }
            metrics.count(.sweepsFailed)
            logger?.error("what nobody needs could not be removed", metadata: ["error": .string("\(error)")])
        }
    }
}
