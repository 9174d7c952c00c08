public import Foundation
public import TidemarkModel
public import TidemarkSQLite
import TidemarkStore
import TidemarkSync

extension PersistentContainer {
    /// Returns the record types of a store, with their fields and unique keys, and the target types of references.
    ///
    /// - Throws: ``StoreError``.
    public nonisolated func schema(in scope: StoreScope = .private) throws(StoreError) -> [RecordTypeSchema] {
        try StoreReader(container: directory, scope: scope).schemas()
    }

    /// Changes the record types of the private store, all or nothing, in one durable transaction.
    ///
    /// ```swift
    /// let plan = try await journal.changeSchema([.renameField("caption", of: "Destination", to: "title")], dryRun: true)
    /// for problem in plan.problems { print(problem.record.name, problem.value ?? "", problem.reason) }
    /// ```
    ///
    /// A change whose type or field does not exist, for example because it was made before, does nothing. So a program can make
    /// its changes at each start, before it synchronises.
    ///
    /// Changed values are edits: history has the old values, and the next synchronisation sends the new ones. In a cloud a field
    /// keeps its name and its type, so a renamed field is a new field there. Devices with an older version of the program keep
    /// the old field. If a field has another type here than in the cloud, it can get the cloud's type: its values are converted
    /// and sent, and the cloud's values are fetched.
    ///
    /// - Parameters:
    ///   - changes: The changes, in their order.
    ///   - files: For texts that become assets: the folder to which these paths are relative. Files outside of it are not read.
    ///   - dryRun: Whether the changes are only checked, and nothing is written.
    /// - Returns: The plan that was carried out, or would be. With `dryRun` it also has the values that can't be converted.
    /// - Throws: ``SchemaChangeRefused`` for values that can't be converted; ``StoreError`` `schema` for a name that is taken,
    ///   for types that can't be converted into each other, in production for changes other than additions, and for a change that
    ///   a cloud's records do not allow; `invalid` for assets without a folder; `ContainerEvent.Failure` 134410 while the
    ///   container is synchronised. Then nothing is changed.
    /// - Complexity: O(n) in the records of the changed types. The values of a changed field are held in memory.
    @discardableResult
    public func changeSchema(
        _ changes: [SchemaChange], files: URL? = nil, dryRun: Bool = false
    ) async throws -> SchemaChangePlan {
        // A running synchronisation would continue with the former fields.
        let lock = dryRun ? nil : try SyncLock(directory)
        defer { lock?.release() }
        let ingest = try await assets(of: changes, in: files, dryRun: dryRun)
        let reader = try StoreReader(container: directory)
        let plan = try await privateStore.changeSchema(
            changes, files: ingest.files, cloudTypes: reader.cloudFieldTypes(), cloudValues: reader.cloudFieldValues(),
            isDryRun: dryRun, author: author)
        guard plan.problemCount == 0 || dryRun else { throw SchemaChangeRefused(plan) }
        ingest.store?.close()
        if !dryRun, !plan.isDone { changeBroadcaster.post(isOwn: true) }
        return plan
    }

    private struct FileIngest {
        var files = ConvertedFiles()
        var store: BlobStore?
    }

    /// Ingests the files that texts name, for fields that become assets.
    private func assets(of changes: [SchemaChange], in folder: URL?, dryRun: Bool) async throws -> FileIngest {
        var ingest = FileIngest()
        let types = try await privateStore.types()
        for change in changes {
            guard case .retypeField(let name, let typeName, let target) = change,
                let field = types.first(where: { $0.name == typeName })?.field(named: name),
                let conversion = FieldConversion(from: field, to: target), conversion.readsFiles
            else { continue }
            guard let folder else {
                throw StoreError(.invalid, "the values of '\(name)' are to be files: name the folder that they are in (--base)")
            }
            if ingest.store == nil {
                ingest.store = dryRun ? try BlobStore(lookingInto: directory.url) : try BlobStore(container: directory)
            }
            guard let store = ingest.store else { continue }
            let paths = try await privateStore.values(of: name, type: typeName).flatMap(conversion.paths)
            try ingest.files.ingest(paths, in: folder, store)
        }
        try ingest.store?.sync()
        return ingest
    }
}

extension ConvertedFiles {
    /// Ingests the files of paths below a folder. For a file that can't be ingested, the reason is recorded.
    fileprivate mutating func ingest(_ paths: [String], in folder: URL, _ store: BlobStore) throws {
        let workers = try IngestWorkers(store: store, root: folder, count: 1)
        for path in paths where files[path] == nil {
            do {
                let blob = try workers.ingest(file: path)
                files[path] = .asset(blob.id)
                blobs.append(blob)
            } catch {
                guard error.code == .invalid else { throw error }
                files[path] = .failed(error.message)
            }
        }
    }
}
