import Foundation
import Tidemark

/// The article about pictures.
extension Guide {
    struct Sight: Record, Identifiable {
        var id = UUID()
        var caption: String
        var image: Asset?
        var imageThumbnail: Asset?
    }

    static func pictures(_ photo: URL, in journal: PersistentContainer) async throws -> Sight {
        let picture = try await ScaledPicture(contentsOf: photo, maxPixelSize: 2_048, quality: 0.8, thumbnailPixelSize: 256)
        var senja = Sight(caption: "Senja")
        senja.image = picture.image
        senja.imageThumbnail = picture.thumbnail
        try await journal.save(senja)
        return senja
    }
}
