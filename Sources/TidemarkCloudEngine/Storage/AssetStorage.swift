import Foundation
import TidemarkCloud
import TidemarkModel

/// Stores the contents of a container's assets, by owner and SHA-256.
///
/// The engine decides what may be stored and read; a storage keeps bytes. A content is there when all of it is, checked and durable. Pieces of
/// an upload lie beside the contents until the last one arrives. Functions that are not asynchronous return soon: the engine calls them within
/// transactions.
package protocol AssetStorage: Sendable {
    // Uploads

    /// Returns how many bytes of an upload are stored.
    ///
    /// - Parameter user: The uploading user, where that is not the owner. An upload belongs to the user that began it: a user who has sent an
    ///   asset may read it.
    /// - Throws: `CloudError` `invalidArguments` for a digest that can't be.
    func received(_ asset: CloudAsset, owner: String, by user: String?) async throws(CloudError) -> Int64
    /// Appends a piece to an upload. The last piece makes the content whole and durable.
    ///
    /// - Returns: The bytes that are stored now, and whether that is all of the asset.
    /// - Throws: `CloudError` `invalidArguments` for a piece that does not fit, `assetNotAvailable` for a content that has another digest.
    func add(
        _ piece: Data, to asset: CloudAsset, at offset: Int64, owner: String, by user: String?
    ) async throws(CloudError) -> (received: Int64, isWhole: Bool)
    /// Moves a whole file into the storage. The caller has hashed it.
    func adopt(_ file: URL, as asset: CloudAsset, owner: String) async throws(CloudError)
    /// Returns the bytes of an owner's uploads but one, and removes uploads that nobody has continued for a week.
    func unfinished(beside asset: CloudAsset?, owner: String, by user: String?) async throws(CloudError) -> Int64
    /// Returns the time of an upload's last piece in microseconds since 1970 UTC; `nil` for no upload.
    func lastPiece(of digest: String, owner: String, by user: String?) async -> Int64?

    // Contents

    /// Reads a piece of a whole content.
    ///
    /// - Throws: `CloudError` `assetNotAvailable` where the content is missing.
    func piece(of asset: CloudAsset, from offset: Int64, count: Int, owner: String) async throws(CloudError) -> Data
    /// Returns whether a content is there.
    func has(_ asset: CloudAsset, owner: String) -> Bool
    /// Removes a content; while a backup runs, a later sweep removes it instead.
    func remove(_ asset: CloudAsset, owner: String)

    // Contents that no record names

    /// Returns whether a content that no record names may be removed by its age. A missing content may.
    func isOld(_ asset: CloudAsset, owner: String, at now: Date) -> Bool
    /// Returns the contents that may be removed by their age if no record names them.
    func old(_ assets: [CloudAsset], owner: String, at now: Date) async -> [CloudAsset]
    /// Returns whether a content that the database does not know may be removed. A content from before the database may belong to another one.
    func isStray(_ asset: CloudAsset, owner: String, at now: Date, since began: Date) -> Bool
    /// Returns the contents that may be removed if the database does not know them.
    func strays(_ assets: [CloudAsset], owner: String, at now: Date, since began: Date) async -> [CloudAsset]
    /// Returns the contents whose age has to begin again when a client asks for them.
    func aging(_ assets: [CloudAsset], owner: String) async -> [CloudAsset]
    /// Begins a content's age again.
    func touch(_ asset: CloudAsset, owner: String)
    /// Returns the owners of contents.
    func owners() async -> [String]
    /// Returns the digests of an owner's contents that begin with a byte.
    func digests(of owner: String, beginningWith byte: UInt8) async -> Set<String>
}

extension CloudAsset {
    /// Checks that the digest is a SHA-256 in lowercase hexadecimal digits, and the size not negative.
    ///
    /// - Throws: `CloudError` `invalidArguments`.
    package func check() throws(CloudError) {
        guard Hexadecimal.isText(digest, ofBytes: 32) else {
            throw CloudError(.invalidArguments, "'\(digest.prefix(100))' is no SHA-256 in hexadecimal digits")
        }
        guard size >= 0 else { throw CloudError(.invalidArguments, "an asset can't have \(size) bytes") }
    }
}

extension AssetStorage {
    /// As ``received(_:owner:by:)`` of the owner's own upload.
    package func received(_ asset: CloudAsset, owner: String) async throws(CloudError) -> Int64 {
        try await received(asset, owner: owner, by: nil)
    }

    /// As ``unfinished(beside:owner:by:)`` of the owner's own uploads.
    package func unfinished(beside asset: CloudAsset?, owner: String) async throws(CloudError) -> Int64 {
        try await unfinished(beside: asset, owner: owner, by: nil)
    }
}
