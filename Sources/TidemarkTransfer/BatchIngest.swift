import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Completes batches between reader and store: ingests the files that they name, computes digests, makes blobs durable.
actor BatchIngest {
    private nonisolated let executor = StoreExecutor(label: "tidemark.ingest")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let blobs: BlobStore
    private let workers: IngestWorkers?
    private let digestSeed: UInt64

    /// - Parameter workers: `nil` when no field is an asset, or when the reader ingests the files itself.
    init(blobs: BlobStore, workers: IngestWorkers?, digestSeed: UInt64) {
        self.blobs = blobs
        self.workers = workers
        self.digestSeed = digestSeed
    }

    func complete(_ filled: FilledBatch) throws -> FilledBatch {
        var filled = filled
        if let workers { filled.blobs += try workers.ingest(filled.batch) }
        filled.batch.digest(seed: digestSeed)
        try blobs.sync()
        return filled
    }
}
