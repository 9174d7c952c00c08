package import Foundation
public import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Goes through the containers of a cloud and removes what nothing needs.
///
/// It has a thread of its own, because opening containers waits for the disk and for other processes.
actor LeftoverSweep {
    private nonisolated let executor = StoreExecutor(label: "tidemark.sweep")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let cloud: EmbeddedCloud

    init(_ cloud: EmbeddedCloud) { self.cloud = cloud }

    /// After an error it continues with the next owner or container.
    ///
    /// - Parameters:
    ///   - names: The containers; `nil` for all of them.
    ///   - period: As in ``EmbeddedCloud/sweepLeftovers(of:at:every:)``.
    func run(over names: Set<String>?, at now: Date, every period: Duration?) async -> EmbeddedCloud.Sweep {
        var sweep = EmbeddedCloud.Sweep()
        let containers: [(String, StoreEnvironment)]
        do throws(CloudError) {
            containers = try await cloud.containers()
        } catch {
            return EmbeddedCloud.Sweep(failure: error)
        }
        for (name, environment) in containers where names?.contains(name) ?? Self.isContainer(name) {
            guard !Task.isCancelled else { return sweep }
            do throws(CloudError) {
                let container = try await cloud.openedContainer(name, environment)
                container.goOnRemoving()
                try await container.engine.forgetUploads(of: nil, container.assetStorage)
                try await container.engine.forgetAnswers()
                // The steps below read the contents of each owner.
                guard let turn = try await SweepTurn.begin(over: container.engine.storage, every: period) else { continue }
                for owner in turn.rest(of: try await container.assetStorage.owners()) {
                    do throws(CloudError) {
                        let count = try await container.engine.sweep(
                            owner, container.assetStorage, at: now,
                            while: { () async throws(CloudError) in try await turn.renew() })
                        sweep.removed += count
                    } catch {
                        sweep.note(error, name, environment)
                    }
                    // If this server ends, another one continues the turn with this owner.
                    guard !Task.isCancelled else { return sweep }
                    guard try await turn.renew(behind: owner) else { break }
                }
                try await turn.end()
            } catch {
                sweep.note(error, name, environment)
            }
        }
        return sweep
    }

    /// Returns whether a folder can be a container's. Other folders may be beside those.
    private static func isContainer(_ name: String) -> Bool {
        do throws(CloudError) {
            try EmbeddedCloud.check(container: name)
            return true
        } catch {
            return false
        }
    }
}

extension EmbeddedCloud {
    /// The result of a sweep.
    package struct Sweep: Sendable {
        /// The number of removed contents.
        package fileprivate(set) var removed = 0
        /// The first error, with the container's name.
        package fileprivate(set) var failure: CloudError?

        package init(removed: Int = 0, failure: CloudError? = nil) { (self.removed, self.failure) = (removed, failure) }

        fileprivate mutating func note(_ error: CloudError, _ container: String, _ environment: StoreEnvironment) {
            guard failure == nil else { return }
            failure = CloudError(
                error.code, "container \(container) (\(environment.rawValue)): \(error.reason)", retryAfter: error.retryAfter)
        }
    }

    /// Removes contents that no record names, 25 hours after they were stored or last asked for, and uploads without a piece for
    /// a week. A server does it each hour; of several servers with one database, one does it each day. If that server ends
    /// meanwhile, the next one continues its sweep. O(assets).
    ///
    /// An error in one container does not keep the sweep from the others.
    ///
    /// - Returns: The number of removed contents.
    /// - Throws: `CloudError` `internalError`, for the first container in which something went wrong.
    @discardableResult
    public func removeLeftovers() async throws(CloudError) -> Int {
        let sweep = await sweepLeftovers()
        if let failure = sweep.failure { throw failure }
        return sweep.removed
    }

    /// As ``removeLeftovers()``, for some containers.
    ///
    /// - Parameters:
    ///   - names: The containers to open and sweep; `nil` for all.
    ///   - now: The time to which the ages of files are compared.
    ///   - period: The time in which one of the servers that share a container sweeps it; `nil` to sweep now, whatever others do.
    package func sweepLeftovers(
        of names: Set<String>? = nil, at now: Date = Date(), every period: Duration? = nil
    ) async -> Sweep {
        await LeftoverSweep(self).run(over: names, at: now, every: period)
    }
}
