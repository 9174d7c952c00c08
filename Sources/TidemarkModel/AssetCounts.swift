/// The counts of an import's assets: the files that its records name.
public struct AssetCounts: Codable, Hashable, Sendable {
    /// Values that named a file and were accepted.
    public var referenced: Int
    /// Contents that the store did not have.
    public var stored: Int
    /// References to a content that the store had already, or that the import had stored before.
    public var deduplicated: Int { referenced - stored }
    /// The bytes of the contents that were stored.
    public var bytes: Int

    /// Makes counts. Each is 0 by default.
    public init(referenced: Int = 0, stored: Int = 0, bytes: Int = 0) {
        self.referenced = referenced
        self.stored = stored
        self.bytes = bytes
    }

    /// Adds the counts of another import, or of another part of the same.
    public static func += (left: inout AssetCounts, right: AssetCounts) {
        left.referenced += right.referenced
        left.stored += right.stored
        left.bytes += right.bytes
    }
}
