import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkModel

/// Examines the rows of a cloud in a PostgreSQL database: each record, share, participant and zone against its digest, and that each asset
/// which a record names is there. Others may use the cloud meanwhile.
extension PostgresCloudBackend {
    /// Examines the rows of a container as they are at one moment.
    ///
    /// - Parameter progress: Is called with the number of records that were read, after each page.
    /// - Returns: What was found, the assets that the container has, and the number of its records.
    package func examine(
        _ container: String, _ environment: StoreEnvironment, progress: @escaping @Sendable (Int) throws -> Void
    ) async throws(CloudError) -> (examination: RowExamination, records: Int) {
        let storage = try await PostgresCloudStorage(database, container: container, environment: environment)
        do {
            return try await database.read { db in
                var (examination, records) = (RowExamination(), 0)
                let rows = PostgresCloudTransaction(db, storage.context)
                try rows.examineShares(&examination)
                try rows.forEachPage(of: PostgresCloudTransaction.recordColumns) { page in
                    for row in page { examination.examine(try StoredCloudRecord(row, try row.text(0), from: 3)) }
                    records += page.count
                    try progress(records)
                }
                return (examination, records)
            }
        } catch {
            throw CloudError(postgres: error)
        }
    }

    /// Examines the content of an asset that the rows have.
    ///
    /// - Returns: The bytes that were read, and what was found.
    package func examine(
        _ asset: CloudAsset, of owner: String, in container: String, _ environment: StoreEnvironment
    ) async throws(CloudError) -> (bytes: Int64, finding: RowExamination.Finding?) {
        guard (try? asset.check()) != nil else {
            return (0, .init(.asset, "the table of assets has an invalid entry '\(asset.digest.prefix(100))'"))
        }
        let storage = assets(container, environment)
        var offset: Int64 = 0
        var digest = AssetDigest()
        var finding: String?
        while offset < asset.size {
            do throws(CloudError) {
                let piece = try await storage.piece(
                    of: asset, from: offset, count: Int(min(Self.pieceSize, asset.size - offset)), owner: owner)
                guard !piece.isEmpty else { break }
                digest.update(Array(piece))
                offset += Int64(piece.count)
            } catch {
                guard error.retryAfter == nil else {
                    guard await storage.isDamaged(asset, owner: owner, after: error) else { throw error }
                    finding = "is damaged"
                    break
                }
                finding = "is missing"
                break
            }
        }
        if finding == nil, digest.finish() != asset { finding = "is damaged" }
        guard let finding, try await has(asset, owner, container, environment) else { return (offset, nil) }
        return (offset, .init(.asset, "the content of the asset \(asset.digest) of the owner '\(owner)' \(finding)"))
    }

    private static var pieceSize: Int64 { 4 << 20 }

    /// Whether the rows still have an asset: it may have been removed since they were read.
    private func has(
        _ asset: CloudAsset, _ owner: String, _ container: String, _ environment: StoreEnvironment
    ) async throws(CloudError) -> Bool {
        do {
            return try await database.query(
                """
                SELECT EXISTS (SELECT FROM tidemark_assets WHERE owner = $1 AND digest = $2 AND container =
                    (SELECT number FROM tidemark_containers WHERE name = $3 AND environment = $4))
                """, owner.key, asset.digest.key, container, environment.rawValue)[0].value(0)
        } catch {
            throw CloudError(postgres: error)
        }
    }
}

extension PostgresCloudTransaction {
    fileprivate func examineShares(_ examination: inout RowExamination) throws {
        let zones = try db.query(
            "SELECT \(Self.zoneColumns) FROM tidemark_zones WHERE container = $1 ORDER BY owner, number", container)
        for row in zones {
            examination.examine(try StoredZone(row), of: try row.text(2), isWhole: (try? StoredZone(checked: row)) != nil)
        }
        for row in try db.query(
            "SELECT \(Self.shareColumns) FROM tidemark_shares WHERE container = $1 ORDER BY number", container)
        where try !StoredShare.read(row, "").isWhole {
            examination.noteShare(try row.value(0))
        }
        let participants = try db.query(
            "SELECT \(Self.participantColumns), ordinal FROM tidemark_participants WHERE container = $1 ORDER BY ordinal",
            container)
        for row in participants where try !StoredParticipant.read(row, "").isWhole {
            examination.noteParticipant(try row.value(15))
        }
        let assets = try db.query(
            "SELECT owner, digest, size FROM tidemark_assets WHERE container = $1 ORDER BY owner, digest", container)
        for row in assets {
            examination.add(CloudAsset(digest: try row.text(1), size: try row.value(2)), of: try row.text(0))
        }
    }
}
