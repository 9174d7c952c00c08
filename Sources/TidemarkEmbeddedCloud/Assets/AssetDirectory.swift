import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Stores contents of assets in files named by their SHA-256. Each owner has a folder.
///
/// A file has its final name only when the content is complete, checked and durable. Unfinished uploads are in a folder beside
/// the contents.
///
/// The actor has a thread of its own, because hashing, waiting for other processes and making files durable take time.
actor AssetDirectory: AssetStorage {
    private nonisolated let executor = StoreExecutor(label: "tidemark.assets")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private nonisolated let root: URL
    /// Held while a backup is made. No content is removed meanwhile.
    private nonisolated let backupLock: URL?
    /// The shared directory that has the folder, which may be unmounted; `nil` for a folder of a cloud's own directory.
    private nonisolated let shared: SharedAssetDirectory?

    init(_ folder: URL, backupLock: URL? = nil, in shared: SharedAssetDirectory? = nil) {
        root = folder
        (self.backupLock, self.shared) = (backupLock, shared)
    }

    private func make(_ folder: URL) throws(StoreError) {
        if let shared { try shared.make(folder) } else { try Folder.make(folder, mode: 0o700) }
    }

    /// Returns the error of a failed write: the directory's error if the directory has disappeared meanwhile.
    private func failure(storing error: any Error) -> CloudError {
        do throws(CloudError) {
            try shared?.check()
            return Self.failure(error)
        } catch {
            return error
        }
    }

    /// - Throws: `CloudError` `invalidArguments` for a malformed digest.
    private nonisolated func place(
        _ asset: CloudAsset, owner: String, by user: String?
    ) throws(CloudError) -> (whole: URL, part: URL) {
        try asset.check()
        let folder = folder(of: owner)
        let whole = folder.appendingPathComponent("\(asset.digest.prefix(2))/\(asset.digest)")
        return (whole, folder.appendingPathComponent("uploads/\(asset.digest)\(user.map { "-\($0)" } ?? "")"))
    }

    private nonisolated func folder(of owner: String) -> URL {
        // A user record name; the public database has none.
        root.appendingPathComponent(owner.isEmpty ? "public" : owner, isDirectory: true)
    }

    /// Returns the number of bytes of an upload that are stored.
    ///
    /// - Parameter user: The user who uploads, unless it is the owner. A user can't continue another user's upload, since a user
    ///   who has sent an asset may read it.
    func received(_ asset: CloudAsset, owner: String, by user: String?) throws(CloudError) -> Int64 {
        try shared?.checkOften()
        var status = stat()
        let part = try place(asset, owner: owner, by: user).part
        guard lstat(part.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return 0 }
        guard asset.size > 0, status.st_size >= asset.size else { return Int64(status.st_size) }
        // The writer of the last piece ended before it renamed the file, or is about to rename it.
        let descriptor = open(part.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_EX) == 0 else { throw failure("lock", part) }
        var now = stat()
        if lstat(part.path, &now) == 0, now.st_ino == status.st_ino { unlink(part.path) }
        return 0
    }

    /// Returns the bytes of an owner's unfinished uploads, except one, and removes uploads without a piece for a week.
    func unfinished(beside asset: CloudAsset?, owner: String, by user: String?) throws(CloudError) -> Int64 {
        try shared?.checkOften()
        var own: String?
        if let asset { own = try place(asset, owner: owner, by: user).part.lastPathComponent }
        let uploads = folder(of: owner).appendingPathComponent("uploads", isDirectory: true)
        let oldest = Date(timeIntervalSinceNow: -Self.partAge)
        var sum: Int64 = 0
        for name in try CloudDirectory.names(in: uploads) where name != own {
            let other = uploads.appendingPathComponent(name).path
            // A file that is missing has become a content, or was removed, meanwhile.
            guard let attributes = try? FileManager.default.attributesOfItem(atPath: other),
                let modified = attributes[.modificationDate] as? Date, let size = (attributes[.size] as? NSNumber)?.int64Value
            else { continue }
            if modified < oldest { unlink(other) } else { sum += size }
        }
        return sum
    }

    /// Returns the time of an upload's last piece, in microseconds since 1970 UTC; `nil` where there is no upload.
    func lastPiece(of digest: String, owner: String, by user: String?) -> Int64? {
        // A malformed digest names no file. The same holds below.
        guard let part = try? place(CloudAsset(digest: digest, size: 0), owner: owner, by: user).part,
            let attributes = try? FileManager.default.attributesOfItem(atPath: part.path),
            let modified = attributes[.modificationDate] as? Date
        else { return nil }
        return Int64((modified.timeIntervalSince1970 * 1e6).rounded())
    }

    /// The seconds for which an unfinished upload is kept after its last piece.
    private static let partAge: TimeInterval = 7 * 86_400

    /// Adds a piece to an upload. The last one makes the content complete.
    ///
    /// - Returns: The number of bytes that are stored, and whether the content is complete and durable.
    func add(
        _ piece: Data, to asset: CloudAsset, at offset: Int64, owner: String, by user: String?
    ) throws(CloudError) -> (received: Int64, isWhole: Bool) {
        let (whole, part) = try place(asset, owner: owner, by: user)
        try shared?.check()
        do {
            try make(part.deletingLastPathComponent())
            let descriptor = open(part.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { throw failure("open", part) }
            let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            // The descriptor holds the lock until the content has its final name.
            defer { withExtendedLifetime(file) {} }
            // Two requests that send the same asset add their pieces one after the other.
            guard flock(descriptor, LOCK_EX) == 0 else { throw failure("lock", part) }
            var (own, named) = (stat(), stat())
            guard fstat(descriptor, &own) == 0 else { throw failure("look at", part) }
            // The last holder of the lock may have renamed or removed the file. Then the path belongs to another upload.
            guard lstat(part.path, &named) == 0, named.st_ino == own.st_ino else {
                throw UploadPiece.overtaken
            }
            var there = Int64(try file.seekToEnd())
            if offset == 0, Int64(piece.count) == asset.size, there > 0 {
                // A whole content replaces the pieces of an earlier attempt.
                try file.truncate(atOffset: 0)
                there = 0
            }
            let piece = try UploadPiece.rest(of: piece, at: offset, behind: there, of: asset)
            do {
                guard try append(piece, to: asset, file, part, there) else { return (there + Int64(piece.count), false) }
                try make(whole.deletingLastPathComponent())
            } catch {
                // The client gets no reply for the piece, so it does not count and may be sent again.
                if ftruncate(descriptor, off_t(there)) != 0 { unlink(part.path) }
                throw error
            }
            // On a network file system the rename may have happened although it reports an error, so the file must not be
            // truncated.
            guard rename(part.path, whole.path) == 0 else { throw removing(part, after: failure("put in its place", part)) }
            try Folder(at: whole.deletingLastPathComponent(), followsLink: true).synchronize()
            // The file system may have disappeared since the first check, and then the content is not stored.
            try shared?.check()
            return (asset.size, true)
        } catch {
            throw failure(storing: error)
        }
    }

    /// Writes a piece behind the stored bytes of an upload. A complete content is checked and made durable. One with another
    /// digest is removed.
    ///
    /// - Parameter there: The number of bytes that are stored.
    /// - Returns: Whether the content is whole.
    private func append(
        _ piece: Data, to asset: CloudAsset, _ file: FileHandle, _ part: URL, _ there: Int64
    ) throws -> Bool {
        let arrival = try arrival(of: part, file.fileDescriptor, there)
        try DurableFile.write(piece, to: file, path: part.path)
        arrival?.add(piece)
        guard there + Int64(piece.count) == asset.size else { return false }
        arrivals[part.path] = nil
        guard try arrival?.finish() ?? Self.digest(of: file) == asset else {
            let message = "what was uploaded is not the content of the digest \(asset.digest)"
            throw removing(part, after: CloudError(.assetNotAvailable, message))
        }
        // The system may also have lost bytes of earlier pieces, and a later call would not report it.
        guard DurableFile.flush(file.fileDescriptor) else { throw removing(part, after: failure("make durable", part)) }
        return true
    }

    /// Removes an upload that can't continue, so that it begins again.
    ///
    /// - Returns: The error.
    private func removing(_ part: URL, after error: CloudError) -> CloudError {
        unlink(part.path)
        return error
    }

    /// Moves a complete content, which the caller has hashed, to its final name.
    ///
    /// It may replace a content, which has the same digest and so the same bytes.
    func adopt(_ file: URL, as asset: CloudAsset, owner: String) throws(CloudError) {
        let whole = try place(asset, owner: owner, by: nil).whole
        try shared?.check()
        do {
            let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else { throw failure("open", file) }
            defer { close(descriptor) }
            var status = stat()
            guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, Int64(status.st_size) == asset.size else {
                throw CloudError(.assetNotAvailable, "what has come is not the \(asset.size) bytes of the digest \(asset.digest)")
            }
            guard DurableFile.flush(descriptor) else { throw failure("make durable", file) }
            try make(whole.deletingLastPathComponent())
            if rename(file.path, whole.path) != 0 {
                guard errno == EXDEV else { throw failure("put in its place", file) }
                try copy(file, to: whole, of: owner)
            }
            try Folder(at: whole.deletingLastPathComponent(), followsLink: true).synchronize()
            try shared?.check()
        } catch {
            throw failure(storing: error)
        }
    }

    /// Copies a file from another file system: a server's own disk has the uploads for a directory that servers share.
    private func copy(_ file: URL, to whole: URL, of owner: String) throws {
        let uploads = folder(of: owner).appendingPathComponent("uploads", isDirectory: true)
        try make(uploads)
        // If the server ends meanwhile, the copy is removed with the abandoned uploads.
        let new = uploads.appendingPathComponent("\(whole.lastPathComponent)-\(UUID().uuidString)")
        defer { unlink(new.path) }
        do {
            try FileManager.default.copyItem(at: file, to: new)
        } catch let error as CocoaError where error.code == .fileWriteOutOfSpace {
            throw StoreError(.diskFull, "cannot copy \(file.path) to \(new.path): there is no room")
        }
        try CloudDirectory.synchronize(new)
        guard rename(new.path, whole.path) == 0 else { throw failure("put in its place", new) }
        unlink(file.path)
    }

    // Pieces are hashed as they arrive, where one process receives all of them. In a directory that servers share, the whole file is hashed at
    // the end: another server may have written some of the bytes, or removed the file, and a new file may have its inode number.

    /// An upload with the digest of the bytes that have arrived so far.
    private final class Arrival {
        let file: UInt64
        private(set) var count: Int64 = 0
        private var digest: AssetDigest? = AssetDigest()

        init(_ file: UInt64) { self.file = file }

        func add(_ piece: Data) {
            digest?.update(piece)
            count += Int64(piece.count)
        }

        func finish() -> CloudAsset? { digest.take()?.finish() }
    }

    /// An upload that had to leave the cache is hashed as a whole at the end.
    private var arrivals = BoundedCache<String, Arrival>(capacity: 1_000)

    /// Returns the cached digest of a file with this many bytes; `nil` if another process has written some of them.
    private func arrival(of part: URL, _ descriptor: Int32, _ there: Int64) throws -> Arrival? {
        guard shared == nil else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("look at", part) }
        let file = UInt64(status.st_ino)
        if there == 0 { arrivals[part.path] = Arrival(file) }
        guard let known = arrivals[part.path], known.file == file, known.count == there else {
            arrivals[part.path] = nil
            return nil
        }
        return known
    }

    private static func digest(of file: FileHandle) throws -> CloudAsset {
        try file.seek(toOffset: 0)
        var digest = AssetDigest()
        while let data = try file.read(upToCount: 1 << 20), !data.isEmpty { digest.update(data) }
        return digest.finish()
    }

    /// Returns a piece of a complete content.
    func piece(of asset: CloudAsset, from offset: Int64, count: Int, owner: String) throws(CloudError) -> Data {
        let whole = try place(asset, owner: owner, by: nil).whole
        try shared?.checkOften()
        let descriptor = open(whole.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            // Only the right directory can say that a content is missing.
            try shared?.check()
            throw CloudError(.assetNotAvailable, "the asset \(asset.digest) is not there")
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try file.seek(toOffset: UInt64(max(0, offset)))
            return try file.read(upToCount: count) ?? Data()
        } catch {
            throw CloudError(storage: error)
        }
    }

    /// Returns whether a file of the asset's size exists.
    nonisolated func has(_ asset: CloudAsset, owner: String) -> Bool { (try? isThere(asset, owner: owner)) == true }

    nonisolated func remove(_ asset: CloudAsset, owner: String) {
        guard let whole = try? place(asset, owner: owner, by: nil).whole, isUsable else { return }
        guard let backupLock else {
            unlink(whole.path)
            return
        }
        do {
            let lock = try StoreLock(at: backupLock)
            try lock.acquire(shared: true, timeout: .zero)
            unlink(whole.path)
            lock.release()
        } catch {
            // A backup may be about to copy it. A later sweep removes it.
        }
    }

    // Contents that no record names

    /// The seconds for which such a content stays after it was stored or asked for: a receipt is valid for a day, and one hour is
    /// added.
    private static let unnamedAge: TimeInterval = 25 * 3_600
    /// The seconds after which a content is touched again when a client asks for it.
    private static let freshAge: TimeInterval = 3_600

    /// Returns the time at which a content was stored or asked for; `nil` if it does not exist.
    private nonisolated func time(of asset: CloudAsset, owner: String) -> Date? {
        guard let whole = try? place(asset, owner: owner, by: nil).whole,
            let attributes = try? FileManager.default.attributesOfItem(atPath: whole.path)
        else { return nil }
        return attributes[.modificationDate] as? Date
    }

    /// Whether the shared directory is the database's own; `true` for a folder of a cloud's directory. In another directory
    /// nothing counts as missing, and nothing is removed. Uploads and downloads throw the reason.
    private nonisolated var isUsable: Bool {
        do throws(CloudError) {
            try shared?.check()
            return true
        } catch {
            return false
        }
    }

    /// Returns whether a content that no record names may be removed. A missing one may.
    nonisolated func isOld(_ asset: CloudAsset, owner: String, at now: Date) -> Bool {
        guard let time = time(of: asset, owner: owner) else { return isUsable }
        return now.timeIntervalSince(time) > Self.unnamedAge
    }

    /// Returns the contents that may be removed if no record names them.
    func old(_ assets: [CloudAsset], owner: String, at now: Date) -> [CloudAsset] {
        assets.filter { isOld($0, owner: owner, at: now) }
    }

    /// Returns whether a file that the database does not know may be removed. An older file than the database may belong to
    /// another one.
    nonisolated func isStray(_ asset: CloudAsset, owner: String, at now: Date, since began: Date) -> Bool {
        guard let time = time(of: asset, owner: owner) else { return false }
        return time > began && now.timeIntervalSince(time) > Self.unnamedAge
    }

    /// Returns the contents that may be removed if the database does not know them.
    func strays(_ assets: [CloudAsset], owner: String, at now: Date, since began: Date) -> [CloudAsset] {
        assets.filter { isStray($0, owner: owner, at: now, since: began) }
    }

    /// Returns the contents to touch when a client asks for them, and those that the client has to send.
    func examine(
        _ assets: [CloudAsset], owner: String
    ) throws(CloudError) -> (aging: [CloudAsset], missing: [CloudAsset]) {
        try shared?.checkOften()
        var (aging, missing): ([CloudAsset], [CloudAsset]) = ([], [])
        for asset in assets {
            if try isThere(asset, owner: owner) == false {
                missing.append(asset)
            } else if (time(of: asset, owner: owner) ?? .distantPast).timeIntervalSinceNow < -Self.freshAge {
                aging.append(asset)
            }
        }
        if !missing.isEmpty { try shared?.check() }
        return (aging, missing)
    }

    /// Returns whether a file of the asset's size exists; `nil` if that is unknown, as in a directory that can't be read.
    private nonisolated func isThere(_ asset: CloudAsset, owner: String) throws(CloudError) -> Bool? {
        let whole = try place(asset, owner: owner, by: nil).whole
        var status = stat()
        guard lstat(whole.path, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR ? false : nil }
        return status.st_mode & S_IFMT == S_IFREG && Int64(status.st_size) == asset.size
    }

    /// Gives a content the age of a new one. If that fails, a sweep may remove the content before a record names it. The cloud
    /// then refuses the record, and the client sends the content again.
    nonisolated func touch(_ asset: CloudAsset, owner: String) {
        guard let whole = try? place(asset, owner: owner, by: nil).whole else { return }
        try? FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: whole.path)
    }

    /// Returns the owners of contents and uploads.
    func owners() throws(CloudError) -> [String] {
        try shared?.check()
        return try CloudDirectory.names(in: root).filter { $0 == "public" || $0.hasPrefix("_") }.map { $0 == "public" ? "" : $0 }
    }

    /// Returns some digests of an owner's contents: those with one first byte. The next call has the next byte.
    func digests(of owner: String, from place: String?) throws(CloudError) -> (digests: Set<String>, next: String?) {
        try shared?.checkOften()
        let byte = place.flatMap { UInt8($0, radix: 16) } ?? 0
        let names = try CloudDirectory.names(
            in: folder(of: owner).appendingPathComponent(Hexadecimal.text(CollectionOfOne(byte))))
        let digests = names.filter { (try? CloudAsset(digest: $0, size: 0).check()) != nil }
        return (Set(digests), byte == .max ? nil : Hexadecimal.text(CollectionOfOne(byte + 1)))
    }

    /// Makes the error of a system call that has just failed.
    private func failure(_ what: String, _ url: URL) -> CloudError { Self.failure(Folder.failure(what, url.path)) }

    /// Makes a client's error from one of the store. A full disk or file system quota is the server's. The client reports it as a
    /// full account: a person has to act.
    private static func failure(_ error: any Error) -> CloudError {
        guard let error = error as? StoreError, error.code == .diskFull else { return CloudError(storage: error) }
        var failure = CloudError(.quotaExceeded, error.message)
        failure.publicReason = "the server has no room for the content"
        return failure
    }
}
