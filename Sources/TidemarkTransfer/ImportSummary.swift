public import TidemarkModel

/// The counts and observations of an import.
public struct ImportSummary: Hashable, Sendable {
    /// The number of rows that were read, including refused ones.
    public var read = 0
    /// The effects of the accepted rows on records.
    public var changes = ChangeCounts()
    /// The number of rows that were refused.
    public var rejected = 0
    /// The counts of the files that the rows name.
    public var assets = AssetCounts()
    /// The counts of scaled pictures; `nil` if the options do not scale pictures.
    public var pictures: PictureCounts?
    /// Whether the import was a dry run, which writes nothing.
    public var isDryRun = false
    /// The duration of the import.
    public var duration: Duration = .zero
    /// The number of rows that an interrupted import had read before. The counts above include them. `nil` if the import does not
    /// continue another.
    public var resumedAfter: Int?
    /// The number of the rejected rows that the rejects file lacks, because an interrupted import had another rejects file or
    /// none.
    public var rejectedElsewhere = 0
    /// The record types that the import has made, with their fields.
    public var newTypes: [RecordTypeSchema] = []
    /// The existing types to which the import has added fields, with these fields only.
    public var newFields: [RecordTypeSchema] = []
    /// The asset fields of the options that no row has; empty for a continuation, which does not know the earlier rows.
    public var absentAssetFields: [String] = []
    /// The source fields of mappings of the options that no row has; empty for a continuation.
    public var absentMappings: [String] = []
    /// Fields with times that have no offset, which were read in the time zone of the options.
    public var localTimeFields: [String] = []
    /// If names were derived from the content of rows: the columns that could name the records, because their values differ in
    /// all rows of the first batch. Otherwise `nil`.
    public var namingColumns: [String]?
    /// New text fields whose values name existing files.
    public var fileFields: [String] = []
    /// The numbers of files of a folder that are not photos, by their extension in lower case; the empty text stands for no
    /// extension.
    public var passedOver: [String: Int] = [:]
    /// The first few refusals of this run.
    public var firstRejections: [Rejection] = []

    /// A refused row, with the reason.
    public struct Rejection: Hashable, Sendable {
        /// The number of the line, from 1; for a folder, the number of the file.
        public let line: UInt64
        /// The name of the field; empty when the reason concerns the whole row.
        public let field: String
        /// The reason, as a sentence for a person.
        public let reason: String
    }
}

extension ImportSummary: Encodable {
    private enum Key: String, CodingKey {
        case read, inserted, updated, unchanged, repaired, rejected, dryRun, seconds, assets
        case referenced, stored, deduplicated, bytes, passedOver, localTimeFields, pictures
    }

    /// Encodes the object that `tidemark import --json` prints.
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

/// The progress of an import.
public struct ImportProgress: Sendable {
    /// The summary so far.
    public var summary: ImportSummary
    /// The bytes of the source that are done; for a folder, the number of files.
    public var done: Int
    /// The bytes, or the number of files, of the whole source; `nil` when that is not known.
    public var total: Int?
    /// Whether the source is a folder, so that files are counted.
    public var isFolder: Bool
}
