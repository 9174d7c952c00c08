import Foundation
package import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// The zones that changed since a token.
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
            // Without a token, what is gone is nothing that could be missed; what was purged is to be known all the same.
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

    /// What reading changes since a token has come to.
    enum Reading<Page: Sendable>: Sendable {
        case page(Page)
        /// The token is of a change that the database does not have: it was put back to an earlier state.
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

    /// The records of a zone that changed since a token.
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
            // A device that compares can tell a deleted record from a lost one only by its deletion.
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
                        // The number of a damaged record's change may be any.
                        token: try self.token(
                            min(moreComing ? after : max(after, access.newest), last), in: access, incarnation, rows),
                        moreComing: moreComing, failed: failed, incarnation: name.text), damaged
                ))
        }
        await noteDamage(of: found.damaged)
        return found.page
    }

    /// What a feed tells of a record.
    private struct FeedItem {
        let change: Int64
        let record: StoredCloudRecord
        let isGone: Bool
        /// Whether it went while the caller could see it.
        var isTold = true
    }

    /// What changed in that which a caller sees of a zone, after a number.
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
        // What went from one of the caller's shares into another is still there.
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

    /// The token of a zone as it is now, or as it was before anything was in it.
    package func token(of id: CloudZoneID, isFirst: Bool, _ caller: Caller) async throws(CloudError) -> CloudToken {
        guard !id.isDefault else { throw CloudError(.invalidArguments, "cannot get changes in default zone") }
        return try await storage.read { rows throws(CloudError) in
            let access = try access(to: id, caller, rows)
            return try token(isFirst ? 0 : access.newest, in: access, try rows.incarnation(), rows)
        }
    }

    // Tokens: what they are of, as a digest, and positions, encrypted; with a check, so that no typing error passes for one. They are base 64, as
    // CloudKit's are: there are clients that decode them.

    /// The token of a zone.
    func token(
        _ number: Int64, in access: ShareAccess, _ incarnation: CloudIncarnation, _ rows: any CloudTransaction
    ) throws(CloudError) -> CloudToken {
        try token([(access.zone.place.owner, number)], kind: "z", of: access.mark, in: incarnation, rows)
    }

    /// - Parameter positions: How far the changes of an owner have been told: of one, but in a shared database, which has the zones of many.
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

    /// The change that a token is of.
    struct TokenPosition: Hashable, Sendable {
        let owner: String
        let number: Int64
        /// Which writer gave out the number; empty where that was not known.
        let writer: String
        /// Whether the number is of the time when all owners were counted together.
        let isCommon: Bool
    }

    /// What a token holds.
    struct TokenPositions: Sendable {
        fileprivate let cipher: ChangeTagCipher
        /// By what the cipher knows an owner by.
        fileprivate var owners: [UInt64: (number: Int64, writer: String)] = [:]
        /// Of a token from the time when all owners were counted together: its number is one of each owner.
        fileprivate var common: (number: Int64, writer: String)?

        /// How far an owner's changes have been told; `nil` where nothing was.
        func position(of owner: String) -> TokenPosition? {
            let known = owners[cipher.ownerHash(owner)]
            return (known ?? common).map {
                TokenPosition(owner: owner, number: $0.number, writer: $0.writer, isCommon: known == nil)
            }
        }
    }

    /// - Parameters:
    ///   - mark: What the token has to be of.
    ///   - commonMark: How tokens named that when all owners were counted together.
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
        // One of version 4 has its number under a cipher that is gone.
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

    /// What a token is of, and of which life of the database.
    private func place(_ mark: String, in incarnation: CloudIncarnation) -> String {
        changeTagCipher.digest("\(Hexadecimal.text(incarnation.id)) \(mark)")
    }

    /// Only the cloud can make it: a token that nobody was given would else have the database take itself for one that was put back.
    private func check(_ text: String) -> Substring { changeTagCipher.digest("token " + text).prefix(20) }

    private static let expired = CloudError(.changeTokenExpired, "the change token has expired. Fetch everything again")
}

extension StoredCloudRecord {
    /// What is told of a record that has left a share.
    fileprivate init(_ gone: CoveredRecord, in zone: StoredZone.ID) {
        let nobody = CloudRecord.Stamp(time: 0, userRecordName: "")
        self.init(
            zone: zone, name: gone.name, type: gone.type, fields: Data(), parent: nil, changed: gone.change, created: nobody,
            modified: nobody, isDeleted: true, dependsOn: [], assets: [], indexed: [:])
    }
}
