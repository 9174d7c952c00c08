import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A record in the store's form: fields with values, and ingested assets.
struct PreparedRecord: Sendable {
    let record: RecordName
    /// The fields, names and schema that the records of the type share.
    let shape: RecordShape
    /// The values in the order of the shape's fields.
    private let values: [FieldValue?]
    /// Former names of fields without a value.
    private let cleared: Set<String>

    var schema: RecordTypeSchema { shape.schema }

    init(record: RecordName, shape: RecordShape, values: [FieldValue?], cleared: Set<String>) {
        (self.record, self.shape, self.values, self.cleared) = (record, shape, values, cleared)
    }

    /// Creates the edit that saves the record.
    ///
    /// - Parameters:
    ///   - base: The state that the edit began with.
    ///   - zone: The zone in which a new record is created.
    func edit(_ base: RecordEdit.Base, in zone: Int64? = nil) -> RecordEdit {
        guard cleared.isEmpty, shape.hasDistinctNames else {
            return RecordEdit(
                record: record, base: base, values: named, fields: shape.names.set.union(cleared), zone: zone)
        }
        return RecordEdit(record: record, base: base, values: values, names: shape.names, zone: zone)
    }

    /// Creates the edit that saves the differences from the record as it was loaded.
    func edit(since loaded: PreparedRecord, _ base: RecordEdit.Base, in zone: Int64?) -> RecordEdit {
        let (mine, theirs) = (named, loaded.named)
        let known = loaded.shape.names.set.union(loaded.cleared)
        let names = shape.names.set.union(cleared).filter { !known.contains($0) || !mine[$0].isSame(as: theirs[$0]) }
        return RecordEdit(record: record, base: base, values: mine.filter { names.contains($0.key) }, fields: names, zone: zone)
    }

    private var named: [String: FieldValue] {
        var named: [String: FieldValue] = [:]
        for (name, value) in zip(shape.names.list, values) { named[name] = value }
        return named
    }
}

/// The fields, names and schema that the records of a type share.
final class RecordShape: Sendable {
    private let fields: [EncodedField]
    private let hasName: Bool
    let schema: RecordTypeSchema
    let names: FieldNames
    /// Whether all field names are different.
    let hasDistinctNames: Bool
    /// The former names of fields, by their current names.
    let formerNames: [String: [String]]

    init<R: Record>(_ type: R.Type, _ fields: [EncodedField], hasName: Bool) throws {
        // The values belong to one record and are left out.
        self.fields = fields.map { EncodedField(name: $0.name, type: $0.type, content: nil, isBoolean: $0.isBoolean) }
        self.hasName = hasName
        // A field without a type may have any.
        names = FieldNames(
            fields.map(\.name), mayHaveAssets: fields.contains { $0.type.map { $0.scalar == .asset } ?? true })
        hasDistinctNames = names.set.count == names.list.count
        formerNames = RecordNaming.of(type).formerNames
        var schema = RecordTypeSchema(
            name: R.recordType, nameField: hasName ? R.nameField : nil,
            fields: fields.compactMap { field in
                field.type.map { .init(name: field.name, type: $0, isBoolean: field.isBoolean) }
            },
            uniqueKeys: R.uniqueKeys.map(\.fields))
        // The schema declares the relationships of the type's own fields, and nothing about other fields.
        let relationships = try DeclaredRelationships.of(type).schemas
        for name in names.list { schema.relationships[name] = .some(relationships[name]) }
        schema.indexes = try R.indexes.map { try $0.fieldIndex() }
        self.schema = schema
    }

    func fits(_ others: [EncodedField], hasName: Bool) -> Bool {
        guard self.hasName == hasName, fields.count == others.count else { return false }
        for index in fields.indices {
            guard fields[index].name == others[index].name, fields[index].type == others[index].type,
                fields[index].isBoolean == others[index].isBoolean
            else { return false }
        }
        return true
    }
}

/// Prepares the records of one save.
///
/// The records of a type usually have the same fields, so everything that follows from the fields is made once.
final class RecordPreparation {
    private let assets: AssetIngest
    private var shapes: [ObjectIdentifier: RecordShape] = [:]
    /// The shape of the last record.
    private var last: (type: ObjectIdentifier, shape: RecordShape)?

    /// Creates a preparation.
    ///
    /// - Parameter assets: Ingests the assets that are not stored yet.
    init(_ assets: AssetIngest) { self.assets = assets }

    /// Prepares a record.
    ///
    /// - Throws: `EncodingError` that names the property; ``StoreError`` `invalid` for an asset that can't be ingested, `schema`
    ///   when another Swift type uses the record type.
    func prepare<R: Record>(_ record: R) throws -> PreparedRecord {
        try prepare(record, RecordEncoder().encode(record))
    }

    /// Prepares records, in their order. Many records are encoded on all cores.
    ///
    /// - Throws: The error of the first record that has one; see ``prepare(_:)``.
    func prepare(_ records: [any Record]) throws -> [PreparedRecord] {
        var prepared: [PreparedRecord] = []
        prepared.reserveCapacity(records.count)
        // In parts, so that only one part is in memory in its encoded form.
        for begin in stride(from: 0, to: records.count, by: Self.partSize) {
            let part = records[begin..<min(begin + Self.partSize, records.count)]
            for (record, encoded) in zip(part, RecordEncoder.encode(part)) {
                prepared.append(try prepare(record, encoded.get()))
            }
        }
        return prepared
    }

    /// The number of records in a part.
    private static let partSize = 8_192

    private func prepare<R: Record>(_ record: R, _ encoded: RecordEncoder.Output) throws -> PreparedRecord {
        let name = record.recordName
        let (fields, hasName) = encoded
        let shape = try shape(R.self, fields, hasName: hasName)
        var values: [FieldValue?] = []
        values.reserveCapacity(fields.count)
        var cleared: Set<String> = []
        for field in fields {
            guard let content = field.content else {
                values.append(nil)
                // The former names are cleared, too: a field without a value is read under them.
                if let former = shape.formerNames[field.name] { cleared.formUnion(former) }
                continue
            }
            do {
                values.append(try content.value(assets.identifier).composingReferences)
            } catch let error as StoreError where error.code == .invalid {
                throw StoreError(.invalid, "\(R.recordType) \(name), field '\(field.name)': \(error.message)")
            }
        }
        return PreparedRecord(
            record: RecordName(type: shape.schema.name, name: name), shape: shape, values: values, cleared: cleared)
    }

    private func shape<R: Record>(_ type: R.Type, _ fields: [EncodedField], hasName: Bool) throws -> RecordShape {
        let id = ObjectIdentifier(type)
        if let last, last.type == id, last.shape.fits(fields, hasName: hasName) { return last.shape }
        if let known = shapes[id], known.fits(fields, hasName: hasName) {
            last = (id, known)
            return known
        }
        try assets.claims.check(type)
        if let field = R.uniqueKeys.lazy.flatMap(\.fields).first(where: { RecordNaming.of(type).formerNames[$0] != nil }) {
            throw StoreError(
                .schema,
                "'\(field)' is a field of a unique key of \(R.recordType) and has former names, under which a unique key does not look. Give "
                    + "the property a coding key with the name that the field has had, instead of `formerFieldNames`")
        }
        let new = try RecordShape(type, fields, hasName: hasName)
        shapes[id] = new
        last = (id, new)
        return new
    }
}

/// Ingests the assets of one save into a container.
///
/// It opens the container's assets for the first asset. After the save, ``close()`` reports that records name all of them.
/// Without ``close()``, the next process that opens the container's assets removes the ingested ones.
final class AssetIngest {
    /// The Swift types that the container's records are saved as.
    let claims: RecordTypeClaims
    private let container: ContainerDirectory
    private var store: BlobStore?
    private(set) var blobs: [BlobStore.Blob] = []
    private var ingested: [Asset.Content: String] = [:]
    /// Returns the content with the identifier that a store has for it already, if that identifier differs.
    var known: ((BlobStore.Blob) throws -> BlobStore.Blob?)?

    init(_ container: ContainerDirectory, claims: RecordTypeClaims) {
        self.container = container
        self.claims = claims
    }

    /// Returns the container's identifier of an asset. The asset is ingested if the container does not have it yet.
    func identifier(of asset: Asset) throws -> String {
        if let known = ingested[asset.content] { return known }
        if case .stored(let id, let folder) = asset.content, folder.path == container.assets.path { return id }
        // An asset of another container is ingested as a file.
        try asset.requireContent()
        let store = try store ?? BlobStore(container: container)
        self.store = store
        let blob: BlobStore.Blob
        switch asset.content {
        case .stored, .file:
            guard let url = asset.fileURL else { throw StoreError(.invalid, "the asset has no content") }
            let file = url.resolvingSymlinksInPath()
            let workers = try IngestWorkers(store: store, root: file.deletingLastPathComponent(), count: 1)
            blob = try workers.ingest(file: file.lastPathComponent)
        case .memory(let data):
            let workers = try IngestWorkers(store: store, root: container.url, count: 1)
            blob = try data.withUnsafeBytes { try workers.ingest($0, name: "the data") }
        }
        blobs.append(blob)
        let other = try known?(blob)
        if let other { blobs.append(other) }
        let id = other?.id ?? blob.id
        ingested[asset.content] = id
        return id
    }

    /// Keeps contents from being removed until the save has ended.
    func open() throws { store = try store ?? BlobStore(container: container) }

    /// Makes the ingested assets durable. Records may name them only afterwards.
    func sync() throws { try store?.sync() }

    func close() {
        store?.close()
        store = nil
    }
}
