public import Foundation
public import TidemarkCloud
import TidemarkModel

/// One life of a container's rows. An incarnation begins when the rows are made or put back to an earlier state. It ends when
/// they are put back again.
public struct CloudIncarnation: Hashable, Sendable {
    /// 16 random bytes.
    public let id: Data
    /// The number below all numbers that this incarnation gives out, to any owner; 0 for the first incarnation.
    public let began: Int64
    /// Whether the rows were never put back.
    public var isFirst: Bool { began == 0 }

    package init(id: Data, began: Int64) {
        self.id = id
        self.began = began
    }
}

/// The numbers of times that a zone was made again at its place.
public struct ZoneLives: Hashable, Sendable {
    /// After a deletion: devices send the records that they have.
    public var remade: Int
    /// After its owner had purged it: records from before must not come back.
    public var purged: Int

    /// Makes the lives of a zone; of one that was never deleted, both are 0.
    public init(remade: Int = 0, purged: Int = 0) {
        self.remade = remade
        self.purged = purged
    }
}

/// The part of a transaction that deals with incarnations. The rules of ``CloudTransaction`` hold. Decision 031 has the reasons.
public protocol IncarnationTransaction {
    /// Returns the newest incarnation. A new storage makes the first one with its key.
    func incarnation() throws(CloudError) -> CloudIncarnation
    /// Returns the highest of all owners' ``CloudTransaction/lastChange(of:)``. Looks at all owners, for a new incarnation.
    func highestChange() throws(CloudError) -> Int64
    /// Begins another incarnation. It belongs to the whole container: no owner's rows are locked, and each owner's next change gets a number
    /// beyond `change`.
    ///
    /// - Parameters:
    ///   - id: 16 random bytes.
    ///   - change: A number that is beyond all that may have been given out.
    func beginIncarnation(_ id: Data, at change: Int64) throws(CloudError)
    /// Returns the 8 random bytes of the writer that gave out the number of an owner's change; `nil` where that is not known.
    ///
    /// A writer is one opening of the rows by one process. It notes its bytes with its first call of
    /// ``CloudTransaction/setLastChange(_:of:)`` for an owner, in the same transaction. By them the engine finds that the rows were put back
    /// without another incarnation. The writer of a number up to ``CloudStorage/commonChanges`` is the same for all owners.
    func writerNonce(of change: Int64, in owner: String) throws(CloudError) -> Data?
    /// Returns whether the number of an owner's change lies between the owner's last change before an incarnation and the first of it: such
    /// a change was lost when the rows were put back.
    func isOfLostTime(_ change: Int64, in owner: String) throws(CloudError) -> Bool
    /// Returns how often a zone was deleted and made again.
    func lives(of zone: StoredZone.ID) throws(CloudError) -> ZoneLives
    /// Sets how often a zone was deleted and made again.
    func setLives(_ lives: ZoneLives, of zone: StoredZone.ID) throws(CloudError)
}

/// Handles a database that was put back to an earlier state. The changes made since that state are lost, and their numbers must
/// not be given out again.
extension CloudEngine {
    /// A new incarnation skips at least this many numbers, and less than twice as many. No database makes as many changes between
    /// a backup and its restoration.
    package static let leap: Int64 = 1 << 32

    /// Begins another incarnation: all tokens expire, and devices compare what they have with what is left.
    ///
    /// - Parameter isStale: Tells, in the transaction, whether another incarnation is still needed.
    package func beginIncarnation(
        if isStale: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Bool = { _ throws(CloudError) in true }
    ) async throws(CloudError) {
        let id = Data(random(16))
        let more = random(4).reduce(0 as Int64) { $0 << 8 | Int64($1) }
        try await storage.write(owners: []) { rows throws(CloudError) in
            guard try isStale(rows) else { return }
            let last = try rows.highestChange()
            guard last < Int64.max - 4 * Self.leap else {
                throw CloudError(.internalError, "the cloud's database has run out of numbers for its changes")
            }
            try rows.beginIncarnation(id, at: last + Self.leap + more)
        }
    }

    /// Begins another incarnation if the database in its present state lacks the change of a token that its key made: it was put
    /// back.
    func noteLost(_ position: TokenPosition, in incarnation: CloudIncarnation) async throws(CloudError) {
        try await beginIncarnation { rows throws(CloudError) in
            guard try rows.incarnation() == incarnation else { return false }
            return try isLost(position, rows)
        }
    }

    /// Returns whether a token names a change that the database lacks: its number was not given out, or another writer gave it
    /// out.
    func isLost(_ position: TokenPosition, _ rows: any CloudTransaction) throws(CloudError) -> Bool {
        let last = position.isCommon ? changeTagCipher.common : try rows.lastChange(of: position.owner)
        guard position.number <= last else { return true }
        let known = try writer(of: position.number, in: position.owner, rows)
        return !position.writer.isEmpty && !known.isEmpty && position.writer != known
    }

    /// Returns the digits in a token that identify the writer of a number; empty where it is not known.
    ///
    /// They differ for each number, so that tokens don't reveal when the server was started.
    func writer(of number: Int64, in owner: String, _ rows: any CloudTransaction) throws(CloudError) -> String {
        guard let nonce = try rows.writerNonce(of: number, in: owner) else { return "" }
        return String(changeTagCipher.digest("writer \(Hexadecimal.text(nonce)) \(number)").prefix(16))
    }

    /// Begins another incarnation if one of a request's tags has a number that the database has not given out yet.
    ///
    /// Only the cloud can make a tag, so a made-up text has no number.
    ///
    /// - Parameter owner: Whose records the request changes.
    func noteAhead(tagsOf request: ModifyRecordsRequest, in owner: String) async throws(CloudError) {
        let numbers = request.operations.compactMap { $0.record.changeTag.flatMap { changeTagCipher.number($0, of: owner) } }
        guard !numbers.isEmpty else { return }
        try await beginIncarnation { rows throws(CloudError) in
            let (last, common, began) = (try rows.lastChange(of: owner), changeTagCipher.common, try rows.incarnation().began)
            // A number beyond `common` from the counter that all owners shared was lost: the rows were put back to a state before
            // it.
            return numbers.contains { $0.isCommon ? $0.number > common && began <= common : Self.isAhead($0.number, of: last) }
        }
    }

    static func isAhead(_ number: Int64, of last: Int64) -> Bool { number > last && number - last < 4 * leap }

    /// Checks that a tag which is not the record's comes from the database in its present state. A client with a tag from a lost
    /// change has to fetch everything before it sends anything.
    ///
    /// The age of a tag that an earlier version made can't be told. If the database was ever put back, the tag may be from a lost
    /// change.
    ///
    /// - Throws: `changeTokenExpired`.
    func checkTime(
        of tag: String, in owner: String, isThere: Bool, _ rows: any CloudTransaction
    ) throws(CloudError) {
        guard let known = changeTagCipher.number(tag, of: owner) else {
            // A client that fetches everything then gets another tag of a record that is there.
            if isThere, ChangeTagCipher.isOldTag(tag), try !rows.incarnation().isFirst { throw Self.putBack }
            return
        }
        let last = known.isCommon ? changeTagCipher.common : try rows.lastChange(of: owner)
        let isLost = try rows.isOfLostTime(known.number, in: owner)
        if isLost || Self.isAhead(known.number, of: last) { throw Self.putBack }
    }

    static let putBack = CloudError(
        .changeTokenExpired,
        "the cloud was put back to an earlier state, which lacks the change of this tag. Fetch everything from the beginning")

    /// Returns the name by which devices know an incarnation.
    func name(of incarnation: CloudIncarnation) -> String {
        changeTagCipher.digest("incarnation " + Hexadecimal.text(incarnation.id))
    }

    /// Names the incarnation of a zone: that of the database, with the lives of the zone.
    ///
    /// Participants get the database's incarnation alone: they don't send again what the owner has deleted.
    func name(
        of incarnation: CloudIncarnation, zone: StoredZone, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> CloudIncarnationName {
        let lives = caller.scope == .private ? try rows.lives(of: zone.id) : ZoneLives()
        return CloudIncarnationName(database: name(of: incarnation), remade: lives.remade, purged: lives.purged)
    }

    /// Counts that a zone is made again after a deletion or a purge.
    func countLife(of zone: StoredZone, _ rows: any CloudTransaction) throws(CloudError) {
        var lives = try rows.lives(of: zone.id)
        switch zone.state {
        case .present: return
        case .deleted: lives.remade += 1
        case .purged: lives.purged += 1
        }
        try rows.setLives(lives, of: zone.id)
    }
}
