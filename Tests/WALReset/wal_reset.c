#include "wal_reset.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>

#include "tide_lock.h"

enum { first_rows = 5000, later_rows = 20 };

/// One experiment at a time: the VFS hook has no context of its own.
static struct experiment {
    sqlite3 *writer;
    tide_lock *writer_lock;
    bool is_armed;
    wal_reset_outcome outcome;
} experiment;

static const sqlite3_io_methods *real_methods;
static sqlite3_io_methods hooked_methods;
static sqlite3_vfs *real_vfs;

static bool commit(const char *sql) {
    if (experiment.writer_lock && tide_lock_acquire(experiment.writer_lock, false, 0, NULL) != TIDE_OK) return false;
    bool is_done = sqlite3_exec(experiment.writer, sql, NULL, NULL, NULL) == SQLITE_OK;
    if (experiment.writer_lock) tide_lock_release(experiment.writer_lock);
    return is_done;
}

static bool insert(int id) {
    char sql[100];
    snprintf(sql, sizeof sql, "INSERT INTO t VALUES (%d, randomblob(100))", id);
    if (!commit(sql)) return false;
    experiment.outcome.acknowledged++;
    return true;
}

static int unfetch(sqlite3_file *file, sqlite3_int64 offset, void *page) {
    if (experiment.is_armed) {
        experiment.is_armed = false;
        experiment.outcome.was_attempted = true;
        experiment.outcome.was_kept_out = !insert(1000000);
    }
    return real_methods->xUnfetch(file, offset, page);
}

static int hooked_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    (void)vfs;
    int code = real_vfs->xOpen(real_vfs, name, file, flags, out);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB)) {
        real_methods = file->pMethods;
        hooked_methods = *real_methods;
        hooked_methods.xUnfetch = unfetch;
        file->pMethods = &hooked_methods;
    }
    return code;
}

static int count(sqlite3 *connection) {
    sqlite3_stmt *statement = NULL;
    int found = -1;
    if (sqlite3_prepare_v2(connection, "SELECT count(*) FROM t NOT INDEXED", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        found = sqlite3_column_int(statement, 0);
    }
    sqlite3_finalize(statement);
    return found;
}

static void run(sqlite3 *checkpointer, tide_lock *lock, int mode) {
    if (lock) tide_lock_acquire(lock, false, 10000, NULL);
    experiment.is_armed = true;
    sqlite3_wal_checkpoint_v2(checkpointer, NULL, mode, NULL, NULL);
    experiment.is_armed = false;
    if (lock) tide_lock_release(lock);
    if (!experiment.outcome.was_attempted || experiment.outcome.was_kept_out) insert(1000000);
    for (int i = 1; i <= later_rows; i++) insert(1000000 + i);
}

int wal_reset_try(const char *folder, int mode, bool with_lock, wal_reset_outcome *outcome) {
    char database[1024], lock_path[1024], rows[300];
    snprintf(database, sizeof database, "%s/t.sqlite", folder);
    snprintf(lock_path, sizeof lock_path, "%s/t.sqlite-lock", folder);
    real_vfs = sqlite3_vfs_find(NULL);
    static sqlite3_vfs hooked;
    hooked = *real_vfs;
    hooked.zName = "hooked";
    hooked.xOpen = hooked_open;
    sqlite3_vfs_register(&hooked, 0);

    experiment = (struct experiment){0};
    sqlite3 *checkpointer = NULL, *reopened = NULL;
    tide_lock *lock = NULL;
    const char *settings = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0";
    int result = -1;
    if (with_lock && (tide_lock_create(lock_path, &lock, NULL) || tide_lock_create(lock_path, &experiment.writer_lock, NULL))) goto end;
    if (sqlite3_open_v2(database, &checkpointer, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "hooked") ||
        sqlite3_open_v2(database, &experiment.writer, SQLITE_OPEN_READWRITE, real_vfs->zName) ||
        sqlite3_exec(checkpointer, settings, NULL, NULL, NULL) || sqlite3_exec(experiment.writer, settings, NULL, NULL, NULL) ||
        sqlite3_exec(checkpointer, "CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB); CREATE INDEX ti ON t (b)", NULL, NULL, NULL)) {
        goto end;
    }
    sqlite3_busy_timeout(experiment.writer, 200);
    snprintf(
        rows, sizeof rows,
        "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < %d) INSERT INTO t SELECT i, randomblob(100) FROM k",
        first_rows);
    if (!commit(rows)) goto end;
    experiment.outcome.acknowledged = first_rows;
    sqlite3_wal_checkpoint_v2(experiment.writer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    run(checkpointer, lock, mode);
    sqlite3_close(checkpointer);
    sqlite3_close(experiment.writer);
    checkpointer = experiment.writer = NULL;
    if (sqlite3_open_v2(database, &reopened, SQLITE_OPEN_READWRITE, real_vfs->zName)) goto end;
    experiment.outcome.found = count(reopened);
    result = 0;
end:
    sqlite3_close(checkpointer);
    sqlite3_close(experiment.writer);
    sqlite3_close(reopened);
    tide_lock_destroy(lock);
    tide_lock_destroy(experiment.writer_lock);
    sqlite3_vfs_unregister(&hooked);
    *outcome = experiment.outcome;
    return result;
}

bool wal_reset_is_expected(void) { return sqlite3_libversion_number() < 3051003; }
