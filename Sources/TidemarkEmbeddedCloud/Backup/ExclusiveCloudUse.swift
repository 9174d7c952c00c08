package import Foundation
import TidemarkCloudEngine
package import TidemarkModel
import TidemarkSQLite

/// Keeps other processes from a cloud's directory while it exists.
///
/// `@unchecked Sendable`: the lock is acquired when the object is made, and released with it.
package final class ExclusiveCloudUse: @unchecked Sendable {
    private let lock: StoreLock

    /// - Throws: ``StoreError`` `busy` while others have the cloud open.
    package init(of directory: URL) throws {
        let lock = try StoreLock(at: CloudDirectory(url: directory).useLock)
        guard try lock.acquireIfFree() else {
            throw StoreError(
                .busy,
                "\(directory.path) is in use by a server or another command; stop that first, so that nothing changes meanwhile")
        }
        self.lock = lock
    }
}

extension EmbeddedCloud {
    /// Returns the containers of a directory that have a database, with the files.
    package static func databases(in directory: URL) throws -> [(name: String, environment: StoreEnvironment, file: URL)] {
        let directory = CloudDirectory(url: directory)
        return try directory.containers().map { ($0.name, $0.environment, directory.url.appendingPathComponent($0.database)) }
    }

    /// Returns the storage of a container's assets in a directory.
    package static func assets(of container: String, _ environment: String, in directory: URL) -> any AssetStorage {
        sharedAssets(in: directory.appendingPathComponent("containers/\(container)/\(environment)/assets", isDirectory: true))
    }

    /// Makes all files of a directory durable and moves it to its place, where nothing but an empty folder may be.
    package static func put(_ directory: URL, at place: URL) throws {
        try CloudDirectory.put(directory, at: place, filesAreDurable: false)
    }
}
