import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// The zones that changed since a token.
    func databaseChanges(
        since token: CloudToken?, limit: Int?, _ caller: Caller
    ) async throws(CloudError) -> DatabaseChanges {
        guard caller.scope != .public else {
            throw CloudError(.invalidArguments, "the public database has no feed of changes")
        }
        let since = try token.map { token throws(CloudError) in try number(token, kind: "d", of: Self.mark(caller)) } ?? 0
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        return try await storage.read { rows throws(CloudError) in
            let last = try rows.lastChange()
            guard since <= last else { throw Self.expired }
            guard caller.scope != .shared else {
                return try sharedChanges(since: token == nil ? nil : since, most: most, last: last, caller, rows)
            }
            let page = try rows.zones(caller.scope, owner: owner(caller), after: since, limit: most + 1)
            let zones = page.prefix(most)
            let moreComing = page.count > most
            // Without a token, what is gone is nothing that could be missed; what was purged is to be known all the same.
            let wanted = zones.filter { token != nil || $0.state != .deleted }
            func ids(_ state: StoredZone.State) -> [CloudZoneID] {
                wanted.filter { $0.state == state }.map { id(of: $0, caller) }
            }
            return DatabaseChanges(
                changed: ids(.present), deleted: ids(.deleted), purged: ids(.purged),
                token: self.token(moreComing ? zones.last!.changed : last, kind: "d", of: Self.mark(caller)),
                moreComing: moreComing)
        }
    }

    /// The records of a zone that changed since a token.
    func zoneChanges(
        _ id: CloudZoneID, since token: CloudToken?, limit: Int?, keys: Set<String>?, _ caller: Caller
    ) async throws(CloudError) -> ZoneChanges {
        guard !id.isDefault else { throw CloudError(.invalidArguments, "cannot get changes in default zone") }
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        return try await storage.read { rows throws(CloudError) in
            let access = try access(to: id, caller, rows)
            let mark = access.mark
            let since = try token.map { token throws(CloudError) in try number(token, kind: "z", of: mark) } ?? 0
            guard since <= access.newest else { throw Self.expired }
            let zoneID = self.id(of: access.zone, caller)
            var changes: [ZoneChanges.Change] = []
            var (after, bytes, moreComing) = (since, 0, false)
            reading: while true {
                let wanted = most - changes.count + 1
                let page = try feed(access, after: after, limit: wanted, rows)
                for item in page {
                    guard changes.count < most, changes.isEmpty || bytes + item.record.fields.count <= limits.bytesPerRequest
                    else {
                        moreComing = true
                        break reading
                    }
                    after = item.change
                    bytes += item.record.fields.count
                    if !item.isGone {
                        changes.append(.saved(try record(item.record, in: zoneID, keys: keys, access, rows)))
                    } else if token != nil, item.isTold {
                        changes.append(
                            .deleted(.init(id: CloudRecordID(item.record.name, in: zoneID), type: item.record.type)))
                    }
                }
                if page.count < wanted { break }
            }
            return ZoneChanges(
                changes: changes, token: self.token(moreComing ? after : max(after, access.newest), kind: "z", of: mark),
                moreComing: moreComing)
        }
    }

    /// What a feed tells of a record.
    private struct FeedItem {
        let change: Int64
        let record: StoredRecord
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
                change: item.change, record: StoredRecord(item, in: access.zone.id), isGone: true,
                isTold: item.change > began && (elsewhere[item.name].map { !access.sees($0) } ?? true))
        }
    }

    /// The token of a zone as it is now, or as it was before anything was in it.
    func token(of id: CloudZoneID, isFirst: Bool, _ caller: Caller) async throws(CloudError) -> CloudToken {
        guard !id.isDefault else { throw CloudError(.invalidArguments, "cannot get changes in default zone") }
        return try await storage.read { rows throws(CloudError) in
            let access = try access(to: id, caller, rows)
            return token(isFirst ? 0 : access.newest, kind: "z", of: access.mark)
        }
    }

    // Tokens: what they are of, and a number, both sealed; with a check, so that no typing error passes for one. They are base 64, as
    // CloudKit's are: there are clients that decode them.

    func token(_ number: Int64, kind: String, of mark: String) -> CloudToken {
        let text = "\(kind)2:\(seal.digest(mark)):\(seal.text(number))"
        return CloudToken(rawValue: Data("\(text):\(Self.check(text))".utf8).base64EncodedString())
    }

    private func number(_ token: CloudToken, kind: String, of mark: String) throws(CloudError) -> Int64 {
        let text = Data(base64Encoded: token.rawValue).flatMap { String(data: $0, encoding: .utf8) } ?? ""
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 4, let number = seal.number(parts[2]), parts[0] == "\(kind)2",
            Self.check(parts[0..<3].joined(separator: ":")) == parts[3]
        else { throw CloudError(.invalidArguments, "the change token is none that this cloud has given out") }
        guard parts[1] == seal.digest(mark) else { throw Self.expired }
        return number
    }

    /// FNV-1a. It keeps nobody out: what may be seen does not depend on a token.
    private static func check(_ text: String) -> String {
        String(text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 36)
    }

    private static let expired = CloudError(.changeTokenExpired, "the change token has expired. Fetch everything anew")
}

extension StoredRecord {
    /// What is told of a record that has left a share.
    fileprivate init(_ gone: CoveredRecord, in zone: Int64) {
        let nobody = CloudRecord.Stamp(time: 0, userRecordName: "")
        self.init(
            zone: zone, name: gone.name, type: gone.type, fields: Data(), parent: nil, changed: gone.change, created: nobody,
            modified: nobody, isDeleted: true, dependsOn: [], assets: [], indexed: [:])
    }
}
