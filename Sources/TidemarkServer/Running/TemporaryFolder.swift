package import Foundation

/// A temporary folder of one process, for assets on their way to their storage.
///
/// Nobody can have made its name before, and only its user can read it. A killed process leaves its folder, and the next process
/// of the same user and purpose removes it: a lock in the folder tells whether its process still runs.
package final class TemporaryFolder: Sendable {
    package let url: URL
    /// The descriptor of the lock, which ends with the process.
    private let descriptor: Int32

    private static let lockName = "in-use"
    /// A younger folder may be one that another process is making and has not locked yet.
    private static let leastAge: TimeInterval = 60
    /// A folder without a lock was made by an earlier version.
    private static let leastAgeWithoutLock: TimeInterval = 86_400

    /// - Parameters:
    ///   - purpose: The beginning of the name.
    ///   - place: The folder in which it is made.
    /// - Throws: ``ServerError`` `io`.
    package init(_ purpose: String, in place: URL = FileManager.default.temporaryDirectory) throws(ServerError) {
        Self.removeLeftovers(of: purpose, in: place)
        var name = Array(place.appendingPathComponent("\(purpose)-XXXXXX").path.utf8CString)
        guard mkdtemp(&name) != nil else {
            throw ServerError(
                .io,
                "cannot make a folder for uploads in \(place.path): \(String(cString: strerror(errno))). TMPDIR can name another place"
            )
        }
        let path = String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        url = URL(fileURLWithPath: path, isDirectory: true)
        descriptor = open("\(path)/\(Self.lockName)", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw ServerError(.io, "\(path) can't be used for uploads: \(String(cString: strerror(errno)))")
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Removes the folder with its content. If that fails, the next process removes it.
    package func remove() { try? FileManager.default.removeItem(at: url) }

    private static func removeLeftovers(of purpose: String, in place: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
        for name in names where name.hasPrefix("\(purpose)-") {
            let folder = place.appendingPathComponent(name)
            // For a link, these are the link's own attributes.
            guard let attributes = try? FileManager.default.attributesOfItem(atPath: folder.path),
                attributes[.type] as? FileAttributeType == .typeDirectory,
                (attributes[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid(),
                let changed = attributes[.modificationDate] as? Date
            else { continue }
            let age = -changed.timeIntervalSinceNow
            let descriptor = open("\(folder.path)/\(lockName)", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            defer { if descriptor >= 0 { close(descriptor) } }
            let isLeft = descriptor >= 0 ? age > leastAge && flock(descriptor, LOCK_EX | LOCK_NB) == 0 : age > leastAgeWithoutLock
            if isLeft { try? FileManager.default.removeItem(at: folder) }
        }
    }
}
