package import Foundation
package import TidemarkCloud
import TidemarkModel

/// Stores the contents of a container's assets, by owner and SHA-256.
///
/// The engine decides who may store and read a content; a storage keeps bytes. All calls may come from any task, several at a time,
/// also from other processes. An owner is a user record name, or empty for the public database.
///
/// - A content is there as a whole, checked and durable, or not at all. Pieces of an upload become a content with the last one.
/// - The rows of a ``CloudStorage`` say which contents exist, and count their bytes. A content without a row does no harm. A row
///   without its content gives an error (`assetNotAvailable`) to its readers. So the engine stores a content before its row, and
///   removes it after its row.
/// - Functions that are not asynchronous are called within a write transaction, on its thread: they return soon, and report no error.
package protocol AssetStorage: Sendable {
    // Uploads

    /// Returns the number of bytes of an upload that are stored; 0 where none has begun.
    ///
    /// - Parameter user: The uploading user, unless that is the owner. Only the user who began an upload continues it, since a user who
    ///   has sent an asset may read it.
    /// - Throws: `CloudError` `invalidArguments` for a malformed digest or a negative size.
    func received(_ asset: CloudAsset, owner: String, by user: String?) async throws(CloudError) -> Int64
    /// Appends a piece to an upload, or begins the upload with it. The last piece makes the content whole and durable. Pieces of
    /// one upload that arrive together are added one after the other. A piece that can't be stored does not count: the upload
    /// then continues at ``received(_:owner:by:)``, which may be its beginning. Bytes that a piece repeats are skipped
    /// (``UploadPiece``).
    ///
    /// - Parameter offset: Where the piece begins: the number of bytes that are stored, or less.
    /// - Returns: The number of bytes that are stored now, and whether that is the whole content.
    /// - Throws: `CloudError` `invalidArguments` for a greater offset, or a piece that goes beyond the asset's size; `assetNotAvailable`
    ///   where the whole has another digest, and then the upload is removed; `serviceUnavailable` where another request has ended the
    ///   upload meanwhile; `quotaExceeded` or `internalError` where the storage itself is full or fails.
    func add(
        _ piece: Data, to asset: CloudAsset, at offset: Int64, owner: String, by user: String?
    ) async throws(CloudError) -> (received: Int64, isWhole: Bool)
    /// Moves a whole file into the storage, durably, or replaces an equal content. The caller has hashed the file.
    ///
    /// - Throws: `CloudError` `assetNotAvailable` where the file has another size; `quotaExceeded` or `internalError` where the storage
    ///   itself is full or fails.
    func adopt(_ file: URL, as asset: CloudAsset, owner: String) async throws(CloudError)
    /// Returns the bytes of an owner's unfinished uploads, and removes uploads whose last piece came more than seven days ago. One
    /// upload, if given, is left out of both.
    func unfinished(beside asset: CloudAsset?, owner: String, by user: String?) async throws(CloudError) -> Int64
    /// Returns the time of an upload's last piece, in microseconds since 1970 UTC; `nil` where there is no upload.
    func lastPiece(of digest: String, owner: String, by user: String?) async -> Int64?

    // Contents

    /// Reads at most `count` bytes of a whole content from an offset on; fewer at its end, and none behind it.
    ///
    /// - Throws: `CloudError` `assetNotAvailable` where the content is missing; where a storage compares contents with their digests before
    ///   it hands them out, `serviceUnavailable` for one that is another. ``isDamaged(_:owner:)`` tells that from a storage that is away.
    func piece(of asset: CloudAsset, from offset: Int64, count: Int, owner: String) async throws(CloudError) -> Data
    /// Returns whether what is stored as a content is certainly another one, or has another length. The whole of it is read, twice.
    func isDamaged(_ asset: CloudAsset, owner: String) async -> Bool
    /// Whether clients can read contents by addresses of ``signedURL(of:owner:)``, past the servers.
    var signsURLs: Bool { get }
    /// Returns an address of a content. Whoever has the address can read the content, whole or in parts, for some minutes at
    /// most, and nothing else. The content may be missing, which shows when it is read. It is answered with ``AssetHeaders``.
    ///
    /// The caller has to check first that the client may read the content.
    ///
    /// - Returns: `nil` where contents are read through the servers alone.
    /// - Throws: `CloudError` `invalidArguments` for a malformed digest or a negative size; `serviceUnavailable` where there are no keys to
    ///   sign with.
    func signedURL(of asset: CloudAsset, owner: String) throws(CloudError) -> String?
    /// Returns whether a content exists. One that has another size than the asset does not: it was cut, or is damaged.
    func has(_ asset: CloudAsset, owner: String) -> Bool
    /// Removes a content. A missing content is no error. While a backup runs, or where removing fails, the content stays until a later
    /// sweep.
    func remove(_ asset: CloudAsset, owner: String)

    // Contents that no record names

    /// Returns whether a content that no record names may be removed: 25 hours after it was stored or last touched. A missing content
    /// may.
    func isOld(_ asset: CloudAsset, owner: String, at now: Date) -> Bool
    /// Returns those of the contents for which ``isOld(_:owner:at:)`` holds.
    func old(_ assets: [CloudAsset], owner: String, at now: Date) async -> [CloudAsset]
    /// Returns whether a content without a row may be removed: as ``isOld(_:owner:at:)``, if it was also stored or touched after a
    /// time. A missing content may not.
    ///
    /// - Parameter began: ``CloudStorage/began``: an older content may belong to another cloud.
    func isStray(_ asset: CloudAsset, owner: String, at now: Date, since began: Date) -> Bool
    /// Returns those of the contents for which ``isStray(_:owner:at:since:)`` holds.
    func strays(_ assets: [CloudAsset], owner: String, at now: Date, since began: Date) async -> [CloudAsset]
    /// Looks for contents that a client asks for. The engine touches the aging ones, and has the client send the missing ones.
    ///
    /// - Returns: Those that were stored or touched more than an hour ago, and those that are certainly not there, or not with the asset's
    ///   size. One that the storage can't look for is among the aging ones: it passes for there.
    /// - Throws: `CloudError` `serviceUnavailable` where the place of the contents is not there.
    func examine(
        _ assets: [CloudAsset], owner: String
    ) async throws(CloudError) -> (aging: [CloudAsset], missing: [CloudAsset])
    /// Begins a content's age again.
    func touch(_ asset: CloudAsset, owner: String)
    /// Returns the owners of contents and uploads.
    func owners() async throws(CloudError) -> [String]
    /// Returns the digests of an owner's contents, in pages of at most a few thousand, for sweeps.
    ///
    /// - Parameter place: What came with the page before; `nil` for the first page.
    /// - Returns: The digests, which may be none, and what the next page is asked for with; `nil` behind the last one.
    func digests(of owner: String, from place: String?) async throws(CloudError) -> (digests: Set<String>, next: String?)
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
    // The default: a storage that clients can't reach.
    package var signsURLs: Bool { false }
    package func signedURL(of asset: CloudAsset, owner: String) throws(CloudError) -> String? { nil }

    // The default: a storage that returns the bytes it has, and whose callers compare them with the digest.
    package func isDamaged(_ asset: CloudAsset, owner: String) async -> Bool { false }

    /// Returns whether a content that could not be read is damaged where it is stored; otherwise its storage may be away for a while.
    package func isDamaged(_ asset: CloudAsset, owner: String, after error: CloudError) async -> Bool {
        error.isOtherContent ? await isDamaged(asset, owner: owner) : false
    }

    /// Calls ``received(_:owner:by:)`` for the owner's own upload.
    package func received(_ asset: CloudAsset, owner: String) async throws(CloudError) -> Int64 {
        try await received(asset, owner: owner, by: nil)
    }

    /// Calls ``unfinished(beside:owner:by:)`` for the owner's own upload.
    package func unfinished(beside asset: CloudAsset?, owner: String) async throws(CloudError) -> Int64 {
        try await unfinished(beside: asset, owner: owner, by: nil)
    }
}
