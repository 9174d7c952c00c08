public import Foundation
public import TidemarkCloud

/// Stores the rows of one container in one environment.
///
/// A storage knows rows and no rules: the engine decides what a caller may do. All calls may come from any task, several at a time.
///
/// - The owner comes first. Each row belongs to the owner of a database: a user record name, or empty for the public database. What is
///   shared belongs to its owner, and a row of the participant's says where it is. Every function that a request calls names one owner.
///   The few that look at all owners say so; they are for sweeps, for administrators, and for rows of the whole container.
/// - Write transactions of one owner run one after the other, also those of other processes that use the same rows: the engine numbers an
///   owner's changes by reading a counter and writing it. Write transactions of different owners may run side by side.
/// - A transaction is all or nothing. It sees its own writes, and otherwise one committed state of all rows.
/// - A body is a function of the rows that it reads: a storage may run it again, after a rollback. What a body does beside its rows can
///   be done twice. It may remove the content of an asset that has no row, which no rollback brings back.
/// - A body blocks its thread and never waits for another call of the storage. It doesn't keep the transaction.
public protocol CloudStorage: Sendable {
    /// Sixteen random bytes that belong to the rows for their whole life, and are backed up with them. They are secret: the engine
    /// derives from them the keys of change tags and tokens.
    var key: [UInt8] { get }
    /// The time when the rows were first made, in microseconds since 1970 UTC. The engine removes no older file that the rows don't
    /// name, since it may belong to another cloud.
    var began: Int64 { get }
    /// Numbers of changes up to this one were given out when a container counted the changes of all owners together: no two owners have the
    /// same. 0 for rows that were first made since. It stays what it is, and the numbers of every owner go on from it.
    var commonChanges: Int64 { get }

    /// Runs a body that only reads. Reads run beside each other and beside a write, and see all that was committed before they began.
    ///
    /// - Throws: What the body throws; `CloudError` `zoneBusy` with `retryAfter`, or `internalError`, where the storage fails.
    func read<Answer: Sendable>(
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer

    /// Runs a body that may write rows of some owners, and commits. When this returns, the writes are durable and every later read sees
    /// them.
    ///
    /// - Parameter owners: The owners whose rows the body writes. A storage locks these, in the order of ``WrittenOwners/names``, and
    ///   nothing else. The body may read rows of others.
    /// - Throws: What the body throws, and nothing is written; `CloudError` `zoneBusy` with `retryAfter` where other writers take too
    ///   long; `internalError`, also for a body that writes rows of another owner.
    func write<Answer: Sendable>(
        owners: WrittenOwners, _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer

    /// As ``write(owners:_:)``, for a body that begins with known reads. A storage over a network reads them together with its
    /// locks. Others ignore them, as the default implementation does.
    func write<Answer: Sendable>(
        owners: WrittenOwners, expecting reads: ExpectedReads?,
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer

    /// Claims a turn to sweep: to remove contents of assets that nothing needs. Of the servers that share the rows, one has the
    /// turn at a time, and one turn begins in each period. A turn that its server neither ends nor renews for
    /// ``SweepClaim/patience`` passes to the server that claims it next. The default implementation returns a new turn, since no
    /// other server shares the rows.
    ///
    /// - Returns: `nil` where it is not the caller's turn.
    func claimSweep(every period: Duration) async throws(CloudError) -> SweepClaim?
    /// Renews a turn, and stores the owner whose contents were swept last. The default implementation returns the claim.
    ///
    /// - Returns: The claim to renew next; `nil` where another server has the turn.
    func renewSweep(_ claim: SweepClaim) async throws(CloudError) -> SweepClaim?
    /// Ends a turn. The next turn begins with the first owner, a period after this one began. Does nothing where another server
    /// has the turn, and in the default implementation.
    func endSweep(_ claim: SweepClaim) async throws(CloudError)

    /// Removes the bytes of deleted rows from the storage's log, unless something prevents it. The default implementation does
    /// nothing.
    func emptyLog() async

    /// Reads a zone and some of its records, together with the reads of other calls. The rules of ``read(_:)`` hold.
    ///
    /// So a storage over a network needs one round trip for many calls. Others return `nil`, as the default implementation does.
    ///
    /// - Parameter body: Runs over the zone and the records, and nothing else.
    /// - Returns: `nil` where the storage can't do so, or the body needs other rows: then the engine calls ``read(_:)``.
    func readTogether<Answer>(
        _ names: [String], in place: StoredZone.Place, _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer?

    /// Reads a few rows on the calling thread, where that takes less time than waking another thread. The rules of ``read(_:)`` hold. A
    /// storage over a network returns `nil`.
    ///
    /// - Returns: `nil` where the storage can't do so; then the body was not called, and the engine calls ``read(_:)``.
    func readInline<Answer>(
        _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) throws(CloudError) -> Answer?
}

/// The rows of a storage within a transaction.
///
/// Only the thread that runs the body may use it, until the body ends. Every function may throw `CloudError` `internalError`. Functions
/// that read one zone, share or participant throw `recordDamaged` where its row is not what was written; a damaged record is returned
/// with its ``StoredCloudRecord/damage``. Names and digests are compared by their bytes. What is missing is `nil`, empty or 0, and
/// removing it is no error.
public protocol CloudTransaction: SharingTransaction, IncarnationTransaction, DamageTransaction, CountingTransaction {
    /// Returns the number of an owner's last change. Before there is one it is ``CloudStorage/commonChanges``, and since a later incarnation
    /// began ``CloudIncarnation/began`` at the least.
    ///
    /// In the public database nothing is counted: of the owner without a name it is the highest ``StoredCloudRecord/changed`` of a record, or
    /// one of these. A storage whose writers of the public database run side by side runs a body again where another has given out its
    /// numbers meanwhile.
    func lastChange(of owner: String) throws(CloudError) -> Int64
    /// Sets the number of an owner's last change; never that of the public database. The engine calls it in each transaction that gives out
    /// numbers, before or after the rows that get them; the number always rises. The storage remembers who gave out the numbers since the
    /// last one: see ``IncarnationTransaction/writerNonce(of:in:)``.
    func setLastChange(_ number: Int64, of owner: String) throws(CloudError)

    // Zones

    /// Returns the zone of a place, also a deleted or purged one.
    func zone(_ place: StoredZone.Place) throws(CloudError) -> StoredZone?
    /// Returns a zone by its owner and number, also a deleted or purged one.
    func zone(_ id: StoredZone.ID) throws(CloudError) -> StoredZone?
    /// Returns the highest ``StoredZone/changed`` of an owner's zones, deleted ones among them; 0 where there are none.
    func newestChange(of owner: String) throws(CloudError) -> Int64
    /// Returns the first of an owner's zones that changed after a number, in the order of ``StoredZone/changed``, deleted ones among
    /// them. A zone whose row is damaged is returned as far as it can be read.
    func zones(of owner: String, after change: Int64, limit: Int) throws(CloudError) -> [StoredZone]
    /// Inserts a zone, or replaces the zone of its place, which keeps its number. Returns the zone with its number.
    func save(_ zone: StoredZone) throws(CloudError) -> StoredZone

    // Records

    /// Returns records by name, tombstones among them; names without a record are left out. `dependsOn`, `assets` and `indexed` of a
    /// record that was read are empty: the engine fills them from the fields before it saves the record.
    func records(_ names: [String], in zone: StoredZone.ID) throws(CloudError) -> [String: StoredCloudRecord]
    /// Inserts records, or replaces those of equal zone and name, with all that they are found by. A record with
    /// ``StoredCloudRecord/damage`` is left out, and its row stays as it is; saving a record without it ends the damage. No two records
    /// of a zone have the same ``StoredCloudRecord/changed``.
    func save(_ records: [StoredCloudRecord]) throws(CloudError)
    /// Returns the first records that changed after a number, in the order of ``StoredCloudRecord/changed``, tombstones among them.
    func records(in zone: StoredZone.ID, after change: Int64, limit: Int) throws(CloudError) -> [StoredCloudRecord]
    /// Returns the name of a record's parent; `nil` also where there is no such record.
    func parent(of name: String, in zone: StoredZone.ID) throws(CloudError) -> String?
    /// Returns the first records that have one of the names as their parent: by the order of the names, then by the order in which they
    /// were made. Tombstones are left out.
    func children(of names: [String], in zone: StoredZone.ID, limit: Int) throws(CloudError) -> [StoredChild]
    /// Returns whether any record of a zone has a parent. Tombstones have none.
    func hasChildren(in zone: StoredZone.ID) throws(CloudError) -> Bool
    /// Returns the names of the first records, in an order of the storage's own, that hold a `deleteSelf` reference to one of the names and
    /// were last changed before a number. Tombstones are left out. The change of a damaged record is its ``StoredCloudRecord/Damage/change``.
    func dependents(of names: [String], in zone: StoredZone.ID, before change: Int64, limit: Int) throws(CloudError) -> [String]
    /// Removes the first records of a zone, tombstones among them, with all that they are found by.
    ///
    /// - Returns: Their number, the bytes that they counted (see ``countUsed()``), and the digests of the assets that they named. The
    ///   count of bytes and the assets themselves stay: the engine changes both.
    func removeRecords(in zone: StoredZone.ID, limit: Int) throws(CloudError) -> (count: Int, bytes: Int64, assets: Set<String>)
    /// Returns the first records that a query finds, in its order and then by name, each with the values that it was ordered by.
    /// Tombstones are left out. A record without a value comes before all others in ascending order, and after them in descending
    /// order.
    ///
    /// A query of many records (`QueryBudget.frequent`) whose first order is an index walks that index in its order. It finds the records
    /// without a value by the negative number of the index (see ``StoredCloudRecord/indexed``).
    ///
    /// - Parameter budget: A query that exceeds it ends, is no error, and is marked by ``FoundRecords/isCut``.
    func find(
        _ query: IndexQuery, in zone: StoredZone.ID, limit: Int, within budget: QueryBudget
    ) throws(CloudError) -> FoundRecords

    // Removals that take more than one transaction

    /// Adds a removal. Its ``StoredRemoval/id`` is ignored: it gets the next number.
    func add(_ removal: StoredRemoval) throws(CloudError)
    /// Returns an owner's removal that was added first.
    func nextRemoval(of owner: String) throws(CloudError) -> StoredRemoval?
    /// Returns the owner of a removal, of the oldest one if the storage knows it; `nil` where there is none. Looks at all owners,
    /// for the task that does removals.
    func ownerOfNextRemoval() throws(CloudError) -> String?
    /// Returns the removals of a zone, in the order in which they were added.
    func removals(in zone: StoredZone.ID) throws(CloudError) -> [StoredRemoval]
    /// Removes a removal that is complete.
    func endRemoval(_ removal: StoredRemoval) throws(CloudError)

    /// Replaces the values under which all records of a type are found, in all zones of all owners. Tombstones are left out, and a record for which
    /// `indexed` throws stays as it is. O(records of the type).
    ///
    /// - Parameter indexed: Makes ``StoredCloudRecord/indexed`` of a record's name and fields.
    func reindex(
        _ type: String, _ indexed: (String, Data) throws(CloudError) -> [Int64: [IndexValue]]
    ) throws(CloudError)

    /// Counts the records of a type whose fields pass a test, in all zones of all owners. Tombstones are left out. O(records of the type).
    ///
    /// - Throws: What the test throws.
    func countRecords(
        of type: String, where isCounted: (Data) throws(CloudError) -> Bool
    ) throws(CloudError) -> Int

    // Assets

    /// Returns those of the digests that an owner has, with their sizes in bytes.
    func assets(_ digests: Set<String>, owner: String) throws(CloudError) -> [String: Int64]
    /// Adds an asset whose content is stored whole. An asset that the owner has stays as it is, with its payer.
    ///
    /// - Parameter payer: The account whose quota it counts against.
    func addAsset(_ asset: CloudAsset, owner: String, payer: String) throws(CloudError)
    /// Returns the digests that records of a zone name, as they are saved now.
    func assetsNamed(by records: [String], in zone: StoredZone.ID) throws(CloudError) -> Set<String>
    /// Removes those of an owner's assets that no record in any of the owner's zones names, with what
    /// ``SharingTransaction/noteUpload(_:owner:by:)`` noted. Contents and counted bytes stay: the engine changes both.
    ///
    /// - Returns: The removed assets, with the accounts that paid for them.
    func removeUnnamedAssets(
        _ digests: Set<String>, owner: String
    ) throws(CloudError) -> [(asset: CloudAsset, payer: String)]
    /// Examines some of an owner's assets, after a digest, in the order of the digests.
    ///
    /// - Parameter limit: The number of assets to examine.
    /// - Returns: Those that none of the owner's records names, and the last digest that was examined; `nil` where no asset follows.
    func unnamedAssets(
        of owner: String, after digest: String, limit: Int
    ) throws(CloudError) -> (unnamed: [CloudAsset], last: String?)

    // Requests that were answered

    /// Returns what ``keep(_:to:of:at:)`` stored.
    func answer(to token: String, of user: String) throws(CloudError) -> Data?
    /// Stores the reply to a request by its user and client token, or replaces it. The engine counts its bytes by itself.
    ///
    /// - Parameter time: Microseconds since 1970 UTC. Where the user has a reply of that time or a later one, since the clock was set back,
    ///   the reply gets the time that follows the newest: replies are in the order in which they were stored.
    func keep(_ answer: Data, to token: String, of user: String, at time: Int64) throws(CloudError)
    /// Removes a user's replies that an age has ended, and takes their bytes from what the user has used. O(newest + removed).
    ///
    /// - Returns: How many it has removed.
    @discardableResult func forgetAnswers(of user: String, _ age: AnswerAge) throws(CloudError) -> Int
    /// Sets the times of a user's replies back by as much as the newest is ahead, where that is too far ahead. Their order stays. O(replies).
    func setBackAnswers(of user: String, _ age: AnswerAge) throws(CloudError)
    /// Removes a user's replies, and takes their bytes from what the user has used: the account is being removed. O(replies).
    func removeAnswers(of user: String) throws(CloudError)
    /// Returns the first users, at most a number of them, who have more replies than the newest and some that an age has ended, or replies that
    /// are too far ahead. Looks at all owners, for sweeps.
    func usersWithAnswers(_ age: AnswerAge, limit: Int) throws(CloudError) -> [String]

    // What is stored for an account, in bytes

    /// Returns the bytes that count against an account's quota.
    func used(by user: String) throws(CloudError) -> Int64
    /// Adds to the bytes of an account; a negative number subtracts.
    func addUsed(_ bytes: Int64, by user: String) throws(CloudError)
    /// Returns the counted bytes of all accounts.
    func allUsed() throws(CloudError) -> [String: Int64]
    /// Replaces the counted bytes of all accounts; an account that is missing has 0.
    func replaceUsed(_ used: [String: Int64]) throws(CloudError)
    /// Counts from the rows what each account has stored: its records, assets and replies, without reservations. A private zone counts
    /// for its owner, a public record for its creator. O(records + assets + replies).
    func countUsed() throws(CloudError) -> [String: Int64]

    /// Returns the bytes that an account's unfinished uploads reserve, and their number.
    func reserved(by payer: String) throws(CloudError) -> (bytes: Int64, count: Int)
    /// Returns the bytes that an upload reserves.
    func reservation(_ upload: StoredUpload) throws(CloudError) -> Int64?
    /// Reserves bytes for an upload, or replaces its reservation. The time is in microseconds since 1970 UTC.
    func reserve(_ bytes: Int64, for upload: StoredUpload, at time: Int64) throws(CloudError)
    /// Removes the reservation of an upload that has ended.
    func removeReservation(_ upload: StoredUpload) throws(CloudError)
    /// Returns the uploads for which an account has a reservation, or for `nil`, in sweeps, any account, with the times given to ``reserve(_:for:at:)``.
    func reservations(of payer: String?) throws(CloudError) -> [(upload: StoredUpload, time: Int64)]

    // Schema

    /// Returns the schema; an empty one before the first was saved. Every request that saves records calls this, so a storage should
    /// keep the decoded schema.
    func schema() throws(CloudError) -> CloudSchema
    /// Replaces the schema that ``schema()`` has returned in the transaction. It belongs to the whole container: a storage that runs writes
    /// of different owners side by side runs the body again where another transaction has replaced the schema meanwhile.
    func save(_ schema: CloudSchema) throws(CloudError)
}
