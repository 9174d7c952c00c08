import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension SQLiteCloudTransaction: SharingTransaction {
    // Shares

    func share(_ id: StoredShare.ID) throws(CloudError) -> StoredShare? {
        try run {
            try Row.fetchOne(
                statement("SELECT * FROM shares WHERE owner = ? AND id = ?"), arguments: [number(of: id.owner), id.number]
            ).map { try StoredShare(checked: $0, id.owner) }
        }
    }

    func share(named name: String, in zone: StoredZone.ID) throws(CloudError) -> StoredShare? {
        try run {
            try Row.fetchOne(
                statement("SELECT * FROM shares WHERE owner = ? AND zone = ? AND name = ? AND is_ended = 0"),
                arguments: [number(of: zone.owner), zone.number, name]
            ).map { try StoredShare(checked: $0, zone.owner) }
        }
    }

    func shares(in zone: StoredZone.ID) throws(CloudError) -> [StoredShare] {
        try run {
            // A damaged share gives access to nobody, and leaves the other shares as they are.
            try Row.fetchAll(
                statement("SELECT * FROM shares WHERE owner = ? AND zone = ? AND is_ended = 0 ORDER BY id"),
                arguments: [number(of: zone.owner), zone.number]
            ).compactMap { try? StoredShare(checked: $0, zone.owner) }
        }
    }

    func save(_ share: StoredShare) throws(CloudError) -> StoredShare {
        try run {
            let sql = """
                INSERT OR REPLACE INTO shares (owner, id, zone, name, root, title, public_permission, touched, is_ended, digest)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
                """
            var saved = share
            saved.number =
                try Int64.fetchOne(
                    statement(sql),
                    arguments: [
                        number(writing: share.zone.owner), share.number == 0 ? nil : share.number, share.zone.number, share.name,
                        share.root, share.title,
                        share.publicPermission.rawValue, share.touched, share.isEnded, share.rowDigest,
                    ]) ?? 0
            return saved
        }
    }

    // Participants

    func participants(of share: StoredShare.ID) throws(CloudError) -> [StoredParticipant] {
        try run {
            try Row.fetchAll(
                statement("SELECT * FROM participants WHERE owner = ? AND share = ? ORDER BY ordinal"),
                arguments: [number(of: share.owner), share.number]
            ).map { try StoredParticipant(checked: $0, share.owner) }
        }
    }

    func participants(called user: String, in zone: StoredZone.ID) throws(CloudError) -> [StoredParticipant] {
        try run {
            // A damaged participant has no access, and leaves the others as they are.
            try Row.fetchAll(
                statement("SELECT * FROM participants WHERE owner = ? AND user = ? AND zone = ? ORDER BY ordinal"),
                arguments: [number(of: zone.owner), user, zone.number]
            ).compactMap { try? StoredParticipant(checked: $0, zone.owner) }
        }
    }

    func save(_ participant: StoredParticipant) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO participants (owner, id, share, zone, user, name, address_kind, address, role, permission, acceptance, began,
                ended, invited, expelled, digest) VALUES (?16, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
                ON CONFLICT (owner, id) DO UPDATE SET
                user = ?4, name = ?5, address_kind = ?6, address = ?7, role = ?8, permission = ?9, acceptance = ?10, began = ?11,
                ended = ?12, invited = ?13, expelled = ?14, digest = ?15
                """
            let name = try participant.storedName
            try statement(sql).execute(arguments: [
                participant.id, participant.share.number, participant.zone.number, participant.user,
                name,
                participant.lookUp?.storedKind, participant.lookUp?.value, participant.role.rawValue,
                participant.permission.rawValue,
                participant.acceptanceStatus.rawValue, participant.began, participant.ended, participant.invited,
                participant.expelled, participant.rowDigest(.untilNUL, name: name), number(writing: participant.zone.owner),
            ])
        }
    }

    func removeParticipant(_ id: String, of share: StoredShare.ID) throws(CloudError) {
        try run {
            try statement("DELETE FROM participants WHERE owner = ? AND share = ? AND id = ?")
                .execute(arguments: [number(writing: share.owner), share.number, id])
        }
    }

    func sharedZones(of user: String) throws(CloudError) -> [StoredZone.ID] {
        try run {
            try Row.fetchAll(
                statement("SELECT zone_owner, zone FROM shared_zones WHERE owner = ? ORDER BY zone_owner, zone"),
                arguments: [number(of: user)]
            ).map { row in try StoredZone.ID(owner: row.decode(atIndex: 0), number: row.decode(atIndex: 1)) }
        }
    }

    func noteSharedZone(_ zone: StoredZone.ID, for user: String) throws(CloudError) {
        try run {
            try statement("INSERT OR IGNORE INTO shared_zones (owner, zone_owner, zone) VALUES (?, ?, ?)")
                .execute(arguments: [number(writing: user), zone.owner, zone.number])
        }
    }

    // Links

    func ownerOfLink(_ digest: Data) throws(CloudError) -> String? {
        try run {
            let sql = "SELECT o.name FROM links l JOIN owners o ON o.number = l.owner WHERE l.digest = ?"
            return try String.fetchOne(statement(sql), arguments: [digest])
        }
    }

    func link(_ digest: Data, of owner: String) throws(CloudError) -> StoredLink? {
        try run {
            try Row.fetchOne(
                statement("SELECT digest, id, share, participant FROM links WHERE owner = ? AND digest = ?"),
                arguments: [number(of: owner), digest]
            ).map { row in
                try StoredLink(
                    digest: row.decode(atIndex: 0), id: row.decode(atIndex: 1),
                    share: StoredShare.ID(owner: owner, number: row.decode(atIndex: 2)), participant: row.decode(atIndex: 3))
            }
        }
    }

    func links(to share: StoredShare.ID) throws(CloudError) -> [StoredLink] {
        try run {
            try Row.fetchAll(
                statement("SELECT digest, id, participant FROM links WHERE owner = ? AND share = ? ORDER BY id"),
                arguments: [number(of: share.owner), share.number]
            ).map { row in
                try StoredLink(
                    digest: row.decode(atIndex: 0), id: row.decode(atIndex: 1), share: share, participant: row.decode(atIndex: 2))
            }
        }
    }

    func linkCount(of share: StoredShare.ID) throws(CloudError) -> Int {
        try run {
            try Int.fetchOne(
                statement("SELECT count(*) FROM links WHERE owner = ? AND share = ?"),
                arguments: [number(of: share.owner), share.number]) ?? 0
        }
    }

    func add(_ link: StoredLink) throws(CloudError) {
        try run {
            try statement("INSERT INTO links (owner, digest, id, share, participant) VALUES (?, ?, ?, ?, ?)")
                .execute(arguments: [
                    number(writing: link.share.owner), link.digest, link.id, link.share.number, link.participant,
                ])
        }
    }

    func removeLink(_ id: String, to share: StoredShare.ID) throws(CloudError) -> Bool {
        try run {
            try statement("DELETE FROM links WHERE owner = ? AND share = ? AND id = ?")
                .execute(arguments: [number(writing: share.owner), share.number, id])
            return db.changesCount > 0
        }
    }

    func removeLinks(to share: StoredShare.ID, participant: String?) throws(CloudError) -> [String] {
        try run {
            let sql = "DELETE FROM links WHERE owner = ?1 AND share = ?2 AND (?3 IS NULL OR participant = ?3) RETURNING id"
            return try String.fetchAll(
                statement(sql), arguments: [number(writing: share.owner), share.number, participant]
            ).sorted()
        }
    }

    // Hierarchies

    func shares(covering names: [String], in zone: StoredZone.ID) throws(CloudError) -> [String: StoredShare.ID] {
        try run {
            let select = try statement("SELECT share FROM covered WHERE owner = ? AND zone = ? AND name = ? AND is_gone = 0")
            let owner = try number(of: zone.owner)
            var found: [String: StoredShare.ID] = [:]
            for name in names {
                if let share = try Int64.fetchOne(select, arguments: [owner, zone.number, name]) {
                    found[name] = StoredShare.ID(owner: zone.owner, number: share)
                }
            }
            return found
        }
    }

    func covered(by shares: [StoredShare.ID], after change: Int64, limit: Int) throws(CloudError) -> [CoveredRecord] {
        try run {
            let select = try statement(
                "SELECT name, type, change, is_gone FROM covered WHERE owner = ? AND share = ? AND change > ? ORDER BY change LIMIT ?"
            )
            var found: [CoveredRecord] = []
            for share in shares {
                let arguments: StatementArguments = [try number(of: share.owner), share.number, change, limit]
                found += try Row.fetchAll(select, arguments: arguments).map { row in
                    try CoveredRecord(
                        share: share, name: row.decode(atIndex: 0), type: row.decode(atIndex: 1), change: row.decode(atIndex: 2),
                        isGone: row.decode(atIndex: 3))
                }
            }
            guard shares.count > 1 else { return found }
            found.sort { ($0.change, $0.isGone ? 1 : 0, $0.share.number) < ($1.change, $1.isGone ? 1 : 0, $1.share.number) }
            // A record that has moved between two of the shares has one change in both. It is returned once, or a page could end
            // between the two.
            var last: CoveredRecord?
            found.removeAll { item in
                defer { last = item }
                return item.change == last?.change && item.name == last?.name
            }
            return Array(found.prefix(limit))
        }
    }

    func save(_ records: [CoveredRecord], in zone: StoredZone.ID) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO covered (owner, share, name, zone, type, change, is_gone) VALUES (?7, ?1, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT (owner, share, name) DO UPDATE SET type = ?4, change = ?5, is_gone = ?6
                """
            let (insert, owner) = (try statement(sql), try number(writing: zone.owner))
            // Entries of records that have left come first: a record may have left one share for another.
            for record in records.filter(\.isGone) + records.filter({ !$0.isGone }) {
                try insert.execute(arguments: [
                    record.share.number, record.name, zone.number, record.type, record.change, record.isGone, owner,
                ])
            }
        }
    }

    func removeCovered(by share: StoredShare.ID) throws(CloudError) {
        try run {
            try statement("DELETE FROM covered WHERE owner = ? AND share = ?")
                .execute(arguments: [number(writing: share.owner), share.number])
        }
    }

    // Assets

    func noteUpload(_ digest: String, owner: String, by user: String) throws(CloudError) {
        try run {
            try statement("INSERT OR IGNORE INTO uploads (owner, digest, user) VALUES (?, ?, ?)")
                .execute(arguments: [number(writing: owner), digest, user])
        }
    }

    func uploads(_ digests: Set<String>, owner: String, by user: String) throws(CloudError) -> Set<String> {
        try run {
            let (select, key) = (
                try statement("SELECT digest FROM uploads WHERE owner = ? AND digest = ? AND user = ?"), try number(of: owner)
            )
            return try digests.filter { try String.fetchOne(select, arguments: [key, $0, user]) != nil }
        }
    }

    func named(_ digests: Set<String>, in zone: StoredZone.ID, shares: [StoredShare.ID]?) throws(CloudError) -> Set<String> {
        try run {
            let owner = try number(of: zone.owner)
            guard let shares = shares?.map(\.number) else {
                let select = try statement("SELECT EXISTS (SELECT 1 FROM named WHERE owner = ? AND zone = ? AND digest = ?)")
                return try digests.filter { try Bool.fetchOne(select, arguments: [owner, zone.number, $0]) ?? false }
            }
            let select = try statement(
                """
                SELECT DISTINCT c.share FROM named n JOIN records r ON r.owner = n.owner AND r.id = n.record
                JOIN covered c ON c.owner = r.owner AND c.zone = r.zone AND c.name = r.name AND c.is_gone = 0
                WHERE n.owner = ? AND n.zone = ? AND n.digest = ?
                """)
            return try digests.filter {
                try !Int64.fetchSet(select, arguments: [owner, zone.number, $0]).isDisjoint(with: shares)
            }
        }
    }

    // The audit

    func lastAuditTime(of owner: String) throws(CloudError) -> Int64? {
        try run {
            try Int64.fetchOne(statement("SELECT max(time) FROM audit WHERE owner = ?"), arguments: [number(of: owner)])
        }
    }

    func add(_ entry: StoredAuditEntry) throws(CloudError) {
        try run {
            try statement(
                "INSERT INTO audit (owner, time, zone, share, user, kind, subject, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            )
            .execute(arguments: [
                number(writing: entry.zone.owner), entry.time, entry.zone.number, entry.share.number, entry.user,
                entry.kind.rawValue, entry.subject, entry.value,
            ])
        }
    }

    func auditEntries(in zone: StoredZone.ID, after time: Int64) throws(CloudError) -> [StoredAuditEntry] {
        try run {
            try Row.fetchAll(
                statement("SELECT * FROM audit WHERE owner = ? AND zone = ? AND time > ? ORDER BY time"),
                arguments: [number(of: zone.owner), zone.number, time]
            ).compactMap { row in
                try ShareAuditEntry.Kind(rawValue: row.decode(forColumn: "kind")).map { kind in
                    try StoredAuditEntry(
                        time: row.decode(forColumn: "time"), zone: zone,
                        share: StoredShare.ID(owner: zone.owner, number: row.decode(forColumn: "share")),
                        user: row.decode(forColumn: "user"), kind: kind, subject: row.decode(forColumn: "subject"),
                        value: row.decode(forColumn: "value"))
                }
            }
        }
    }

    static let sharingTables = """
        CREATE TABLE shares (
            owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, name TEXT NOT NULL, root TEXT, title TEXT,
            public_permission INTEGER NOT NULL, touched INTEGER NOT NULL, is_ended INTEGER NOT NULL, digest BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX shares_by_name ON shares (owner, zone, name) WHERE is_ended = 0;
        CREATE INDEX shares_by_zone ON shares (owner, zone);
        CREATE TABLE participants (
            owner INTEGER NOT NULL, ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL, share INTEGER NOT NULL, zone INTEGER NOT NULL,
            user TEXT, name TEXT, address_kind INTEGER, address TEXT, role INTEGER NOT NULL, permission INTEGER NOT NULL,
            acceptance INTEGER NOT NULL, began INTEGER NOT NULL, ended INTEGER NOT NULL, invited INTEGER NOT NULL,
            expelled INTEGER NOT NULL, digest BLOB NOT NULL, UNIQUE (owner, id)
        ) STRICT;
        CREATE INDEX participants_by_share ON participants (owner, share);
        CREATE INDEX participants_by_user ON participants (owner, user, zone) WHERE user IS NOT NULL;
        CREATE TABLE shared_zones (owner INTEGER NOT NULL, zone_owner TEXT NOT NULL, zone INTEGER NOT NULL,
            PRIMARY KEY (owner, zone_owner, zone)) STRICT, WITHOUT ROWID;
        CREATE TABLE links (owner INTEGER NOT NULL, share INTEGER NOT NULL, id TEXT NOT NULL, digest BLOB NOT NULL, participant TEXT,
            PRIMARY KEY (owner, share, id)) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX links_by_digest ON links (digest);
        CREATE TABLE covered (
            owner INTEGER NOT NULL, share INTEGER NOT NULL, name TEXT NOT NULL, zone INTEGER NOT NULL, type TEXT NOT NULL,
            change INTEGER NOT NULL, is_gone INTEGER NOT NULL, PRIMARY KEY (owner, share, name)
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX covered_by_change ON covered (owner, share, change);
        CREATE UNIQUE INDEX covered_by_name ON covered (owner, zone, name) WHERE is_gone = 0;
        CREATE TABLE uploads (owner INTEGER NOT NULL, digest TEXT NOT NULL, user TEXT NOT NULL, PRIMARY KEY (owner, digest, user))
            STRICT, WITHOUT ROWID;
        CREATE TABLE audit (
            owner INTEGER NOT NULL, time INTEGER NOT NULL, zone INTEGER NOT NULL, share INTEGER NOT NULL, user TEXT NOT NULL,
            kind TEXT NOT NULL, subject TEXT, value TEXT, PRIMARY KEY (owner, time)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX audit_by_zone ON audit (owner, zone, time);

        """
}
