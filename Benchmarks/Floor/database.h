/// The floors' SQLite connection: every setting that is measured is made here.

#ifndef DATABASE_H
#define DATABASE_H

#include "floor.h"

#include <sqlite3.h>

/// Opens or creates a database in WAL mode with synchronous=FULL; checkpoints are the caller's.
sqlite3 *database_open(const floor_options *options, const char *path);
void database_execute(sqlite3 *database, const char *sql);
sqlite3_stmt *database_prepare(sqlite3 *database, const char *sql);
/// Runs a statement that returns no rows.
void database_run(sqlite3 *database, sqlite3_stmt *statement);
/// Ends the program unless `code` is SQLITE_OK.
void database_check(sqlite3 *database, int code);
/// Copies the whole WAL into the database file, durably, and empties it.
void database_checkpoint(sqlite3 *database);
/// Commits; when the WAL has grown past the size that the options set, copies it into the database file.
void database_commit(sqlite3 *database, const floor_options *options);

/// The table of journal records; the columns of a record in the order in which `database_bind` binds them, from 1.
extern const char database_table[];
extern const char database_insert[];
void database_bind(sqlite3 *database, sqlite3_stmt *statement, const floor_row *row);

#endif
