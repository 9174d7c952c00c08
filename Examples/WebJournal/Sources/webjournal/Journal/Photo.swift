import Foundation
import Tidemark

/// A photo as the journal stores it: upright, of a size for screens, with a thumbnail, and without what it says of its camera and place.
struct Photo: Sendable {
    let picture: ScaledPicture

    private static let options = PictureOptions(maxPixelSize: 2_048, quality: 0.8, thumbnailPixelSize: 480)

    init(data: Data) async throws { picture = try await ScaledPicture(data: data, options: Self.options) }
    init(contentsOf file: URL) async throws { picture = try await ScaledPicture(contentsOf: file, options: Self.options) }

    /// Gives it to a destination, with the time at which it was taken.
    ///
    /// - Parameter keepsPosition: Whether the destination has the place where it was taken, too: others read it once it is shared.
    func move(into destination: inout Destination, keepsPosition: Bool) {
        destination.image = picture.image
        destination.imageThumbnail = picture.thumbnail
        if let taken = picture.dateTaken { destination.createdAt = taken }
        destination.position = keepsPosition ? picture.location : nil
    }

    /// Why a picture can't be used, in words for the person.
    static func message(of error: PictureError) -> String {
        switch error.code {
        case .unsupported: "The photo is neither a JPEG nor a PNG."
        case .tooLarge: "The photo has too many pixels."
        case .damaged: "The photo is damaged."
        default: "The photo can't be read."
        }
    }
}
