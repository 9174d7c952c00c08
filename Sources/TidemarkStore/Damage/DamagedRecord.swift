public import TidemarkModel
package import TidemarkSQLite

/// A record of a store whose values, name or digest are not what was written.
public struct DamagedRecord: Hashable, Sendable, Codable {
    /// The type and the name of the record.
    public let record: RecordName
    /// The store that holds the record.
    public let scope: StoreScope
    /// Whether the record has edits that the cloud does not have.
    public let isPending: Bool

    package init(record: RecordName, scope: StoreScope, isPending: Bool) {
        (self.record, self.scope, self.isPending) = (record, scope, isPending)
    }
}

extension StoreError {
    /// The code of a damaged record in the sync issues.
    package static let damagedCode = Code.damaged.rawValue

    /// The remedies for a damaged record.
    package static let damageRemedy =
        "repair it with 'tidemark verify --repair', accept it as it is with 'tidemark verify --accept', or delete it"

    /// Makes the error of a record that can't be used, because its values are not what was written.
    package static func damaged(_ record: RecordName) -> StoreError {
        StoreError(.damaged, "\(record.type) \(record.name) is damaged: its values are not what its digest says; \(damageRemedy)")
    }

    /// Makes the error of several records that can't be used.
    package static func damaged(_ records: [DamagedRecord], doing what: String) -> StoreError {
        let names = records.prefix(5).map { "\($0.record.type) \($0.record.name)" }.joined(separator: ", ")
        let more = records.count > 5 ? " and \(records.count - 5) more" : ""
        return StoreError(
            .damaged,
            "\(records.count == 1 ? "1 record is" : "\(records.count) records are") damaged, \(what): \(names)\(more); repair them with 'tidemark verify --repair'"
        )
    }
}
