import GRDB

/// The migration of a container's rows from format 6 to format 7, in which records without a value of a sortable field have a row
/// in `found`.
///
/// The row's index is the negative number of the field's sortable index, and its value is the record's name. As every migration,
/// it never changes.
enum RecordsWithoutValue {
    static func migrate(_ db: Database) throws {
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO found (owner, zone, idx, value, record, ordinal)
                SELECT r.owner, r.zone, -i.number, r.name, r.id, 0 FROM (\(sortable)) i JOIN records r ON r.type = i.type
                WHERE r.is_deleted = 0
                    AND NOT EXISTS (SELECT 1 FROM found f WHERE f.owner = r.owner AND f.record = r.id AND f.idx = i.number)
                """)
    }

    /// SQL for the numbers of the sortable indexes, with their types. The schema stores the indexes of a field as a list, in
    /// which each kind is followed by its number.
    private static let sortable = """
        SELECT t.key AS type, json_extract(f.value, '$.indexes[' || (k.key + 1) || ']') AS number
        FROM (SELECT CAST(content AS TEXT) AS content FROM documents
            WHERE name = 'schema' AND json_valid(CAST(content AS TEXT))) d,
            json_each(d.content, '$.types') t, json_each(t.value, '$.fields') f, json_each(f.value, '$.indexes') k
        WHERE k.value = 'sortable' AND json_type(f.value, '$.indexes') = 'array'
        """
}
