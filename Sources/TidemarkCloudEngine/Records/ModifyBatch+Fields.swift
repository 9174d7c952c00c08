import Foundation
import TidemarkCloud
import TidemarkModel

/// Checks what a record names and contains, and sets its fields.
extension ModifyBatch {
    /// Checks that names are in Unicode's normal form C. Swift compares other spellings of a name as equal, and a storage as
    /// different: they would be one record for the rules, and two for the storage.
    func checkSpelling(_ given: CloudRecord) throws(CloudError) {
        func check(_ name: String) throws(CloudError) {
            guard name.utf8.count <= 255 else {
                throw CloudError(.invalidArguments, "the name '\(name.prefix(40))…' is longer than 255 bytes")
            }
            guard !name.utf8.contains(0) else {
                throw CloudError(.invalidArguments, "the name '\(name.prefix(40))' has a NUL character, and no name can")
            }
            guard !name.isComposed else { return }
            throw CloudError(
                .invalidArguments,
                "the name '\(name)' is not composed: a cloud takes names in the normal form C of Unicode only. Rename the record: tidemark records rename"
            )
        }
        try check(given.id.recordName)
        if let parent = given.parent { try check(parent) }
        for (_, value) in given.fields where value.type.scalar == .reference {
            for case .reference(let reference) in value.scalars where reference.action != .none {
                try check(reference.recordName)
            }
        }
    }

    /// Sets a record's fields, after checking them.
    ///
    /// - Parameters:
    ///   - encrypted: The marks of fields that clients encrypt.
    ///   - known: The fields that the record had, as far as they were read.
    ///   - before: The references that the record had. A caller who keeps them learns nothing about the records they name.
    mutating func fill(
        _ record: inout StoredCloudRecord, _ fields: [String: CloudValue], _ encrypted: [String: CloudRecord.FieldEncryption],
        known: [String: CloudValue], before: Set<CloudReference>, schema: inout CloudSchema,
        _ rows: any CloudTransaction
    ) throws(CloudError) {
        try growth.admit(fields, before: known, of: record.type, into: &schema)
        record.fields = FieldCoding.encode(fields, encrypted: encrypted)
        guard record.fields.count <= engine.limits.bytesPerRecord else {
            throw CloudError(
                .limitExceeded,
                "the record '\(record.name)' has \(record.fields.count) bytes, and \(engine.limits.bytesPerRecord) is the most. "
                    + "Put what is large into an asset")
        }
        record.isDeleted = false
        record.link(to: fields, schema)
        for (name, value) in fields where value.type.scalar == .reference {
            for case .reference(let reference) in value.scalars where reference.action != .none {
                // A record is deleted with the target of its `deleteSelf` reference. A participant could learn from that whether
                // a hidden target existed, so their `deleteSelf` references are checked, too.
                guard reference.action == .validate || access.isLimited, !before.contains(reference) else { continue }
                try checkPresent(reference.recordName, "'\(name)' of '\(record.name)'", rows)
            }
        }
        if let parent = record.parent, !access.isRoot(record.name) {
            try checkPresent(parent, "the parent of '\(record.name)'", rows)
            guard try records.record(parent, rows)?.type != CloudShare.recordType else {
                throw CloudError(.invalidArguments, "nothing hangs below the record of a share")
            }
        }
        try checkAssets(of: record, fields, rows)
    }

    /// Checks that the assets which a record names exist, and that the caller has uploaded them, owns them or may read them.
    private func checkAssets(
        of record: StoredCloudRecord, _ fields: [String: CloudValue], _ rows: any CloudTransaction
    ) throws(CloudError) {
        guard !record.assets.isEmpty else { return }
        let there = try engine.assets(record.assets, for: access, rows)
        if let missing = record.assets.first(where: { there[$0] == nil }) {
            throw CloudError(.assetNotAvailable, "the asset \(missing.prefix(64)) of '\(record.name)' was not uploaded")
        }
        for case .asset(let asset) in fields.values.lazy.flatMap(\.scalars) where there[asset.digest] != asset.size {
            throw CloudError(
                .assetNotAvailable, "the asset \(asset.digest) of '\(record.name)' does not have \(asset.size) bytes")
        }
    }

    private mutating func checkPresent(_ name: String, _ what: String, _ rows: any CloudTransaction) throws(CloudError) {
        let found = try records.record(name, rows)
        guard let found, !found.isDeleted, access.sees(try hierarchies?.share(of: name, rows)) else {
            throw CloudError(.referenceViolation, "\(what) refers to the record '\(name)', which is not there")
        }
    }
}
