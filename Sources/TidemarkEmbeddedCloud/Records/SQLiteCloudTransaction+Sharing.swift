import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension SQLiteCloudTransaction: SharingTransaction {
    // Shares

    func share(_ id: Int64) throws(CloudError) -> StoredShare? {
        try run {
            try Row.fetchOne(statement("SELECT * FROM shares WHERE id = ?"), arguments: [id]).map { try StoredShare(checked: $0) }
        }
    }

    func share(named name: String, in zone: Int64) throws(CloudError) -> StoredShare? {
        try run {
            try Row.fetchOne(
                statement("SELECT * FROM shares WHERE zone = ? AND name = ? AND is_ended = 0"), arguments: [zone, name]
            ).map { try StoredShare(checked: $0) }
        }
    }

    func shares(in zone: Int64) throws(CloudError) -> [StoredShare] {
        try run {
            try Row.fetchAll(statement("SELECT * FROM shares WHERE zone = ? AND is_ended = 0 ORDER BY id"), arguments: [zone])
                .compactMap { try? StoredShare(checked: $0) }
        }
    }

    func save(_ share: StoredShare) throws(CloudError) -> StoredShare {
        try run {
            let sql = """
                INSERT OR REPLACE INTO shares (id, zone, name, root, title, public_permission, touched, is_ended, digest)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
                """
            var saved = share
            saved.id =
                try Int64.fetchOne(
                    statement(sql),
                    arguments: [
                        share.id == 0 ? nil : share.id, share.zone, share.name, share.root, share.title,
                        share.publicPermission.rawValue, share.touched, share.isEnded, share.rowDigest,
                    ]) ?? 0
            return saved
        }
    }

    // Participants

    func participants(of share: Int64) throws(CloudError) -> [StoredParticipant] {
        try run {
            try Row.fetchAll(statement("SELECT * FROM participants WHERE share = ? ORDER BY ordinal"), arguments: [share])
                .map { try StoredParticipant(checked: $0) }
        }
    }

    func participants(called user: String, in zone: Int64?) throws(CloudError) -> [StoredParticipant] {
        try run {
            guard let zone else {
                // A row that is damaged gives nobody anything, and takes nothing from the others.
                return try Row.fetchAll(
                    statement("SELECT * FROM participants WHERE user = ? ORDER BY ordinal"), arguments: [user]
                )
                .compactMap { try? StoredParticipant(checked: $0) }
            }
            return try Row.fetchAll(
                statement("SELECT * FROM participants WHERE user = ? AND zone = ? ORDER BY ordinal"), arguments: [user, zone]
            ).compactMap { try? StoredParticipant(checked: $0) }
        }
    }

    func save(_ participant: StoredParticipant) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO participants (id, share, zone, user, name, address_kind, address, role, permission, acceptance, began, ended,
                invited, expelled, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
                ON CONFLICT (id) DO UPDATE SET
                user = ?4, name = ?5, address_kind = ?6, address = ?7, role = ?8, permission = ?9, acceptance = ?10, began = ?11,
                ended = ?12, invited = ?13, expelled = ?14, digest = ?15
                """
            let name = try participant.name.map { String(decoding: try Self.nameEncoder.encode($0), as: UTF8.self) }
            try statement(sql).execute(arguments: [
                participant.id, participant.share, participant.zone, participant.user,
                name,
                participant.lookUp?.kind, participant.lookUp?.value, participant.role.rawValue, participant.permission.rawValue,
                participant.acceptanceStatus.rawValue, participant.began, participant.ended, participant.invited,
                participant.expelled, participant.rowDigest(name: name),
            ])
        }
    }

    private static var nameEncoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }

    func removeParticipant(_ id: String) throws(CloudError) {
        try run { try statement("DELETE FROM participants WHERE id = ?").execute(arguments: [id]) }
    }

    // Links

    func link(_ digest: Data) throws(CloudError) -> StoredLink? {
        try run {
            try Row.fetchOne(statement("SELECT digest, id, share, participant FROM links WHERE digest = ?"), arguments: [digest])
                .map { StoredLink(digest: $0[0], id: $0[1], share: $0[2], participant: $0[3]) }
        }
    }

    func linkCount(of share: Int64) throws(CloudError) -> Int {
        try run { try Int.fetchOne(statement("SELECT count(*) FROM links WHERE share = ?"), arguments: [share]) ?? 0 }
    }

    func add(_ link: StoredLink) throws(CloudError) {
        try run {
            try statement("INSERT INTO links (digest, id, share, participant) VALUES (?, ?, ?, ?)")
                .execute(arguments: [link.digest, link.id, link.share, link.participant])
        }
    }

    func removeLink(_ id: String, to share: Int64) throws(CloudError) -> Bool {
        try run {
            try statement("DELETE FROM links WHERE share = ? AND id = ?").execute(arguments: [share, id])
            return db.changesCount > 0
        }
    }

    func removeLinks(to share: Int64, participant: String?) throws(CloudError) -> [String] {
        try run {
            let sql = "DELETE FROM links WHERE share = ?1 AND (?2 IS NULL OR participant = ?2) RETURNING id"
            return try String.fetchAll(statement(sql), arguments: [share, participant]).sorted()
        }
    }

    // Hierarchies

    func shares(covering names: [String], in zone: Int64) throws(CloudError) -> [String: Int64] {
        try run {
            let select = try statement("SELECT share FROM covered WHERE zone = ? AND name = ? AND is_gone = 0")
            var found: [String: Int64] = [:]
            for name in names {
                if let share = try Int64.fetchOne(select, arguments: [zone, name]) { found[name] = share }
            }
            return found
        }
    }

    func covered(by shares: [Int64], after change: Int64, limit: Int) throws(CloudError) -> [CoveredRecord] {
        try run {
            let select = try statement(
                "SELECT share, name, type, change, is_gone FROM covered WHERE share = ? AND change > ? ORDER BY change LIMIT ?")
            var found: [CoveredRecord] = []
            for share in shares {
                found += try Row.fetchAll(select, arguments: [share, change, limit]).map {
                    CoveredRecord(share: $0[0], name: $0[1], type: $0[2], change: $0[3], isGone: $0[4])
                }
            }
            guard shares.count > 1 else { return found }
            found.sort { ($0.change, $0.isGone ? 1 : 0, $0.share) < ($1.change, $1.isGone ? 1 : 0, $1.share) }
            // A record that has left one of them for another has one change in both: it is told once, or a page could end in between.
            var last: CoveredRecord?
            found.removeAll { item in
                defer { last = item }
                return item.change == last?.change && item.name == last?.name
            }
            return Array(found.prefix(limit))
        }
    }

    func save(_ records: [CoveredRecord], in zone: Int64) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO covered (share, name, zone, type, change, is_gone) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT (share, name) DO UPDATE SET type = ?4, change = ?5, is_gone = ?6
                """
            let insert = try statement(sql)
            // What has left one share may have come into another.
            for record in records.filter(\.isGone) + records.filter({ !$0.isGone }) {
                try insert.execute(arguments: [record.share, record.name, zone, record.type, record.change, record.isGone])
            }
        }
    }

    func removeCovered(by share: Int64) throws(CloudError) {
        try run { try statement("DELETE FROM covered WHERE share = ?").execute(arguments: [share]) }
    }

    // Assets

    func noteUpload(_ digest: String, owner: String, by user: String) throws(CloudError) {
        try run {
            try statement("INSERT OR IGNORE INTO uploads (owner, digest, user) VALUES (?, ?, ?)")
                .execute(arguments: [owner, digest, user])
        }
    }

    func uploads(_ digests: Set<String>, owner: String, by user: String) throws(CloudError) -> Set<String> {
        try run {
            let select = try statement("SELECT digest FROM uploads WHERE owner = ? AND digest = ? AND user = ?")
            return try digests.filter { try String.fetchOne(select, arguments: [owner, $0, user]) != nil }
        }
    }

    func named(_ digests: Set<String>, in zone: Int64, shares: [Int64]?) throws(CloudError) -> Set<String> {
        try run {
            guard let shares else {
                let select = try statement("SELECT EXISTS (SELECT 1 FROM named WHERE digest = ? AND zone = ?)")
                return try digests.filter { try Bool.fetchOne(select, arguments: [$0, zone]) ?? false }
            }
            let select = try statement(
                """
                SELECT DISTINCT c.share FROM named n JOIN records r ON r.id = n.record
                JOIN covered c ON c.zone = r.zone AND c.name = r.name AND c.is_gone = 0 WHERE n.digest = ? AND n.zone = ?
                """)
            return try digests.filter { try !Int64.fetchSet(select, arguments: [$0, zone]).isDisjoint(with: shares) }
        }
    }

    // What was done

    func lastAuditTime() throws(CloudError) -> Int64? {
        try run { try Int64.fetchOne(statement("SELECT max(time) FROM audit")) }
    }

    func add(_ entry: StoredAuditEntry) throws(CloudError) {
        try run {
            try statement("INSERT INTO audit (time, zone, share, user, kind, subject, value) VALUES (?, ?, ?, ?, ?, ?, ?)")
                .execute(arguments: [
                    entry.time, entry.zone, entry.share, entry.user, entry.kind.rawValue, entry.subject, entry.value,
                ])
        }
    }

    func auditEntries(in zone: Int64, after time: Int64) throws(CloudError) -> [StoredAuditEntry] {
        try run {
            try Row.fetchAll(
                statement("SELECT * FROM audit WHERE zone = ? AND time > ? ORDER BY time"), arguments: [zone, time]
            ).compactMap { row in
                ShareAuditEntry.Kind(rawValue: row["kind"]).map {
                    StoredAuditEntry(
                        time: row["time"], zone: row["zone"], share: row["share"], user: row["user"], kind: $0,
                        subject: row["subject"], value: row["value"])
                }
            }
        }
    }

    static let sharingTables = """
        CREATE TABLE shares (
            id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, name TEXT NOT NULL, root TEXT, title TEXT,
            public_permission INTEGER NOT NULL, touched INTEGER NOT NULL, is_ended INTEGER NOT NULL, digest BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX shares_by_name ON shares (zone, name) WHERE is_ended = 0;
        CREATE TABLE participants (
            ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, share INTEGER NOT NULL, zone INTEGER NOT NULL, user TEXT, name TEXT,
            address_kind INTEGER, address TEXT, role INTEGER NOT NULL, permission INTEGER NOT NULL, acceptance INTEGER NOT NULL,
            began INTEGER NOT NULL, ended INTEGER NOT NULL, invited INTEGER NOT NULL, expelled INTEGER NOT NULL,
            digest BLOB NOT NULL
        ) STRICT;
        CREATE INDEX participants_by_share ON participants (share);
        CREATE INDEX participants_by_user ON participants (user, zone) WHERE user IS NOT NULL;
        CREATE TABLE links (digest BLOB PRIMARY KEY, id TEXT NOT NULL, share INTEGER NOT NULL, participant TEXT)
            STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX links_by_id ON links (share, id);
        CREATE TABLE covered (
            share INTEGER NOT NULL, name TEXT NOT NULL, zone INTEGER NOT NULL, type TEXT NOT NULL, change INTEGER NOT NULL,
            is_gone INTEGER NOT NULL, PRIMARY KEY (share, name)
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX covered_by_change ON covered (share, change);
        CREATE UNIQUE INDEX covered_by_name ON covered (zone, name) WHERE is_gone = 0;
        CREATE TABLE uploads (owner TEXT NOT NULL, digest TEXT NOT NULL, user TEXT NOT NULL, PRIMARY KEY (owner, digest, user))
            STRICT, WITHOUT ROWID;
        CREATE TABLE audit (
            time INTEGER PRIMARY KEY, zone INTEGER NOT NULL, share INTEGER NOT NULL, user TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT,
            value TEXT
        ) STRICT;
        CREATE INDEX audit_by_zone ON audit (zone, time);
        """
}

extension UserLookUp {
    var kind: Int {
        switch self {
        case .emailAddress: 1
        case .phoneNumber: 2
        case .userRecordName: 3
        }
    }

    init?(kind: Int?, value: String?) {
        switch (kind, value) {
        case (1, let value?): self = .emailAddress(value)
        case (2, let value?): self = .phoneNumber(value)
        case (3, let value?): self = .userRecordName(value)
        default: return nil
        }
    }
}
