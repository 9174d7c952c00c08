import Foundation
import Tidemark

/// The photos of a stop: all that has to do with pictures is here.
///
/// A photo is scaled when it is taken in, and has a thumbnail beside it. On other devices the thumbnail comes with its record, and the
/// picture when somebody wants to see it: ``downloads``.
public struct PhotoAlbum: Sendable {
    public let book: TravelBook
    public let stop: Stop

    public init(of stop: Stop, in book: TravelBook) {
        self.stop = stop
        self.book = book
    }

    /// The longest edges, in pixels.
    static let (pictureSize, thumbnailSize) = (2_048, 256)

    /// What a device has of the pictures: thumbnails come with their photos, and 500 MB of pictures stay. The least recently used go first.
    public static func configure(_ configuration: inout SyncConfiguration, keeping limit: Int64 = 500_000_000) {
        configuration.assets = .upTo(bytes: 20_000)
        configuration.assetLimit = limit
    }

    public func photos() async throws -> [Photo] { try await book.container.fetchAll(Stop.photos, of: stop) }

    /// Adds the picture of a file: upright, scaled, with a thumbnail, and without the place where it was taken.
    ///
    /// - Parameter takenAt: The time where the picture does not say it.
    @discardableResult
    public func add(_ file: URL, caption: String, takenAt: Date) async throws -> Photo {
        let picture = try await ScaledPicture(
            contentsOf: file, maxPixelSize: Self.pictureSize, thumbnailPixelSize: Self.thumbnailSize)
        var photo = Photo(of: stop, caption: caption, takenAt: picture.dateTaken ?? takenAt, image: picture.image)
        photo.imageThumbnail = picture.thumbnail
        return try await book.container.saveAndFetch(photo)
    }

    /// Where a view finds the picture now: the thumbnail until the picture is here.
    public func file(of photo: Photo) -> URL? {
        if photo.image.isDownloaded { return photo.image.fileURL }
        return photo.imageThumbnail.flatMap { $0.isDownloaded ? $0.fileURL : nil }
    }

    /// Brings the picture of a photo that a person looks at; it goes before those that are only expected.
    ///
    /// - Parameter progress: Gets the part that is here, from 0 to 1, from any thread.
    public func open(_ photo: Photo, progress: @escaping @Sendable (Double) -> Void = { _ in }) async throws -> Data {
        try await book.container.download(photo.image, priority: .userInitiated) { now in
            progress(Double(now.bytes) / Double(max(now.totalBytes, 1)))
        }
        return try photo.image.data()
    }

    /// Brings the pictures that are likely to be looked at next.
    public func prefetch(_ photos: [Photo]) async throws {
        try await book.container.downloadAssets(of: photos, priority: .utility)
    }
}
