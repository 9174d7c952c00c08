public import Foundation
public import TidemarkSQLite
public import TidemarkStore

extension ContainerDirectory {
    /// Deletes the container permanently, with its stores, assets and quarantines. Processes that have it open get ``StoreError``
    /// `moved` from then on. A write that another process has begun is waited for.
    ///
    /// Files in the directory that are not the container's stay, and the directory with them. Records in the cloud stay there.
    ///
    /// - Throws: ``StoreError`` `moved` when the container is at another place now; `busy` when another process writes for over 30 s; `io`.
    public func destroy() throws(StoreError) {
        let locks = try ContainerLocks(at: url, timeout: .seconds(30))
        defer { locks.release() }
        try checkPlace()
        do {
            // Without the description no process opens the container any more, even if the rest can't be removed.
            try DurableFile.remove(ContainerContents.description, in: url)
            try ContainerContents.remove(from: url)
            try ContainerContents.removeIfEmpty(url)
        } catch {
            throw StoreError(error, doing: "delete \(url.path)")
        }
    }

    /// Deletes the container at a place permanently. As `NSPersistentStoreCoordinator.destroyPersistentStore(at:type:options:)`.
    ///
    /// - Throws: ``StoreError`` `notFound` if there is none; `busy`; `io`.
    public static func destroy(at url: URL) throws(StoreError) { try ContainerDirectory(openingAt: url).destroy() }
}
