import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// The files of a cloud in a directory.
struct CloudDirectory: Sendable {
    let url: URL

    /// The databases beside the containers. A cloud that was never served has only the first.
    static let databases = ["accounts.sqlite", "access.sqlite", "subscriptions.sqlite"]

    /// A container in one environment.
    struct Container: Hashable, Sendable {
        let name: String
        let environment: StoreEnvironment

        var path: String { "containers/\(name)/\(environment.rawValue)" }
        var database: String { "\(path)/records.sqlite" }
    }

    /// The lock that each process with the open cloud holds shared, and a process that replaces the cloud holds exclusively.
    var useLock: URL { url.appendingPathComponent("use-lock") }
    /// The lock that a backup holds exclusively, so that no content goes before it is copied. A process that removes a content
    /// holds it shared.
    var backupLock: URL { url.appendingPathComponent("backup-lock") }

    /// The containers that have a database.
    func containers() throws(StoreError) -> [Container] {
        let folder = url.appendingPathComponent("containers", isDirectory: true)
        let names = try Folder.entriesIfPresent(at: folder, followsLink: true).map(\.name)
        var found: [Container] = []
        for name in names where Self.isContainer(name) {
            for environment in [StoreEnvironment.development, .production] {
                let container = Container(name: name, environment: environment)
                if FileManager.default.fileExists(atPath: url.appendingPathComponent(container.database).path) {
                    found.append(container)
                }
            }
        }
        return found
    }

    /// Returns the names in a folder of a cloud, sorted, and none if the folder is missing.
    static func names(in folder: URL) throws(CloudError) -> [String] {
        do {
            return try Folder.entriesIfPresent(at: folder, followsLink: true).map(\.name)
        } catch {
            throw CloudError(storage: error)
        }
    }

    static func isContainer(_ name: String) -> Bool {
        do throws(CloudError) {
            try EmbeddedCloud.check(container: name)
            return true
        } catch {
            return false
        }
    }

    /// Returns the path of an asset's content, relative to the container's folder.
    static func asset(_ digest: String, owner: String) -> String {
        "assets/\(owner.isEmpty ? "public" : owner)/\(digest.prefix(2))/\(digest)"
    }

    /// Returns whether an owner's name can be the name of a folder.
    static func isOwner(_ owner: String) -> Bool {
        owner.isEmpty
            || owner.utf8.count <= 255 && owner.hasPrefix("_")
                && owner.utf8.dropFirst().allSatisfy {
                    (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) || (0x41...0x5a).contains($0) || $0 == 0x5f
                        || $0 == 0x2d
                }
    }

    /// Returns the digest and the size of a file.
    ///
    /// - Throws: ``StoreError`` `notFound`, `io`.
    static func content(of url: URL, progress: (Int) throws -> Void = { _ in }) throws -> CloudAsset {
        let file = try Folder(at: url.deletingLastPathComponent()).openFile(url.lastPathComponent)
        var digest = AssetDigest()
        while let data = try file.read(upToCount: 1 << 20), !data.isEmpty {
            digest.update(data)
            try progress(data.count)
        }
        return digest.finish()
    }

    static func failure(_ what: String, _ url: URL) -> StoreError {
        let code: StoreError.Code = errno == ENOSPC || errno == EDQUOT ? .diskFull : errno == ENOENT ? .notFound : .io
        return StoreError(code, "cannot \(what) \(url.path): \(String(cString: strerror(errno)))")
    }

    static func synchronize(_ url: URL) throws {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw failure("open", url) }
        defer { close(descriptor) }
        guard DurableFile.flush(descriptor) else { throw failure("make durable", url) }
    }

    /// Makes a directory durable and moves it to its place, where nothing but an empty folder may be.
    ///
    /// - Parameter filesAreDurable: Whether the contents of its files are durable already.
    static func put(_ url: URL, at place: URL, filesAreDurable: Bool) throws {
        for name in try FileManager.default.subpathsOfDirectory(atPath: url.path) {
            let item = url.appendingPathComponent(name)
            var status = stat()
            guard lstat(item.path, &status) == 0 else { throw failure("look at", item) }
            if !filesAreDurable || status.st_mode & S_IFMT == S_IFDIR { try synchronize(item) }
        }
        try synchronize(url)
        guard rename(url.path, place.path) == 0 else { throw failure("make", place) }
        try synchronize(place.deletingLastPathComponent())
    }
}

/// A hidden directory beside a place. It is filled, and then moves to the place as a whole.
struct PendingDirectory: ~Copyable {
    let url: URL
    private let place: URL
    private let lock: StoreLock

    /// Makes the directory, and removes what a killed process has left of one for the same place.
    ///
    /// - Throws: ``StoreError`` `busy` while another process makes one for the same place.
    init(for place: URL) throws {
        let parent = place.deletingLastPathComponent()
        try Folder.make(parent, mode: 0o700)
        let url = parent.appendingPathComponent(".\(place.lastPathComponent).unfinished", isDirectory: true)
        try Folder.make(url, mode: 0o700)
        let lock = try StoreLock(at: url.appendingPathComponent(Self.lockFile))
        guard try lock.acquireIfFree() else {
            throw StoreError(.busy, "another process is making \(place.path); try again when it is done")
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: url.path) where name != Self.lockFile {
            try FileManager.default.removeItem(at: url.appendingPathComponent(name))
        }
        (self.url, self.place) = (url, place)
        self.lock = consume lock
    }

    private static let lockFile = ".lock"

    /// Runs `body`, and removes everything if it fails.
    borrowing func fill<Result>(_ body: (URL) throws -> Result) throws -> Result {
        do {
            return try body(url)
        } catch {
            // The caller gets the first error. What can't be removed stays under the hidden name.
            try? FileManager.default.removeItem(at: url)
            throw error
        }
    }

    /// Makes all folders durable and moves the directory to its place, where nothing but an empty folder may be.
    borrowing func commit() throws {
        try FileManager.default.removeItem(at: url.appendingPathComponent(Self.lockFile))
        try CloudDirectory.put(url, at: place, filesAreDurable: true)
    }
}
