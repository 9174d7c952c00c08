import Foundation
import Tidemark

/// A photo of a stop. The picture is a file beside the store, kept once however many photos name it.
public struct Photo: Record, Identifiable, Equatable {
    public var id = UUID()
    public var stop: Reference<Stop>
    public var caption: String
    public var takenAt: Date
    public var image: Asset
    /// What lists show: it comes with the record, also where the picture comes on demand. Is new in version 2.
    public var imageThumbnail: Asset?

    public init(of stop: Stop, caption: String, takenAt: Date, image: Asset) {
        self.stop = Reference(stop)
        self.caption = caption
        self.takenAt = takenAt
        self.image = image
    }

    public static var relationships: [Relationship<Photo>] { [.owned(by: \.stop)] }

    public func validate() throws {
        if image.size ?? 0 == 0 { throw ValidationError("Zum Foto fehlt das Bild.", field: "image") }
    }
}
