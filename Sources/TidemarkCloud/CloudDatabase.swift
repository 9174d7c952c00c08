public import Foundation
public import TidemarkModel

/// One database of a cloud container, as one account sees it. As `CKDatabase`.
///
/// Whoever fulfils it is checked by the same suite of tests: what is said here holds for the cloud in this process and for one behind
/// HTTP. Calls may come from anywhere, several at a time. A call that is cancelled may have been done or not.
public protocol CloudDatabase: Sendable {
    /// Private, shared or public.
    var scope: DatabaseScope { get }

    /// What the cloud takes at once.
    func limits() async throws(CloudError) -> CloudLimits

    /// Whether it can be used, and by whom.
    func account() async throws(CloudError) -> CloudAccount

    // Zones

    /// Returns the zones of this database.
    ///
    /// - Throws: The errors that every call can throw (see ``modify(_:)``).
    func zones() async throws(CloudError) -> [CloudZoneID]

    /// Makes zones, and deletes others with all their records. One that is there, or not, is no error.
    ///
    /// - Throws: `permissionFailure` in a database that one's own zones can't be in, `limitExceeded`, `invalidArguments`, and what
    ///   every call can throw.
    func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError)

    // Records

    /// Changes records of a zone.
    ///
    /// When a record is deleted, those that have it as their `parent` lose it; they have changed.
    ///
    /// Who sees a hierarchy of the zone only can neither read nor write outside of it: a name that is taken there is as one that is not.
    /// So that nobody finds out by saving which names there are, a new record's name is a random UUID (version 4) then, and its parent
    /// is in the hierarchy; else it is refused with `invalidArguments`, `referenceViolation` or `permissionFailure`.
    ///
    /// Records of shares (``CloudShare/recordType``) are changed as `SharingDatabase` says, and not by this: `invalidArguments`.
    ///
    /// - Returns: What became of each operation, in their order. In an atomic request, either none has failed, or all: those that are
    ///   not to blame with `batchRequestFailed`.
    /// - Throws: `limitExceeded`, `quotaExceeded`, `zoneNotFound`, `userDeletedZone`, `invalidArguments`, and what every call can throw:
    ///   `notAuthenticated`, `accountTemporarilyUnavailable`, `networkUnavailable`, `networkFailure`, `serviceUnavailable`,
    ///   `requestRateLimited`, `zoneBusy`, `internalError`. Then nothing was done, except that after `networkFailure` it may have been:
    ///   with a client token the same request can be made again. What somebody may not do has failed with `permissionFailure`.
    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome]

    /// Records by their names, in that order; each a record or `unknownItem`.
    func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>]

    /// Records of a type that match.
    ///
    /// - Parameter continuation: That of the answer before, to the same query.
    /// - Throws: `invalidArguments` for what is not queryable, as `Field 'x' is not marked queryable`.
    func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer

    // Changes

    /// Zones that changed since a token; without one, all that there are. In a shared database they come and go with what others share.
    ///
    /// After the cloud's database was put back to an earlier state its incarnation is another, and all tokens have expired. Without a token
    /// it then tells of zones that were deleted, too, so that they can be told from those that were lost.
    ///
    /// - Throws: `changeTokenExpired`: then ask without one.
    func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges

    /// Records of a zone that changed since a token; without one, all that there are. With a token also those that were deleted since, even
    /// if it comes from the middle of a first listing.
    ///
    /// Who sees a hierarchy of the zone is told of a record that comes into it as of one that was saved, and of one that leaves it as of
    /// one that was deleted. Nobody is told of deletions from before they took part. When what somebody sees of a zone becomes more or
    /// less as a whole, by another share, the token has expired.
    ///
    /// After the cloud's database was put back to an earlier state, what is said of ``databaseChanges(since:limit:)`` holds for records.
    ///
    /// - Throws: `changeTokenExpired`, `zoneNotFound`, `userDeletedZone`.
    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges

    // Assets

    /// Which of some assets the cloud does not have from the zone's owner yet, and how far it has got with each. For a participant, it has
    /// those that they have uploaded themselves, and those that records name which they may read.
    func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64]

    /// Adds a piece to an asset that is on its way up; the last one completes it. What the piece repeats is skipped, so a piece without an
    /// answer may be sent again.
    ///
    /// - Parameter offset: Where the piece begins: what the cloud has already, or less.
    /// - Returns: What the cloud has now, bytes. It may be more than the piece's end.
    /// - Throws: `assetNotAvailable` when the content is not what its digest says; `limitExceeded`, `quotaExceeded`; `invalidArguments`
    ///   with a greater offset; `serviceUnavailable` where another request has ended the upload, or it has to begin again.
    func upload(_ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID) async throws(CloudError) -> Int64

    /// A piece of an asset that a record of the zone names which the account may read.
    ///
    /// - Throws: `assetNotAvailable`.
    func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data

    // Following

    /// Something has changed in this database, or may have: look with ``databaseChanges(since:limit:)``. Changes that come together
    /// are one element. It ends when the task that listens is cancelled.
    func notifications() async throws(CloudError) -> AsyncStream<Void>
}
