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
        let since = try token.map { token throws(CloudError) in try Self.number(token, kind: "d", of: owner(caller)) } ?? 0
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        return try await storage.read { rows throws(CloudError) in
            let last = try rows.lastChange()
            guard since <= last else { throw Self.expired }
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
                token: Self.token(moreComing ? zones.last!.changed : last, kind: "d", of: owner(caller)), moreComing: moreComing)
        }
    }

    /// The records of a zone that changed since a token.
    func zoneChanges(
        _ id: CloudZoneID, since token: CloudToken?, limit: Int?, keys: Set<String>?, _ caller: Caller
    ) async throws(CloudError) -> ZoneChanges {
        guard !id.isDefault else { throw CloudError(.invalidArguments, "cannot get changes in default zone") }
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        return try await storage.read { rows throws(CloudError) in
            let zone = try zone(id, caller, rows)
            let mark = "\(zone.id).\(zone.made)"
            let since = try token.map { token throws(CloudError) in try Self.number(token, kind: "z", of: mark) } ?? 0
            guard since <= zone.changed else { throw Self.expired }
            let zoneID = self.id(of: zone, caller)
            var changes: [ZoneChanges.Change] = []
            var (after, bytes, moreComing) = (since, 0, false)
            reading: while true {
                let wanted = most - changes.count + 1
                let page = try rows.records(in: zone.id, after: after, limit: wanted)
                for stored in page {
                    guard changes.count < most, changes.isEmpty || bytes + stored.fields.count <= limits.bytesPerRequest else {
                        moreComing = true
                        break reading
                    }
                    after = stored.changed
                    bytes += stored.fields.count
                    if !stored.isDeleted {
                        changes.append(.saved(try record(stored, in: zoneID, keys: keys)))
                    } else if token != nil {
                        changes.append(
                            .deleted(.init(id: CloudRecordID(stored.name, in: zoneID), type: stored.type)))
                    }
                }
                if page.count < wanted { break }
            }
            return ZoneChanges(
                changes: changes, token: Self.token(moreComing ? after : max(after, zone.changed), kind: "z", of: mark),
                moreComing: moreComing)
        }
    }

    // Tokens: what they are of, and a number; with a check, so that no typing error passes for one.

    private static func token(_ number: Int64, kind: String, of mark: String) -> CloudToken {
        let text = "\(kind)1:\(mark):\(number)"
        return CloudToken(rawValue: "\(text):\(check(text))")
    }

    private static func number(_ token: CloudToken, kind: String, of mark: String) throws(CloudError) -> Int64 {
        let parts = token.rawValue.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 4, let number = Int64(parts[2]), number >= 0, parts[0] == "\(kind)1",
            check(parts[0..<3].joined(separator: ":")) == parts[3]
        else { throw CloudError(.invalidArguments, "the change token is none that this cloud has given out") }
        guard parts[1] == mark else { throw expired }
        return number
    }

    /// FNV-1a. It keeps nobody out: what may be seen does not depend on a token.
    private static func check(_ text: String) -> String {
        String(text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 36)
    }

    private static let expired = CloudError(.changeTokenExpired, "the change token has expired. Fetch everything anew")
}
