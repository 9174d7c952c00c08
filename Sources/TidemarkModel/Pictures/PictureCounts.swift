/// The counts of an import that scales pictures.
public struct PictureCounts: Codable, Hashable, Sendable {
    /// Pictures that were scaled down or encoded again.
    public var scaled: Int
    /// Files that were stored as they are: they are neither JPEG nor PNG, or the import makes thumbnails only.
    public var untouched: Int
    /// Thumbnails that were made.
    public var thumbnails: Int
    /// Bytes of the scaled pictures before scaling.
    public var bytesBefore: Int
    /// Bytes of the scaled pictures after scaling, without thumbnails.
    public var bytesAfter: Int
    /// Bytes of the thumbnails.
    public var thumbnailBytes: Int

    /// Makes counts. Each is 0 by default.
    public init(
        scaled: Int = 0, untouched: Int = 0, thumbnails: Int = 0, bytesBefore: Int = 0, bytesAfter: Int = 0,
        thumbnailBytes: Int = 0
    ) {
        self.scaled = scaled
        self.untouched = untouched
        self.thumbnails = thumbnails
        self.bytesBefore = bytesBefore
        self.bytesAfter = bytesAfter
        self.thumbnailBytes = thumbnailBytes
    }

    /// Adds the counts of two parts of an import.
    public static func + (left: PictureCounts, right: PictureCounts) -> PictureCounts {
        PictureCounts(
            scaled: left.scaled + right.scaled, untouched: left.untouched + right.untouched,
            thumbnails: left.thumbnails + right.thumbnails, bytesBefore: left.bytesBefore + right.bytesBefore,
            bytesAfter: left.bytesAfter + right.bytesAfter, thumbnailBytes: left.thumbnailBytes + right.thumbnailBytes)
    }
}
