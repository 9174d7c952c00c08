import Foundation
import Tidemark

/// A place that somebody has been to.
struct Destination: Record, Identifiable {
    var id = UUID()
    var createdAt = Date()
    var caption: String
    var details: String
    var image: Asset

    func validate() throws {
        if caption.allSatisfy(\.isWhitespace) { throw ValidationError("a destination needs a caption", field: "caption") }
        if details.allSatisfy(\.isWhitespace) { throw ValidationError("a destination needs details", field: "details") }
        if image.size ?? 0 == 0 { throw ValidationError("a destination needs a photo", field: "image") }
    }

    func validateForUpdate(from previous: Destination) throws {
        try validate()
        let isSamePhoto = try image == previous.image || image.data() == previous.image.data()
        if caption == previous.caption, details == previous.details, isSamePhoto {
            throw ValidationError("nothing was changed")
        }
    }
}

extension Asset {
    /// The photo in a file, which is taken in when its destination is saved.
    static func photo(_ path: String) throws -> Asset {
        guard FileManager.default.isReadableFile(atPath: path) else {
            throw ValidationError("a destination needs a photo, and \(path) can't be read", field: "image")
        }
        return Asset(fileURL: URL(fileURLWithPath: path))
    }
}
