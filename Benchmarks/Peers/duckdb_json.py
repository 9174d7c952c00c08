"""usage: duckdb_json.py MANIFEST DATABASE [--upsert] [--detect]

JSON Lines into DuckDB with `read_json`, into a table with a primary key; with --upsert over what the table already holds.
DuckDB is told the columns; with --detect it finds them out from the file, as in the first examples of its documentation.
"""

import sys

import duckdb

COLUMNS = {
    "id": "UUID",
    "createdAt": "TIMESTAMP",
    "caption": "VARCHAR",
    "details": "VARCHAR",
    "rating": "BIGINT",
    "elevation": "DOUBLE",
}


def main(manifest, path, upsert, detect):
    database = duckdb.connect(path)
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    if detect:
        source = "read_json(?)"
    else:
        named = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items())
        source = f"read_json(?, format = 'newline_delimited', columns = {{{named}}})"
    statement = f"INSERT INTO records BY NAME SELECT * FROM {source}"
    if upsert:
        updates = ", ".join(f"{name} = excluded.{name}" for name in list(COLUMNS)[1:])
        statement += f" ON CONFLICT(id) DO UPDATE SET {updates}"
    else:
        database.execute(f"CREATE TABLE records({columns}, PRIMARY KEY(id))")
    database.execute(statement, [manifest])
    database.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--upsert" in sys.argv[3:], "--detect" in sys.argv[3:])
