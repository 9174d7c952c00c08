import CTidePictures
public import Foundation
public import TidemarkModel

/// A picture that is ready to be stored: scaled, upright, and without private metadata; with a thumbnail if one was asked for.
///
/// ```swift
/// let picture = try await ScaledPicture(contentsOf: photo, maxPixelSize: 2_048, quality: 0.8, thumbnailPixelSize: 256)
/// destination.image = picture.image
/// destination.imageThumbnail = picture.thumbnail
/// try await journal.save(destination)
/// ```
///
/// A type with a property `image` has the thumbnail in a second property, `imageThumbnail`. An import with thumbnails fills the
/// same two fields. A view shows `imageThumbnail` first, and fetches the content of `image` when it needs the full size.
///
/// - A picture with transparency becomes a PNG. Any other picture becomes a JPEG.
/// - The colour profile and the EXIF time are kept, and the place on request. All other metadata are removed. ``dateTaken`` and
///   ``location`` have the time and the place of the source.
/// - A JPEG that is small enough, upright, and not above the requested quality is not encoded again.
/// - The same file and options lead to the same bytes, so the store has them once.
public struct ScaledPicture: Sendable {
    /// The picture.
    public let image: Asset
    /// The thumbnail; `nil` when none was asked for.
    public let thumbnail: Asset?
    /// The width of the upright ``image`` in pixels.
    public let width: Int
    /// The height of the upright ``image`` in pixels.
    public let height: Int
    /// The time at which the photo was taken, from its EXIF data. A time without an offset counts as UTC.
    public let dateTaken: Date?
    /// The place where the photo was taken, from its EXIF data, even if ``image`` does not keep it.
    public let location: Location?

    /// Makes a picture from a JPEG or PNG file.
    ///
    /// The work runs on a thread of its own. At most one picture for each core is made at a time; further calls wait. A call can
    /// be cancelled.
    ///
    /// - Parameters:
    ///   - url: The file, which is not changed.
    ///   - options: The size and the quality.
    /// - Throws: ``PictureError`` `unreadable`, `unsupported`, `damaged`, `tooLarge` (250 million pixels, or 512 MiB of memory), `options`,
    ///   `outOfMemory`; `CancellationError`.
    /// - Complexity: O(*n*) in the pixels of the file. It needs memory for the pixels of the result and for some rows of the
    ///   file; for progressive JPEGs and interlaced PNGs, for all pixels of the file.
    public init(contentsOf url: URL, options: PictureOptions) async throws {
        try Self.check(options)
        self = try await PicturePool.shared.run { stop in
            let file = try PictureFile(url)
            return try Self.made(options, name: url.path, original: Asset(fileURL: url), stop: stop) { options, picture, error in
                tide_picture_create(file.bytes, &options, &picture, &error)
            }
        }
    }

    /// Makes a picture from the bytes of a JPEG or PNG; see ``init(contentsOf:options:)``.
    public init(data: Data, options: PictureOptions) async throws {
        try Self.check(options)
        self = try await PicturePool.shared.run { stop in
            try Self.made(options, name: "the data", original: Asset(data: data), stop: stop) { options, picture, error in
                data.withUnsafeBytes { bytes in
                    // An empty buffer has no address, and the core would take a missing address for a file.
                    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1) { none in
                        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? UnsafePointer(none.baseAddress!)
                        let source = tide_bytes(memory: start, descriptor: -1, size: UInt64(bytes.count))
                        return tide_picture_create(source, &options, &picture, &error)
                    }
                }
            }
        }
    }

    /// Makes a picture from a file; see ``init(contentsOf:options:)``.
    ///
    /// - Parameters:
    ///   - url: The file, which is not changed.
    ///   - maxPixelSize: The longest edge of the picture in pixels; `nil` keeps the size.
    ///   - quality: The quality of a JPEG, above 0 and up to 1. `nil` stands for ``PictureOptions/defaultQuality``. If
    ///     `maxPixelSize` is `nil` too, the picture stays the original file with its metadata.
    ///   - thumbnailPixelSize: The longest edge of the thumbnail in pixels; `nil` for no thumbnail.
    public init(
        contentsOf url: URL, maxPixelSize: Int?, quality: Double? = nil, thumbnailPixelSize: Int? = nil
    ) async throws {
        try await self.init(
            contentsOf: url,
            options: PictureOptions(maxPixelSize: maxPixelSize, quality: quality, thumbnailPixelSize: thumbnailPixelSize))
    }

    private static func check(_ options: PictureOptions) throws(PictureError) {
        if let fault = options.fault { throw PictureError(.options, fault) }
    }

    private static func made(
        _ options: PictureOptions, name: String, original: Asset, stop: StopFlag,
        _ body: (inout tide_picture_options, inout tide_picture, inout tide_error) -> tide_status
    ) throws -> ScaledPicture {
        var core = tide_picture_options(
            max_pixel_size: UInt32(options.maxPixelSize ?? 0), thumbnail_pixel_size: UInt32(options.thumbnailPixelSize ?? 0),
            quality: UInt32(options.percentage), keeps_position: options.keepsLocation, thumbnail_only: !options.changesPicture,
            stop: UnsafePointer(stop.pointer))
        var picture = tide_picture()
        var error = tide_error()
        let status = body(&core, &picture, &error)
        if status == TIDE_CANCELLED { throw CancellationError() }
        guard status == TIDE_OK else {
            let text = withUnsafeBytes(of: error.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            throw PictureError(error, text: text, of: name)
        }
        return ScaledPicture(picture, original: original)
    }

    /// Makes a picture from the core's result, and takes ownership of its bytes.
    private init(_ picture: tide_picture, original: Asset) {
        image = Self.asset(picture.image) ?? original
        thumbnail = Self.asset(picture.thumbnail)
        width = Int(picture.width)
        height = Int(picture.height)
        dateTaken = picture.exif.has_time ? Date(timeIntervalSince1970: Double(picture.exif.time) / 1_000_000) : nil
        location =
            picture.exif.has_position ? Location(latitude: picture.exif.latitude, longitude: picture.exif.longitude) : nil
    }

    private static func asset(_ file: tide_picture_file) -> Asset? {
        file.bytes.map { Asset(data: Data(bytesNoCopy: $0, count: file.length, deallocator: .free)) }
    }
}

/// An open file of a picture.
private struct PictureFile: ~Copyable {
    let bytes: tide_bytes

    init(_ url: URL) throws(PictureError) {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            throw PictureError(.unreadable, "cannot read \(url.path): \(String(cString: strerror(errno)))")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw PictureError(.unreadable, "cannot read \(url.path): it is not a file")
        }
        bytes = tide_bytes(memory: nil, descriptor: descriptor, size: UInt64(status.st_size))
    }

    deinit { close(bytes.descriptor) }
}
