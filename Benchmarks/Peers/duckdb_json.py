"""usage: duckdb_json.py MANIFEST DATABASE [--upsert]

JSON Lines into DuckDB with `read_json`, into a table with a primary key; with --upsert over what the table already holds.
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
    "image": "VARCHAR",
}


def main(manifest, path, upsert):
    database = duckdb.connect(path)
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    # Naming the columns spares DuckDB its sampling of the file.
    source = "read_json(?, format = 'newline_delimited', columns = {" + ", ".join(f"{n}: '{k}'" for n, k in COLUMNS.items()) + "})"
    statement = f"INSERT INTO records SELECT * FROM {source}"
    if upsert:
        updates = ", ".join(f"{name} = excluded.{name}" for name in list(COLUMNS)[1:])
        statement += f" ON CONFLICT(id) DO UPDATE SET {updates}"
    else:
        database.execute(f"CREATE TABLE records({columns}, PRIMARY KEY(id))")
    database.execute(statement, [manifest])
    database.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--upsert" in sys.argv[3:])
