/// The counts of a write: how many records it inserted, updated, left unchanged and deleted.
public struct ChangeCounts: Codable, Hashable, Sendable {
    /// Records that the store did not have.
    public var inserted: Int
    /// Records of which at least one field got another value.
    public var updated: Int
    /// Records that had the wanted values already: nothing was written.
    public var unchanged: Int
    /// Records that were deleted.
    public var deleted: Int
    /// The unchanged records that were damaged in the store and were repaired.
    public var repaired: Int

    /// Makes counts. Each is 0 by default.
    public init(inserted: Int = 0, updated: Int = 0, unchanged: Int = 0, deleted: Int = 0, repaired: Int = 0) {
        self.inserted = inserted
        self.updated = updated
        self.unchanged = unchanged
        self.deleted = deleted
        self.repaired = repaired
    }

    private enum CodingKeys: String, CodingKey { case inserted, updated, unchanged, deleted, repaired }

    public init(from decoder: any Decoder) throws {
        let object = try decoder.container(keyedBy: CodingKeys.self)
        inserted = try object.decode(Int.self, forKey: .inserted)
        updated = try object.decode(Int.self, forKey: .updated)
        unchanged = try object.decode(Int.self, forKey: .unchanged)
        deleted = try object.decode(Int.self, forKey: .deleted)
        repaired = try object.decodeIfPresent(Int.self, forKey: .repaired) ?? 0
    }

    /// Encodes the counts; ``repaired`` only if it is not 0.
    public func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: CodingKeys.self)
        try object.encode(inserted, forKey: .inserted)
        try object.encode(updated, forKey: .updated)
        try object.encode(unchanged, forKey: .unchanged)
        try object.encode(deleted, forKey: .deleted)
        if repaired > 0 { try object.encode(repaired, forKey: .repaired) }
    }

    /// Whether nothing was written.
    public var isUnchanged: Bool { inserted == 0 && updated == 0 && deleted == 0 }

    /// Adds the counts of another write.
    public static func += (left: inout ChangeCounts, right: ChangeCounts) {
        left.inserted += right.inserted
        left.updated += right.updated
        left.unchanged += right.unchanged
        left.deleted += right.deleted
        left.repaired += right.repaired
    }
}
