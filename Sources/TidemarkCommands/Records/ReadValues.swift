import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Values that an import has read into a container of its own, on their way into a store that imports do not write to.
struct ReadValues {
    private let record: RecordName
    private let schema: RecordTypeSchema
    private let fields: Set<String>
    private let values: [String: FieldValue]
    private let scratch: ContainerDirectory

    /// - Parameter scratch: The container that has been imported into.
    init(of name: String, _ schema: RecordTypeSchema, fields: Set<String>, in scratch: URL) throws {
        self.scratch = try ContainerDirectory(openingAt: scratch)
        self.schema = schema
        self.fields = fields
        record = RecordName(type: schema.name, name: name)
        var values: [String: FieldValue] = [:]
        if let (read, stored) = try StoreReader(container: self.scratch).record(named: name) {
            for (field, value) in zip(read.fields, stored.values) where fields.contains(field.name) { values[field.name] = value }
        }
        self.values = values
    }

    /// Saves them, with their assets.
    ///
    /// - Parameter zone: Where the record is made if it is not there.
    /// - Throws: `PermissionDenied` where one may not write; ``StoreError``.
    func save(in scope: StoreScope, zone: Int64?, of directory: ContainerDirectory) async throws -> ChangeCounts {
        var (taken, blobs) = (values, [BlobStore.Blob]())
        var store: BlobStore?
        for (field, value) in values {
            guard case .asset(let id) = value else { continue }
            let assets = try store ?? BlobStore(container: directory)
            store = assets
            let workers = try IntakeWorkers(store: assets, root: scratch.assets, count: 1)
            let blob = try workers.takeIn(file: "\(id.prefix(2))/\(id)")
            taken[field] = .asset(blob.id)
            blobs.append(blob)
        }
        try store?.sync()
        let edit = RecordEdit(record: record, base: .any, values: taken, fields: fields, zone: zone)
        let outcome = try await RecordStore(
            container: directory, scope: scope, notifier: StoreChangeNotifier(container: directory, role: .tool)
        ).save(
            [edit], schemas: [RecordTypeSchema(name: schema.name, nameField: schema.nameField, fields: schema.fields)],
            blobs: blobs, author: TransactionAuthor("tidemark records set", origin: .save),
            policy: { _ in .mergeByPropertyObjectTrump }, check: { _ in })
        store?.close()
        return outcome.counts
    }
}
