package import Foundation
package import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The ages of contents, since they were stored or touched. Contents that no record names are removed after some time.
extension S3AssetStorage {
    private static let unnamedAge: TimeInterval = 25 * 3_600
    private static let freshAge: TimeInterval = 3_600

    /// When a content was stored or touched.
    private enum Age {
        case missing
        case stored(Date, size: Int64)
        /// The bucket can't be asked.
        case unknown

        init(_ head: S3Client.Head?) {
            self = head.map { .stored(Timestamp.date(microseconds: $0.modified), size: $0.size) } ?? .missing
        }

        func isOld(at now: Date) -> Bool {
            switch self {
            case .missing: true
            case .stored(let time, _): now.timeIntervalSince(time) > unnamedAge
            case .unknown: false
            }
        }

        func isStray(at now: Date, since began: Date) -> Bool {
            guard case .stored(let time, _) = self else { return false }
            return time > began && now.timeIntervalSince(time) > unnamedAge
        }
    }

    private func age(_ asset: CloudAsset, _ owner: String) async -> Age {
        do throws(CloudError) {
            try asset.check()
            return Age(try await client.head(key(asset, owner: owner)))
        } catch {
            return .unknown
        }
    }

    private func ageBlocking(_ asset: CloudAsset, _ owner: String) -> Age {
        do throws(CloudError) {
            try asset.check()
            return Age(try client.headBlocking(key(asset, owner: owner)))
        } catch {
            return .unknown
        }
    }

    /// Blocks the thread for a request.
    package func isOld(_ asset: CloudAsset, owner: String, at now: Date) -> Bool { ageBlocking(asset, owner).isOld(at: now) }

    package func old(_ assets: [CloudAsset], owner: String, at now: Date) async -> [CloudAsset] {
        await each(assets) { await self.age($0, owner).isOld(at: now) }
    }

    /// Blocks the thread for a request.
    package func isStray(_ asset: CloudAsset, owner: String, at now: Date, since began: Date) -> Bool {
        ageBlocking(asset, owner).isStray(at: now, since: began)
    }

    package func strays(_ assets: [CloudAsset], owner: String, at now: Date, since began: Date) async -> [CloudAsset] {
        await each(assets) { await self.age($0, owner).isStray(at: now, since: began) }
    }

    /// Asks the bucket for each content once. A content without an answer counts as aging, since records are served without the
    /// bucket.
    package func examine(
        _ assets: [CloudAsset], owner: String
    ) async throws(CloudError) -> (aging: [CloudAsset], missing: [CloudAsset]) {
        let now = now()
        let missing = LockedValue<Set<CloudAsset>>([])
        let aging = await each(assets) { asset in
            switch await self.age(asset, owner) {
            case .stored(let time, asset.size): return now.timeIntervalSince(time) > Self.freshAge
            case .unknown: return true
            case .stored, .missing:
                missing.withLock { _ = $0.insert(asset) }
                return false
            }
        }
        let gone = missing.withLock { $0 }
        guard let first = gone.first, await !isListed(key(first, owner: owner)) else {
            return (aging, assets.filter { gone.contains($0) })
        }
        return (aging + gone, [])
    }

    /// Whether the bucket answers a list. An answer to HEAD has no body, so a missing bucket looks like a missing object.
    private func isListed(_ prefix: String) async -> Bool {
        do throws(CloudError) {
            _ = try await client.page(prefix, delimiter: nil, from: nil)
            return true
        } catch {
            return false
        }
    }

    /// Blocks the thread for a request: the object is copied onto itself.
    package func touch(_ asset: CloudAsset, owner: String) {
        guard (try? asset.check()) != nil else { return }
        try? client.touchBlocking(key(asset, owner: owner))
    }
}
