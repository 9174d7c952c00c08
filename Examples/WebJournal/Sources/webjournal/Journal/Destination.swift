import Foundation
import Tidemark

/// A place that somebody has been to, with a photo.
struct Destination: Record, Identifiable, Equatable {
    var id = UUID()
    /// When the photo was taken, as far as it says so.
    var createdAt = Date()
    var caption: String
    var details = ""
    var image: Asset
    /// What lists show.
    var imageThumbnail: Asset?
    /// Where the photo was taken, where the person wanted that to be kept.
    var position: Location?

    /// A share is called like its destination, also when that gets another caption.
    static var shareTitle: KeyPath<Destination, String>? { \.caption }
    static var indexes: [RecordIndex<Destination>] { [.on(\.createdAt)] }

    static let (captionLimit, detailsLimit) = (200, 10_000)

    func validate() throws {
        if caption.allSatisfy(\.isWhitespace) { throw ValidationError("Say which place it is.", field: "caption") }
        if caption.count > Self.captionLimit {
            throw ValidationError("A caption has at most \(Self.captionLimit) characters.", field: "caption")
        }
        if details.count > Self.detailsLimit {
            throw ValidationError("The story has at most \(Self.detailsLimit) characters.", field: "details")
        }
        if image.size ?? 0 == 0 { throw ValidationError("Choose a photo.", field: "photo") }
    }
}
