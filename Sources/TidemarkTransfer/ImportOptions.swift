import Foundation
import TidemarkModel
import TidemarkStore

/// What a source is.
public enum ImportFormat: String, CaseIterable, Sendable {
    /// A folder holds photos; a file is told by its extension (`csv`, `jsonl`, `ndjson`) or its first character.
    case auto
    case jsonl, json, csv, photos
}

/// Where records come from.
public enum ImportSource: Hashable, Sendable {
    case file(URL)
    /// A folder of photos.
    case folder(URL)
    case standardInput
}

/// How a source becomes records. The rules are in Documentation/Formats/manifest.md.
public struct ImportOptions: Sendable {
    /// The record type; a letter, then letters, digits or `_`.
    public var type: String
    public var format: ImportFormat
    /// The field that holds the record name (after mapping). `nil`: the field that the type had before, else `_name`, and rows without
    /// it get a name derived from their content.
    public var nameField: String?
    /// Names of fields in the source, and in the store.
    public var mappings: [(from: String, to: String)]
    /// The folder below which assets lie; `nil`: the manifest's own, or the current one.
    public var assetsRoot: URL?
    /// Fields whose values are paths of files.
    public var assetFields: [String]
    /// Types known beforehand.
    public var schema: [RecordTypeSchema]
    /// `nil`: what the container says.
    public var environment: StoreEnvironment?
    /// Rows in a transaction.
    public var batchSize: Int
    /// Everything is read, checked and compared, and nothing is written.
    public var isDryRun: Bool
    /// Where refused rows are described, a JSON object a line; see Documentation/Formats/rejects.md.
    public var rejects: URL?
    /// Goes on where the same import was interrupted.
    public var resumes: Bool
    /// Who is named as the author in history.
    public var author: String
    /// What history says it was.
    public var origin = HistoryOrigin.import

    public static let defaultBatchSize = 10_000

    public init(
        type: String, format: ImportFormat = .auto, nameField: String? = nil, mappings: [(from: String, to: String)] = [],
        assetsRoot: URL? = nil, assetFields: [String] = [], schema: [RecordTypeSchema] = [], environment: StoreEnvironment? = nil,
        batchSize: Int = ImportOptions.defaultBatchSize, isDryRun: Bool = false, rejects: URL? = nil, resumes: Bool = false,
        author: String = "import"
    ) {
        self.type = type
        self.format = format
        self.nameField = nameField
        self.mappings = mappings
        self.assetsRoot = assetsRoot
        self.assetFields = assetFields
        self.schema = schema
        self.environment = environment
        self.batchSize = batchSize
        self.isDryRun = isDryRun
        self.rejects = rejects
        self.resumes = resumes
        self.author = author
    }
}
