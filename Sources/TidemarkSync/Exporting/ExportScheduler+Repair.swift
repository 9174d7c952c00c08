import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Repairs damaged records of the store and of the cloud, each by means of the other.
extension ExportScheduler {
    /// Repairs records that were found damaged when they were to be sent.
    ///
    /// - Returns: Whether a record was repaired, and is to be sent.
    func repair(_ found: [ExportBatch.Damaged], limits: CloudLimits) async throws -> Bool {
        let rows = try await store.damagedRows(found)
        do {
            _ = try await repair(rows, limits: limits)
        } catch let error as StoreError {
            throw error
        } catch {
            // The cloud can't be reached, or does not have the records. Records that need it for their repair stay in the sync issues.
        }
        return try await store.stillDamaged(rows).count < rows.count
    }

    /// Repairs damaged records of the zone from the store, and otherwise from the cloud's versions.
    func repair(_ rows: [DamagedRow], limits: CloudLimits) async throws -> [RepairReport.Repaired] {
        var repaired = try await store.repair(rows)
        var left = try await store.stillDamaged(rows).filter { $0.tag != nil }[...]
        while !left.isEmpty {
            let some = Array(left.prefix(max(1, limits.operationsPerRequest)))
            let found = try await database.lookup(some.map(\.name), in: mapping.zone, desiredKeys: nil)
            repaired += try await resolver.repair(some, lookedUp: found, limits: limits)
            left = left.dropFirst(some.count)
        }
        return repaired
    }

    /// Records that are damaged in the cloud and whole here: they replace the cloud's versions.
    func damaged(_ items: [ExportItem]) async throws -> Set<String> {
        let deferred = try await store.deferredRecords([.damagedInCloud], zone: mapping.number)
        guard !deferred.isEmpty else { return [] }
        let tags = Dictionary(deferred.map { ($0.name, $0.tag) }, uniquingKeysWith: { one, _ in one })
        return Set(items.filter { $0.key.kind == .save && $0.tag != nil && tags[$0.name] == $0.tag }.map(\.name))
    }
}
