import Foundation
package import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// Returns the zones that changed since a token.
    package func databaseChanges(
        since token: CloudToken?, limit: Int?, _ caller: Caller
    ) async throws(CloudError) -> DatabaseChanges {
        guard caller.scope != .public else {
            throw CloudError(.invalidArguments, "the public database has no feed of changes")
        }
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        return try await page { rows throws(CloudError) in
            let incarnation = try rows.incarnation()
            let positions = try token.map { token throws(CloudError) in
                try self.positions(token, kind: "d", of: Self.mark(caller), before: Self.mark(caller), in: incarnation)
            }
            guard caller.scope != .shared else {
                return try sharedChanges(since: positions, most: most, incarnation, caller, rows)
            }
            let owner = owner(caller)
            let position = positions?.position(of: owner)
            let (since, last) = (position?.number ?? 0, try rows.lastChange(of: owner))
            if let position, try isLost(position, rows) { return .lost(position, incarnation) }
            let page = try rows.zones(of: owner, after: since, limit: most + 1)
            let zones = page.prefix(most)
            let moreComing = page.count > most
            // A client without a token knows no zones. It need not hear of deleted ones, unless the database was put back. It
            // always hears of purged ones.
            let wanted = zones.filter { token != nil || !incarnation.isFirst || $0.state != .deleted }
            func ids(_ state: StoredZone.State) -> [CloudZoneID] {
                wanted.filter { $0.state == state }.map { id(of: $0, caller) }
            }
            return .page(
                DatabaseChanges(
                    changed: ids(.present), deleted: ids(.deleted), purged: ids(.purged),
                    token: try self.token(
                        [(owner, moreComing ? zones.last!.changed : last)], kind: "d", of: Self.mark(caller), in: incarnation,
                        rows),
                    moreComing: moreComing, incarnation: name(of: incarnation)))
        }
    }

    /// The result of reading the changes since a token.
    enum Reading<Page: Sendable>: Sendable {
        case page(Page)
        /// The database lacks the change that the token names: it was put back to an earlier state.
        case lost(TokenPosition, CloudIncarnation)
    }

    private func page<Page: Sendable>(
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Reading<Page>
    ) async throws(CloudError) -> Page {
        switch try await storage.read(body) {
        case .page(let page): return page
        case .lost(let position, let incarnation):
            try await noteLost(position, in: incarnation)
            throw Self.expired
        }
    }

    /// Returns the records of a zone that changed since a token.
    package func zoneChanges(
        _ id: CloudZoneID, since token: CloudToken?, limit: Int?, keys: Set<String>?, _ caller: Caller
    ) async throws(CloudError) -> ZoneChanges {
        guard !id.isDefault else { throw CloudError(.invalidArguments, "cannot get changes in default zone") }
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        let found: (page: ZoneChanges, damaged: [StoredCloudRecord]) = try await page { rows throws(CloudError) in
            let access = try access(to: id, caller, rows)
            let (owner, incarnation) = (access.zone.place.owner, try rows.incarnation())
            let position = try token.map { token throws(CloudError) in
                try self.positions(token, kind: "z", of: access.mark, before: access.commonMark, in: incarnation)
            }?.position(of: owner)
            let (since, last) = (position?.number ?? 0, try rows.lastChange(of: owner))
            if let position, try isLost(position, rows) { return .lost(position, incarnation) }
            guard since <= access.newest else { throw Self.expired }
            let name = try name(of: incarnation, zone: access.zone, caller, rows)
            // A device that compares its records with the cloud's can tell a deleted record from a lost one only by its deletion.
            let tellsDeletions = token != nil || !incarnation.isFirst || name.remade > 0
            let zoneID = self.id(of: access.zone, caller)
            var (changes, failed): ([ZoneChanges.Change], [RecordFailure]) = ([], [])
            var damaged: [StoredCloudRecord] = []
            var (after, bytes, moreComing) = (since, 0, false)
            reading: while true {
                let wanted = most - changes.count - failed.count + 1
                let page = try feed(access, after: after, limit: wanted, rows)
                for item in page {
                    guard changes.count + failed.count < most,
                        changes.isEmpty || bytes + item.record.fields.count <= limits.bytesPerRequest
                    else {
                        moreComing = true
                        break reading
                    }
                    after = item.change
                    bytes += item.record.fields.count
                    if !item.isGone || item.record.damage != nil {
                        do throws(CloudError) {
                            changes.append(.saved(try record(item.record, in: zoneID, keys: keys, access, rows)))
                        } catch {
                            guard error.code == .recordDamaged else { throw error }
                            damaged.append(item.record)
                            failed.append(failure(item.record, error, in: zoneID))
                        }
                    } else if tellsDeletions, item.isTold {
                        changes.append(
                            .deleted(.init(id: CloudRecordID(item.record.name, in: zoneID), type: item.record.type)))
                    }
                }
                if page.count < wanted { break }
            }
            return .page(
                (
                    ZoneChanges(
                        changes: changes,
                        // A damaged row may have any change number, so the token goes no further than the owner's last change.
                        token: try self.token(
                            min(moreComing ? after : max(after, access.newest), last), in: access, incarnation, rows),
                        moreComing: moreComing, failed: failed, incarnation: name.text), damaged
                ))
        }
        await noteDamage(of: found.damaged)
        return found.page
    }

    /// An entry of a feed: a record that changed or went.
    private struct FeedItem {
        let change: Int64
        let record: StoredCloudRecord
        let isGone: Bool
        /// Whether a deletion is reported: the caller could see the record when it went.
        var isTold = true
    }

    /// Returns what changed after a number in the part of a zone that the caller sees.
    private func feed(
        _ access: ShareAccess, after: Int64, limit: Int, _ rows: any CloudTransaction
    ) throws(CloudError) -> [FeedItem] {
        guard let shares = access.shares else {
            let began = access.parts.first?.participant.began ?? 0
            return try rows.records(in: access.zone.id, after: after, limit: limit).map {
                FeedItem(change: $0.changed, record: $0, isGone: $0.isDeleted, isTold: $0.changed > began)
            }
        }
        let page = try rows.covered(by: shares, after: after, limit: limit)
        let found = try rows.records(page.filter { !$0.isGone }.map(\.name), in: access.zone.id)
        // A record that moved from one of the caller's shares to another is still visible.
        let elsewhere = try rows.shares(covering: page.filter(\.isGone).map(\.name), in: access.zone.id)
        return page.map { item in
            if !item.isGone, let record = found[item.name], !record.isDeleted {
                return FeedItem(change: item.change, record: record, isGone: false)
            }
            let began = access.part(of: item.share)?.participant.began ?? .max
            return FeedItem(
                change: item.change, record: StoredCloudRecord(item, in: access.zone.id), isGone: true,
                isTold: item.change > began && (elsewhere[item.name].map { !access.sees($0) } ?? true))
        }
    }

    /// Returns the token of a zone's present state, or of its state before it had any content.
    package func token(of id: CloudZoneID, isFirst: Bool, _ caller: Caller) async throws(CloudError) -> CloudToken {
        guard !id.isDefault else { throw CloudError(.invalidArguments, "cannot get changes in default zone") }
        return try await storage.read { rows throws(CloudError) in
            let access = try access(to: id, caller, rows)
            return try token(isFirst ? 0 : access.newest, in: access, try rows.incarnation(), rows)
        }
    }

    // A token has the digest of what it belongs to, encrypted positions, and a check digest, so that an altered token is not
    // accepted. Tokens are base64, as CloudKit's are: some clients decode them.

    /// Makes the token of a zone.
    func token(
        _ number: Int64, in access: ShareAccess, _ incarnation: CloudIncarnation, _ rows: any CloudTransaction
    ) throws(CloudError) -> CloudToken {
        try token([(access.zone.place.owner, number)], kind: "z", of: access.mark, in: incarnation, rows)
    }

    /// - Parameter positions: How far each owner's changes were reported. A shared database has several owners, others have one.
    func token(
        _ positions: [(owner: String, number: Int64)], kind: String, of mark: String, in incarnation: CloudIncarnation,
        _ rows: any CloudTransaction
    ) throws(CloudError) -> CloudToken {
        var (numbers, writers): ([String], [String]) = ([], [])
        for (owner, number) in positions {
            numbers.append(changeTagCipher.text(number, of: owner))
            writers.append(try writer(of: number, in: owner, rows))
        }
        let place = place(mark, in: incarnation)
        let text = "\(kind)6:\(place):\(numbers.joined(separator: ",")):\(writers.joined(separator: ","))"
        return CloudToken(rawValue: Data("\(text):\(check(text))".utf8).base64EncodedString())
    }

    /// The change that a token names.
    struct TokenPosition: Hashable, Sendable {
        let owner: String
        let number: Int64
        /// The writer that gave out the number; empty where it is not known.
        let writer: String
        /// Whether the number comes from the counter that all owners once shared.
        let isCommon: Bool
    }

    /// The positions in a token.
    struct TokenPositions: Sendable {
        fileprivate let cipher: ChangeTagCipher
        /// The position of each owner, by the cipher's hash of the owner's name.
        fileprivate var owners: [UInt64: (number: Int64, writer: String)] = [:]
        /// The position in a token from the time when all owners shared one counter. It holds for every owner.
        fileprivate var common: (number: Int64, writer: String)?

        /// Returns how far an owner's changes were reported; `nil` where none were.
        func position(of owner: String) -> TokenPosition? {
            let known = owners[cipher.ownerHash(owner)]
            return (known ?? common).map {
                TokenPosition(owner: owner, number: $0.number, writer: $0.writer, isCommon: known == nil)
            }
        }
    }

    /// - Parameters:
    ///   - mark: The mark that the token has to have.
    ///   - commonMark: The mark that the token would have from the time when all owners shared one counter.
    func positions(
        _ token: CloudToken, kind: String, of mark: String, before commonMark: String, in incarnation: CloudIncarnation
    ) throws(CloudError) -> TokenPositions {
        let text = Data(base64Encoded: token.rawValue).flatMap { String(data: $0, encoding: .utf8) } ?? ""
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 5, ["\(kind)4", "\(kind)5", "\(kind)6"].contains(parts[0]),
            check(parts[0..<4].joined(separator: ":")) == parts[4]
        else { throw CloudError(.invalidArguments, "this cloud has not issued the change token") }
        var positions = TokenPositions(cipher: changeTagCipher)
        if parts[0] == "\(kind)5", parts[1] == place(commonMark, in: incarnation), let number = changeTagCipher.number(parts[2]) {
            positions.common = (number, String(parts[3]))
            return positions
        }
        // The number in a token of version 4 is encrypted with a cipher that no longer exists.
        guard parts[0] == "\(kind)6", parts[1] == place(mark, in: incarnation) else { throw Self.expired }
        let (numbers, writers) = (
            parts[2].split(separator: ","), parts[3].split(separator: ",", omittingEmptySubsequences: false)
        )
        for (number, writer) in zip(numbers, writers) {
            guard let position = changeTagCipher.position(number) else { throw Self.expired }
            positions.owners[position.owner] = (position.number, String(writer))
        }
        return positions
    }

    /// Returns the digest of a token's mark and of the database's incarnation.
    private func place(_ mark: String, in incarnation: CloudIncarnation) -> String {
        changeTagCipher.digest("\(Hexadecimal.text(incarnation.id)) \(mark)")
    }

    /// Returns the check digest of a token, which only the cloud can make. Otherwise a made-up token could make the database
    /// believe that it was put back.
    private func check(_ text: String) -> Substring { changeTagCipher.digest("token " + text).prefix(20) }

    private static let expired = CloudError(.changeTokenExpired, "the change token has expired. Fetch everything again")
}

extension StoredCloudRecord {
    /// Makes the deletion that a caller gets of a record that has left a share.
    fileprivate init(_ gone: CoveredRecord, in zone: StoredZone.ID) {
        let nobody = CloudRecord.Stamp(time: 0, userRecordName: "")
        self.init(
            zone: zone, name: gone.name, type: gone.type, fields: Data(), parent: nil, changed: gone.change, created: nobody,
            modified: nobody, isDeleted: true, dependsOn: [], assets: [], indexed: [:])
    }
}
