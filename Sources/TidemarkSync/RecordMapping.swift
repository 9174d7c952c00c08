import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkStore

/// Records as a store and as a cloud have them.
struct RecordMapping {
    /// The field that carries when the others were edited. No field of a store's can have such a name.
    static let editedField = "tide_edited"

    let zone: CloudZoneID

    /// What a change is to do in the cloud.
    ///
    /// - Parameter assets: The cloud's names of the store's assets.
    func operation(_ item: ExportItem, assets: [String: CloudAsset]) throws(CloudError) -> RecordOperation {
        let id = CloudRecordID(item.name, in: zone)
        guard item.key.kind == .save else { return .delete(id, changeTag: item.tag) }
        var record = CloudRecord(id, type: item.type, changeTag: item.tag)
        for (field, value) in item.values {
            guard let mapped = ValueMapping.cloudValue(value, asset: { assets[$0] }) else {
                throw CloudError(
                    .invalidArguments, "the field '\(field)' of '\(item.name)' holds what a cloud can't: \(value.type)")
            }
            record.fields[field] = mapped
        }
        record.fields[Self.editedField] = .string(item.edited.description)
        return .save(record, clearing: item.cleared)
    }

    /// A record as a store takes it in.
    ///
    /// - Parameter assets: The store's names of the cloud's assets.
    func remote(_ record: CloudRecord, assets: [String: String]) -> RemoteRecord {
        var values: [String: FieldValue] = [:]
        var (isPartial, lacksAssets) = (false, false)
        var edited: EditTimes?
        for (field, value) in record.fields {
            if field == Self.editedField {
                if case .string(let text) = value { edited = EditTimes(text) }
            } else if let mapped = ValueMapping.storeValue(value, asset: { assets[$0.digest] }) {
                values[field] = mapped
            } else if value.type.scalar == .asset {
                lacksAssets = true
            } else {
                isPartial = true
            }
        }
        return RemoteRecord(
            name: record.id.recordName, type: record.type, tag: record.changeTag ?? "", values: values, isPartial: isPartial, lacksAssets: lacksAssets,
            edited: edited, whole: { FieldCoding.encode(record.fields) })
    }

    /// A record that was kept, as it came.
    func record(_ kept: KeptRecord) throws(CloudError) -> CloudRecord {
        CloudRecord(
            CloudRecordID(kept.name, in: zone), type: kept.type, fields: try FieldCoding.decode(kept.whole), changeTag: kept.tag)
    }

    /// The types and fields that records need.
    static func schemas(_ records: [CloudRecord]) -> [RecordTypeSchema] {
        var types: [String: [String: FieldType]] = [:]
        for record in records {
            for (field, value) in record.fields where field != editedField {
                let type = value.type
                guard !type.isList || type.scalar != .bytes && type.scalar != .location else { continue }
                if types[record.type]?[field] == nil { types[record.type, default: [:]][field] = type }
            }
            if types[record.type] == nil { types[record.type] = [:] }
        }
        return types.sorted { $0.key < $1.key }.map { name, fields in
            RecordTypeSchema(name: name, fields: fields.sorted { $0.key < $1.key }.map { .init(name: $0.key, type: $0.value) })
        }
    }

    /// The assets that records name.
    static func assets(_ records: [CloudRecord]) -> Set<CloudAsset> {
        var assets: Set<CloudAsset> = []
        for record in records {
            for value in record.fields.values {
                for case .asset(let asset) in value.scalars { assets.insert(asset) }
            }
        }
        return assets
    }
}
