#define _GNU_SOURCE
#include "store.h"

#include "tide_connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ZONE = 1, TYPE = 1, LOCK_TIMEOUT_MS = 30000, CHECKPOINT_BYTES = 64 << 20 };

const tide_field core_fields[CORE_FIELD_COUNT] = {
    {"createdAt", "createdAt", TIDE_TYPE_TIMESTAMP}, {"caption", "caption", TIDE_TYPE_STRING},
    {"details", "details", TIDE_TYPE_STRING},        {"rating", "rating", TIDE_TYPE_INT64},
    {"elevation", "elevation", TIDE_TYPE_DOUBLE},
};

static void check_sqlite(const core_store *store, int code) {
    if (code != SQLITE_OK) floor_fail(0, "sqlite: %s", sqlite3_errmsg(store->database));
}

static void execute(const core_store *store, const char *sql) {
    check_sqlite(store, sqlite3_exec(store->database, sql, NULL, NULL, NULL));
}

static sqlite3_stmt *prepare(const core_store *store, const char *sql) {
    sqlite3_stmt *statement;
    check_sqlite(store, sqlite3_prepare_v3(store->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
    return statement;
}

static void run(const core_store *store, sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) floor_fail(0, "sqlite: %s", sqlite3_errmsg(store->database));
    sqlite3_reset(statement);
}

static bool is_empty(const core_store *store) {
    sqlite3_stmt *statement = prepare(store, "SELECT 1 FROM sqlite_schema");
    int code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) check_sqlite(store, code);
    sqlite3_finalize(statement);
    return code == SQLITE_DONE;
}

/// Reads a whole text file; the caller frees it.
static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) floor_fail(errno, "%s", path);
    if (fseek(file, 0, SEEK_END) != 0) floor_fail(errno, "%s", path);
    const long size = ftell(file);
    if (size < 0) floor_fail(errno, "%s", path);
    rewind(file);
    char *text = floor_allocate((size_t)size + 1);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) floor_fail(errno, "%s", path);
    text[size] = 0;
    fclose(file);
    return text;
}

/// Makes the tables that a store of the tool has: the schema is not repeated here, where it would come to differ.
static void make_tables(const core_store *store, const floor_options *options) {
    if (options->schema == NULL) floor_fail(0, "%s is a fresh database, for which --schema is needed", options->path);
    char *tables = read_text(options->schema);
    execute(store, "BEGIN IMMEDIATE");
    execute(store, tables);
    execute(store, "COMMIT");
    free(tables);
}

void core_store_open(core_store *store, const floor_options *options) {
    char text[4096];
    tide_error error;
    *store = (core_store){.frames_max = (int32_t)(CHECKPOINT_BYTES / options->page_size)};
    snprintf(text, sizeof(text), "%s-lock", options->path);
    core_check(tide_lock_create(text, &store->lock, &error), &error);

    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(options->path, &store->database, flags, NULL);
    if (code != SQLITE_OK) floor_fail(0, "%s: %s", options->path, sqlite3_errstr(code));
    snprintf(text, sizeof(text), "PRAGMA page_size = %llu; PRAGMA cache_size = -16000", (unsigned long long)options->page_size);
    execute(store, text);
    execute(store, "PRAGMA journal_mode = WAL");
    check_sqlite(store, sqlite3_busy_timeout(store->database, 10000));
    core_check(tide_connection_prepare(store->database, &error), &error);
    tide_connection_watch_log(store->database, &store->frames);
    if ((store->is_fresh = is_empty(store))) make_tables(store, options);

    store->read_counters = prepare(
        store, "SELECT (SELECT coalesce(max(_id), 0) + 1 FROM \"Destination\"),"
               " (SELECT coalesce(max(id), 0) + 1 FROM tide_changes),"
               " (SELECT coalesce(max(id), 0) + 1 FROM tide_transactions)");
    store->note_transaction = prepare(
        store, "INSERT INTO tide_transactions (id, time, author, origin, writer, inserted, updated, deleted, first_change,"
               " last_change) VALUES (?, ?, 'import', 'import', '', ?, ?, 0, ?, ?)");
    const tide_table table = {
        .name = "Destination", .index_name = "tide_name_Destination", .type_id = TYPE, .fields = core_fields,
        .field_count = CORE_FIELD_COUNT,
    };
    core_check(tide_writer_create(store->database, CORE_DIGEST_SEED, &table, &store->writer, &error), &error);
}

static tide_counters read_counters(const core_store *store, int64_t *transaction) {
    if (sqlite3_step(store->read_counters) != SQLITE_ROW) floor_fail(0, "sqlite: %s", sqlite3_errmsg(store->database));
    tide_counters counters = {
        .next_row = sqlite3_column_int64(store->read_counters, 0),
        .next_change = sqlite3_column_int64(store->read_counters, 1),
    };
    *transaction = sqlite3_column_int64(store->read_counters, 2);
    sqlite3_reset(store->read_counters);
    return counters;
}

static void checkpoint(core_store *store, bool truncate) {
    tide_error error;
    int32_t remaining = 0;
    core_check(tide_connection_checkpoint(store->database, truncate, &remaining, &error), &error);
    if (remaining != 0) floor_fail(0, "%d frames could not be moved out of the log", remaining);
}

void core_store_write(core_store *store, tide_batch *batch, bool is_last, tide_counts *counts) {
    tide_error error;
    tide_counts written = {0};
    int64_t transaction;
    tide_batch_digest(batch, CORE_DIGEST_SEED);
    core_check(tide_lock_acquire(store->lock, false, LOCK_TIMEOUT_MS, &error), &error);
    execute(store, "BEGIN IMMEDIATE");
    core_check(tide_writer_load_begin(store->writer, &error), &error);
    tide_counters counters = read_counters(store, &transaction);
    const int64_t first_change = counters.next_change;
    core_check(tide_writer_apply(store->writer, batch, ZONE, false, transaction, &counters, &written, &error), &error);
    if (is_last && tide_writer_is_loading(store->writer)) core_check(tide_writer_load_end(store->writer, &error), &error);
    if (written.inserted + written.updated > 0) {
        check_sqlite(store, sqlite3_bind_int64(store->note_transaction, 2, (int64_t)time(NULL) * 1000000));
        check_sqlite(store, sqlite3_bind_int64(store->note_transaction, 3, (int64_t)written.inserted));
        check_sqlite(store, sqlite3_bind_int64(store->note_transaction, 4, (int64_t)written.updated));
        check_sqlite(store, sqlite3_bind_int64(store->note_transaction, 5, first_change));
        check_sqlite(store, sqlite3_bind_int64(store->note_transaction, 6, counters.next_change - 1));
        check_sqlite(store, sqlite3_bind_int64(store->note_transaction, 1, transaction));
        run(store, store->note_transaction);
    }
    execute(store, "COMMIT");
    if (store->frames >= store->frames_max) checkpoint(store, false);
    tide_lock_release(store->lock);
    counts->inserted += written.inserted;
    counts->updated += written.updated;
    counts->unchanged += written.unchanged;
}

void core_store_checkpoint(core_store *store) {
    tide_error error;
    core_check(tide_lock_acquire(store->lock, false, LOCK_TIMEOUT_MS, &error), &error);
    checkpoint(store, true);
    tide_lock_release(store->lock);
}

void core_store_close(core_store *store) {
    tide_writer_destroy(store->writer);
    sqlite3_finalize(store->read_counters);
    sqlite3_finalize(store->note_transaction);
    check_sqlite(store, sqlite3_close(store->database));
    tide_lock_destroy(store->lock);
}
