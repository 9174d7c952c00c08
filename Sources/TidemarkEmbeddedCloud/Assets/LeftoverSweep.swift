package import Foundation
public import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Goes through the containers of a cloud and takes away what nobody needs.
///
/// It opens them, which waits for the disk and for other processes, on a thread of its own.
actor LeftoverSweep {
    private nonisolated let executor = StoreExecutor(label: "tidemark.sweep")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let cloud: EmbeddedCloud

    init(_ cloud: EmbeddedCloud) { self.cloud = cloud }

    /// Where something goes wrong, it goes on with the next.
    ///
    /// - Parameters:
    ///   - names: The containers; `nil` for all that there are.
    ///   - period: As ``EmbeddedCloud/sweepLeftovers(of:at:every:)`` has it.
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
                // What follows asks for each owner's contents.
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
                    // Where the server ends, the turn goes on with this owner.
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

    /// Whether a folder can be a container's: others may lie beside them.
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
    /// What came of looking for what nobody needs.
    package struct Sweep: Sendable {
        /// How many contents went.
        package fileprivate(set) var removed = 0
        /// What went wrong first, with the container's name.
        package fileprivate(set) var failure: CloudError?

        package init(removed: Int = 0, failure: CloudError? = nil) { (self.removed, self.failure) = (removed, failure) }

        fileprivate mutating func note(_ error: CloudError, _ container: String, _ environment: StoreEnvironment) {
            guard failure == nil else { return }
            failure = CloudError(
                error.code, "container \(container) (\(environment.rawValue)): \(error.reason)", retryAfter: error.retryAfter)
        }
    }

    /// Takes away contents of assets that were sent and that no record names, a day and an hour after they came or were last asked for,
    /// and what was begun and left for a week. A server does it each hour, and of several servers one each day. Where that one ends meanwhile, the
    /// next goes on where it was. O(assets).
    ///
    /// What can't be done in one container keeps it from none of the others.
    ///
    /// - Returns: How many contents went.
    /// - Throws: `CloudError` `internalError`, for the first container in which something went wrong.
    @discardableResult
    public func removeLeftovers() async throws(CloudError) -> Int {
        let sweep = await sweepLeftovers()
        if let failure = sweep.failure { throw failure }
        return sweep.removed
    }

    /// As ``removeLeftovers()``, in some containers.
    ///
    /// - Parameters:
    ///   - names: Those that are looked at, and opened; `nil` for all that there are.
    ///   - now: By which the ages of files are told.
    ///   - period: Where several servers share a container, one of them looks at its contents in such a time; `nil` for this one.
    package func sweepLeftovers(
        of names: Set<String>? = nil, at now: Date = Date(), every period: Duration? = nil
    ) async -> Sweep {
        await LeftoverSweep(self).run(over: names, at: now, every: period)
    }
}
