public import Foundation
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// What a source is.
public enum ImportFormat: String, CaseIterable, Sendable {
    /// A folder holds photos; a file is told by its extension (`csv`, `jsonl`, `ndjson`) or its first character.
    case auto
    /// `jsonl`: a JSON object in each line. `json`: an array of objects. `csv`: comma-separated, with names in the first line.
    /// `photos`: a folder.
    case jsonl, json, csv, photos
}

/// Where records come from.
public enum ImportSource: Hashable, Sendable {
    /// A manifest in a file.
    case file(URL)
    /// A folder of photos.
    case folder(URL)
    /// A manifest on the standard input. It can't be resumed.
    case standardInput
}

/// What becomes of nested JSON: objects that are no locations, and lists that hold lists or objects.
public enum NestedJSON: String, CaseIterable, Sendable {
    /// The row is refused.
    case refuse
    /// The members of an object become fields: `city` in `address` becomes `address_city`; lists become JSON texts.
    case flatten
    /// They become JSON texts.
    case json
}

/// The order of day, month and year in dates such as 5/1/2024.
public enum DateOrder: String, CaseIterable, Sendable {
    /// `dmy`: the day first. `mdy`: the month first.
    case dmy, mdy
}

/// How a source becomes records. The rules are in Documentation/Formats/manifest.md.
public struct ImportOptions: Sendable {
    /// The record type; a letter, then letters, digits or `_`.
    public var type: String
    /// The form of the source.
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
    /// The record type of photos; `nil`: `type`.
    public var photoType: String?
    /// Whether names from the name field that are no UUIDs get the type before them, unless the type has records under plain names:
    /// `7` of the type `Order` is then the record `Order:7`. The command-line tool does so; a program whose records have identifiers of
    /// their own leaves it.
    public var namesHaveType = false
    /// Fields that refer to records of a type by their values in that type's name field.
    public var references: [(field: String, type: String)] = []
    /// The zone of times without an offset.
    public var timeZone = TimeZone.gmt
    /// How dates such as 5/1/2024 are read; `nil`: they are no times.
    public var dateOrder: DateOrder?
    /// Whether the numbers of a CSV have a decimal comma.
    public var hasDecimalComma = false
    /// What separates the cells of a CSV; `nil`: a comma, and a tab in files named `*.tsv`.
    public var delimiter: Character?
    /// The encoding of the source, by a name that `iconv` knows; `nil`: what its byte order mark says, else UTF-8.
    public var encoding: String?
    /// What becomes of nested JSON.
    public var nestedJSON = NestedJSON.refuse
    /// How pictures are made smaller; `nil`: files are stored as they are.
    ///
    /// It applies to each JPEG and PNG that a field of assets names; other files are stored as they are. With thumbnails, each field of one
    /// asset gets a second field, named with `Thumbnail` behind it (`image`, `imageThumbnail`), unless the source has that field itself.
    /// Then a transaction has 256 rows at most.
    public var pictures: PictureOptions?

    /// How many records a transaction has where nothing else is said.
    public static let defaultBatchSize = 10_000

    /// Makes options; see the properties.
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
