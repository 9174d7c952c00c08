public import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Imports a manifest or a folder of photos into a container.
///
/// Reading, ingesting files and writing overlap. Each batch is one durable transaction. An interrupted run leaves complete
/// batches, and a run that `resumes` continues after the last of them. Importing the same source again changes nothing.
///
/// ```swift
/// let journal = URL(fileURLWithPath: "Examples/journal/journal.jsonl")
/// let bulkImport = BulkImport(
///     source: .file(journal), into: URL(fileURLWithPath: "MyJournal.tidemark"),
///     options: ImportOptions(type: "Destination", nameField: "id", assetFields: ["image"]))
/// async let summary = bulkImport.run()
/// for await progress in bulkImport.progress { print(progress.summary.read) }
/// print(try await summary.changes.inserted)
/// ```
public actor BulkImport {
    /// The progress of the import, once per batch. The stream ends with the import. It is for one consumer.
    public nonisolated let progress: AsyncStream<ImportProgress>
    private let continuation: AsyncStream<ImportProgress>.Continuation

    private let source: ImportSource
    private let container: URL
    private let options: ImportOptions

    /// Describes an import. Nothing is read before ``run()``.
    ///
    /// - Parameters:
    ///   - source: The manifest or the folder of photos.
    ///   - container: The directory of the container, which is made if it is missing.
    ///   - options: The options; see ``ImportOptions``.
    public init(source: ImportSource, into container: URL, options: ImportOptions) {
        self.source = source
        self.container = container
        self.options = options
        (progress, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Runs the import to its end.
    ///
    /// A container that the import has made is removed again when nothing was imported.
    ///
    /// - Returns: The counts of the import. Refused rows are not an error.
    /// - Throws: ``ImportError``; `CancellationError` when the task is cancelled. Batches that were committed before stay, and an
    ///   import that `resumes` can continue.
    public func run() async throws -> ImportSummary {
        defer { continuation.finish() }
        let new = options.isDryRun ? nil : NewContainer(at: container)
        do {
            let summary = try await runSession(new)
            // All rows were refused, so a container that was made for them has no use.
            if summary.rejected > 0, summary.rejected == summary.read { await new?.removeIfUnused() }
            return summary
        } catch {
            await new?.removeIfUnused()
            throw (error as? StoreError).map { ImportError($0) } ?? error
        }
    }

    private func runSession(_ new: NewContainer?) async throws -> ImportSummary {
        let session = try await ImportSession(source: source, container: container, options: options, new: new)
        return try await withCleanUp(session) {
            try await session.run { [continuation] in continuation.yield($0) }
        }
    }

    private func withCleanUp(
        _ session: ImportSession, _ body: () async throws -> ImportSummary
    ) async throws -> ImportSummary {
        do {
            let summary = try await body()
            // Refused rows may have left files in the container.
            await session.end(isWhole: summary.rejected == 0)
            return summary
        } catch {
            await session.end(isWhole: false)
            throw error
        }
    }
}
