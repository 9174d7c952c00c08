import Foundation
import TidemarkCloud
import TidemarkCloudEngine

/// The storage of a directory that also returns addresses at which a test serves the contents.
package struct SigningAssetStorage: AssetStorage {
    private let storage: any AssetStorage
    private let address: @Sendable (CloudAsset, _ owner: String) -> String

    /// - Parameter address: Called for each content each time; returns its address.
    package init(
        _ storage: any AssetStorage, address: @escaping @Sendable (_ asset: CloudAsset, _ owner: String) -> String
    ) {
        (self.storage, self.address) = (storage, address)
    }

    package var signsURLs: Bool { true }
    package func signedURL(of asset: CloudAsset, owner: String) throws(CloudError) -> String? { address(asset, owner) }

    // What the directory does

    package func received(_ asset: CloudAsset, owner: String, by user: String?) async throws(CloudError) -> Int64 {
        try await storage.received(asset, owner: owner, by: user)
    }
    package func add(
        _ piece: Data, to asset: CloudAsset, at offset: Int64, owner: String, by user: String?
    ) async throws(CloudError) -> (received: Int64, isWhole: Bool) {
        try await storage.add(piece, to: asset, at: offset, owner: owner, by: user)
    }
    package func adopt(_ file: URL, as asset: CloudAsset, owner: String) async throws(CloudError) {
        try await storage.adopt(file, as: asset, owner: owner)
    }
    package func unfinished(beside asset: CloudAsset?, owner: String, by user: String?) async throws(CloudError) -> Int64 {
        try await storage.unfinished(beside: asset, owner: owner, by: user)
    }
    package func lastPiece(of digest: String, owner: String, by user: String?) async -> Int64? {
        await storage.lastPiece(of: digest, owner: owner, by: user)
    }
    package func piece(of asset: CloudAsset, from offset: Int64, count: Int, owner: String) async throws(CloudError) -> Data {
        try await storage.piece(of: asset, from: offset, count: count, owner: owner)
    }
    package func has(_ asset: CloudAsset, owner: String) -> Bool { storage.has(asset, owner: owner) }
    package func remove(_ asset: CloudAsset, owner: String) { storage.remove(asset, owner: owner) }
    package func isOld(_ asset: CloudAsset, owner: String, at now: Date) -> Bool {
        storage.isOld(asset, owner: owner, at: now)
    }
    package func old(_ assets: [CloudAsset], owner: String, at now: Date) async -> [CloudAsset] {
        await storage.old(assets, owner: owner, at: now)
    }
    package func isStray(_ asset: CloudAsset, owner: String, at now: Date, since began: Date) -> Bool {
        storage.isStray(asset, owner: owner, at: now, since: began)
    }
    package func strays(_ assets: [CloudAsset], owner: String, at now: Date, since began: Date) async -> [CloudAsset] {
        await storage.strays(assets, owner: owner, at: now, since: began)
    }
    package func examine(
        _ assets: [CloudAsset], owner: String
    ) async throws(CloudError) -> (aging: [CloudAsset], missing: [CloudAsset]) {
        try await storage.examine(assets, owner: owner)
    }
    package func touch(_ asset: CloudAsset, owner: String) { storage.touch(asset, owner: owner) }
    package func owners() async throws(CloudError) -> [String] { try await storage.owners() }
    package func digests(
        of owner: String, from place: String?
    ) async throws(CloudError) -> (digests: Set<String>, next: String?) {
        try await storage.digests(of: owner, from: place)
    }
}
