import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// A storage that knows only the times of assets' contents, in memory, for tests of sweeps. Contents can't be uploaded or read.
package final class MemoryAssetStorage: AssetStorage {
    /// When each content was stored, by its owner and digest.
    private let times: LockedValue<[String: [String: Date]]>
    private let onSweep: @Sendable (String) async -> Void
    private let onLook: @Sendable () async -> Void
    private let onRequest: @Sendable (CloudAsset) -> Bool

    /// - Parameters:
    ///   - times: When each content was stored, by its owner and digest.
    ///   - onSweep: Called with each owner at which a sweep begins, in the task of the sweep.
    ///   - onLook: Called when a sweep has asked for ages outside of a transaction.
    ///   - onRequest: Called with each content for which a transaction waits; returns whether the storage answers.
    package init(
        _ times: [String: [String: Date]], onSweep: @escaping @Sendable (String) async -> Void = { _ in },
        onLook: @escaping @Sendable () async -> Void = {}, onRequest: @escaping @Sendable (CloudAsset) -> Bool = { _ in true }
    ) {
        self.times = LockedValue(times)
        (self.onSweep, self.onLook, self.onRequest) = (onSweep, onLook, onRequest)
    }

    /// The digests of an owner's contents.
    package func contents(of owner: String) -> Set<String> { times.withLock { Set($0[owner, default: [:]].keys) } }

    private func time(_ asset: CloudAsset, _ owner: String) -> Date? { times.withLock { $0[owner]?[asset.digest] } }

    private func age(_ asset: CloudAsset, _ owner: String, at now: Date) -> TimeInterval {
        time(asset, owner).map(now.timeIntervalSince) ?? .infinity
    }

    // Uploads

    private static let refusal = CloudError(.internalError, "the contents are in memory, for sweeps alone")

    package func received(_ asset: CloudAsset, owner: String, by user: String?) async throws(CloudError) -> Int64 { 0 }
    package func add(
        _ piece: Data, to asset: CloudAsset, at offset: Int64, owner: String, by user: String?
    ) async throws(CloudError) -> (received: Int64, isWhole: Bool) { throw Self.refusal }
    package func adopt(_ file: URL, as asset: CloudAsset, owner: String) async throws(CloudError) { throw Self.refusal }
    package func unfinished(beside asset: CloudAsset?, owner: String, by user: String?) async throws(CloudError) -> Int64 {
        await onSweep(owner)
        return 0
    }
    package func lastPiece(of digest: String, owner: String, by user: String?) async -> Int64? { nil }

    // Contents

    package func piece(of asset: CloudAsset, from offset: Int64, count: Int, owner: String) async throws(CloudError) -> Data {
        throw Self.refusal
    }
    package func has(_ asset: CloudAsset, owner: String) -> Bool { onRequest(asset) && time(asset, owner) != nil }
    package func remove(_ asset: CloudAsset, owner: String) {
        guard onRequest(asset) else { return }
        times.withLock { _ = $0[owner]?.removeValue(forKey: asset.digest) }
    }
    package func touch(_ asset: CloudAsset, owner: String) {
        guard onRequest(asset) else { return }
        times.withLock { $0[owner, default: [:]][asset.digest] = Date() }
    }

    // Ages

    private static let oldAge: TimeInterval = 25 * 3_600

    package func isOld(_ asset: CloudAsset, owner: String, at now: Date) -> Bool {
        onRequest(asset) && age(asset, owner, at: now) > Self.oldAge
    }
    package func old(_ assets: [CloudAsset], owner: String, at now: Date) async -> [CloudAsset] {
        await onLook()
        return assets.filter { age($0, owner, at: now) > Self.oldAge }
    }
    package func isStray(_ asset: CloudAsset, owner: String, at now: Date, since began: Date) -> Bool {
        onRequest(asset) && isUnknown(asset, owner, at: now, since: began)
    }
    package func strays(_ assets: [CloudAsset], owner: String, at now: Date, since began: Date) async -> [CloudAsset] {
        await onLook()
        return assets.filter { isUnknown($0, owner, at: now, since: began) }
    }
    private func isUnknown(_ asset: CloudAsset, _ owner: String, at now: Date, since began: Date) -> Bool {
        time(asset, owner).map { $0 > began && now.timeIntervalSince($0) > Self.oldAge } ?? false
    }
    package func examine(
        _ assets: [CloudAsset], owner: String
    ) async throws(CloudError) -> (aging: [CloudAsset], missing: [CloudAsset]) {
        let missing = assets.filter { time($0, owner) == nil }
        return (assets.filter { !missing.contains($0) && age($0, owner, at: Date()) > 3_600 }, missing)
    }

    // All contents

    package func owners() async throws(CloudError) -> [String] { times.withLock { Array($0.keys) } }
    package func digests(
        of owner: String, from place: String?
    ) async throws(CloudError) -> (digests: Set<String>, next: String?) {
        let rest = contents(of: owner).filter { digest in place.map { $0 < digest } ?? true }.sorted()
        let page = rest.prefix(1_000)
        return (Set(page), page.count < rest.count ? page.last : nil)
    }
}
