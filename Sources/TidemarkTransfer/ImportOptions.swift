public import Foundation
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// The form of a source.
public enum ImportFormat: String, CaseIterable, Sendable {
    /// The form is inferred: a folder has photos; a file's form follows from its extension (`csv`, `jsonl`, `ndjson`) or its first
    /// character.
    case auto
    /// `jsonl`: a JSON object in each line. `json`: an array of objects. `csv`: comma-separated, with names in the first line.
    /// `photos`: a folder.
    case jsonl, json, csv, photos
}

/// The source of an import.
public enum ImportSource: Hashable, Sendable {
    /// A manifest in a file.
    case file(URL)
    /// A folder of photos.
    case folder(URL)
    /// A manifest on the standard input. It can't be resumed.
    case standardInput
}

/// The treatment of nested JSON: objects that are not locations, and lists that contain lists or objects.
public enum NestedJSON: String, CaseIterable, Sendable {
    /// The row is refused.
    case refuse
    /// The members of an object become fields: `city` in `address` becomes `address_city`; lists become JSON texts.
    case flatten
    /// Nested objects and lists become JSON texts.
    case json
}

/// The order of day, month and year in dates such as 5/1/2024.
public enum DateOrder: String, CaseIterable, Sendable {
    /// `dmy`: the day first. `mdy`: the month first.
    case dmy, mdy
}

/// How a source becomes records. The rules are in Documentation/Formats/manifest.md.
public struct ImportOptions: Sendable {
    /// The record type's name: a letter, then letters, digits or `_`.
    public var type: String
    /// The form of the source.
    public var format: ImportFormat
    /// The field with the record name, after mapping. `nil` for the field that the type had before; otherwise `_name`, and rows
    /// without it get a name derived from their content.
    public var nameField: String?
    /// The renamed fields: names in the source, and names in the store.
    public var mappings: [(from: String, to: String)]
    /// The folder to which paths of assets are relative; `nil` for the manifest's own folder, or the current folder for standard
    /// input.
    public var assetsRoot: URL?
    /// Fields whose values are paths of files.
    public var assetFields: [String]
    /// The record types that are declared beforehand.
    public var schema: [RecordTypeSchema]
    /// The environment of the import; `nil` for the container's.
    public var environment: StoreEnvironment?
    /// The number of rows in a transaction.
    public var batchSize: Int
    /// Whether everything is read, checked and compared, and nothing is written.
    public var isDryRun: Bool
    /// The file that describes refused rows, one JSON object in each line; see Documentation/Formats/rejects.md. `nil` for none.
    public var rejects: URL?
    /// Whether the import continues where the same import was interrupted.
    public var resumes: Bool
    /// The author of the transactions in history.
    public var author: String
    /// The origin of the transactions in history.
    public var origin = HistoryOrigin.import
    /// The record type of photos; `nil` for ``type``.
    public var photoType: String?
    /// Whether names from the name field that are not UUIDs get the type before them: `7` of the type `Order` becomes the record
    /// `Order:7`. A type that has records under plain names keeps plain names. The command-line tool sets this. A program whose
    /// records have unique identifiers does not need it.
    public var namesHaveType = false
    /// Reference fields, with the type of the records to which they refer by the values of that type's name field.
    public var references: [(field: String, type: String)] = []
    /// The time zone of times without an offset.
    public var timeZone = TimeZone.gmt
    /// The order of day and month in dates such as 5/1/2024; `nil` if such texts are not read as times.
    public var dateOrder: DateOrder?
    /// Whether the numbers of a CSV have a decimal comma.
    public var hasDecimalComma = false
    /// The character that separates the cells of a CSV; `nil` for a comma, or a tab in files named `*.tsv` or `*.tab`.
    public var delimiter: Character?
    /// The encoding of the source, by a name that `iconv` knows; `nil` for the encoding of the byte order mark, or UTF-8.
    public var encoding: String?
    /// The treatment of nested JSON.
    public var nestedJSON = NestedJSON.refuse
    /// How pictures are scaled; `nil` if files are stored as they are.
    ///
    /// It applies to each JPEG and PNG that an asset field names; other files are stored as they are. With thumbnails, each field
    /// of one asset gets a second field, whose name ends with `Thumbnail` (`image`, `imageThumbnail`), unless the source has that
    /// field. Such an import writes 256 rows in a transaction at most.
    public var pictures: PictureOptions?

    /// The default number of rows in a transaction.
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
