import Foundation
import TidemarkCloud

/// The bytes of an upload's pieces, in order. Only its task uses it.
final class PieceSource {
    private var pieces: ArraySlice<S3Object>
    private let client: S3Client
    private var rest: [UInt8] = []

    init(_ pieces: [S3Object], _ client: S3Client) { (self.pieces, self.client) = (pieces[...], client) }

    func next(_ count: Int) async throws(CloudError) -> [UInt8] {
        while rest.count < count, let piece = pieces.popFirst() {
            guard let bytes = try await client.get(piece.key, 0..<piece.size, of: piece.size) else {
                throw CloudError(
                    .serviceUnavailable, "a piece of the upload was removed while it was put together", retryAfter: .seconds(1))
            }
            rest += bytes
        }
        defer { rest.removeFirst(min(count, rest.count)) }
        return Array(rest.prefix(count))
    }
}

/// The bytes of a file.
final class FileSource {
    private let handle: FileHandle
    private let path: String

    init(_ file: URL, size: Int64) throws {
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            throw CloudError(.internalError, "cannot open \(file.path): \(String(cString: strerror(errno)))")
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        path = file.path
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, Int64(status.st_size) == size else {
            throw CloudError(.assetNotAvailable, "what has come is not of the \(size) bytes that were told")
        }
    }

    func next(_ count: Int) throws(CloudError) -> [UInt8] {
        do {
            return Array(try handle.read(upToCount: count) ?? Data())
        } catch {
            throw CloudError(.internalError, "cannot read \(path): \(error)")
        }
    }
}

/// A digest that closures share, one after the other.
final class Hashing {
    private var digest: AssetDigest? = AssetDigest()

    func update(_ bytes: [UInt8]) { digest?.update(bytes) }

    func finish() -> CloudAsset? { digest.take()?.finish() }
}
