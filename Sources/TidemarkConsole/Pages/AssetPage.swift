import TidemarkAdministration
import TidemarkCloud
import TidemarkModel

/// The content of an asset: as a picture where it is one, and as a file otherwise.
struct AssetPage {
    let context: Context

    init(_ context: Context) { self.context = context }

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
        var type = "application/octet-stream"
        if isPreview {
            guard let picture = try await PictureHeader(of: asset, in: zone, administration),
                asset.size <= AssetPreview.pictureSize, picture.pixels <= AssetPreview.pixels
            else { throw AdministrationError(.invalid, "the asset is no picture that can be shown here; download it") }
            type = picture.type
        }
        var reply = ConsoleReply(
            200, type: type,
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
}
