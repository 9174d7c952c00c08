import Foundation
import GRDB
package import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// What came of ``moveGraph(of:to:author:)``.
    package enum GraphMove: Hashable, Sendable {
        /// Those that were elsewhere before.
        case moved([RecordName])
        /// One of them is in another zone that is shared: nothing has moved.
        case taken(PlacedRecord)
    }

    /// Has records and all that hang on them go on in another zone of a private store, in one transaction: what is pending of them goes along.
    /// What is in another share stays there.
    ///
    /// The cloud gets them as new ones there, and is told of their deletion where they were when it has them. Here they are the same
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
    /// Moves records; returns those that were elsewhere.
    fileprivate func move(_ records: [RecordName], to zone: Int64) throws -> [RecordName] {
        guard try StoreZone.fetch(db, id: zone) != nil else { throw StoreError(.invalid, "the store has no zone \(zone)") }
        let moved = try records.filter { try move($0, to: zone) }
        // Where they are now, they may agree with others in a unique key.
        let changes = firstChange..<nextChange
        for type in connection.types where !type.uniqueKeys.isEmpty {
            try mergeUniqueKeys(of: type, changes: changes, .mergeByPropertyObjectTrump)
        }
        return moved
    }

    /// Whether it has moved.
    fileprivate func move(_ record: RecordName, to zone: Int64) throws -> Bool {
        guard let type = type(named: record.type), let found = try find(record.name, type: type), found.zone != zone,
            let row = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [found.row])
        else { return false }
        try found.checkIntact()
        _ = try move(found.row, type: type, to: zone, edited: noted(moveOf: row.edited))
        return true
    }

    /// When fields were edited, and that the record is moved now.
    func noted(moveOf edited: String?) -> String {
        var times = edited.map { RowTimes($0) } ?? RowTimes(cloud: EditTimes())
        // A move counts for more than the one that it knows of, by whatever clock that was.
        let after = times.here.fields[EditTimes.move].map { $0.microseconds.addingReportingOverflow(1) }
        let time = max(time, after.map { $0.overflow ? .max : $0.partialValue } ?? .min)
        times.set(EditTime(microseconds: time, device: connection.identity.device.uuidString), of: EditTimes.move)
        return times.description
    }
}
