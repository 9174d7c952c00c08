import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Where a reader stands, between two rows.
struct SourcePosition: Sendable, Equatable {
    /// Bytes of a manifest, files of a folder.
    var offset: UInt64 = 0
    var line: UInt64 = 0
    /// Digest of what lies before.
    var digest: [UInt8] = []
    /// Of a JSON array: where in it.
    var state: UInt8 = 0
}

/// A batch on its way from the source to the store.
struct FilledBatch: Sendable {
    let batch: RecordBatch
    let isLast: Bool
    /// Where the source stands behind the batch.
    let position: SourcePosition
    var blobs: [BlobStore.Blob] = []
}

/// What a reader has noticed about a source.
struct SourceNotes: Sendable {
    /// Asset fields of the options that no row has.
    var absentAssetFields: [String] = []
    /// What mappings of the options rename and no row has.
    var absentMappings: [String] = []
    /// Fields with times that have no offset.
    var localTimeFields: [String] = []
    /// Where names are derived from content: columns that have a value of their own in each row of the first batch.
    var namingColumns: [String]?
    /// Text fields whose values name files that are there.
    var fileFields: [String] = []
    /// Files of a folder that are no photos, by their extension.
    var passedOver: [String: Int] = [:]
}

/// Fills batches from a source, in order.
protocol BatchReader: Actor {
    /// Fills an empty batch with the next rows.
    func fill(_ batch: RecordBatch) async throws -> FilledBatch
    /// Goes to where an earlier run stood, before anything was read.
    func resume(at position: SourcePosition) throws
    /// What was noticed so far.
    func notes() -> SourceNotes
    /// The length of the source as positions measure it, if it is known.
    var total: Int? { get }
}
