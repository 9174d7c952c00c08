import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension PersistentContainer {
    /// Returns an ingested content under the identifier that a store has for it from the cloud; `nil` if no store has one. So a
    /// field does not change when a record is saved with the content that it had in the cloud already. The content is then on
    /// this device.
    func knownContent(of blob: BlobStore.Blob) throws -> BlobStore.Blob? {
        var digest: String?
        for store in stores.all where try store.assumeIsolated({ try $0.hasDigestNames() }) {
            let known = try digest ?? computedDigest(of: blob)
            digest = known
            let id = try store.assumeIsolated { try $0.digestName(known, size: blob.size) }
            guard let id else { continue }
            // If the file system has no hard links, the record gets the identifier of the file.
            guard try AssetFiles.give(blob.id, otherName: id, in: directory.assets) else { return nil }
            return BlobStore.Blob(id: id, size: blob.size, media: blob.media, isNew: false, sha256: digest)
        }
        return nil
    }

    private func computedDigest(of blob: BlobStore.Blob) throws -> String {
        let file = try FileHandle(forReadingFrom: AssetFiles.url(of: blob.id, in: directory.assets))
        defer { try? file.close() }
        return try AssetFiles.digest(of: file).sha256
    }

    /// Returns the assets that edits name and the store's registry lacks, such as assets of records of the container's other
    /// store.
    ///
    /// - Throws: ``StoreError`` `notFound` for an asset whose content was removed since its record was fetched.
    func unlistedAssets(of part: StoreSave, beside blobs: [BlobStore.Blob]) throws -> [BlobStore.Blob] {
        var ids: Set<String> = []
        for edit in part.edits { edit.forEachAsset { ids.insert($0) } }
        ids.subtract(blobs.map(\.id))
        guard !ids.isEmpty else { return [] }
        ids = try stores[part.scope].assumeIsolated { [ids] in try $0.unregistered(ids) }
        guard !ids.isEmpty else { return [] }
        var found: [BlobStore.Blob] = []
        for scope in ContainerDirectory.scopes where scope != part.scope {
            found += try stores[scope].assumeIsolated { [ids] in try $0.blobs(ids) }
        }
        for id in ids.subtracting(found.map(\.id)).sorted() {
            guard AssetFiles.isHere(id, in: directory.assets) else {
                throw StoreError(
                    .notFound,
                    "the content of the asset \(id.prefix(100)) is gone: no record and no history named it any more. Save it from its file again"
                )
            }
            found.append(BlobStore.Blob(id: id, size: AssetIdentifier.size(of: id), media: 0, isNew: false))
        }
        return found
    }
}
