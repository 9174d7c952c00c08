/// What a write did, in records.
public struct ChangeCounts: Codable, Hashable, Sendable {
    public var inserted: Int
    public var updated: Int
    public var unchanged: Int
    public var deleted: Int

    public init(inserted: Int = 0, updated: Int = 0, unchanged: Int = 0, deleted: Int = 0) {
        self.inserted = inserted
        self.updated = updated
        self.unchanged = unchanged
        self.deleted = deleted
    }

    /// Whether nothing was written.
    public var isUnchanged: Bool { inserted == 0 && updated == 0 && deleted == 0 }

    public static func += (left: inout ChangeCounts, right: ChangeCounts) {
        left.inserted += right.inserted
        left.updated += right.updated
        left.unchanged += right.unchanged
        left.deleted += right.deleted
    }
}
