import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkModel

/// The content of an asset: as a picture where it is one, and as a file otherwise.
struct AssetPage {
    let context: Context

    init(_ context: Context) { self.context = context }

    /// More than that is shown of no picture: it can be downloaded.
    private static let preview: Int64 = 20_000_000

    func reply() async throws(AdministrationError) -> ConsoleReply {
        let place = try PlaceFields(context)
        guard !context.request.isPost, let name = context.value("name"), let field = context.value("field") else {
            throw AdministrationError(.invalid, "say which asset: record and field")
        }
        let record = try await context.administration.record(name, in: place.place)
        guard let asset = Self.asset(record.fields[field], Int(context.value("index") ?? "0") ?? 0) else {
            throw AdministrationError(.notFound, "the field '\(field.prefix(100))' has no such asset")
        }
        let (administration, zone) = (context.administration, place.place)
        let isPreview = context.value("preview") != nil
        let type = try await Self.pictureType(
            of: asset.size == 0 ? Data() : administration.piece(of: asset, in: zone, at: 0, count: Int(min(16, asset.size))))
        guard !isPreview || type != nil && asset.size <= Self.preview else {
            throw AdministrationError(.invalid, "the asset is no picture that can be shown here; download it")
        }
        var reply = ConsoleReply(
            200, type: isPreview ? type ?? "application/octet-stream" : "application/octet-stream",
            .pieces(asset.size) { offset, count in
                try await administration.piece(of: asset, in: zone, at: offset, count: count)
            })
        reply.headers.append(("Content-Security-Policy", ConsoleHeaders.sandbox))
        if !isPreview {
            // A name that others have chosen would have to be encoded: the digest needs none.
            reply.headers.append(("Content-Disposition", "attachment; filename=\"\(asset.digest)\""))
        }
        return reply
    }

    private static func asset(_ value: CloudValue?, _ index: Int) -> CloudAsset? {
        switch value {
        case .asset(let asset)?: return index == 0 ? asset : nil
        case .list(let elements, of: .asset)?:
            guard elements.indices.contains(index), case .asset(let asset) = elements[index] else { return nil }
            return asset
        default: return nil
        }
    }

    /// The type of a picture by how it begins: only of those kinds that no script can be in.
    private static func pictureType(of beginning: Data) -> String? {
        let bytes = Array(beginning)
        if bytes.starts(with: [0xff, 0xd8, 0xff]) { return "image/jpeg" }
        if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) { return "image/png" }
        if bytes.starts(with: Array("GIF8".utf8)) { return "image/gif" }
        if bytes.starts(with: Array("RIFF".utf8)), bytes.count >= 12, Array(bytes[8..<12]) == Array("WEBP".utf8) {
            return "image/webp"
        }
        return nil
    }
}
