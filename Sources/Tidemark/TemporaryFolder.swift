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
        // What can't be deleted stays in the system's folder for temporary files, which the system clears.
        try? FileManager.default.removeItem(at: url)
    }
}

extension PersistentContainer {
    /// Opens a new container that is deleted when it is closed or deallocated: for previews and tests. As an `NSPersistentContainer` whose
    /// store is in memory.
    ///
    /// ```swift
    /// let journal = try PersistentContainer.temporary()
    /// try await journal.save(Destination(caption: "Senja"))
    /// ```
    ///
    /// Its files are in a folder of its own and not in memory, so that it does all that other containers do: reads beside writes, assets,
    /// other processes, synchronisation. Where the folder is on a file system in memory, such as `/dev/shm` on Linux, nothing goes to a disk.
    /// A process that is killed leaves the folder, whose name begins with `tidemark-temporary-`.
    ///
    /// - Parameters:
    ///   - parent: The folder for its folder; by default the system's for temporary files.
    ///   - environment: Whether its schema grows by itself.
    ///   - author: The name that history gives the transactions.
    ///   - mergePolicy: The policy where neither a type nor a save has one.
    /// - Throws: ``StoreError`` `cannotCreate`, `diskFull` or `io`.
    public static func temporary(
        in parent: URL = FileManager.default.temporaryDirectory, environment: StoreEnvironment = .development,
        author: String = ProcessInfo.processInfo.processName, mergePolicy: MergePolicy = .mergeByPropertyObjectTrump
    ) throws(StoreError) -> PersistentContainer {
        try PersistentContainer(
            in: TemporaryFolder(in: parent), environment: environment, author: author, mergePolicy: mergePolicy)
    }
}
