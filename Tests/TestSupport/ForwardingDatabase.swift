import Foundation
import TidemarkCloud
import TidemarkModel

/// A database that forwards every call to another one. A type that conforms implements what differs.
package protocol ForwardingDatabase: CloudDatabase {
    var base: any CloudDatabase { get }
    /// Called before every request; an error that it throws is the answer.
    func admit() throws(CloudError)
}

extension ForwardingDatabase {
    package var scope: DatabaseScope { base.scope }
    package func admit() throws(CloudError) {}
    package func limits() async throws(CloudError) -> CloudLimits { try await base.limits() }

    package func account() async throws(CloudError) -> CloudAccount {
        try admit()
        return try await base.account()
    }

    package func zones() async throws(CloudError) -> [CloudZoneID] {
        try admit()
        return try await base.zones()
    }

    package func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        try admit()
        try await base.modifyZones(saving: saving, deleting: deleting)
    }

    package func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        try admit()
        return try await base.lookup(names, in: zone, desiredKeys: desiredKeys)
    }

    package func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer {
        try admit()
        return try await base.query(query, in: zone, limit: limit, desiredKeys: desiredKeys, continuation: continuation)
    }

    package func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try admit()
        return try await base.databaseChanges(since: token, limit: limit)
    }

    package func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try admit()
        return try await base.missingAssets(assets, in: zone)
    }

    package func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        try admit()
        return try await base.upload(piece, of: asset, at: offset, in: zone)
    }

    package func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try admit()
        return try await base.download(asset, in: zone, from: offset, count: count)
    }

    package func notifications() async throws(CloudError) -> AsyncStream<Void> { try await base.notifications() }
}
