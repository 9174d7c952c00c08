import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Remembers for some minutes which users of the console have seen pictures of a zone.
final class ReadingMemory: Sendable {
    private struct Reading: Hashable {
        let actor: String
        let place: RecordPlace
    }

    /// The times of the noted readings.
    private let noted = LockedValue<[Reading: ContinuousClock.Instant]>([:])

    private static let age = Duration.seconds(600)
    private static let most = 1_000

    /// Whether a reading has to be noted in the audit log now.
    func isNew(_ actor: String, _ place: RecordPlace) -> Bool {
        let now = ContinuousClock.now
        return noted.withLock { noted in
            let reading = Reading(actor: actor, place: place)
            if let last = noted[reading], now - last < Self.age { return false }
            if noted.count >= Self.most { noted = noted.filter { now - $0.value < Self.age } }
            if noted.count < Self.most { noted[reading] = now }
            return true
        }
    }
}

/// The content of an asset: a picture, or otherwise a file to download.
struct AssetPage {
    let context: Context
    private let readings: ReadingMemory

    init(_ context: Context, _ readings: ReadingMemory) { (self.context, self.readings) = (context, readings) }

    func reply() async throws(AdministrationError) -> ConsoleReply {
        let place = try PlaceFields(context)
        guard !context.request.isPost, let name = context.value("name"), let field = context.value("field") else {
            throw AdministrationError(.invalid, "say which asset: record and field")
        }
        let isPreview = context.value("preview") != nil
        // A page of thumbnails makes a single entry in the audit log.
        let isNoted = isPreview && !readings.isNew(context.account.id, place.place)
        let record = try await context.administration.record(
            name, in: place.place, noting: isNoted ? nil : isPreview ? "pictures" : name)
        guard let asset = Self.asset(record.fields[field], Int(context.value("index") ?? "0") ?? 0) else {
            throw AdministrationError(.notFound, "the field '\(field.prefix(100))' has no such asset")
        }
        let read = try await context.administration.reader(of: asset, in: place.place)
        var type = "application/octet-stream"
        if isPreview {
            guard let picture = try await PictureHeader(size: asset.size, read),
                asset.size <= AssetPreview.pictureSize, picture.pixels <= AssetPreview.pixels
            else { throw AdministrationError(.invalid, "the asset is no picture that can be shown here; download it") }
            type = picture.type
        }
        var reply = ConsoleReply(
            200, type: type,
            .pieces(asset.size) { offset, count in try await read(offset, count) })
        reply.headers.append(("Content-Security-Policy", ConsoleHeaders.sandbox))
        if !isPreview {
            // The digest needs no encoding. A name that others have chosen would.
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
