#define _GNU_SOURCE
#include "database.h"

#include <stdio.h>

const char database_table[] =
    "CREATE TABLE Destination(_row INTEGER PRIMARY KEY, _name BLOB NOT NULL UNIQUE, createdAt INTEGER NOT NULL,"
    " caption TEXT NOT NULL, details TEXT NOT NULL, rating INTEGER NOT NULL, elevation REAL NOT NULL, image BLOB,"
    " imageSize INTEGER)";

const char database_insert[] =
    "INSERT INTO Destination(_name, createdAt, caption, details, rating, elevation, image, imageSize)"
    " VALUES(?, ?, ?, ?, ?, ?, ?, ?)";

void database_check(sqlite3 *database, int code) {
    if (code != SQLITE_OK) floor_fail(0, "sqlite: %s", sqlite3_errmsg(database));
}

sqlite3 *database_open(const floor_options *options, const char *path) {
    sqlite3 *database;
    char pragma[128];
    // One thread alone uses SQLite, and nobody reads its memory statistics.
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    int code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) floor_fail(0, "%s: %s", path, sqlite3_errstr(code));
    snprintf(pragma, sizeof(pragma), "PRAGMA page_size=%llu", (unsigned long long)options->page_size);
    database_execute(database, pragma);
    database_execute(database, "PRAGMA journal_mode=WAL");
    database_execute(database, "PRAGMA synchronous=FULL");
    database_execute(database, "PRAGMA wal_autocheckpoint=0");
    snprintf(pragma, sizeof(pragma), "PRAGMA cache_size=-%llu", (unsigned long long)options->cache * 1024);
    database_execute(database, pragma);

    const char *settings = "SELECT page_size, journal_mode FROM pragma_page_size, pragma_journal_mode";
    sqlite3_stmt *statement = database_prepare(database, settings);
    if (sqlite3_step(statement) != SQLITE_ROW) database_check(database, sqlite3_errcode(database));
    if ((uint64_t)sqlite3_column_int64(statement, 0) != options->page_size) {
        floor_fail(0, "%s has pages of %lld bytes, not %llu", path, sqlite3_column_int64(statement, 0),
                   (unsigned long long)options->page_size);
    }
    const char *mode = (const char *)sqlite3_column_text(statement, 1);
    if (sqlite3_stricmp(mode, "wal") != 0) floor_fail(0, "%s is not in WAL mode", path);
    sqlite3_finalize(statement);
    return database;
}

void database_execute(sqlite3 *database, const char *sql) {
    database_check(database, sqlite3_exec(database, sql, NULL, NULL, NULL));
}

sqlite3_stmt *database_prepare(sqlite3 *database, const char *sql) {
    sqlite3_stmt *statement;
    database_check(database, sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
    return statement;
}

void database_run(sqlite3 *database, sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) floor_fail(0, "sqlite: %s", sqlite3_errmsg(database));
    sqlite3_reset(statement);
}

void database_checkpoint(sqlite3 *database) {
    int frames, moved;
    database_check(database, sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_TRUNCATE, &frames, &moved));
}

static int note_frames(void *context, sqlite3 *database, const char *schema, int frames) {
    (void)database, (void)schema;
    *(int *)context = frames;
    return SQLITE_OK;
}

void database_commit(sqlite3 *database, const floor_options *options) {
    int frames = 0;
    sqlite3_wal_hook(database, note_frames, &frames);
    database_execute(database, "COMMIT");
    sqlite3_wal_hook(database, NULL, NULL);
    if (options->checkpoint == 0 || (uint64_t)frames * options->page_size < options->checkpoint << 20) return;
    database_check(database, sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL));
}

void database_bind(sqlite3 *database, sqlite3_stmt *statement, const floor_row *row) {
    int code = sqlite3_bind_blob(statement, 1, row->name, sizeof(row->name), SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 2, row->created_at);
    code |= sqlite3_bind_text(statement, 3, row->caption, (int)row->caption_length, SQLITE_STATIC);
    code |= sqlite3_bind_text(statement, 4, row->details, (int)row->details_length, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 5, row->rating);
    code |= sqlite3_bind_double(statement, 6, row->elevation);
    if (row->image != NULL) {
        code |= sqlite3_bind_blob(statement, 7, row->asset, sizeof(row->asset), SQLITE_STATIC);
        code |= sqlite3_bind_int64(statement, 8, (int64_t)row->asset_size);
    } else {
        code |= sqlite3_bind_null(statement, 7);
        code |= sqlite3_bind_null(statement, 8);
    }
    if (code != SQLITE_OK) database_check(database, code);
}
