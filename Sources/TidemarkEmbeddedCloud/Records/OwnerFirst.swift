import GRDB

/// The migration of a container's rows from format 5 to format 6, in which each table begins with the owner.
///
/// It copies each table, in one transaction: SQLite adds columns only at the end of a table, and can't change a primary key. As
/// every migration, it never changes. Each owner's changes continue from the number that the whole container had reached, so
/// earlier tags and tokens stay valid.
enum OwnerFirst {
    private enum Kind: String {
        case integer, text, blob

        /// Replaces a value of another type, which a damaged row may have and a strict table refuses. The row's digest still
        /// shows the damage.
        var instead: String {
            switch self {
            case .integer: "0"
            case .text: "''"
            case .blob: "x''"
            }
        }
    }

    private struct Column {
        let name: String
        let kind: Kind
        var mayBeNull = false
        /// The column's name in the new table, if it is another one.
        var newName: String?

        /// The SQL expression that copies the value.
        var value: String {
            let null = mayBeNull ? " WHEN 'null' THEN NULL" : ""
            return "CASE typeof(t.\(name)) WHEN '\(kind.rawValue)' THEN t.\(name)\(null) ELSE \(kind.instead) END"
        }
    }

    private struct Table {
        let name: String
        /// SQL that finds the owner's number.
        let owner: String
        let columns: [Column]
        /// The SQL behind the name of the new table.
        let definition: String
    }

    static func migrate(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE owners (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, change INTEGER NOT NULL) STRICT;
                INSERT OR IGNORE INTO owners (name, change) SELECT name, 0 FROM (
                    SELECT owner AS name FROM zones UNION SELECT owner FROM assets UNION SELECT owner FROM uploads
                    UNION SELECT user FROM answers UNION SELECT user FROM usage UNION SELECT payer FROM reservations
                    UNION SELECT user FROM participants) WHERE typeof(name) = 'text' ORDER BY name;
                CREATE TABLE zone_owners (zone INTEGER PRIMARY KEY, owner INTEGER NOT NULL, name TEXT NOT NULL);
                INSERT INTO zone_owners SELECT z.id, o.number, o.name FROM zones z JOIN owners o ON o.name = z.owner;
                """)
        try db.execute(
            sql: """
                CREATE TABLE shared_zones (owner INTEGER NOT NULL, zone_owner TEXT NOT NULL, zone INTEGER NOT NULL,
                    PRIMARY KEY (owner, zone_owner, zone)) STRICT, WITHOUT ROWID;
                INSERT OR IGNORE INTO shared_zones SELECT o.number, z.name, p.zone FROM participants p
                    JOIN zone_owners z ON z.zone = p.zone JOIN owners o ON o.name = p.user WHERE p.user <> z.name;
                CREATE TABLE lost_times (owner INTEGER NOT NULL, began INTEGER NOT NULL, previous INTEGER NOT NULL,
                    PRIMARY KEY (owner, began)) STRICT, WITHOUT ROWID;
                """)
        for table in tables {
            let columns = ["owner"] + table.columns.map { $0.newName ?? $0.name }
            let values = ["coalesce(\(table.owner), 0)"] + table.columns.map(\.value)
            try db.execute(
                sql: """
                    CREATE TABLE new_\(table.name) \(table.definition);
                    INSERT OR IGNORE INTO new_\(table.name) (\(columns.joined(separator: ", ")))
                        SELECT \(values.joined(separator: ", ")) FROM \(table.name) t;
                    """)
        }
        // The old tables are dropped last, since copying reads several of them.
        for table in tables {
            try db.execute(sql: "DROP TABLE \(table.name); ALTER TABLE new_\(table.name) RENAME TO \(table.name)")
        }
        // A zone that does not exist has nothing left to remove.
        try db.execute(sql: "DROP TABLE zone_owners; DELETE FROM removals WHERE owner = 0")
        try db.execute(sql: indexes)
    }

    /// SQL that finds the owner of a row by the row's zone.
    private static let byZone = "(SELECT z.owner FROM zone_owners z WHERE z.zone = t.zone)"
    private static func named(_ column: String) -> String { "(SELECT o.number FROM owners o WHERE o.name = t.\(column))" }

    private static func integer(_ name: String, mayBeNull: Bool = false) -> Column {
        Column(name: name, kind: .integer, mayBeNull: mayBeNull)
    }
    private static func text(_ name: String, mayBeNull: Bool = false, as newName: String? = nil) -> Column {
        Column(name: name, kind: .text, mayBeNull: mayBeNull, newName: newName)
    }
    private static func blob(_ name: String) -> Column { Column(name: name, kind: .blob) }

    private static let tables: [Table] = [
        Table(
            name: "zones", owner: named("owner"),
            columns: [
                integer("id"), integer("scope"), text("owner", as: "owner_name"), text("name"), integer("state"), integer("made"),
                integer("changed"), integer("sharing"), blob("digest"),
            ],
            definition: """
                (owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, owner_name TEXT NOT NULL, name TEXT NOT NULL,
                    state INTEGER NOT NULL, made INTEGER NOT NULL, changed INTEGER NOT NULL, sharing INTEGER NOT NULL,
                    digest BLOB NOT NULL, UNIQUE (owner, name)) STRICT
                """),
        Table(
            name: "records", owner: byZone,
            columns: [
                integer("id"), integer("zone"), text("name"), text("type"), blob("fields"), text("parent", mayBeNull: true),
                integer("changed"), integer("created"), text("created_by"), integer("modified"), text("modified_by"),
                integer("is_deleted"), blob("digest"), integer("damaged", mayBeNull: true),
            ],
            definition: """
                (owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
                    fields BLOB NOT NULL, parent TEXT, changed INTEGER NOT NULL, created INTEGER NOT NULL, created_by TEXT NOT NULL,
                    modified INTEGER NOT NULL, modified_by TEXT NOT NULL, is_deleted INTEGER NOT NULL, digest BLOB NOT NULL,
                    damaged INTEGER) STRICT
                """),
        Table(
            name: "dependencies", owner: byZone, columns: [integer("zone"), text("target"), integer("record")],
            definition: """
                (owner INTEGER NOT NULL, zone INTEGER NOT NULL, target TEXT NOT NULL, record INTEGER NOT NULL,
                    PRIMARY KEY (owner, zone, target, record)) STRICT, WITHOUT ROWID
                """),
        Table(
            name: "assets", owner: named("owner"), columns: [text("digest"), integer("size"), text("payer")],
            definition: """
                (owner INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, payer TEXT NOT NULL, PRIMARY KEY (owner, digest))
                    STRICT, WITHOUT ROWID
                """),
        Table(
            name: "named", owner: byZone, columns: [integer("zone"), text("digest"), integer("record")],
            definition: """
                (owner INTEGER NOT NULL, zone INTEGER NOT NULL, digest TEXT NOT NULL, record INTEGER NOT NULL,
                    PRIMARY KEY (owner, zone, digest, record)) STRICT, WITHOUT ROWID
                """),
        Table(
            name: "answers", owner: named("user"), columns: [text("token"), integer("time"), blob("answer")],
            definition: """
                (owner INTEGER NOT NULL, token TEXT NOT NULL, time INTEGER NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (owner, token))
                    STRICT, WITHOUT ROWID
                """),
        Table(
            name: "usage", owner: named("user"), columns: [integer("bytes")],
            definition: "(owner INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT"),
        Table(
            name: "reservations", owner: named("payer"),
            columns: [text("owner", as: "asset_owner"), text("digest"), text("user"), integer("bytes"), integer("time")],
            definition: """
                (owner INTEGER NOT NULL, asset_owner TEXT NOT NULL, digest TEXT NOT NULL, user TEXT NOT NULL, bytes INTEGER NOT NULL,
                    time INTEGER NOT NULL, PRIMARY KEY (owner, asset_owner, digest, user)) STRICT, WITHOUT ROWID
                """),
        Table(
            name: "removals", owner: byZone,
            columns: [integer("id"), integer("zone"), integer("kind"), text("target"), integer("change"), text("user")],
            definition: """
                (owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, kind INTEGER NOT NULL, target TEXT NOT NULL,
                    change INTEGER NOT NULL, user TEXT NOT NULL) STRICT
                """),
        Table(
            name: "writers", owner: "0", columns: [integer("began"), blob("nonce")],
            definition: """
                (owner INTEGER NOT NULL, began INTEGER NOT NULL, nonce BLOB NOT NULL, PRIMARY KEY (owner, began),
                    UNIQUE (owner, nonce)) STRICT, WITHOUT ROWID
                """),
        Table(
            name: "zone_lives", owner: byZone, columns: [integer("zone"), integer("remade"), integer("purged")],
            definition: """
                (owner INTEGER NOT NULL, zone INTEGER NOT NULL, remade INTEGER NOT NULL, purged INTEGER NOT NULL,
                    PRIMARY KEY (owner, zone)) STRICT, WITHOUT ROWID
                """),
        Table(
            name: "participants", owner: byZone,
            columns: [
                integer("ordinal"), text("id"), integer("share"), integer("zone"), text("user", mayBeNull: true),
                text("name", mayBeNull: true), integer("address_kind", mayBeNull: true), text("address", mayBeNull: true),
                integer("role"), integer("permission"), integer("acceptance"), integer("began"), integer("ended"),
                integer("invited"),
                integer("expelled"), blob("digest"),
            ],
            definition: """
                (owner INTEGER NOT NULL, ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL, share INTEGER NOT NULL, zone INTEGER NOT NULL,
                    user TEXT, name TEXT, address_kind INTEGER, address TEXT, role INTEGER NOT NULL, permission INTEGER NOT NULL,
                    acceptance INTEGER NOT NULL, began INTEGER NOT NULL, ended INTEGER NOT NULL, invited INTEGER NOT NULL,
                    expelled INTEGER NOT NULL, digest BLOB NOT NULL, UNIQUE (owner, id)) STRICT
                """),
        Table(
            name: "links", owner: "(SELECT z.owner FROM shares s JOIN zone_owners z ON z.zone = s.zone WHERE s.id = t.share)",
            columns: [integer("share"), text("id"), blob("digest"), text("participant", mayBeNull: true)],
            definition: """
                (owner INTEGER NOT NULL, share INTEGER NOT NULL, id TEXT NOT NULL, digest BLOB NOT NULL, participant TEXT,
                    PRIMARY KEY (owner, share, id)) STRICT, WITHOUT ROWID
                """),
        Table(
            name: "shares", owner: byZone,
            columns: [
                integer("id"), integer("zone"), text("name"), text("root", mayBeNull: true), text("title", mayBeNull: true),
                integer("public_permission"), integer("touched"), integer("is_ended"), blob("digest"),
            ],
            definition: """
                (owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, name TEXT NOT NULL, root TEXT, title TEXT,
                    public_permission INTEGER NOT NULL, touched INTEGER NOT NULL, is_ended INTEGER NOT NULL, digest BLOB NOT NULL)
                    STRICT
                """),
        Table(
            name: "covered", owner: byZone,
            columns: [integer("share"), text("name"), integer("zone"), text("type"), integer("change"), integer("is_gone")],
            definition: """
                (owner INTEGER NOT NULL, share INTEGER NOT NULL, name TEXT NOT NULL, zone INTEGER NOT NULL, type TEXT NOT NULL,
                    change INTEGER NOT NULL, is_gone INTEGER NOT NULL, PRIMARY KEY (owner, share, name)) STRICT, WITHOUT ROWID
                """),
        Table(
            name: "uploads", owner: named("owner"), columns: [text("digest"), text("user")],
            definition: """
                (owner INTEGER NOT NULL, digest TEXT NOT NULL, user TEXT NOT NULL, PRIMARY KEY (owner, digest, user))
                    STRICT, WITHOUT ROWID
                """),
        Table(
            name: "audit", owner: byZone,
            columns: [
                integer("time"), integer("zone"), integer("share"), text("user"), text("kind"), text("subject", mayBeNull: true),
                text("value", mayBeNull: true),
            ],
            definition: """
                (owner INTEGER NOT NULL, time INTEGER NOT NULL, zone INTEGER NOT NULL, share INTEGER NOT NULL, user TEXT NOT NULL,
                    kind TEXT NOT NULL, subject TEXT, value TEXT, PRIMARY KEY (owner, time)) STRICT, WITHOUT ROWID
                """),
    ]

    /// The indexes, and the one table whose values have any type.
    private static let indexes = """
        CREATE TABLE new_found (owner INTEGER NOT NULL, zone INTEGER NOT NULL, idx INTEGER NOT NULL, value ANY NOT NULL,
            record INTEGER NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (owner, zone, idx, value, record, ordinal))
            STRICT, WITHOUT ROWID;
        INSERT OR IGNORE INTO new_found SELECT z.owner, f.zone, f.idx, f.value, f.record, f.ordinal FROM found f
            JOIN zones z ON z.id = f.zone WHERE typeof(f.idx) = 'integer'
            AND typeof(f.record) = 'integer' AND typeof(f.ordinal) = 'integer';
        DROP TABLE found;
        ALTER TABLE new_found RENAME TO found;
        CREATE INDEX zones_by_change ON zones (owner, changed);
        CREATE UNIQUE INDEX records_by_name ON records (owner, zone, name);
        CREATE UNIQUE INDEX records_by_change ON records (owner, zone, changed);
        CREATE INDEX records_by_type ON records (owner, zone, type) WHERE is_deleted = 0;
        CREATE INDEX records_by_parent ON records (owner, zone, parent) WHERE parent IS NOT NULL;
        CREATE INDEX dependencies_by_record ON dependencies (owner, record);
        CREATE INDEX found_by_record ON found (owner, record, idx);
        CREATE INDEX named_by_record ON named (owner, record);
        CREATE INDEX answers_by_time ON answers (owner, time);
        CREATE INDEX removals_by_zone ON removals (owner, zone);
        CREATE UNIQUE INDEX shares_by_name ON shares (owner, zone, name) WHERE is_ended = 0;
        CREATE INDEX shares_by_zone ON shares (owner, zone);
        CREATE INDEX participants_by_share ON participants (owner, share);
        CREATE INDEX participants_by_user ON participants (owner, user, zone) WHERE user IS NOT NULL;
        CREATE UNIQUE INDEX links_by_digest ON links (digest);
        CREATE UNIQUE INDEX covered_by_change ON covered (owner, share, change);
        CREATE UNIQUE INDEX covered_by_name ON covered (owner, zone, name) WHERE is_gone = 0;
        CREATE INDEX audit_by_zone ON audit (owner, zone, time);
        """
}
