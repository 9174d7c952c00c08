public import Foundation
public import TidemarkModel

/// One database of a cloud container, as one account sees it. As `CKDatabase`.
///
/// One suite of tests, in `TidemarkTesting`, checks every conformer. So this description holds for a cloud in the same process
/// and for a cloud behind HTTP. Functions can be called from any thread, several at a time. A call that is cancelled may have had
/// its effect or not.
public protocol CloudDatabase: Sendable {
    /// The scope of the database: private, shared or public.
    var scope: DatabaseScope { get }

    /// Returns the sizes that the cloud accepts.
    func limits() async throws(CloudError) -> CloudLimits

    /// Returns the account that uses the database, and whether it can.
    func account() async throws(CloudError) -> CloudAccount

    // Zones

    /// Returns the zones of this database.
    ///
    /// - Throws: The errors that every call can throw (see ``modify(_:)``).
    func zones() async throws(CloudError) -> [CloudZoneID]

    /// Creates zones, and deletes others with all their records. Creating a zone that exists, and deleting one that does not, is
    /// no error.
    ///
    /// - Throws: `permissionFailure` in a database that can't have zones of the account, `limitExceeded`, `invalidArguments`, and
    ///   the errors that every call can throw (see ``modify(_:)``).
    func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError)

    // Records

    /// Changes records of a zone.
    ///
    /// When a record is deleted, the records that have it as their `parent` lose that value, and count as changed.
    ///
    /// A participant who sees only a hierarchy of the zone can neither read nor write outside of it, and must not learn from a
    /// save which names are taken there. So the new records of such a participant have random UUIDs (version 4) as names, and a
    /// parent in the hierarchy. Other new records fail with `invalidArguments`, `referenceViolation` or `permissionFailure`.
    ///
    /// Records of shares (``CloudShare/recordType``) are changed by the functions of ``SharingDatabase``. Here they fail with
    /// `invalidArguments`.
    ///
    /// - Returns: The outcome of each operation, in their order. In an atomic request either all operations succeed or all fail;
    ///   those that are not to blame fail with `batchRequestFailed`. An operation that the account may not perform fails with
    ///   `permissionFailure`.
    /// - Throws: `limitExceeded`, `quotaExceeded`, `zoneNotFound`, `userDeletedZone`, `invalidArguments`, and the errors that
    ///   every call can throw: `notAuthenticated`, `accountTemporarilyUnavailable`, `networkUnavailable`, `networkFailure`,
    ///   `serviceUnavailable`, `requestRateLimited`, `zoneBusy`, `internalError`. After an error nothing was done. Only after
    ///   `networkFailure` the request may have been done: with a client token it can be sent again safely.
    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome]

    /// Returns records by their names.
    ///
    /// - Parameter desiredKeys: The fields of the returned records; `nil` for all.
    /// - Returns: For each name, in order, the record or its error: `unknownItem` if there is none that the account may see.
    func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>]

    /// Returns records of a type that match a query.
    ///
    /// - Parameters:
    ///   - limit: The most records of the answer; `nil` for the cloud's own limit.
    ///   - desiredKeys: The fields of the returned records; `nil` for all.
    ///   - continuation: The continuation of the answer before, to the same query; `nil` for the first answer.
    /// - Throws: `invalidArguments` for a field that is not queryable, as `Field 'x' is not marked queryable`.
    func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer

    // Changes

    /// Returns the zones that changed since a token; without a token, all zones. In a shared database, zones appear and disappear
    /// as others share them and stop sharing.
    ///
    /// After the cloud's database was restored to an earlier state, it has another incarnation, and all tokens have expired. The
    /// answer without a token then lists deleted zones, too, so that a client can distinguish them from zones that were lost.
    ///
    /// - Throws: `changeTokenExpired`: call again without a token.
    func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges

    /// Returns the records of a zone that changed since a token; without a token, all records. With a token the answer has the
    /// records that were deleted since, too, even if the token comes from the middle of a first listing.
    ///
    /// For a participant who sees only a hierarchy of the zone, a record that enters the hierarchy counts as saved, and a record
    /// that leaves it counts as deleted. A participant gets no deletions from before they took part. The token expires when
    /// another share widens or narrows what the participant sees of the zone.
    ///
    /// After the cloud's database was restored to an earlier state, the same holds for records as for zones in
    /// ``databaseChanges(since:limit:)``.
    ///
    /// - Throws: `changeTokenExpired`, `zoneNotFound`, `userDeletedZone`.
    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges

    // Assets

    /// Returns the assets that the cloud does not have from the zone's owner yet, with the number of bytes that it has of each.
    ///
    /// For a participant, the cloud has the assets that the participant has uploaded, and the assets of records that the
    /// participant may read.
    func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64]

    /// Uploads a piece of an asset. The last piece completes the asset. Bytes that the cloud has already are skipped, so a piece
    /// whose answer was lost can be sent again.
    ///
    /// - Parameter offset: The place of the piece in the asset, in bytes: at most the number of bytes that the cloud has already.
    /// - Returns: The number of bytes that the cloud has now. It may be greater than the piece's end.
    /// - Throws: `assetNotAvailable` when the content does not match its digest; `limitExceeded`, `quotaExceeded`;
    ///   `invalidArguments` with a greater offset; `serviceUnavailable` if another request has ended the upload, or if it has to
    ///   begin again.
    func upload(_ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID) async throws(CloudError) -> Int64

    /// Downloads a piece of an asset. The account must be able to read a record of the zone that names the asset.
    ///
    /// - Parameters:
    ///   - offset: The place of the piece in the asset, in bytes.
    ///   - count: The number of bytes.
    /// - Throws: `assetNotAvailable`.
    func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data

    // Following

    /// Returns a stream with an element whenever something has changed in this database, or may have:
    /// ``databaseChanges(since:limit:)`` says what. Changes that come close together are one element. The stream ends when the
    /// task that reads it is cancelled.
    func notifications() async throws(CloudError) -> AsyncStream<Void>
}
