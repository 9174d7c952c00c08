import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension PostgresCloudTransaction: SharingTransaction {
    // Shares

    static let shareColumns = "number, zone, name, root, title, public_permission, touched, is_ended, digest"

    func share(_ id: StoredShare.ID) throws(CloudError) -> StoredShare? {
        try run {
            let sql = "SELECT \(Self.shareColumns) FROM tidemark_shares WHERE container = $1 AND owner = $2 AND number = $3"
            return try db.query(sql, container, id.owner.key, id.number).first.map { try StoredShare.checked($0, id.owner) }
        }
    }

    func share(named name: String, in zone: StoredZone.ID) throws(CloudError) -> StoredShare? {
        try run {
            let sql = """
                SELECT \(Self.shareColumns) FROM tidemark_shares
                WHERE container = $1 AND owner = $2 AND zone = $3 AND name = $4 AND NOT is_ended
                """
            return try db.query(sql, container, zone.owner.key, zone.number, name.key).first.map {
                try StoredShare.checked($0, zone.owner)
            }
        }
    }

    func shares(in zone: StoredZone.ID) throws(CloudError) -> [StoredShare] {
        try run {
            let sql = """
                SELECT \(Self.shareColumns) FROM tidemark_shares
                WHERE container = $1 AND owner = $2 AND zone = $3 AND NOT is_ended ORDER BY number
                """
            return try db.query(sql, container, zone.owner.key, zone.number).compactMap {
                let (share, isWhole) = try StoredShare.read($0, zone.owner)
                return isWhole ? share : nil
            }
        }
    }

    func save(_ share: StoredShare) throws(CloudError) -> StoredShare {
        try run {
            let number = share.number == 0 ? "nextval('tidemark_share_numbers')" : "$11"
            let sql = """
                INSERT INTO tidemark_shares (container, owner, number, zone, name, root, title, public_permission, touched, is_ended,
                    digest)
                SELECT $1, $2, \(number), $3, $4, $5, $6, $7, $8, $9, $10
                ON CONFLICT (container, owner, number) DO UPDATE SET zone = excluded.zone, name = excluded.name,
                    root = excluded.root, title = excluded.title, public_permission = excluded.public_permission,
                    touched = excluded.touched, is_ended = excluded.is_ended, digest = excluded.digest
                RETURNING number
                """
            var parameters: [any PostgresParameter] = [
                container, try key(writing: share.zone.owner), share.zone.number, share.name.key, share.root?.key,
                share.title?.key, Int64(share.publicPermission.rawValue), share.touched, share.isEnded, share.rowDigest,
            ]
            if share.number != 0 { parameters.append(share.number) }
            var saved = share
            saved.number = try db.run([PostgresCommand(sql, parameters)])[0][0].value(0)
            return saved
        }
    }

    // Participants

    static let participantColumns = """
        id, share, zone, account, name, address_kind, address, role, permission, acceptance, began, ended, invited, expelled, digest
        """

    func participants(of share: StoredShare.ID) throws(CloudError) -> [StoredParticipant] {
        try run {
            let sql = """
                SELECT \(Self.participantColumns) FROM tidemark_participants
                WHERE container = $1 AND owner = $2 AND share = $3 ORDER BY ordinal
                """
            return try db.query(sql, container, share.owner.key, share.number).map {
                try StoredParticipant.checked($0, share.owner)
            }
        }
    }

    func participants(called user: String, in zone: StoredZone.ID) throws(CloudError) -> [StoredParticipant] {
        try run {
            let sql = """
                SELECT \(Self.participantColumns) FROM tidemark_participants
                WHERE container = $1 AND owner = $2 AND account = $3 AND zone = $4 ORDER BY ordinal
                """
            // A damaged row grants nothing, and takes nothing from the others.
            return try db.query(sql, container, zone.owner.key, user.key, zone.number).compactMap {
                let (participant, isWhole) = try StoredParticipant.read($0, zone.owner)
                return isWhole ? participant : nil
            }
        }
    }

    func save(_ participant: StoredParticipant) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_participants (container, owner, id, share, zone, account, name, address_kind, address, role,
                    permission, acceptance, began, ended, invited, expelled, digest)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
                ON CONFLICT (container, owner, id) DO UPDATE SET account = excluded.account, name = excluded.name,
                    address_kind = excluded.address_kind, address = excluded.address, role = excluded.role,
                    permission = excluded.permission, acceptance = excluded.acceptance, began = excluded.began,
                    ended = excluded.ended, invited = excluded.invited, expelled = excluded.expelled, digest = excluded.digest
                """
            let name = try participant.storedName
            try db.enqueue(
                sql, container, key(writing: participant.zone.owner), participant.id.key, participant.share.number,
                participant.zone.number, participant.user?.key, name?.key, participant.lookUp?.storedKind,
                participant.lookUp?.value.key,
                Int64(participant.role.rawValue), Int64(participant.permission.rawValue),
                Int64(participant.acceptanceStatus.rawValue), participant.began, participant.ended, participant.invited,
                participant.expelled, participant.rowDigest(.whole, name: name))
        }
    }

    func removeParticipant(_ id: String, of share: StoredShare.ID) throws(CloudError) {
        try run {
            try db.enqueue(
                "DELETE FROM tidemark_participants WHERE container = $1 AND owner = $2 AND share = $3 AND id = $4", container,
                key(writing: share.owner), share.number, id.key)
        }
    }

    func sharedZones(of user: String) throws(CloudError) -> [StoredZone.ID] {
        try run {
            let sql = """
                SELECT zone_owner, zone FROM tidemark_shared_zones WHERE container = $1 AND owner = $2 ORDER BY zone_owner, zone
                """
            return try db.query(sql, container, user.key).map {
                StoredZone.ID(owner: try $0.text(0), number: try $0.value(1))
            }
        }
    }

    func noteSharedZone(_ zone: StoredZone.ID, for user: String) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_shared_zones (container, owner, zone_owner, zone) VALUES ($1, $2, $3, $4)
                ON CONFLICT (container, owner, zone_owner, zone) DO NOTHING
                """
            try db.enqueue(sql, container, key(writing: user), zone.owner.key, zone.number)
        }
    }

    // Links

    func ownerOfLink(_ digest: Data) throws(CloudError) -> String? {
        try run {
            let sql = "SELECT owner FROM tidemark_links WHERE container = $1 AND digest = $2"
            return try db.query(sql, container, digest).first?.text(0)
        }
    }

    func link(_ digest: Data, of owner: String) throws(CloudError) -> StoredLink? {
        try run {
            let sql = """
                SELECT digest, id, share, participant FROM tidemark_links WHERE container = $1 AND owner = $2 AND digest = $3
                """
            return try db.query(sql, container, owner.key, digest).first.map {
                StoredLink(
                    digest: try $0.value(0), id: try $0.text(1),
                    share: StoredShare.ID(owner: owner, number: try $0.value(2)), participant: try $0.optionalText(3))
            }
        }
    }

    func links(to share: StoredShare.ID) throws(CloudError) -> [StoredLink] {
        try run {
            let sql = """
                SELECT digest, id, participant FROM tidemark_links WHERE container = $1 AND owner = $2 AND share = $3 ORDER BY id
                """
            return try db.query(sql, container, share.owner.key, share.number).map {
                StoredLink(digest: try $0.value(0), id: try $0.text(1), share: share, participant: try $0.optionalText(2))
            }
        }
    }

    func linkCount(of share: StoredShare.ID) throws(CloudError) -> Int {
        try run {
            let sql = "SELECT count(*) FROM tidemark_links WHERE container = $1 AND owner = $2 AND share = $3"
            return Int(try db.query(sql, container, share.owner.key, share.number)[0].value(0, as: Int64.self))
        }
    }

    func add(_ link: StoredLink) throws(CloudError) {
        try run {
            // The statement is sent at once, since it may fail.
            let sql = """
                INSERT INTO tidemark_links (container, owner, digest, id, share, participant) VALUES ($1, $2, $3, $4, $5, $6)
                """
            try db.query(
                sql, container, key(writing: link.share.owner), link.digest, link.id.key, link.share.number,
                link.participant?.key)
        }
    }

    func removeLink(_ id: String, to share: StoredShare.ID) throws(CloudError) -> Bool {
        try run {
            let sql = "DELETE FROM tidemark_links WHERE container = $1 AND owner = $2 AND share = $3 AND id = $4"
            return try db.query(sql, container, key(writing: share.owner), share.number, id.key).affected > 0
        }
    }

    func removeLinks(to share: StoredShare.ID, participant: String?) throws(CloudError) -> [String] {
        try run {
            let sql = """
                DELETE FROM tidemark_links
                WHERE container = $1 AND owner = $2 AND share = $3 AND ($4 IS NULL OR participant = $4) RETURNING id
                """
            return try db.query(sql, container, key(writing: share.owner), share.number, participant?.key)
                .map { try $0.text(0) }.sorted()
        }
    }

    // Hierarchies

    func shares(covering names: [String], in zone: StoredZone.ID) throws(CloudError) -> [String: StoredShare.ID] {
        try run {
            let sql = Self.byName("r.name, r.share", in: "tidemark_covered", "AND NOT r.is_gone OFFSET 0")
            var found: [String: StoredShare.ID] = [:]
            for row in try db.query(sql, container, zone.owner.key, zone.number, names.map(\.key)) {
                found[try row.text(0)] = StoredShare.ID(owner: zone.owner, number: try row.value(1))
            }
            return found
        }
    }

    func covered(by shares: [StoredShare.ID], after change: Int64, limit: Int) throws(CloudError) -> [CoveredRecord] {
        try run {
            guard let owner = shares.first?.owner else { return [] }
            // A record that has left one of the shares for another has one change in both.
            let sql = """
                SELECT c.share, c.name, c.type, c.change, c.is_gone FROM unnest($3) AS s (number) CROSS JOIN LATERAL (
                    SELECT * FROM tidemark_covered e
                    WHERE e.container = $1 AND e.owner = $2 AND e.share = s.number AND e.change > $4 ORDER BY e.change LIMIT $5) c
                ORDER BY c.change, c.is_gone, c.share
                """
            var found: [CoveredRecord] = []
            for row in try db.query(sql, container, owner.key, shares.map(\.number), change, Int64(limit)) {
                let record = CoveredRecord(
                    share: StoredShare.ID(owner: owner, number: try row.value(0)), name: try row.text(1), type: try row.text(2),
                    change: try row.value(3), isGone: try row.value(4))
                // Such a record is listed once, since a page could end between its two rows.
                if let last = found.last, last.change == record.change, last.name == record.name { continue }
                guard found.count < limit else { break }
                found.append(record)
            }
            return found
        }
    }

    func save(_ records: [CoveredRecord], in zone: StoredZone.ID) throws(CloudError) {
        try run {
            let owner = try key(writing: zone.owner)
            let sql = """
                INSERT INTO tidemark_covered (container, owner, zone, share, name, type, change, is_gone)
                SELECT $1, $2, $3, v.*, $8 FROM unnest($4, $5, $6, $7) AS v
                ON CONFLICT (container, owner, share, name)
                DO UPDATE SET type = excluded.type, change = excluded.change, is_gone = excluded.is_gone
                """
            // Records that are gone come first: one that has moved to another share would else be covered twice.
            for isGone in [true, false] {
                var last: [RecordKey: (place: Int, record: CoveredRecord)] = [:]
                for (place, record) in records.enumerated() where record.isGone == isGone {
                    last[RecordKey(zone: .init(owner: "", number: record.share.number), name: record.name.key)] = (place, record)
                }
                guard !last.isEmpty else { continue }
                let rows = last.values.sorted { $0.place < $1.place }.map(\.record)
                try db.enqueue(
                    sql, container, owner, zone.number, rows.map(\.share.number), rows.map(\.name.key), rows.map(\.type.key),
                    rows.map(\.change), isGone)
            }
        }
    }

    func removeCovered(by share: StoredShare.ID) throws(CloudError) {
        try run {
            try db.enqueue(
                "DELETE FROM tidemark_covered WHERE container = $1 AND owner = $2 AND share = $3", container,
                key(writing: share.owner), share.number)
        }
    }

    // Assets

    func noteUpload(_ digest: String, owner: String, by user: String) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_uploads (container, owner, digest, account) VALUES ($1, $2, $3, $4)
                ON CONFLICT (container, owner, digest, account) DO NOTHING
                """
            try db.enqueue(sql, container, key(writing: owner), digest.key, user.key)
        }
    }

    func uploads(_ digests: Set<String>, owner: String, by user: String) throws(CloudError) -> Set<String> {
        try run {
            let sql = """
                SELECT x.* FROM unnest($3) AS n (digest) CROSS JOIN LATERAL (SELECT u.digest FROM tidemark_uploads u
                    WHERE u.container = $1 AND u.owner = $2 AND u.digest = n.digest AND u.account = $4 OFFSET 0) x
                """
            return Set(try db.query(sql, container, owner.key, digests.map(\.key), user.key).map { try $0.text(0) })
        }
    }

    /// SQL that looks up which records of a zone name an asset.
    private static func naming(_ digest: String) -> String {
        """
        SELECT n.digest, n.name FROM tidemark_named n WHERE n.container = $1 AND n.owner = $2 AND n.zone = $3 AND n.digest = \(digest)
            AND n.\(PostgresCloudTables.hasDigest)
        """
    }

    func named(_ digests: Set<String>, in zone: StoredZone.ID, shares: [StoredShare.ID]?) throws(CloudError) -> Set<String> {
        try run {
            let (keys, owner) = (digests.map(\.key), zone.owner.key)
            guard let shares else {
                let sql = """
                    SELECT x.digest FROM unnest($4) AS d (digest) CROSS JOIN LATERAL (\(Self.naming("d.digest")) LIMIT 1) x
                    """
                return Set(try db.query(sql, container, owner, zone.number, keys).map { try $0.text(0) })
            }
            let sql = """
                SELECT x.digest FROM unnest($4) AS d (digest) CROSS JOIN LATERAL (
                    SELECT o.digest FROM (\(Self.naming("d.digest")) OFFSET 0) o CROSS JOIN LATERAL (
                        SELECT c.share FROM tidemark_covered c
                        WHERE c.container = $1 AND c.owner = $2 AND c.zone = $3 AND c.name = o.name AND NOT c.is_gone OFFSET 0) s
                    WHERE s.share = ANY($5) LIMIT 1) x
                """
            return Set(
                try db.query(sql, container, owner, zone.number, keys, shares.map(\.number)).map { try $0.text(0) })
        }
    }

    // What was done

    func lastAuditTime(of owner: String) throws(CloudError) -> Int64? {
        try run {
            let sql = "SELECT max(time) FROM tidemark_audit WHERE container = $1 AND owner = $2"
            return try db.query(sql, container, owner.key)[0].value(0, as: Int64?.self)
        }
    }

    func add(_ entry: StoredAuditEntry) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_audit (container, owner, time, zone, share, account, kind, subject, value)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                """
            try db.query(
                sql, container, key(writing: entry.zone.owner), entry.time, entry.zone.number, entry.share.number,
                entry.user.key, entry.kind.rawValue.key, entry.subject?.key, entry.value?.key)
        }
    }

    func auditEntries(in zone: StoredZone.ID, after time: Int64) throws(CloudError) -> [StoredAuditEntry] {
        try run {
            let sql = """
                SELECT time, share, account, kind, subject, value FROM tidemark_audit
                WHERE container = $1 AND owner = $2 AND zone = $3 AND time > $4 ORDER BY time
                """
            return try db.query(sql, container, zone.owner.key, zone.number, time).compactMap { row in
                guard let kind = ShareAuditEntry.Kind(rawValue: try row.text(3)) else { return nil }
                return StoredAuditEntry(
                    time: try row.value(0), zone: zone, share: StoredShare.ID(owner: zone.owner, number: try row.value(1)),
                    user: try row.text(2), kind: kind, subject: try row.optionalText(4), value: try row.optionalText(5))
            }
        }
    }
}
