import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Maps records between a store and a cloud.
struct RecordMapping {
    let zone: CloudZoneID
    /// The zone's number in the store.
    let number: Int64
    let scope: StoreScope

    /// The operation that makes a change in the cloud.
    ///
    /// - Parameters:
    ///   - assets: The cloud's names of the store's assets.
    ///   - edited: When the record's fields were edited, as text.
    func operation(
        _ item: ExportItem, assets: [String: CloudAsset], edited: String
    ) throws(CloudError) -> RecordOperation {
        let id = CloudRecordID(item.name, in: zone)
        guard item.key.kind == .save else { return .delete(id, changeTag: item.tag) }
        var fields: [String: CloudValue] = Dictionary(minimumCapacity: item.values.count + 1)
        for (field, value) in item.values {
            guard let mapped = ValueMapping.cloudValue(value, asset: { assets[$0] }) else {
                throw CloudError(
                    .invalidArguments, "the field '\(field)' of '\(item.name)' holds what a cloud can't: \(value.type)")
            }
            fields[field] = mapped
        }
        fields[CloudRecord.editedField] = .string(edited)
        return .save(CloudRecord(id, type: item.type, fields: fields, changeTag: item.tag), clearing: item.cleared)
    }

    /// Whether an error refuses a change in a zone of another owner, who decides about permissions.
    func isRefusal(_ error: CloudError) -> Bool { scope == .shared && error.code == .permissionFailure }

    /// A record of the cloud, in the store's terms.
    ///
    /// - Parameters:
    ///   - assets: The store's names of the cloud's assets, and the errors of the missing ones.
    ///   - known: The edit times that were read last, and their text: records that come together mostly have the same.
    func remote(
        _ record: CloudRecord, assets: DownloadedAssets, known: inout (text: String, times: EditTimes)?
    ) -> RemoteRecord {
        var values: [String: FieldValue] = Dictionary(minimumCapacity: record.fields.count)
        var isPartial = false
        var lacking: [String: CloudError] = [:]
        var edited: EditTimes?
        for (field, value) in record.fields {
            if field == CloudRecord.editedField {
                guard case .string(let text) = value else { continue }
                if known?.text != text { known = (text, EditTimes(text)) }
                edited = known?.times
            } else if let mapped = ValueMapping.storeValue(value, asset: { assets.names[$0.digest] }) {
                values[field] = mapped
            } else if value.type.scalar == .asset {
                lacking[field] = assets.failure(of: value)
            } else {
                isPartial = true
            }
        }
        let missing = lacking
        return RemoteRecord(
            name: record.id.recordName, type: record.type, tag: record.changeTag ?? "", values: values, isPartial: isPartial,
            lacksAssets: !missing.isEmpty,
            edited: edited, whole: { DeferredRecord.encode(record.fields, missing: missing) })
    }

    /// A deferred record, as it came from the cloud.
    func record(_ deferred: DeferredRecord) throws(CloudError) -> CloudRecord {
        CloudRecord(
            CloudRecordID(deferred.name, in: zone), type: deferred.type, fields: try deferred.fields(),
            changeTag: deferred.tag)
    }

    /// The types and fields that records need.
    static func schemas(_ records: [CloudRecord]) -> [RecordTypeSchema] {
        var types: [String: [String: FieldType]] = [:]
        var empty: [(type: String, field: String, list: FieldType)] = []
        for record in records {
            let known = types[record.type] ?? [:]
            if types[record.type] == nil { types[record.type] = [:] }
            for (field, value) in record.fields where known[field] == nil && field != CloudRecord.editedField {
                let type = value.type
                guard !type.isList || type.scalar != .bytes && type.scalar != .location else { continue }
                // A list with elements tells its type.
                if case .list(let elements, _) = value, elements.isEmpty {
                    empty.append((record.type, field, type))
                } else {
                    types[record.type, default: [:]][field] = type
                }
            }
        }
        for (type, field, list) in empty where types[type]?[field] == nil { types[type, default: [:]][field] = list }
        return types.sorted { $0.key < $1.key }.map { name, fields in
            RecordTypeSchema(name: name, fields: fields.sorted { $0.key < $1.key }.map { .init(name: $0.key, type: $0.value) })
        }
    }

    /// The assets that records name.
    static func assets(_ records: [CloudRecord]) -> Set<CloudAsset> {
        var assets: Set<CloudAsset> = []
        for record in records {
            for value in record.fields.values where value.type.scalar == .asset {
                for case .asset(let asset) in value.scalars { assets.insert(asset) }
            }
        }
        return assets
    }
}
