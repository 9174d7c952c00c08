import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The open container of an import; for a dry run, a temporary store with the same types and records.
struct ImportTarget {
    let store: RecordStore
    let blobs: BlobStore
    let environment: StoreEnvironment
    let scratch: URL?

    /// Opens the container, and makes it if it is missing.
    ///
    /// - Parameter new: Records the container if this makes it, also when opening its store fails.
    static func open(_ url: URL, options: ImportOptions, new: NewContainer? = nil) async throws -> ImportTarget {
        guard options.isDryRun else {
            try checkDeployable(url, options: options)
            let (store, blobs) = try ContainerDirectory.withContainer(
                openingOrCreatingAt: url, environment: options.environment ?? .development
            ) { container throws(StoreError) in
                if container.isNew { new?.note(container) }
                let notifier = try StoreChangeNotifier(container: container, role: .import)
                return (try RecordStore(container: container, notifier: notifier), try BlobStore(container: container))
            }
            let environment = try environment(of: store.container, options: options)
            return ImportTarget(store: store, blobs: blobs, environment: environment, scratch: nil)
        }
        let container = try existingContainer(at: url)
        let scratch = FileManager.default.temporaryDirectory
            .appendingPathComponent("tidemark-dry-run-\(UUID().uuidString)", isDirectory: true)
        let environment =
            try container.map { try Self.environment(of: $0, options: options) } ?? options.environment ?? .development
        do {
            return try ImportTarget(
                store: RecordStore.dryRun(of: container, in: scratch), blobs: BlobStore(lookingInto: url),
                environment: environment,
                scratch: scratch)
        } catch {
            // The caller gets the first error. A folder that stays is in the system's folder for temporary files.
            try? FileManager.default.removeItem(at: scratch)
            throw error
        }
    }

    /// Closes the target before anything was ingested, so that nothing has to be cleaned up.
    func abandon() {
        blobs.close()
        // A folder that stays is in the system's folder for temporary files.
        if let scratch { try? FileManager.default.removeItem(at: scratch) }
    }

    /// Makes sure that a new production container gets its schema from a file: its schema is fixed from the beginning.
    private static func checkDeployable(_ url: URL, options: ImportOptions) throws {
        guard options.environment == .production, try existingContainer(at: url) == nil else { return }
        guard options.schema.contains(where: { $0.name == options.type }) else {
            throw ImportError(
                .options, "a new production container needs its schema from a file: add --schema with the type '\(options.type)'")
        }
    }

    /// Whether the container does not exist yet.
    static func isNew(_ url: URL) -> Bool {
        !FileManager.default.fileExists(atPath: url.appendingPathComponent("container.json").path)
    }

    private static func existingContainer(at url: URL) throws(StoreError) -> ContainerDirectory? {
        do {
            return try ContainerDirectory(openingAt: url)
        } catch {
            if error.code == .notFound { return nil }
            // If the folder can't be listed, the error above is thrown.
            let names = try? FileManager.default.contentsOfDirectory(atPath: url.path)
            if error.code == .notAStore, names?.isEmpty == true { return nil }
            throw error
        }
    }

    /// Returns the environment of the import. A development container can be used as production for one import, but not the
    /// reverse.
    private static func environment(
        of container: ContainerDirectory, options: ImportOptions
    ) throws(ImportError) -> StoreEnvironment {
        let own = container.description.environment
        guard let asked = options.environment else { return own }
        guard own == .development || asked == .production else {
            throw ImportError(.options, "\(container.url.path) is a production container: its schema is fixed")
        }
        return asked
    }
}
