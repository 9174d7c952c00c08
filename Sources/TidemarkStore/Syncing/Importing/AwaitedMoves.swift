import GRDB
import TidemarkModel
package import TidemarkSQLite

/// Deletions, in a store of several zones, of records that were edited here. Such a record may have moved to a zone whose changes
/// have not come yet, and then the edits belong to it there. So the deletion waits in `tide_deferred`, and the row is not sent
/// until it is edited again.
struct AwaitedMoves {
    private let db: Database

    init(_ db: Database) { self.db = db }

    private static let reason = DeferredRecord.Reason.move.rawValue
    /// Deletions that wait, and those that were left to a person.
    private static let reasons = "'\(reason)', '\(DeferredRecord.Reason.deletion.rawValue)'"

    /// Whether the cloud is known to have deleted a record of a zone. The deletion waits, or was left to a person.
    func isDeleted(_ name: String, in zone: Int64) throws -> Bool {
        let sql = "SELECT 1 FROM tide_deferred WHERE zone = ? AND name = ? AND reason IN (\(Self.reasons))"
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [zone, name]) ?? false
    }

    /// The deletions that wait, by zone.
    func fetchAll() throws -> [Int64: Set<String>] {
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT zone, name FROM tide_deferred WHERE reason = '\(Self.reason)'"))
        return try rows.reduce(into: [:]) { found, row in
            let zone: Int64 = try row.stored("zone", of: "tide_deferred")
            found[zone, default: []].insert(try row.stored("name", of: "tide_deferred"))
        }
    }

    /// Returns the records among `names` whose deletion still waits, and that have no deferred version in another zone. A sent
    /// record without a reply has no type.
    func undecided(_ names: Set<String>, in zone: Int64) throws -> [String] {
        let sql = """
            SELECT 1 FROM tide_deferred d WHERE zone = ?1 AND name = ?2 AND reason = '\(Self.reason)' AND NOT EXISTS (
                SELECT 1 FROM tide_zones z JOIN tide_deferred o ON o.zone = z.id AND o.name = ?2
                WHERE z.id <> ?1 AND o.reason <> '\(Self.reason)' AND o.type IN ('', d.type))
            """
        let statement = try db.cachedStatement(sql: sql)
        return try names.sorted().filter { try Bool.fetchOne(statement, arguments: [zone, $0]) ?? false }
    }
}

/// A round of imports: the engine asks the cloud which zones have changed, and fetches these. A record that was deleted in one
/// zone when the cloud was asked, and has moved to another zone, is in that zone when the round ends.
struct ImportRound {
    /// Whether a deletion waits for another round. `true` after a store was opened: its deferred records were not read yet.
    var needsAnother = true
    /// The deletions that waited when the cloud was asked, by zone.
    var awaited: [Int64: Set<String>] = [:]
    /// The number of the last change in history when the cloud was asked; `nil` before the first time.
    var lastChange: Int64?
    /// Records that were deleted in some zone since the cloud was asked: they may have moved from there while the zones were fetched.
    var deleted: Set<String> = []

    /// Records what was applied since the cloud was asked.
    mutating func note(_ outcome: ImportOutcome, deleting names: [String], of occasion: ImportOccasion, zone: Int64) {
        awaited[zone]?.subtract(outcome.awaitedMoves)
        deleted.formUnion(names.map { RecordName.canonical($0) })
        // A record that was deleted in one zone may have moved back to another zone after that zone was fetched.
        for other in awaited.keys where other != zone {
            let before = awaited[other]?.count
            awaited[other]?.subtract(names)
            if awaited[other]?.count != before { needsAnother = true }
        }
        // The looked-up record may be one whose deletion in another zone waits.
        let decides = occasion == .lookUp && awaited.values.contains { !$0.isEmpty }
        if decides || !outcome.awaitedMoves.isEmpty { needsAnother = true }
    }
}

extension RecordStore {
    /// Whether a deletion waits for another round of imports.
    package var needsImportRound: Bool { importRound.needsAnother }

    /// Begins a round of imports: the cloud is about to be asked which zones have changed.
    package func beginImportRound() throws(StoreError) {
        guard scope == .private else {
            importRound = ImportRound(needsAnother: false)
            return
        }
        let mayWait = importRound.needsAnother || importRound.awaited.values.contains { !$0.isEmpty }
        importRound = try connection.read("begin to fetch the zones") { db in
            let last = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_changes"))
            return ImportRound(
                needsAnother: false, awaited: mayWait ? try AwaitedMoves(db).fetchAll() : [:], lastChange: last ?? 0)
        }
    }

    /// Applies the deletions of a zone that waited when the round of imports began. All zones were fetched since, so the records
    /// have not moved.
    ///
    /// - Returns: The outcomes, of some hundred records each.
    package func endAwaitedMoves(
        zone: Int64, author: String, planner: any RemoteChangePlanning
    ) throws -> [ImportOutcome] {
        guard let awaited = importRound.awaited[zone], !awaited.isEmpty else { return [] }
        let names = try connection.read("look for records that may have moved") {
            try AwaitedMoves($0).undecided(awaited, in: zone)
        }
        return try stride(from: 0, to: names.count, by: Self.deletionsAtOnce).map { first in
            let some = names[first..<min(first + Self.deletionsAtOnce, names.count)]
            return try apply(
                some.map { .deleted(name: $0) }, occasion: .awaitedDeletion, author: author, planner: planner, zone: zone)
        }
    }

    private static let deletionsAtOnce = 400
}
