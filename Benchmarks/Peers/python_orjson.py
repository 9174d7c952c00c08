"""usage: python_orjson.py MANIFEST DATABASE

JSON Lines into SQLite with orjson and Python's sqlite3 module: one executemany, one transaction, an upsert by the name.
"""

import sqlite3
import sys

import orjson

FIELDS = ("id", "createdAt", "caption", "details", "rating", "elevation", "image")


def rows(manifest):
    with open(manifest, "rb") as lines:
        for line in lines:
            record = orjson.loads(line)
            yield tuple(map(record.get, FIELDS))


def main(manifest, path):
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE IF NOT EXISTS records(id TEXT PRIMARY KEY, createdAt TEXT, caption TEXT, details TEXT, rating INTEGER,"
        " elevation REAL, image TEXT)"
    )
    updates = ", ".join(f"{field} = excluded.{field}" for field in FIELDS[1:])
    with database:
        database.executemany(
            f"INSERT INTO records VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET {updates}", rows(manifest)
        )
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
