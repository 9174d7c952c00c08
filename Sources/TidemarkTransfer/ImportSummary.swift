public import TidemarkModel

/// What an import has done, in records.
public struct ImportSummary: Hashable, Sendable {
    /// Rows that were read, with those that were refused.
    public var read = 0
    /// What was done with the rows that were accepted.
    public var changes = ChangeCounts()
    /// Rows that were refused.
    public var rejected = 0
    /// What was done with the files that the rows name.
    public var assets = AssetCounts()
    /// What was made of pictures; `nil` where the options do not ask for it.
    public var pictures: PictureCounts?
    /// Whether nothing was written, since the import was a rehearsal.
    public var isDryRun = false
    /// How long the import took.
    public var duration: Duration = .zero
    /// Rows that an interrupted import had done before, counted in the above; `nil` when this is no continuation.
    public var resumedAfter: Int?
    /// Of `rejected`, those that an interrupted import has described elsewhere, if at all: the rejects file lacks them.
    public var rejectedElsewhere = 0
    /// Record types that the import has made, with their fields.
    public var newTypes: [RecordTypeSchema] = []
    /// Of types that were there, the fields that the import has added.
    public var newFields: [RecordTypeSchema] = []
    /// Asset fields of the options that no row has; empty for a continuation, which does not know of the rows before.
    public var absentAssetFields: [String] = []
    /// What mappings of the options rename and no row has; likewise.
    public var absentMappings: [String] = []
    /// Fields with times that have no offset, which were read in the time zone of the options.
    public var localTimeFields: [String] = []
    /// Where records were named by their content: the columns that could name them, as each row of the first batch has a value of
    /// its own there. `nil` where names were given.
    public var namingColumns: [String]?
    /// New text fields whose values name files that are there.
    public var fileFields: [String] = []
    /// Files of a folder that are no photos, counted by their extension in lower case; without one, by the empty text.
    public var passedOver: [String: Int] = [:]
    /// The first few refusals of this run.
    public var firstRejections: [Rejection] = []

    /// Why a row was refused.
    public struct Rejection: Hashable, Sendable {
        /// From 1; of a folder, the file's number.
        public let line: UInt64
        /// Empty when it is the row.
        public let field: String
        /// Why, as a sentence for a person.
        public let reason: String
    }
}

extension ImportSummary: Encodable {
    private enum Key: String, CodingKey {
        case read, inserted, updated, unchanged, repaired, rejected, dryRun, seconds, assets
        case referenced, stored, deduplicated, bytes, passedOver, localTimeFields, pictures
    }

    /// The object that `tidemark import --json` prints.
    public func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(read, forKey: .read)
        try object.encode(changes.inserted, forKey: .inserted)
        try object.encode(changes.updated, forKey: .updated)
        try object.encode(changes.unchanged, forKey: .unchanged)
        if changes.repaired > 0 { try object.encode(changes.repaired, forKey: .repaired) }
        try object.encode(rejected, forKey: .rejected)
        try object.encode(isDryRun, forKey: .dryRun)
        try object.encode((duration / .milliseconds(1)).rounded() / 1000, forKey: .seconds)
        if !passedOver.isEmpty { try object.encode(passedOver, forKey: .passedOver) }
        if !localTimeFields.isEmpty { try object.encode(localTimeFields, forKey: .localTimeFields) }
        if let pictures { try object.encode(pictures, forKey: .pictures) }
        var files = object.nestedContainer(keyedBy: Key.self, forKey: .assets)
        try files.encode(assets.referenced, forKey: .referenced)
        try files.encode(assets.stored, forKey: .stored)
        try files.encode(assets.deduplicated, forKey: .deduplicated)
        try files.encode(assets.bytes, forKey: .bytes)
    }
}

/// How far an import is.
public struct ImportProgress: Sendable {
    /// What is done so far.
    public var summary: ImportSummary
    /// Bytes of the source that are done; of a folder, files.
    public var done: Int
    /// The same for the whole source; `nil` when that is not known.
    public var total: Int?
    /// Whether the source is a folder, whose files are counted.
    public var isFolder: Bool
}
