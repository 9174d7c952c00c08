import Foundation
import GRDB
package import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// The result of ``moveGraph(of:to:author:)``.
    package enum GraphMove: Hashable, Sendable {
        /// The records that were in other zones before.
        case moved([RecordName])
        /// A record is in another shared zone, and nothing was moved.
        case taken(PlacedRecord)
    }

    /// Moves records, and everything that hangs on them, to another zone of a private store, in one transaction. Their pending
    /// changes move with them. Records in another share stay there.
    ///
    /// The cloud gets them as new records there, and their deletion in the zones where it had them. Here they are the same
    /// records.
    ///
    /// - Throws: ``StoreError`` `notFound` for one of the records that is not there; `invalid` where the store is not private, or has no
    ///   such zone.
    /// - Complexity: Some statements for each record.
    package func moveGraph(of records: [RecordName], to zone: Int64, author: String) throws(StoreError) -> GraphMove {
        guard scope == .private else {
            throw StoreError(
                .invalid, "records of a \(scope.name) store don't move between zones; they are where their owner has them")
        }
        return try transact("move records into a zone", author: TransactionAuthor(author, origin: .save)) { transaction in
            let shared = Set(try StoredShares(transaction.db).rows().map(\.zone)).subtracting([zone])
            let zones = try StoreZone.fetchAll(transaction.db)
            let taken = Set(zones.filter { shared.contains($0.id) }.map(\.name))
            let graph = try Self.graph(of: records, transaction.db, connection.types)
            if let other = graph.first(where: { taken.contains($0.zone) }) {
                transaction.isAbandoned = true
                return .taken(other)
            }
            return .moved(try transaction.move(graph.map(\.record), to: zone))
        }
    }
}

extension StoreTransaction {
    /// Moves records. Returns those that were in other zones.
    fileprivate func move(_ records: [RecordName], to zone: Int64) throws -> [RecordName] {
        guard try StoreZone.fetch(db, id: zone) != nil else { throw StoreError(.invalid, "the store has no zone \(zone)") }
        let moved = try records.filter { try move($0, to: zone) }
        // In their new zone, they may agree with other records in a unique key.
        let changes = firstChange..<nextChange
        for type in connection.types where !type.uniqueKeys.isEmpty {
            try mergeUniqueKeys(of: type, changes: changes, .mergeByPropertyObjectTrump)
        }
        return moved
    }

    /// Returns whether the record was moved.
    fileprivate func move(_ record: RecordName, to zone: Int64) throws -> Bool {
        guard let type = type(named: record.type), let found = try find(record.name, type: type), found.zone != zone,
            let row = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [found.row])
        else { return false }
        try found.checkIntact()
        _ = try move(found.row, type: type, to: zone, edited: noted(moveOf: row.edited))
        return true
    }

    /// Returns the times of a row's edits, with the present time as that of its move.
    func noted(moveOf edited: String?) -> String {
        var times = edited.map { RowTimes($0) } ?? RowTimes(cloud: EditTimes())
        // The move counts as later than any earlier one, whatever clock that had.
        let after = times.here.fields[EditTimes.move].map { $0.microseconds.addingReportingOverflow(1) }
        let time = max(time, after.map { $0.overflow ? .max : $0.partialValue } ?? .min)
        times.set(EditTime(microseconds: time, device: connection.identity.device.uuidString), of: EditTimes.move)
        return times.description
    }
}
