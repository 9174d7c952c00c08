import Foundation
import Tidemark

/// The photos of a stop: all that has to do with pictures is here.
public struct PhotoAlbum: Sendable {
    public let book: TravelBook
    public let stop: Stop

    public init(of stop: Stop, in book: TravelBook) {
        self.stop = stop
        self.book = book
    }

    public func photos() async throws -> [Photo] { try await book.container.fetchAll(Stop.photos, of: stop) }

    /// Takes in the picture of a file.
    @discardableResult
    public func add(_ file: URL, caption: String, takenAt: Date) async throws -> Photo {
        guard FileManager.default.isReadableFile(atPath: file.path) else {
            throw ValidationError("Das Bild „\(file.lastPathComponent)“ ist nicht da oder nicht lesbar.", field: "image")
        }
        return try await book.container.saveAndFetch(
            Photo(of: stop, caption: caption, takenAt: takenAt, image: Asset(fileURL: file)))
    }

    /// Where a view finds the picture.
    public func file(of photo: Photo) -> URL? { photo.image.fileURL }
}
