/// What an import has made of the files that rows name, where it was asked to scale pictures.
public struct PictureCounts: Codable, Hashable, Sendable {
    /// Pictures that were made smaller, or encoded anew.
    public var scaled: Int
    /// Files that were stored as they are: no JPEG and no PNG, or only a thumbnail was asked for.
    public var untouched: Int
    /// Thumbnails that were made.
    public var thumbnails: Int
    /// Bytes of the scaled pictures before.
    public var bytesBefore: Int
    /// Bytes of the scaled pictures afterwards, without thumbnails.
    public var bytesAfter: Int
    /// Bytes of the thumbnails.
    public var thumbnailBytes: Int

    /// Makes counts; all are 0 where nothing else is said.
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
