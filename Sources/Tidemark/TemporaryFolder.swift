public import Foundation
public import TidemarkModel
public import TidemarkSQLite

/// A folder for a temporary container, which is deleted with this object.
final class TemporaryFolder: Sendable {
    private let url: URL

    /// The place of the container.
    var container: URL { url.appendingPathComponent("Temporary.tidemark", isDirectory: true) }

    /// Makes the folder in another one.
    ///
    /// - Throws: ``StoreError`` `cannotCreate`.
    init(in parent: URL) throws(StoreError) {
        url = parent.appendingPathComponent("tidemark-temporary-\(UUID().uuidString.lowercased())", isDirectory: true)
        do {
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw StoreError(.cannotCreate, "cannot make a folder for a temporary container in \(parent.path): \(error)")
        }
    }

    deinit { remove() }

    /// Deletes the folder with everything in it.
    func remove() {
        // Files that can't be deleted stay in the system's folder for temporary files, which the system clears.
        try? FileManager.default.removeItem(at: url)
    }
}

extension PersistentContainer {
    /// Opens a new container that is deleted when it is closed or deallocated. For previews and tests, like an
    /// `NSPersistentContainer` with a store in memory.
    ///
    /// ```swift
    /// let journal = try PersistentContainer.temporary()
    /// try await journal.save(Destination(caption: "Senja"))
    /// ```
    ///
    /// The container is in a folder of its own and not in memory, so it can do everything that other containers can: reads beside
    /// writes, assets, other processes, synchronisation. In a folder on a file system in memory, such as `/dev/shm` on Linux,
    /// nothing is written to a disk. A process that is killed leaves the folder, whose name begins with `tidemark-temporary-`.
    ///
    /// - Parameters:
    ///   - parent: The folder in which the container's folder is made; by default the system's folder for temporary files.
    ///   - environment: The environment, which decides whether the schema grows by itself.
    ///   - author: The author of the container's transactions in history.
    ///   - mergePolicy: The merge policy for saves and types that have none of their own.
    /// - Throws: ``StoreError`` `cannotCreate`, `diskFull` or `io`.
    public static func temporary(
        in parent: URL = FileManager.default.temporaryDirectory, environment: StoreEnvironment = .development,
        author: String = ProcessInfo.processInfo.processName, mergePolicy: MergePolicy = .mergeByPropertyObjectTrump
    ) throws(StoreError) -> PersistentContainer {
        try PersistentContainer(
            in: TemporaryFolder(in: parent), environment: environment, author: author, mergePolicy: mergePolicy)
    }
}
