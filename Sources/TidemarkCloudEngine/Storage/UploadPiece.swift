package import Foundation
package import TidemarkCloud

/// How asset storages treat a piece of an upload that arrives late or twice.
package enum UploadPiece {
    /// Returns what a piece adds to an upload: its bytes behind those that are there.
    ///
    /// A client without a reply asks how much of the upload has arrived, and sends the piece again. The first copy may arrive
    /// meanwhile, through another server. Repeated bytes are skipped unread: the digest of the whole content shows in the end
    /// whether all bytes are right.
    ///
    /// - Parameters:
    ///   - offset: Where the piece begins.
    ///   - there: The number of bytes that are there.
    /// - Throws: `CloudError` `invalidArguments` for a piece that leaves a hole, or goes beyond the asset's size.
    package static func rest(
        of piece: Data, at offset: Int64, behind there: Int64, of asset: CloudAsset
    ) throws(CloudError) -> Data {
        guard (0...there).contains(offset) else {
            throw CloudError(.invalidArguments, "the piece begins at \(offset), and the cloud has \(there) bytes")
        }
        guard Int64(piece.count) <= asset.size - offset else {
            throw CloudError(.invalidArguments, "the asset has \(asset.size) bytes, and the piece goes beyond them")
        }
        return piece.dropFirst(Int(min(there - offset, Int64(piece.count))))
    }

    /// The error where another request has ended the upload meanwhile: the asset may be whole, or has to come again.
    package static let overtaken = CloudError(
        .serviceUnavailable, forClients: "another request has sent a piece of the same asset; ask how far it has come",
        retryAfter: .zero)
}
