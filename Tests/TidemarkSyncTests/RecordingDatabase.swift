import Foundation
import TestSupport
import TidemarkCloud
import TidemarkModel

/// Forwards everything to another database, records changes, and refuses what a test chooses.
final class RecordingDatabase: ForwardingDatabase {
    private struct State {
        var sent: [String] = []
        var sizes: [Int] = []
        var limit = Int.max
        var failure: CloudError.Code?
        var refused: [String: CloudError.Code] = [:]
        var limits: CloudLimits?
        var accountFailure, changesFailure: CloudError?
        var uploads = 0
        var uploadHook: (@Sendable (Int64) async -> Void)?
        var lookups: [[String]] = []
        var downloads: [Download] = []
        var downloadHook: (@Sendable (Download) async -> Void)?
        var downloadFailure: CloudError.Code?
        var requests: [[String]] = []
        var hooks: [Int: @Sendable () async -> Void] = [:]
    }

    /// A piece of an asset that was requested.
    struct Download: Hashable, Sendable {
        let digest: String
        let offset: Int64
        let count: Int
    }

    let base: any CloudDatabase
    private let state = LockedValue(State())

    init(_ base: any CloudDatabase) { self.base = base }

    /// Names of the records that were saved or deleted, in that order.
    var sent: [String] { state.withLock(\.sent) }
    /// The number of records in each request that was not refused.
    var sizes: [Int] { state.withLock(\.sizes) }
    /// The number of pieces of assets that were uploaded.
    var uploads: Int { state.withLock(\.uploads) }

    /// Runs something before a piece of an asset is uploaded, with the piece's offset.
    func beforeUpload(_ hook: (@Sendable (Int64) async -> Void)?) { state.withLock { $0.uploadHook = hook } }

    /// The names in each look-up of records.
    var lookups: [[String]] { state.withLock(\.lookups) }

    /// The pieces of assets that were requested, in order.
    var downloads: [Download] { state.withLock(\.downloads) }
    /// Runs something before a piece is fetched.
    func beforeDownload(_ hook: (@Sendable (Download) async -> Void)?) { state.withLock { $0.downloadHook = hook } }
    func downloadsFail(with code: CloudError.Code?) { state.withLock { $0.downloadFailure = code } }

    /// The number of the request that had a record, from 1 on.
    func request(of name: String) -> Int? { state.withLock { $0.requests.firstIndex { $0.contains(name) }.map { $0 + 1 } } }
    /// Runs something before the answer to a request, from 1 on, is returned.
    func afterRequest(_ number: Int, _ hook: @escaping @Sendable () async -> Void) { state.withLock { $0.hooks[number] = hook } }

    func refusesMore(than count: Int) { state.withLock { $0.limit = count } }
    /// Refuses a single record, and accepts the others of its request; `nil` ends that.
    func refuses(_ name: String, with code: CloudError.Code?) { state.withLock { $0.refused[name] = code } }
    func stopsRefusing() { state.withLock { $0.refused = [:] } }
    func accountFails(with error: CloudError?) { state.withLock { $0.accountFailure = error } }
    func changesFail(with error: CloudError?) { state.withLock { $0.changesFailure = error } }
    func announces(_ limits: CloudLimits) { state.withLock { $0.limits = limits } }
    func fails(with code: CloudError.Code?) { state.withLock { $0.failure = code } }

    func limits() async throws(CloudError) -> CloudLimits {
        if let limits = state.withLock(\.limits) { return limits }
        return try await base.limits()
    }
    func account() async throws(CloudError) -> CloudAccount {
        if let failure = state.withLock(\.accountFailure) { throw failure }
        return try await base.account()
    }
    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        let (limit, failure) = state.withLock { ($0.limit, $0.failure) }
        if let failure { throw CloudError(failure, "as it was told") }
        guard request.operations.count <= limit else { throw CloudError(.limitExceeded, "\(limit) at the most") }
        let refused = request.operations.map { operation in
            state.withLock { $0.refused[operation.record.id.recordName] }.map { CloudError($0, "as it was told") }
        }
        var admitted = request
        admitted.operations = zip(request.operations, refused).filter { $0.1 == nil }.map(\.0)
        var admittedOutcomes = (admitted.operations.isEmpty ? [] : try await base.modify(admitted)).makeIterator()
        let outcomes = refused.compactMap { error in error.map(RecordOutcome.failed) ?? admittedOutcomes.next() }
        let hook = state.withLock { state in
            state.requests.append(request.operations.map(\.record.id.recordName))
            return state.hooks[state.requests.count]
        }
        await hook?()
        state.withLock { state in
            state.sizes.append(request.operations.count)
            for (operation, outcome) in zip(request.operations, outcomes) {
                if case .failed = outcome { continue }
                state.sent.append(operation.record.id.recordName)
            }
        }
        return outcomes
    }

    func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        state.withLock { $0.lookups.append(names) }
        return try await base.lookup(names, in: zone, desiredKeys: desiredKeys)
    }

    func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        if let failure = state.withLock(\.changesFailure) { throw failure }
        return try await base.databaseChanges(since: token, limit: limit)
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        if let failure = state.withLock(\.changesFailure) { throw failure }
        return try await base.zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
    }

    func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        let hook = state.withLock { state in
            state.uploads += 1
            return state.uploadHook
        }
        await hook?(offset)
        return try await base.upload(piece, of: asset, at: offset, in: zone)
    }

    func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        let download = Download(digest: asset.digest, offset: offset, count: count)
        let (hook, failure) = state.withLock { state in
            state.downloads.append(download)
            return (state.downloadHook, state.downloadFailure)
        }
        if let failure { throw CloudError(failure, "as it was told") }
        await hook?(download)
        return try await base.download(asset, in: zone, from: offset, count: count)
    }
}
