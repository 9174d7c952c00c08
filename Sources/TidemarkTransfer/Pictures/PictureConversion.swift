import CTideManifest
import CTidePictures
import TidemarkModel
import TidemarkStore

/// Makes an import's workers scale the pictures that they ingest.
///
/// `@unchecked Sendable`: the options do not change, and the core reads and writes the flag atomically.
final class PictureConversion: @unchecked Sendable {
    /// Whether rows get thumbnails.
    let hasThumbnails: Bool
    private let options: UnsafeMutablePointer<tide_picture_options>
    private let stop: UnsafeMutablePointer<Int32>

    init(_ given: PictureOptions) {
        hasThumbnails = given.thumbnailPixelSize != nil
        stop = .allocate(capacity: 1)
        stop.initialize(to: 0)
        options = .allocate(capacity: 1)
        options.initialize(
            to: tide_picture_options(
                max_pixel_size: UInt32(given.maxPixelSize ?? 0), thumbnail_pixel_size: UInt32(given.thumbnailPixelSize ?? 0),
                quality: UInt32(given.percentage), keeps_position: given.keepsLocation, thumbnail_only: !given.changesPicture,
                stop: UnsafePointer(stop)))
    }

    deinit {
        options.deallocate()
        stop.deallocate()
    }

    /// Attaches the conversion to workers, which retain it.
    func attach(to workers: IngestWorkers) {
        workers.convert(tide_conversion(convert: tide_picture_convert, context: options), owner: self)
    }

    /// Runs work of the workers. When the task is cancelled, the work ends before the current picture is done, with
    /// `CancellationError`.
    func cancelling<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: () throws -> Result
    ) async throws -> Result {
        do {
            return try await withTaskCancellationHandler(operation: { try body() }, onCancel: { cancel() }, isolation: isolation)
        } catch {
            try Task.checkCancellation()
            throw error
        }
    }

    /// Sets the flag at which the C core stops.
    func cancel() { tide_picture_stop(stop, true) }
}

extension PictureCounts {
    /// Counts the scaled pictures, thumbnails and other files of a batch.
    init(_ blobs: [BlobStore.Blob]) {
        self.init()
        for blob in blobs {
            if blob.isPreview {
                thumbnails += 1
                thumbnailBytes += Int(blob.size)
            } else if blob.isConverted {
                scaled += 1
                bytesBefore += Int(blob.sourceSize)
                bytesAfter += Int(blob.size)
            } else {
                untouched += 1
            }
        }
    }
}
