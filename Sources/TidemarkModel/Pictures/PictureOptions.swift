/// How a picture is made smaller before it is stored.
///
/// ```swift
/// let options = PictureOptions(maxPixelSize: 2_048, quality: 0.8, thumbnailPixelSize: 256)
/// let picture = try await ScaledPicture(contentsOf: photo, options: options)
/// ```
public struct PictureOptions: Hashable, Sendable {
    /// The longest edge of the picture in pixels, like `kCGImageSourceThumbnailMaxPixelSize` of ImageIO; `nil` keeps the size. A
    /// picture is never enlarged.
    public var maxPixelSize: Int?
    /// The quality of a JPEG, above 0 and up to 1. `nil` stands for ``defaultQuality`` where a JPEG has to be encoded. If
    /// ``maxPixelSize`` is `nil` too, the picture stays as it is, byte for byte.
    public var quality: Double?
    /// The longest edge of the thumbnail in pixels; `nil` for no thumbnail.
    public var thumbnailPixelSize: Int?
    /// Whether the picture keeps the place where it was taken. By default the place is removed, so that the picture does not
    /// reveal where its owner lives. An import of photos stores the place in the field `position` in either case.
    public var keepsLocation: Bool

    /// Makes options; see the properties.
    public init(maxPixelSize: Int? = nil, quality: Double? = nil, thumbnailPixelSize: Int? = nil, keepsLocation: Bool = false) {
        self.maxPixelSize = maxPixelSize
        self.quality = quality
        self.thumbnailPixelSize = thumbnailPixelSize
        self.keepsLocation = keepsLocation
    }

    /// The quality where none is given.
    public static let defaultQuality = 0.8
    /// The lengths that an edge can have, in pixels.
    public static let pixelSizes = 1...65_500

    /// Whether the options change the picture itself, and not only make a thumbnail.
    public var changesPicture: Bool { maxPixelSize != nil || quality != nil }

    /// The quality on libjpeg's scale, from 1 to 100.
    package var percentage: Int { max(1, Int(((quality ?? Self.defaultQuality) * 100).rounded())) }

    /// What is wrong with the options, as a sentence; `nil` when they can be used.
    package var fault: String? {
        for (name, size) in [("maxPixelSize", maxPixelSize), ("thumbnailPixelSize", thumbnailPixelSize)] {
            if let size, !Self.pixelSizes.contains(size) { return "\(name) is \(size); an edge has 1 to 65,500 pixels" }
        }
        if let quality, !(quality > 0 && quality <= 1) { return "the quality is \(quality); it is above 0, and 1 at most" }
        return changesPicture || thumbnailPixelSize != nil ? nil : "neither a size, a quality nor a thumbnail is asked for"
    }
}
