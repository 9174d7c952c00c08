import TidemarkModel
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

/// Names that the options give and that no row has: asset fields, and fields that a mapping renames.
struct AbsentNames: Sendable {
    var assetFields: [String] = []
    var mappings: [String] = []
}

/// Fills batches from a source, in order.
protocol BatchReader: Actor {
    /// Fills an empty batch with the next rows.
    func fill(_ batch: RecordBatch) throws -> FilledBatch
    /// Goes to where an earlier run stood, before anything was read.
    func resume(at position: SourcePosition) throws
    /// What the options name and the source has not had so far.
    func absent() -> AbsentNames
    /// The length of the source as positions measure it, if it is known.
    var total: Int? { get }
}
