public import Foundation
public import TidemarkSQLite
public import TidemarkStore

extension ContainerDirectory {
    /// Deletes the container with its stores, assets and quarantines, for good. Processes that have it open get ``StoreError`` `moved` from
    /// then on; one in the middle of a write is waited for.
    ///
    /// Files in the directory that are not the container's stay, and the directory with them. What the cloud has stays there.
    ///
    /// - Throws: ``StoreError`` `moved` when the container is at another place now; `busy` when another process writes for over 30 s; `io`.
    public func destroy() throws(StoreError) {
        let locks = try ContainerLocks(at: url, timeout: .seconds(30))
        defer { locks.release() }
        try checkPlace()
        do {
            // Without the description nobody opens the container any more, whatever becomes of the rest.
            try DurableFile.remove(ContainerContents.description, in: url)
            try ContainerContents.remove(from: url)
            try ContainerContents.removeIfEmpty(url)
        } catch {
            throw StoreError(error, doing: "delete \(url.path)")
        }
    }

    /// Deletes the container at a place, for good. As `NSPersistentStoreCoordinator.destroyPersistentStore(at:type:options:)`.
    ///
    /// - Throws: ``StoreError`` `notFound` where there is none; `busy`; `io`.
    public static func destroy(at url: URL) throws(StoreError) { try ContainerDirectory(openingAt: url).destroy() }
}
