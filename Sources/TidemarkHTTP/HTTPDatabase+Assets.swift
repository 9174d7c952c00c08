public import Foundation
public import TidemarkCloud
import TidemarkModel
import TidemarkWire

extension HTTPDatabase {
    /// Returns the assets that the server lacks. `CloudDatabase` has the contract of `missingAssets(_:in:)`.
    public func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try await own(.look, "assets/missing") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.list("assets") { json in
                for asset in assets {
                    json.object {
                        $0.member("digest", asset.digest)
                        $0.member("size", asset.size)
                    }
                }
            }
        } reading: { node throws(CloudError) in
            let asked = Set(assets)
            var missing: [CloudAsset: Int64] = [:]
            for given in try node.required("assets").asArray(most: assets.count) {
                let asset = CloudAsset(
                    digest: try given.required("digest").asString(), size: try given.required("size").asInteger())
                let received = try given.required("received")
                let count = try received.asInteger()
                guard asked.contains(asset), count >= 0, count <= asset.size else {
                    throw received.refusal("was not asked about")
                }
                missing[asset] = count
            }
            return missing
        }
    }

    /// Uploads a piece of an asset. `CloudDatabase` has the contract of `upload(_:of:at:in:)`.
    public func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        guard asset.isNamed else { throw CloudError(.invalidArguments, "'\(asset.digest.prefix(64))' is no digest of an asset") }
        let call = HTTPCall(
            kind: .upload, method: .put, target: "\(target(asset, zone))&offset=\(offset)",
            headers: [("Content-Type", "application/octet-stream")], body: Array(piece))
        return try await cloud.value(call) { node throws(CloudError) in
            let received = try node.required("received")
            let count = try received.asInteger()
            guard count >= 0, count <= asset.size else { throw received.refusal("is more than the asset has") }
            return count
        }
    }

    /// Downloads a piece of an asset, from the server or from the bucket to which the server sends. `CloudDatabase` has the contract of
    /// `download(_:in:from:count:)`.
    public func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        guard asset.isNamed else { throw CloudError(.assetNotAvailable, "the asset \(asset.digest.prefix(64)) is not there") }
        guard offset >= 0 else { throw CloudError(.invalidArguments, "a piece can't begin at \(offset)") }
        // A piece after the end is empty, but it is requested all the same, because the account may not be allowed to read the
        // asset.
        let most = min(max(0, count), 1 << 26)
        let (last, isTooFar) = offset.addingReportingOverflow(Int64(max(1, most)) - 1)
        let call = HTTPCall(
            kind: .download(count: most), method: .get, target: target(asset, zone),
            headers: [("Range", "bytes=\(offset)-\(isTooFar ? .max : last)")])
        let answer = try await cloud.content(call, of: asset)
        let body = answer.body
        switch answer.status {
        case .rangeNotSatisfiable: return Data()
        case .partialContent:
            guard let range = answer.headers.first(name: "Content-Range"), range.hasPrefix("bytes \(offset)-"),
                body.count <= max(1, most)
            else { break }
            return Data(body.prefix(most))
        // The server has sent all of it.
        case .ok where offset == 0 && Int64(body.count) == asset.size: return Data(body.prefix(most))
        default: break
        }
        throw CloudError(
            .internalError,
            "the reply of \(cloud.server) to \(call.name) breaks the protocol: it is not the requested piece")
    }

    private func target(_ asset: CloudAsset, _ zone: CloudZoneID) -> String {
        own("assets/\(asset.digest)-\(asset.size)")
            + "?zone=\(PercentCoding.encoded(zone.zoneName))&owner=\(PercentCoding.encoded(zone.ownerName))"
    }
}

extension CloudAsset {
    /// Whether the digest has 64 lower-case hexadecimal digits and the size is not negative.
    fileprivate var isNamed: Bool {
        size >= 0 && Hexadecimal.isText(digest, ofBytes: 32)
    }
}
