import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// Sends contents of assets to clients: through the server, or from the bucket by an address that the server signs.
extension ServedCloud {
    /// Sends a content, or a part of it.
    func download(_ call: Call) async throws -> Reply {
        try await access.refresh()
        guard
            let pass = try access.open(call.parameters["capability"] ?? "", for: SignedAssetToken.download).flatMap(
                SignedAssetToken.init),
            let asset = pass.asset
        else { throw CloudError(.unknownItem, "the address is altered or has expired: fetch the record again") }
        return try await send(asset, pass.zone, try await database(pass), call)
    }

    func getAsset(_ call: Call) async throws -> Reply {
        let (asset, zone) = try named(call)
        return try await send(asset, zone, try await database(call), call)
    }

    /// Bytes that are read at a time.
    private static let piece = 1 << 20

    private func send(
        _ asset: CloudAsset, _ zone: CloudZoneID, _ database: EmbeddedDatabase, _ call: Call
    ) async throws -> Reply {
        guard asset.size >= 0 else { throw CloudError(.assetNotAvailable, "the asset \(asset.digest.prefix(64)) is not there") }
        let tag = "\"\(asset.digest)\""
        var reply = Reply(body: .none)
        reply.headers[.eTag] = tag
        reply.headers[.acceptRanges] = "bytes"
        reply.headers[.contentDisposition] = AssetHeaders.contentDisposition
        reply.headers[.cacheControl] = AssetHeaders.cacheControl
        var range: Range<Int64> = 0..<asset.size
        // If the client has another content, its range does not apply to this one.
        if let text = call.headers[.range], call.headers[.ifRange].map({ $0 == tag }) ?? true {
            switch ByteRange(text, of: asset.size) {
            case .all: break
            case .part(let part):
                range = part
                reply.status = .partialContent
                reply.headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(asset.size)"
            case .none:
                reply.status = .rangeNotSatisfiable
                reply.headers[.contentRange] = "bytes */\(asset.size)"
                return reply
            }
        }
        let isKnown = call.headers[.ifNoneMatch] == tag
        // Only a caller who may have the content gets its address.
        if Self.canBeSentElsewhere(call), let url = try await database.signedURL(of: asset, in: zone) {
            guard isKnown else { return Self.redirection(to: url) }
            reply.status = .notModified
            return reply
        }
        // A caller who may not have the content is refused before anything is sent.
        let first = try await database.download(
            asset, in: zone, from: range.lowerBound, count: min(Self.piece, Int(range.upperBound - range.lowerBound)))
        guard first.count == min(Self.piece, Int(range.upperBound - range.lowerBound)) else {
            throw CloudError(.assetNotAvailable, "the asset \(asset.digest) is not \(asset.size) bytes long")
        }
        if isKnown {
            reply.status = .notModified
            return reply
        }
        let whole = range
        reply.body = .stream(type: AssetHeaders.contentType, count: whole.upperBound - whole.lowerBound) { writer in
            try await writer.write(ByteBuffer(bytes: first))
            var offset = whole.lowerBound + Int64(first.count)
            while offset < whole.upperBound {
                let piece = try await database.download(
                    asset, in: zone, from: offset, count: min(Self.piece, Int(whole.upperBound - offset)))
                guard !piece.isEmpty else { throw CloudError(.assetNotAvailable, "the asset \(asset.digest) ends early") }
                try await writer.write(ByteBuffer(bytes: piece))
                offset += Int64(piece.count)
            }
        }
        return reply
    }

    /// Returns whether a client can be redirected to the bucket, by an address that is valid for GET only.
    private static func canBeSentElsewhere(_ call: Call) -> Bool {
        // A page of another origin would need the bucket's permission to read its answer. SeaweedFS ignores `If-Range`, and would
        // send a part to a client that has another content.
        !call.isHead && call.headers[.origin] == nil && call.headers[.ifRange] == nil
    }

    /// Redirects a client to the address of a content. Anyone can use the address for a short time, so it must not be cached.
    private static func redirection(to url: String) -> Reply {
        var reply = Reply(status: .temporaryRedirect, body: .none)
        reply.headers[.location] = url
        reply.headers[.cacheControl] = "no-store"
        reply.headers[referrerPolicy] = "no-referrer"
        return reply
    }

    private static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
}
