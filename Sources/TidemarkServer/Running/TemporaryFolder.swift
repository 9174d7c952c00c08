package import Foundation

/// A folder of a process of its own, in the place of the system's temporary files: for assets that are on their way to where they are stored.
///
/// Its name is one that nobody could make before, and it is for its user alone. A process that is killed leaves it, and the next one of the same
/// user and purpose removes it: a lock in the folder says whether its process is there still.
package final class TemporaryFolder: Sendable {
    package let url: URL
    /// Of the lock, which goes with the process.
    private let descriptor: Int32

    private static let lockName = "in-use"
    /// Another process may just be making a folder, and lock it next.
    private static let leastAge: TimeInterval = 60
    /// A folder without a lock is one that an earlier version has made.
    private static let leastAgeWithoutLock: TimeInterval = 86_400

    /// - Parameters:
    ///   - purpose: What the name begins with.
    ///   - place: Where it is made.
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

    /// Removes the folder with all that is in it. One that can't be removed is left to the next process.
    package func remove() { try? FileManager.default.removeItem(at: url) }

    private static func removeLeftovers(of purpose: String, in place: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
        for name in names where name.hasPrefix("\(purpose)-") {
            let folder = place.appendingPathComponent(name)
            // Of a link, its own attributes.
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
