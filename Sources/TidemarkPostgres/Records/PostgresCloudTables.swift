/// The tables of everything that a cloud stores in PostgreSQL, in the order in which they were added.
///
/// One database holds any number of containers, each in both environments. Most tables, and their primary keys, begin with the
/// container's number and the name of the owner, so that a storage over several machines can be spread by these. The exceptions
/// are the tables of whole containers and of the directory of assets. Two tables of what records refer to have unique indexes in
/// place of a primary key. Texts of the engine are `bytea`, since they are compared by their bytes and may contain U+0000.
package enum PostgresCloudTables {
    /// All steps there have ever been. Later ones are appended.
    package static let migrations: [PostgresMigration] = [
        PostgresMigration(
            1, "records of clouds", oldestUser: 1, containers + records + found + sharing + usage + incarnations),
        // A server from before would give a zone the number of another owner's.
        PostgresMigration(2, "zones and shares have numbers that no other has", oldestUser: 2, numbers),
        // A server from before would save records without a value that nothing finds.
        PostgresMigration(3, "records without a value are found in order", oldestUser: 3, excludingWriters + withoutValue),
        PostgresMigration(4, "one server at a time sweeps assets", oldestUser: 3, sweeps),
        PostgresMigration(5, "the directory of assets is known", oldestUser: 3, assetPlace),
    ]

    /// The first statements of a step that older servers can't work with. The step waits for all writes that have begun, and
    /// later writes wait until it is committed. Writes of older servers then see the step, and are refused. No container is made
    /// meanwhile.
    ///
    /// One lock is enough, however many containers there are: PostgreSQL has room for a few thousand locks, of all transactions
    /// together.
    static let excludingWriters = [
        "LOCK TABLE tidemark_containers IN SHARE ROW EXCLUSIVE MODE",
        "SELECT pg_advisory_xact_lock(\(PostgresCloudTransaction.lockSpace), \(PostgresCloudTransaction.versionLock))",
    ]

    /// Tables that belong to whole containers.
    private static let containers = [
        """
        CREATE TABLE tidemark_containers (
            number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, environment text NOT NULL, key bytea NOT NULL,
            began int8 NOT NULL, common_changes int8 NOT NULL, UNIQUE (name, environment))
        """,
        "CREATE TABLE tidemark_schemas (container int8 PRIMARY KEY, version int8 NOT NULL, content bytea NOT NULL)",
        """
        CREATE TABLE tidemark_incarnations (
            container int8 NOT NULL, began int8 NOT NULL, previous int8 NOT NULL, id bytea NOT NULL, PRIMARY KEY (container, began))
        """,
    ]

    /// The condition of the index of changes, which each record fulfils. A statement that looks records up by their changes has to contain
    /// it: PostgreSQL does not derive it from `changed > $4`.
    static let hasChange = "changed >= 0"
    /// Conditions of the indexes of ``records`` that every row fulfils, like ``hasChange``. A look-up by a name, a target or a
    /// digest contains the condition of its index, and so can't take another index.
    static let hasName = "name >= ''"
    package static let hasTarget = "target >= ''"
    package static let hasDigest = "digest >= ''"
    /// The condition of the index of ``found`` by values.
    static let hasIndex = "idx >= 0"
    /// The condition of the rows of ``found`` for records without a value. Their `idx` is the negative number of a sortable
    /// index.
    static let hasNoValue = "idx < 0"

    private static let records = [
        """
        CREATE TABLE tidemark_owners (
            container int8 NOT NULL, owner bytea NOT NULL, change int8 NOT NULL, PRIMARY KEY (container, owner)) WITH (fillfactor = 70)
        """,
        """
        CREATE TABLE tidemark_zones (
            container int8 NOT NULL, owner bytea NOT NULL, number int8 NOT NULL, scope int8 NOT NULL, name bytea NOT NULL,
            state int8 NOT NULL, made int8 NOT NULL, changed int8 NOT NULL, sharing int8 NOT NULL, digest bytea NOT NULL,
            CONSTRAINT tidemark_zones_by_number PRIMARY KEY (container, owner, number),
            CONSTRAINT tidemark_zones_by_name UNIQUE (container, owner, name))
        """,
        "CREATE INDEX tidemark_zones_by_change ON tidemark_zones (container, owner, changed)",
        // The identifier tells the order in which records were made, and is no key.
        """
        CREATE TABLE tidemark_records (
            container int8 NOT NULL, owner bytea NOT NULL, zone int8 NOT NULL, name bytea NOT NULL,
            id int8 GENERATED ALWAYS AS IDENTITY, type bytea NOT NULL, fields bytea NOT NULL, parent bytea, changed int8 NOT NULL,
            created int8 NOT NULL, created_by bytea NOT NULL, modified int8 NOT NULL, modified_by bytea NOT NULL,
            is_deleted bool NOT NULL, digest bytea NOT NULL, damaged int8,
            CONSTRAINT tidemark_records_by_name PRIMARY KEY (container, owner, zone, name))
        """,
        // The index has all records, and yet is partial, so that a look-up by name, which says nothing of `changed`, can't take
        // it. PostgreSQL often expects one record in a zone, because it has not seen the zone, or its owner is one of many. Then
        // both indexes seem to cost the same, and the flatter tree is taken: with this one, a look-up by name would read all
        // records of the zone.
        """
        CREATE UNIQUE INDEX tidemark_records_by_change ON tidemark_records (container, owner, zone, changed) WHERE \(hasChange)
        """,
        "CREATE INDEX tidemark_records_by_type ON tidemark_records (container, owner, zone, type) WHERE NOT is_deleted",
        "CREATE INDEX tidemark_records_by_parent ON tidemark_records (container, owner, zone, parent, id) WHERE parent IS NOT NULL",
        """
        CREATE TABLE tidemark_dependencies (
            container int8 NOT NULL, owner bytea NOT NULL, zone int8 NOT NULL, target bytea NOT NULL, name bytea NOT NULL)
        """,
        // There is no primary key, since it can't be partial: a look-up by name could take it.
        """
        CREATE UNIQUE INDEX tidemark_dependencies_by_target ON tidemark_dependencies (container, owner, zone, target, name)
            WHERE \(hasTarget)
        """,
        "CREATE INDEX tidemark_dependencies_by_name ON tidemark_dependencies (container, owner, zone, name) WHERE \(hasName)",
        // Without a primary key, logical replication needs the whole row to pass a deletion on.
        "ALTER TABLE tidemark_dependencies REPLICA IDENTITY FULL",
        """
        CREATE TABLE tidemark_assets (
            container int8 NOT NULL, owner bytea NOT NULL, digest bytea NOT NULL, size int8 NOT NULL, payer bytea NOT NULL,
            PRIMARY KEY (container, owner, digest))
        """,
        """
        CREATE TABLE tidemark_named (
            container int8 NOT NULL, owner bytea NOT NULL, zone int8 NOT NULL, digest bytea NOT NULL, name bytea NOT NULL)
        """,
        "CREATE UNIQUE INDEX tidemark_named_by_digest ON tidemark_named (container, owner, zone, digest, name) WHERE \(hasDigest)",
        "CREATE INDEX tidemark_named_by_name ON tidemark_named (container, owner, zone, name) WHERE \(hasName)",
        "ALTER TABLE tidemark_named REPLICA IDENTITY FULL",
        """
        CREATE TABLE tidemark_removals (
            container int8 NOT NULL, owner bytea NOT NULL, id int8 GENERATED ALWAYS AS IDENTITY, zone int8 NOT NULL,
            kind int8 NOT NULL, target bytea NOT NULL, change int8 NOT NULL, account bytea NOT NULL,
            PRIMARY KEY (container, owner, id))
        """,
        "CREATE INDEX tidemark_removals_by_zone ON tidemark_removals (container, owner, zone)",
    ]

    /// The values under which records are found, as ``IndexValue/sortableBytes``. An entry of an index is limited to 2,704 bytes,
    /// so the index has only the first bytes of a value. ``PostgresQueryBuilder`` compares these, and then the value.
    private static let found = [
        """
        CREATE TABLE tidemark_found (
            container int8 NOT NULL, owner bytea NOT NULL, zone int8 NOT NULL, name bytea NOT NULL, idx int8 NOT NULL,
            ordinal int8 NOT NULL, value bytea NOT NULL, latitude float8, longitude float8,
            PRIMARY KEY (container, owner, zone, name, idx, ordinal))
        """,
        """
        CREATE INDEX tidemark_found_by_value
            ON tidemark_found (container, owner, zone, idx, substring(value, 1, \(PostgresQueryBuilder.indexedBytes)))
            WHERE \(hasIndex)
        """,
    ]

    /// Adds a row for each record without a value of a sortable index, under the negative number of the index. The schema has the
    /// indexes of a field as a list of kinds, each followed by its number. A value that is a text begins with 2.
    ///
    /// A schema that can't be read has no indexes: its container is refused, and the others are served.
    private static let withoutValue = [
        "CREATE INDEX tidemark_found_without_value ON tidemark_found (container, owner, zone, idx, name) WHERE \(hasNoValue)",
        """
        CREATE FUNCTION tidemark_sortable_indexes(content bytea) RETURNS TABLE (type bytea, number int8) LANGUAGE plpgsql AS $$
        BEGIN
            RETURN QUERY SELECT convert_to(t.key, 'UTF8'), (f.value -> 'indexes' ->> k.place::int4)::int8
            FROM json_each(convert_from(content, 'UTF8')::json -> 'types') t, json_each(t.value -> 'fields') f,
                json_array_elements_text(f.value -> 'indexes') WITH ORDINALITY k (kind, place)
            WHERE k.kind = 'sortable';
        EXCEPTION WHEN OTHERS THEN
            RETURN;
        END
        $$
        """,
        """
        INSERT INTO tidemark_found (container, owner, zone, name, idx, ordinal, value)
        SELECT r.container, r.owner, r.zone, r.name, -i.number, 0, '\\x02'::bytea || r.name
        FROM (SELECT DISTINCT s.container, n.type, n.number
            FROM tidemark_schemas s CROSS JOIN LATERAL tidemark_sortable_indexes(s.content) n) i
        JOIN tidemark_records r ON r.container = i.container AND r.type = i.type AND NOT r.is_deleted
        WHERE NOT EXISTS (SELECT FROM tidemark_found v WHERE v.container = r.container AND v.owner = r.owner AND v.zone = r.zone
            AND v.name = r.name AND v.idx = i.number)
        ON CONFLICT DO NOTHING
        """,
        "DROP FUNCTION tidemark_sortable_indexes(bytea)",
    ]

    /// `swept` is when the last sweep began. During a sweep, `sweep_renewed` is when its server last renewed it, and
    /// `sweep_owner` is the owner whose contents it has swept last.
    private static let sweeps = [
        """
        ALTER TABLE tidemark_containers ADD COLUMN IF NOT EXISTS swept int8 NOT NULL DEFAULT 0,
            ADD COLUMN IF NOT EXISTS sweep_renewed int8, ADD COLUMN IF NOT EXISTS sweep_owner bytea
        """
    ]

    /// The identifier that the marker of a shared directory of assets has: one row, or none while no directory is tied.
    private static let assetPlace = [
        "CREATE TABLE tidemark_asset_place (is_only bool PRIMARY KEY CHECK (is_only), id text NOT NULL)"
    ]

    private static let sharing = [
        """
        CREATE TABLE tidemark_shares (
            container int8 NOT NULL, owner bytea NOT NULL, number int8 NOT NULL, zone int8 NOT NULL, name bytea NOT NULL, root bytea,
            title bytea, public_permission int8 NOT NULL, touched int8 NOT NULL, is_ended bool NOT NULL, digest bytea NOT NULL,
            PRIMARY KEY (container, owner, number))
        """,
        "CREATE UNIQUE INDEX tidemark_shares_by_name ON tidemark_shares (container, owner, zone, name) WHERE NOT is_ended",
        "CREATE INDEX tidemark_shares_by_zone ON tidemark_shares (container, owner, zone)",
        """
        CREATE TABLE tidemark_participants (
            container int8 NOT NULL, owner bytea NOT NULL, id bytea NOT NULL, ordinal int8 GENERATED ALWAYS AS IDENTITY,
            share int8 NOT NULL, zone int8 NOT NULL, account bytea, name bytea, address_kind int8, address bytea, role int8 NOT NULL,
            permission int8 NOT NULL, acceptance int8 NOT NULL, began int8 NOT NULL, ended int8 NOT NULL, invited int8 NOT NULL,
            expelled int8 NOT NULL, digest bytea NOT NULL, PRIMARY KEY (container, owner, id))
        """,
        "CREATE INDEX tidemark_participants_by_share ON tidemark_participants (container, owner, share)",
        """
        CREATE INDEX tidemark_participants_by_account ON tidemark_participants (container, owner, account, zone)
            WHERE account IS NOT NULL
        """,
        """
        CREATE TABLE tidemark_shared_zones (
            container int8 NOT NULL, owner bytea NOT NULL, zone_owner bytea NOT NULL, zone int8 NOT NULL,
            PRIMARY KEY (container, owner, zone_owner, zone))
        """,
        """
        CREATE TABLE tidemark_links (
            container int8 NOT NULL, owner bytea NOT NULL, share int8 NOT NULL, id bytea NOT NULL, digest bytea NOT NULL,
            participant bytea, PRIMARY KEY (container, owner, share, id))
        """,
        "CREATE UNIQUE INDEX tidemark_links_by_digest ON tidemark_links (container, digest)",
        """
        CREATE TABLE tidemark_covered (
            container int8 NOT NULL, owner bytea NOT NULL, share int8 NOT NULL, name bytea NOT NULL, zone int8 NOT NULL,
            type bytea NOT NULL, change int8 NOT NULL, is_gone bool NOT NULL, PRIMARY KEY (container, owner, share, name))
        """,
        "CREATE UNIQUE INDEX tidemark_covered_by_change ON tidemark_covered (container, owner, share, change)",
        "CREATE UNIQUE INDEX tidemark_covered_by_name ON tidemark_covered (container, owner, zone, name) WHERE NOT is_gone",
        """
        CREATE TABLE tidemark_uploads (
            container int8 NOT NULL, owner bytea NOT NULL, digest bytea NOT NULL, account bytea NOT NULL,
            PRIMARY KEY (container, owner, digest, account))
        """,
        """
        CREATE TABLE tidemark_audit (
            container int8 NOT NULL, owner bytea NOT NULL, time int8 NOT NULL, zone int8 NOT NULL, share int8 NOT NULL,
            account bytea NOT NULL, kind bytea NOT NULL, subject bytea, value bytea, PRIMARY KEY (container, owner, time))
        """,
        "CREATE INDEX tidemark_audit_by_zone ON tidemark_audit (container, owner, zone, time)",
    ]

    private static let usage = [
        """
        CREATE TABLE tidemark_usage (
            container int8 NOT NULL, owner bytea NOT NULL, bytes int8 NOT NULL, PRIMARY KEY (container, owner)) WITH (fillfactor = 70)
        """,
        """
        CREATE TABLE tidemark_reservations (
            container int8 NOT NULL, owner bytea NOT NULL, asset_owner bytea NOT NULL, digest bytea NOT NULL, account bytea NOT NULL,
            bytes int8 NOT NULL, time int8 NOT NULL, PRIMARY KEY (container, owner, asset_owner, digest, account))
        """,
        """
        CREATE TABLE tidemark_answers (
            container int8 NOT NULL, owner bytea NOT NULL, token bytea NOT NULL, time int8 NOT NULL, answer bytea NOT NULL,
            PRIMARY KEY (container, owner, token))
        """,
        "CREATE INDEX tidemark_answers_by_time ON tidemark_answers (container, owner, time)",
    ]

    private static let incarnations = [
        """
        CREATE TABLE tidemark_lost_times (
            container int8 NOT NULL, owner bytea NOT NULL, began int8 NOT NULL, previous int8 NOT NULL,
            PRIMARY KEY (container, owner, began))
        """,
        """
        CREATE TABLE tidemark_writers (
            container int8 NOT NULL, owner bytea NOT NULL, began int8 NOT NULL, nonce bytea NOT NULL,
            PRIMARY KEY (container, owner, began), UNIQUE (container, owner, nonce))
        """,
        """
        CREATE TABLE tidemark_zone_lives (
            container int8 NOT NULL, owner bytea NOT NULL, zone int8 NOT NULL, remade int8 NOT NULL, purged int8 NOT NULL,
            PRIMARY KEY (container, owner, zone))
        """,
    ]

    /// Zones and shares of all owners have different numbers. They need them in a directory, and a cloud may be moved to one.
    private static let numbers = ["zone", "share"].flatMap { kind in
        [
            "CREATE SEQUENCE tidemark_\(kind)_numbers",
            """
            SELECT setval('tidemark_\(kind)_numbers', (SELECT coalesce(max(number), 0) + 1 FROM tidemark_\(kind)s), false)
            """,
        ]
    }
}
