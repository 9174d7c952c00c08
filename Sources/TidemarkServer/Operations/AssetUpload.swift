import Foundation
import NIOCore
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// A content that is being uploaded to the server: a file of its own, hashed as its bytes arrive.
///
/// It has a thread of its own, because unpacking a form, hashing and writing take time.
actor AssetUpload {
    private nonisolated let executor = StoreExecutor(label: "tidemark.upload")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated let file: URL
    private let most: Int64
    private let room: Int64
    private var form: MultipartBody?
    private var handle: FileHandle?
    private var digest = AssetDigest()
    /// Bytes of the content.
    private var count: Int64 = 0
    /// Bytes that have arrived, with those around the content.
    private var received: Int64 = 0

    /// - Parameters:
    ///   - form: The form that has the content as a part; `nil` for a raw content.
    ///   - most: The most bytes of an asset.
    ///   - room: The bytes that its owner may still store.
    init(_ file: URL, form: MultipartBody?, most: Int64, room: Int64) {
        (self.file, self.most, self.room) = (file, most, room)
        self.form = form
    }

    /// Makes the file.
    func begin() throws(CloudError) {
        let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw CloudError(.internalError, "cannot take in the content: \(String(cString: strerror(errno)))")
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Reads bytes that have arrived.
    ///
    /// - Throws: `quotaExceeded` for too much, `invalidArguments` for what is no form.
    func take(_ buffer: ByteBuffer) throws(CloudError) {
        var bytes = Array(buffer.readableBytesView)
        received += Int64(bytes.count)
        if form != nil {
            // The bytes around the content are limited.
            guard received <= most + MultipartBody.frame else { throw Self.tooLarge(most) }
            bytes = try form?.read(bytes) ?? []
        }
        guard !bytes.isEmpty else { return }
        count += Int64(bytes.count)
        guard count <= most else { throw Self.tooLarge(most) }
        guard count <= room else { throw Self.noRoom(for: "at least \(count)") }
        digest.update(bytes)
        do {
            try handle?.write(contentsOf: bytes)
        } catch {
            throw CloudError(.quotaExceeded, "the server has no room for the content")
        }
    }

    /// Returns the complete content as an asset. No bytes may follow.
    ///
    /// - Throws: `invalidArguments` for a form that is not complete.
    func finish() throws(CloudError) -> CloudAsset {
        _ = try form?.finish()
        var whole = AssetDigest()
        swap(&whole, &digest)
        handle = nil
        return whole.finish()
    }

    /// Removes the file unless it was moved away.
    func remove() {
        handle = nil
        unlink(file.path)
    }

    static func tooLarge(_ most: Int64) -> CloudError { CloudError(.quotaExceeded, "an asset has \(most) bytes at the most") }

    /// - Parameter bytes: The number of the content's bytes, for the message. How many are left is not told: the owner may be
    ///   another account.
    static func noRoom(for bytes: String) -> CloudError {
        CloudError(
            .quotaExceeded, "the content has \(bytes) \(SyncFailure.doesNotFit) what is left of \(SyncFailure.ownStorage)")
    }
}

/// A running upload. Its address can be used by one upload at a time.
struct RunningUpload: Hashable, Sendable {
    /// The folder of the content until it is complete.
    let folder: URL
    let account: String
    /// ``SignedAssetToken/id``.
    let address: String

    /// The most running uploads of one account.
    static let mostOfAccount = 4
    /// The most running uploads in one folder.
    static let most = 32

    /// The running uploads of this process.
    private static let all = LockedValue<Set<RunningUpload>>([])

    /// - Throws: `CloudError` `requestRateLimited`, `serviceUnavailable` while there are too many.
    func begin() throws(CloudError) {
        let refusal = Self.all.withLock { all -> CloudError? in
            let beside = all.filter { $0.folder == folder }
            if beside.contains(self) {
                return CloudError(
                    .requestRateLimited, "this address takes a content in already: send one at a time to it",
                    retryAfter: .seconds(2))
            }
            if beside.count(where: { $0.account == account }) >= Self.mostOfAccount {
                return CloudError(
                    .requestRateLimited, "the account sends \(Self.mostOfAccount) contents already, and no more go at once",
                    retryAfter: .seconds(2))
            }
            if beside.count >= Self.most {
                return CloudError(
                    .serviceUnavailable, forClients: "the server takes in as many contents as it can", retryAfter: .seconds(2))
            }
            all.insert(self)
            return nil
        }
        if let refusal { throw refusal }
    }

    func end() { Self.all.withLock { all in _ = all.remove(self) } }
}
