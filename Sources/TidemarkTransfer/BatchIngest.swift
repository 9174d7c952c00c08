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
    private let pictures: PictureConversion?

    /// - Parameters:
    ///   - workers: `nil` when no field is an asset, or when the reader ingests the files itself.
    ///   - pictures: The conversion of pictures; `nil` for none.
    init(blobs: BlobStore, workers: IngestWorkers?, digestSeed: UInt64, pictures: PictureConversion? = nil) {
        self.pictures = pictures
        self.blobs = blobs
        self.workers = workers
        self.digestSeed = digestSeed
    }

    func complete(_ filled: FilledBatch) async throws -> FilledBatch {
        var filled = filled
        if let workers, let pictures {
            filled.blobs += try await pictures.cancelling {
                try workers.ingest(filled.batch, hasPreviews: pictures.hasThumbnails)
            }
        } else if let workers {
            filled.blobs += try workers.ingest(filled.batch)
        }
        filled.batch.digest(seed: digestSeed)
        try blobs.sync()
        return filled
    }
}
