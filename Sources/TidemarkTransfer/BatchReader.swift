import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The position of a reader in its source, between two rows.
struct SourcePosition: Sendable, Equatable {
    /// The number of bytes of a manifest, or of files of a folder, before the position.
    var offset: UInt64 = 0
    var line: UInt64 = 0
    /// The digest of the source before the position.
    var digest: [UInt8] = []
    /// For a JSON array: the state of its parser.
    var state: UInt8 = 0
}

/// A batch on its way from the source to the store.
struct FilledBatch: Sendable {
    let batch: RecordBatch
    let isLast: Bool
    /// The position of the source after the batch.
    let position: SourcePosition
    var blobs: [BlobStore.Blob] = []
}

/// Observations of a reader about its source.
struct SourceNotes: Sendable {
    /// The asset fields of the options that no row has.
    var absentAssetFields: [String] = []
    /// The source fields of mappings of the options that no row has.
    var absentMappings: [String] = []
    /// Fields with times that have no offset.
    var localTimeFields: [String] = []
    /// If names are derived from content: the columns whose values differ in all rows of the first batch. Otherwise `nil`.
    var namingColumns: [String]?
    /// Text fields whose values name existing files.
    var fileFields: [String] = []
    /// The numbers of files of a folder that are not photos, by their extension.
    var passedOver: [String: Int] = [:]
}

/// Fills batches from a source, in order.
protocol BatchReader: Actor {
    /// Fills an empty batch with the next rows.
    func fill(_ batch: RecordBatch) async throws -> FilledBatch
    /// Moves to the position of an earlier run. It is called before anything is read.
    func resume(at position: SourcePosition) throws
    /// The observations so far.
    func notes() -> SourceNotes
    /// The length of the source as positions measure it, if it is known.
    var total: Int? { get }
}
