#!/bin/sh
# usage: sqlite3-import.sh CSV DATABASE
# CSV into SQLite with the sqlite3 shell. The table is made first, so that it is keyed by the name and its columns have types.
exec sqlite3 -bail "$2" \
    'CREATE TABLE records(id TEXT PRIMARY KEY, createdAt TEXT, caption TEXT, details TEXT, rating INTEGER, elevation REAL, image TEXT)' \
    ".import --csv --skip 1 \"$1\" records"
