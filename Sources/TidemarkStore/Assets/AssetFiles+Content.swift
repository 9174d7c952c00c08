import CTideCore
package import Foundation
import TidemarkModel
package import TidemarkSQLite

extension AssetFiles {
    /// The result of examining a content.
    package enum Condition: Hashable, Sendable {
        case whole
        /// The file is not there.
        case missing(String)
        /// The file can't be read, or its content does not match its identifier.
        case damaged(String)
    }

    /// The place of an asset's content.
    ///
    /// - Parameter id: An identifier.
    package static func url(of id: String, in assets: URL) -> URL { assets.appendingPathComponent("\(id.prefix(2))/\(id)") }

    /// Whether an asset's content is here: a file of the right size is in its place. No content is read.
    package static func isHere(_ id: String, in assets: URL) -> Bool {
        var status = stat()
        guard isIdentifier(id), lstat(url(of: id, in: assets).path, &status) == 0 else { return false }
        return status.st_mode & S_IFMT == S_IFREG && Int64(status.st_size) == AssetIdentifier.size(of: id)
    }

    /// Reads a content, and compares it with its identifier.
    ///
    /// - Complexity: Reads the content.
    package static func examine(_ id: String, in assets: URL) -> Condition {
        guard isIdentifier(id) else { return .missing("'\(id.prefix(100))' is no identifier of an asset") }
        guard AssetIdentifier.isOfDigest(id) else {
            var error = tide_error()
            if tide_blob_verify(assets.path, id, &error) == TIDE_OK { return .whole }
            return error.reject == TIDE_REJECT_ASSET_MISSING ? .missing(error.text) : .damaged(error.text)
        }
        do {
            let file = try Folder(at: assets).folder(String(id.prefix(2))).openFile(id)
            let (digest, size) = try digest(of: file)
            guard size == AssetIdentifier.size(of: id), digest.hasPrefix(id.prefix(32)) else {
                return .damaged(
                    "the content of the asset \(id) is not what its name says; to have it back, evict it, and download it again")
            }
            return .whole
        } catch let error as StoreError where error.code == .notFound {
            return .missing("the asset \(id) is missing; to have it back, download it")
        } catch {
            return .damaged("the asset \(id) cannot be read: \(error)")
        }
    }

    /// Returns whether a file is the content of an asset. The caller has compared its SHA-256, and the file has not got its final
    /// name yet.
    ///
    /// - Complexity: Reads the file, but for an identifier that is made of the SHA-256.
    package static func isContent(_ file: URL, of asset: RemoteAsset) throws(StoreError) -> Bool {
        guard !AssetIdentifier.isOfDigest(asset.id) else {
            return asset.id == AssetIdentifier.ofDigest(asset.sha256, size: asset.size)
        }
        let content = try Folder(at: file.deletingLastPathComponent()).openFile(file.lastPathComponent)
        defer { try? content.close() }
        var error = tide_error()
        switch tide_blob_verify_file(content.fileDescriptor, asset.id, &error) {
        case TIDE_OK: return true
        case TIDE_REJECTED where error.reject == TIDE_REJECT_ASSET_CHANGED: return false
        default: throw StoreError(.io, "cannot read \(file.path): \(error.text)")
        }
    }

    /// Links a content under another name, durably. An existing file of that name stays if it is whole, since contents never
    /// change.
    ///
    /// - Returns: `false` where the file system has no links.
    package static func give(_ id: String, otherName: String, in assets: URL) throws(StoreError) -> Bool {
        let (file, other) = (url(of: id, in: assets), url(of: otherName, in: assets))
        try Folder.make(other.deletingLastPathComponent(), mode: 0o700)
        if link(file.path, other.path) != 0 {
            guard errno == EEXIST else { return false }
            if examine(otherName, in: assets) != .whole {
                let fresh = other.path + ".new"
                unlink(fresh)
                guard link(file.path, fresh) == 0, rename(fresh, other.path) == 0 else { return false }
            }
        }
        // The name may come from a process that was killed before it was durable.
        try Folder(at: other.deletingLastPathComponent()).synchronize()
        return true
    }

    /// The SHA-256 of a file from its beginning, in hexadecimal digits, and its size.
    package static func digest(of file: FileHandle) throws -> (sha256: String, size: Int64) {
        var hash = SHA256Context()
        var size: Int64 = 0
        while let data = try file.read(upToCount: 1 << 20), !data.isEmpty {
            data.withUnsafeBytes { hash.update($0) }
            size += Int64(data.count)
        }
        return (Hexadecimal.text(hash.finish()), size)
    }

    /// Returns the kind of image of a content; 0 for a content that is no known image.
    package static func media(of file: FileHandle, size: Int64) -> Int {
        var (image, error) = (tide_image(), tide_error())
        let bytes = tide_bytes(memory: nil, descriptor: file.fileDescriptor, size: UInt64(size))
        return tide_image_probe(bytes, &image, &error) == TIDE_OK ? Int(image.media.rawValue) : 0
    }

    /// Returns when a content was last read, by the file system, in microseconds since 1970 UTC.
    package static func lastUse(of id: String, in assets: URL) -> Int64? {
        var status = stat()
        guard lstat(url(of: id, in: assets).path, &status) == 0 else { return nil }
        #if os(Linux) || os(Android)
            let time = status.st_atim
        #else
            let time = status.st_atimespec
        #endif
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Records that a content is read now, as the access time of its file. Eviction goes by this time. Nothing happens where the
    /// process may not change the file.
    package static func noteUse(of url: URL) {
        #if os(Linux) || os(Android)
            let omitted = timespec(tv_sec: 0, tv_nsec: Int(utimeOmit))
            let now = timespec(tv_sec: 0, tv_nsec: Int(utimeNow))
        #else
            let omitted = timespec(tv_sec: 0, tv_nsec: Int(UTIME_OMIT))
            let now = timespec(tv_sec: 0, tv_nsec: Int(UTIME_NOW))
        #endif
        _ = utimensat(AT_FDCWD, url.path, [now, omitted], AT_SYMLINK_NOFOLLOW)
    }

    #if os(Linux) || os(Android)
        // The macros of <sys/stat.h>, which Swift does not import.
        private static let utimeNow = (1 << 30) - 1
        private static let utimeOmit = (1 << 30) - 2
    #endif
}
