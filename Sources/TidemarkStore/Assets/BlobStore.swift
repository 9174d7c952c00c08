package import CTideCore
package import Foundation
package import TidemarkSQLite

/// The assets of a container, open for ingesting files.
///
/// It holds the container's ingest lock while it is open, shared with other ingesting processes. After a process has died while
/// it ingested files, the next one that opens the assets alone removes its leftovers: temporary files, and blobs that no
/// committed record names.
///
/// `@unchecked Sendable`: the core's store serves several threads at once. Its workers belong to one call of `ingest` at a time,
/// for which the owning actor cares.
package final class BlobStore: @unchecked Sendable {
    /// A blob that has to be entered in the registry.
    package struct Blob: Sendable {
        package let id: String
        package let size: Int64
        package let media: Int
        /// Whether the content is new in the container.
        package let isNew: Bool
        /// The SHA-256, by which clouds know it; `nil` where it was not computed.
        package let sha256: String?
        /// The bytes of the source file; 0 where they are not known.
        package let sourceSize: Int64
        /// Whether it is the result of a conversion, and not the source file's own content.
        package let isConverted: Bool
        /// Whether it is a preview of another blob.
        package let isPreview: Bool

        package init(
            id: String, size: Int64, media: Int, isNew: Bool, sha256: String? = nil, sourceSize: Int64 = 0,
            isConverted: Bool = false,
            isPreview: Bool = false
        ) {
            (self.id, self.size, self.media, self.isNew, self.sha256) = (id, size, media, isNew, sha256)
            (self.sourceSize, self.isConverted, self.isPreview) = (sourceSize, isConverted, isPreview)
        }
    }

    package var pointer: OpaquePointer { core.pointer }
    private let url: URL
    private let core: Core
    private let lock: StoreLock?
    private let marker: URL?

    /// The core's store. It is an object of its own, so that it is also closed when opening fails afterwards.
    private final class Core {
        let pointer: OpaquePointer

        init(_ url: URL, isDryRun: Bool) throws(StoreError) {
            var created: OpaquePointer?
            try checked { tide_blob_store_create(url.path, isDryRun, &created, &$0) }
            pointer = created!
        }

        deinit { tide_blob_store_destroy(pointer) }
    }

    /// Opens the assets for a dry run: files are read and checked, and nothing is written. The container need not exist yet.
    package init(lookingInto url: URL) throws(StoreError) {
        self.url = url
        core = try Core(url, isDryRun: true)
        lock = nil
        marker = nil
    }

    package init(container: ContainerDirectory) throws(StoreError) {
        try container.checkPlace()
        url = container.url
        core = try Core(container.url, isDryRun: false)
        let lock = try StoreLock(at: container.staging.appendingPathComponent("lock"))
        try Self.recoverIfAlone(lock, container: container)
        try lock.acquire(shared: true, timeout: .seconds(30))
        // The container may have moved during the wait for the lock.
        try container.checkPlace()
        self.lock = consume lock
        marker = container.staging.appendingPathComponent(
            "\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString).open")
        guard FileManager.default.createFile(atPath: marker!.path, contents: nil) else {
            throw StoreError(.io, "cannot make the file \(marker!.path)")
        }
        // The marker is durable before any blob gets its name in `assets/`. After a power cut, it tells the next process to clean
        // up.
        try Folder(at: container.staging).synchronize()
    }

    /// Removes the leftovers of processes that have died, as opening does.
    package static func recover(_ container: ContainerDirectory) throws(StoreError) {
        // Without the folder, no file was ever ingested.
        guard FileManager.default.fileExists(atPath: container.staging.path) else { return }
        try recoverIfAlone(try StoreLock(at: container.staging.appendingPathComponent("lock")), container: container)
    }

    private static func recoverIfAlone(_ lock: borrowing StoreLock, container: ContainerDirectory) throws(StoreError) {
        // While other processes ingest files, their leftovers can't be told from their work.
        guard try lock.acquireIfFree() else { return }
        defer { lock.release() }
        do {
            try IngestRecovery(container: container).run()
        } catch {
            throw StoreError(error, doing: "clean up after an interrupted import")
        }
    }

    /// Ends the use: committed records name all ingested blobs. Without this call, the next process that opens the assets cleans
    /// up.
    package func close() {
        // A marker that stays only makes the next process look for leftovers.
        if let marker { try? FileManager.default.removeItem(at: marker) }
    }

    /// Moves a file of the container to the path of a content that is named by its SHA-256, durably. The caller has compared the
    /// SHA-256.
    ///
    /// - Parameter replaces: Whether an existing file is replaced.
    /// - Returns: Whether it was moved.
    package func adopt(_ file: URL, as id: String, replaces: Bool) throws(StoreError) -> Bool {
        let place = AssetFiles.url(of: id, in: url.appendingPathComponent("assets", isDirectory: true))
        let content = try Folder(at: file.deletingLastPathComponent()).openFile(file.lastPathComponent)
        try DurableFile.synchronize(content, path: file.path)
        try Folder.make(place.deletingLastPathComponent(), mode: 0o700)
        if !replaces, link(file.path, place.path) == 0 {
            unlink(file.path)
        } else {
            if !replaces, errno == EEXIST {
                // The process that made the file may have been killed before its name was durable.
                try Folder(at: place.deletingLastPathComponent()).synchronize()
                return false
            }
            // Some file systems have no links.
            guard rename(file.path, place.path) == 0 else { throw Folder.failure("make the file", place.path) }
        }
        try Folder(at: place.deletingLastPathComponent()).synchronize()
        return true
    }

    /// Makes all ingested blobs durable. No committed record may name them before.
    package func sync() throws(StoreError) {
        try checked { tide_blob_store_sync(pointer, &$0) }
    }
}

/// Workers that ingest files below one root.
///
/// `@unchecked Sendable`: as ``BlobStore``.
package final class IngestWorkers: @unchecked Sendable {
    package private(set) var pointers: [OpaquePointer] = []
    private let store: BlobStore
    private var conversion: AnyObject?

    package init(store: BlobStore, root: URL, count: Int) throws(StoreError) {
        self.store = store
        for _ in 0..<max(1, count) {
            var created: OpaquePointer?
            try checked { tide_intake_create(store.pointer, root.path, &created, &$0) }
            pointers.append(created!)
        }
    }

    deinit { for pointer in pointers { tide_intake_destroy(pointer) } }

    /// Sets the conversion of files that are ingested from now on.
    ///
    /// - Parameter owner: Owns the context of the conversion.
    package func convert(_ conversion: tide_conversion, owner: AnyObject) {
        self.conversion = owner
        for pointer in pointers { tide_intake_set_conversion(pointer, conversion) }
    }

    /// Ingests the files that a batch's rows name, and returns the blobs that they have become.
    ///
    /// - Parameter hasPreviews: Whether rows get the previews that the conversion makes, in fields of their own.
    package func ingest(_ batch: RecordBatch, hasPreviews: Bool = false) throws(StoreError) -> [BlobStore.Blob] {
        let pointers = pointers
        return try collectBlobs { context, visitor, error in
            pointers.withUnsafeBufferPointer { workers in
                workers.withMemoryRebound(to: OpaquePointer.self) {
                    tide_intake_batch(
                        $0.baseAddress!, UInt32(workers.count), batch.pointer, hasPreviews, visitor, context, &error)
                }
            }
        }
    }

    /// Ingests a file below the root.
    package func ingest(file path: String) throws(StoreError) -> BlobStore.Blob {
        try ingest { blob, error in tide_intake_file(pointers[0], path, &blob, nil, nil, &error) }
    }

    /// Ingests bytes; `name` says in errors what they are.
    package func ingest(_ bytes: UnsafeRawBufferPointer, name: String) throws(StoreError) -> BlobStore.Blob {
        try ingest { blob, error in tide_intake_bytes(pointers[0], bytes.baseAddress, bytes.count, name, &blob, &error) }
    }

    private func ingest(_ body: (inout tide_blob, inout tide_error) -> tide_status) throws(StoreError) -> BlobStore.Blob {
        var blob = tide_blob()
        var error = tide_error()
        let status = body(&blob, &error)
        guard status != TIDE_REJECTED else { throw StoreError(.invalid, error.text) }
        try checked { it in
            it = error
            return status
        }
        return BlobStore.Blob(blob)
    }

    /// Runs a call of the core that visits blobs, and collects these.
    package func collectBlobs(
        _ body: (UnsafeMutableRawPointer, tide_blob_visitor, inout tide_error) -> tide_status
    ) throws(StoreError) -> [BlobStore.Blob] {
        var blobs: [BlobStore.Blob] = []
        try withUnsafeMutablePointer(to: &blobs) { list throws(StoreError) in
            try checked { error in
                body(
                    UnsafeMutableRawPointer(list),
                    { context, blob in
                        context!.assumingMemoryBound(to: [BlobStore.Blob].self).pointee.append(BlobStore.Blob(blob.pointee))
                    }, &error)
            }
        }
        return blobs
    }
}

extension BlobStore.Blob {
    fileprivate init(_ blob: tide_blob) {
        let id = withUnsafeBytes(of: blob.id) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        self.init(
            id: id, size: Int64(blob.size), media: Int(blob.image.media.rawValue), isNew: blob.is_new,
            sourceSize: Int64(blob.source_size), isConverted: blob.is_converted, isPreview: blob.is_preview)
    }
}
