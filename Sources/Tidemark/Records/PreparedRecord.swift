import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A record as the store takes it: fields with values, assets ingested.
struct PreparedRecord: Sendable {
    let record: RecordName
    let schema: RecordTypeSchema
    let values: [String: FieldValue]
    /// All that the record speaks of; a property without a value may tell no type of field.
    private let names: Set<String>

    /// - Parameter assets: Takes in the assets that are not stored yet.
    /// - Throws: `EncodingError` that names the property; ``StoreError`` `invalid` for an asset that can't be ingested, `schema` where
    ///   another Swift type has the record type.
    init<R: Record>(_ record: R, assets: AssetIngest) throws {
        try assets.claims.check(R.self)
        let name = record.recordName
        let (fields, hasName) = try RecordEncoder().encode(record)
        var values: [String: FieldValue] = [:]
        for field in fields {
            values[field.name] = try field.content.map { content in
                do {
                    return try content.value(assets.identifier).composingReferences
                } catch let error as StoreError where error.code == .invalid {
                    throw StoreError(.invalid, "\(R.recordType) \(name), field '\(field.name)': \(error.message)")
                }
            }
        }
        self.record = RecordName(type: R.recordType, name: name)
        self.values = values
        // A field without a value would be read under its former names.
        names = Set(fields.flatMap { values[$0.name] == nil ? [$0.name] + (R.formerFieldNames[$0.name] ?? []) : [$0.name] })
        schema = RecordTypeSchema(
            name: R.recordType, nameField: hasName ? R.nameField : nil,
            fields: fields.compactMap { field in field.type.map { .init(name: field.name, type: $0, isBoolean: field.isBoolean) }
            },
            uniqueKeys: R.uniqueKeys.map(\.fields))
    }

    /// - Parameter zone: Where it is made if it is not there.
    func edit(_ base: RecordEdit.Base, in zone: Int64? = nil) -> RecordEdit {
        RecordEdit(record: record, base: base, values: values, fields: names, zone: zone)
    }
}

/// Ingests the assets of one save into a container.
///
/// It opens the container's assets for the first one; after the save, ``close()`` says that records name all of them. If ``close()`` is not
/// called, the next to open the container's assets removes what was ingested.
final class AssetIngest {
    /// The Swift types that the container's records are saved as.
    let claims: RecordTypeClaims
    private let container: ContainerDirectory
    private var store: BlobStore?
    private(set) var blobs: [BlobStore.Blob] = []
    private var ingested: [Asset: String] = [:]

    init(_ container: ContainerDirectory, claims: RecordTypeClaims) {
        self.container = container
        self.claims = claims
    }

    /// The container's identifier of an asset, which is ingested if it is not there yet.
    func identifier(of asset: Asset) throws -> String {
        if let known = ingested[asset] { return known }
        let store = try store ?? BlobStore(container: container)
        self.store = store
        let blob: BlobStore.Blob
        switch asset.content {
        case .stored(let id, _): return id
        case .file(let url):
            let file = url.resolvingSymlinksInPath()
            let workers = try IngestWorkers(store: store, root: file.deletingLastPathComponent(), count: 1)
            blob = try workers.ingest(file: file.lastPathComponent)
        case .memory(let data):
            let workers = try IngestWorkers(store: store, root: container.url, count: 1)
            blob = try data.withUnsafeBytes { try workers.ingest($0, name: "the data") }
        }
        blobs.append(blob)
        ingested[asset] = blob.id
        return blob.id
    }

    /// Makes the ingested assets durable; nothing may name them before.
    func sync() throws { try store?.sync() }

    func close() {
        store?.close()
        store = nil
    }
}
