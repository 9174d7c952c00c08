// Uses of what writes and reads stores: connections, the writer, digests, indexes, the reader's file layer, the log, locks.

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "tide_connection.h"
#include "tide_digest.h"
#include "tide_header.h"
#include "tide_indexes.h"
#include "tide_lock.h"
#include "tide_log.h"
#include "tide_places.h"
#include "tide_reader_vfs.h"
#include "tide_verify.h"
#include "tide_writer.h"

enum { seed = 4711 };

static const tide_field fields[] = {
    {"caption", "caption", TIDE_TYPE_STRING}, {"rating", "rating", TIDE_TYPE_INT64}, {"height", "height", TIDE_TYPE_DOUBLE},
    {"notes", "notes", TIDE_TYPE_BYTES},      {"tags", "tags", TIDE_TYPE_STRING | TIDE_TYPE_LIST},
};
static const tide_index indexes[] = {{"tide_index_rating", "\"rating\""}};
static const char *const siblings[] = {"Other"};
static const tide_table table = {
    .name = "Place", .index_name = "tide_name_Place", .type_id = 1, .fields = fields, .field_count = 5, .indexes = indexes, .index_count = 1,
    .siblings = siblings, .sibling_count = 1,
};

static const char schema[] =
    "CREATE TABLE tide_changes (id INTEGER PRIMARY KEY, transaction_id INTEGER NOT NULL, type_id INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " first_row INTEGER NOT NULL, last_row INTEGER NOT NULL, previous INTEGER, before TEXT, key ANY, tag TEXT, base INTEGER, zone INTEGER)"
    " STRICT;"
    "CREATE TABLE \"Place\" (_id INTEGER PRIMARY KEY, _key ANY NOT NULL, _zone INTEGER NOT NULL, _version INTEGER NOT NULL, _tag TEXT,"
    " _base INTEGER, _edited TEXT, _pending ANY, _digest INTEGER NOT NULL, caption TEXT, rating INTEGER, height REAL, notes BLOB, tags TEXT)"
    " STRICT;"
    "CREATE UNIQUE INDEX \"tide_name_Place\" ON \"Place\" (_key, _zone);"
    "CREATE INDEX tide_index_rating ON \"Place\" (\"rating\");"
    "CREATE TABLE \"Other\" (_id INTEGER PRIMARY KEY, _key ANY NOT NULL, _zone INTEGER NOT NULL) STRICT;"
    "INSERT INTO \"Other\" VALUES (1, 'taken', 1);";

static char *database_path(void) {
    static char path[250];
    snprintf(path, sizeof path, "%s/private.sqlite", work_folder);
    return path;
}

/// Whether a call of SQLite's own has worked.
static bool sqlite_note(outcome *out, sqlite3 *connection, int code) {
    if (!out->status && code != SQLITE_OK) {
        out->status = code == SQLITE_NOMEM ? tide_error_set(&out->error, TIDE_NO_MEMORY, code, "SQLite's own")
                                           : tide_sqlite_error(connection, "run SQLite", &out->error);
    }
    return !out->status;
}

static bool execute(outcome *out, sqlite3 *connection, const char *sql) {
    return !out->status && sqlite_note(out, connection, sqlite3_exec(connection, sql, NULL, NULL, NULL));
}

/// Opens the database with the tables of a store, which are made without a fault.
static sqlite3 *store_open(outcome *out) {
    sqlite3 *connection = NULL;
    faults_pause();
    if (sqlite3_open(database_path(), &connection)
        || sqlite3_exec(connection, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) || sqlite3_exec(connection, schema, NULL, NULL, NULL)) {
        harness_fail("cannot make a store: %s", sqlite3_errmsg(connection));
    }
    faults_resume();
    out->status = tide_connection_prepare(connection, &out->error);
    return connection;
}

static tide_batch *batch_make(outcome *out, int first, int count, const char *caption) {
    tide_batch *batch = NULL;
    if (!outcome_note(out, tide_batch_create(1000, 1 << 20, &batch))) return NULL;
    for (int i = first; i < first + count && !out->status; i++) {
        char name[40], text[60];
        snprintf(name, sizeof name, i % 2 ? "00000000-0000-4000-8000-%012d" : "place %d", i);
        snprintf(text, sizeof text, "%s %d", caption, i);
        tide_span source, span;
        uint32_t row, column;
        if (!outcome_note(out, tide_batch_text_add(batch, text, strlen(text), &source))
            || !outcome_note(out, tide_batch_row_add(batch, (uint64_t)i + 1, source, &row))) break;
        if ((out->status = tide_batch_row_name(batch, row, name, strlen(name), &out->error))) break;
        tide_cell cells[5] = {
            {.kind = TIDE_KIND_TEXT, .length = source.length, .offset = source.offset},
            {.kind = TIDE_KIND_INTEGER, .integer = i},
            {.kind = i % 3 ? TIDE_KIND_REAL : TIDE_KIND_NULL, .real = i / 4.0},
            {.kind = TIDE_KIND_BLOB},
            {.kind = TIDE_KIND_TEXT},
        };
        if (!outcome_note(out, tide_batch_text_add(batch, "\1\2\3\0", 4, &span))) break;
        cells[3].offset = span.offset, cells[3].length = 4;
        if (!outcome_note(out, tide_batch_text_add(batch, "[\"a\",\"b\"]", 9, &span))) break;
        cells[4].offset = span.offset, cells[4].length = 9;
        for (int field = 0; field < 5 && !out->status; field++) {
            const char *column_name = fields[field].name;
            out->status = tide_batch_column(batch, column_name, strlen(column_name), &column, &out->error);
            if (out->status) break;
            tide_batch_column_set_type(batch, column, fields[field].type);
            if (i == first || field < 4) outcome_note(out, tide_batch_row_set(batch, column, cells[field]));
        }
        if (!out->status && i % 5 == 0) outcome_note(out, tide_batch_row_from_cloud(batch, row, "tag", 3, "{}", 2));
    }
    if (!out->status) tide_batch_digest(batch, seed);
    return batch;
}

static void row_add(void *context, int64_t row) { outcome_add_number(context, row); }

static void counts_add(outcome *out, const tide_counts *counts) { outcome_add(out, counts, sizeof *counts); }

/// What the tables hold, read without a fault.
static void tables_add(outcome *out, sqlite3 *connection) {
    static const char *const queries[] = {
        "SELECT * FROM \"Place\" ORDER BY _id", "SELECT * FROM tide_changes ORDER BY id", "SELECT name, sql FROM sqlite_master ORDER BY name"};
    faults_pause();
    for (int i = 0; i < 3; i++) {
        tide_digest digest;
        tide_error error;
        if (tide_digest_rows(connection, queries[i], &digest, &error)) harness_fail("cannot read the tables: %s", error.message);
        outcome_add(out, &digest, sizeof digest);
    }
    faults_resume();
}

static void store_close(outcome *out, sqlite3 *connection, tide_writer *writer) {
    tide_writer_destroy(writer);
    faults_pause();
    if (out->status && !sqlite3_get_autocommit(connection)) sqlite3_exec(connection, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_stmt *check = NULL;
    if (sqlite3_prepare_v2(connection, "PRAGMA integrity_check", -1, &check, NULL) || sqlite3_step(check) != SQLITE_ROW
        || strcmp((const char *)sqlite3_column_text(check, 0), "ok") != 0) {
        harness_fail("the database is damaged afterwards");
    }
    sqlite3_finalize(check);
    if (sqlite3_close(connection) != SQLITE_OK) harness_fail("statements are left");
    faults_resume();
}

static void apply(outcome *out, tide_writer *writer, int first, int count, const char *caption, tide_counters *counters) {
    tide_batch *batch = batch_make(out, first, count, caption);
    tide_counts counts = {0};
    if (!out->status) out->status = tide_writer_apply(writer, batch, 1, false, 1, counters, &counts, &out->error);
    counts_add(out, &counts);
    if (!out->status) outcome_add_number(out, tide_batch_rejection_count(batch));
    tide_batch_destroy(batch);
}

/// Inserts, updates, deletions, acknowledgements.
static void writer_use(const use *use, outcome *out) {
    (void)use;
    sqlite3 *connection = store_open(out);
    tide_writer *writer = NULL;
    tide_counters counters = {1, 1};
    execute(out, connection, "BEGIN IMMEDIATE");
    if (!out->status) out->status = tide_writer_create(connection, seed, &table, &writer, &out->error);
    if (!out->status) apply(out, writer, 0, 20, "first", &counters);
    if (!out->status) apply(out, writer, 10, 20, "second", &counters);
    if (!out->status) out->status = tide_writer_set_table(writer, &table, &out->error);
    if (!out->status) apply(out, writer, 10, 20, "second", &counters);
    const int64_t deleted[] = {2, 5, 4000};
    tide_counts counts = {0};
    if (!out->status) out->status = tide_writer_delete(writer, deleted, 3, 1, &counters, &counts, &out->error);
    if (!out->status) counts_add(out, &counts);
    tide_acknowledgement acknowledgement = {.row = 1, .version = 1, .tag = {0, 3}, .edited = {3, 2}};
    if (!out->status) out->status = tide_writer_acknowledge(writer, "new{}", &acknowledgement, 1, &out->error);
    if (!out->status) outcome_add_number(out, acknowledgement.is_noted);
    if (execute(out, connection, "COMMIT")) tables_add(out, connection);
    store_close(out, connection, writer);
}

/// A load, which ends as a name occurs twice.
static void load_use(const use *use, outcome *out) {
    (void)use;
    sqlite3 *connection = store_open(out);
    tide_writer *writer = NULL;
    tide_counters counters = {1, 1};
    execute(out, connection, "BEGIN IMMEDIATE");
    if (!out->status) out->status = tide_writer_create(connection, seed, &table, &writer, &out->error);
    if (!out->status) out->status = tide_writer_load_begin(writer, &out->error);
    if (!out->status) apply(out, writer, 0, 60, "first", &counters);
    if (!out->status) apply(out, writer, 40, 40, "second", &counters);
    if (!out->status) out->status = tide_writer_load_end(writer, &out->error);
    if (execute(out, connection, "COMMIT")) tables_add(out, connection);
    store_close(out, connection, writer);
}

/// Damage: a flipped bit is found, and mended; a damaged row is repaired by its own values; indexes are built again.
static void damage_use(const use *use, outcome *out) {
    (void)use;
    sqlite3 *connection = store_open(out);
    tide_writer *writer = NULL;
    tide_counters counters = {1, 1};
    faults_pause();
    outcome made = {0};
    sqlite3_exec(connection, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    made.status = tide_writer_create(connection, seed, &table, &writer, &made.error);
    apply(&made, writer, 0, 20, "first", &counters);
    if (made.status) harness_fail("cannot make records: %s", made.error.message);
    sqlite3_exec(connection,
                 "UPDATE \"Place\" SET caption = 'girst 3' WHERE _id = 4;"
                 "UPDATE \"Place\" SET rating = 77 WHERE _id = 5;"
                 "UPDATE \"Place\" SET _digest = _digest + 1 WHERE _id = 6; COMMIT; BEGIN IMMEDIATE",
                 NULL, NULL, NULL);
    faults_resume();
    uint64_t rows = 0;
    if (!out->status) out->status = tide_table_verify(connection, seed, &table, &rows, row_add, out, &out->error);
    outcome_add_number(out, (int64_t)rows);
    for (int64_t id = 3; id < 7 && !out->status; id++) {
        bool is_mended;
        out->status = tide_row_mend_bit(connection, seed, &table, id, &is_mended, &out->error);
        if (!out->status) outcome_add_number(out, is_mended);
    }
    if (!out->status) apply(out, writer, 0, 20, "first", &counters);
    if (!out->status) out->status = tide_indexes_drop(connection, &table, &out->error);
    if (!out->status) out->status = tide_indexes_build(connection, &table, &out->error);
    if (!out->status) out->status = tide_indexes_rebuild(connection, "Place", "tide_name_Place", &out->error);
    if (!out->status) out->status = tide_indexes_rebuild(connection, "Place", NULL, &out->error);
    if (execute(out, connection, "COMMIT")) tables_add(out, connection);
    store_close(out, connection, writer);
}

/// Checkpoints, and the digest of a query with values that lie on pages of their own.
static void connection_use(const use *use, outcome *out) {
    (void)use;
    sqlite3 *connection = store_open(out);
    faults_pause();
    sqlite3_exec(connection, "CREATE TABLE large (value TEXT); INSERT INTO large VALUES (hex(zeroblob(20000))), (printf('%.*c', 9000, 'x'))",
                 NULL, NULL, NULL);
    faults_resume();
    tide_digest digest;
    int32_t remaining = 0;
    if (!out->status) out->status = tide_digest_rows(connection, "SELECT value, length(value) FROM large", &digest, &out->error);
    if (!out->status) outcome_add(out, &digest, sizeof digest);
    if (!out->status) out->status = tide_connection_checkpoint(connection, false, &remaining, &out->error);
    if (!out->status) out->status = tide_connection_checkpoint(connection, true, &remaining, &out->error);
    uint8_t header[TIDE_HEADER_SIZE];
    if (!out->status) out->status = tide_header_read(database_path(), header, &out->error);
    if (!out->status) outcome_add(out, header, 24);
    store_close(out, connection, NULL);
}

/// Rows whose values have digests: a value that could not be read is not a damaged one.
static void rows_use(const use *use, outcome *out) {
    (void)use;
    sqlite3 *connection = store_open(out);
    faults_pause();
    outcome made = {0};
    tide_writer *writer = NULL;
    tide_counters counters = {1, 1};
    made.status = tide_writer_create(connection, seed, &table, &writer, &made.error);
    apply(&made, writer, 0, 6, "first", &counters);
    if (made.status) harness_fail("cannot make records: %s", made.error.message);
    tide_writer_destroy(writer);
    sqlite3_exec(connection, "UPDATE \"Place\" SET caption = printf('%.*c', 9000, 'x') WHERE _id = 2", NULL, NULL, NULL);
    sqlite3_stmt *row = NULL;
    tide_field_digest digests[5];
    for (int i = 0; i < 5; i++) {
        digests[i] = (tide_field_digest){tide_field_seed(seed, fields[i].name, strlen(fields[i].name)), fields[i].type};
    }
    sqlite3_prepare_v2(connection, "SELECT _key, _digest, caption, rating, height, notes, tags FROM \"Place\"", -1, &row, NULL);
    faults_resume();
    int code;
    while (!out->status && (code = sqlite3_step(row)) == SQLITE_ROW) {
        bool is_intact = tide_row_is_intact(row, (tide_row_columns){0, 1, 2}, seed, digests, 5);
        // What the caller has to ask, as the header says.
        if (!is_intact && sqlite3_errcode(connection) == SQLITE_NOMEM) outcome_note(out, TIDE_NO_MEMORY);
        outcome_add_number(out, is_intact);
    }
    if (!out->status && code != SQLITE_DONE) sqlite_note(out, connection, code);
    sqlite3_finalize(row);
    store_close(out, connection, NULL);
}

/// A reader beside the connection that has written.
static void reader_use(const use *use, outcome *out) {
    (void)use;
    faults_pause();
    outcome ready = {0};
    sqlite3 *writer = store_open(&ready);
    sqlite3_exec(writer, "INSERT INTO \"Other\" SELECT value, 'name ' || value, 1 FROM (WITH RECURSIVE n(value) AS"
                         " (SELECT 2 UNION ALL SELECT value + 1 FROM n WHERE value < 60) SELECT value FROM n)", NULL, NULL, NULL);
    faults_resume();
    sqlite3 *reader = NULL;
    out->status = tide_reader_vfs_register(&out->error);
    char uri[300];
    snprintf(uri, sizeof uri, "file://%s?vfs=" TIDE_READER_VFS_NAME, database_path());
    if (!out->status) sqlite_note(out, reader, sqlite3_open_v2(uri, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL));
    if (!out->status) out->status = tide_reader_prepare(reader, &out->error);
    sqlite3_stmt *statement = NULL;
    if (!out->status) sqlite_note(out, reader, sqlite3_prepare_v2(reader, "SELECT _key, _zone, 0 FROM \"Other\" ORDER BY _id", -1, &statement, NULL));
    tide_place places[7];
    char names[7 * TIDE_PLACE_NAME_MAX];
    int32_t code = SQLITE_ROW;
    while (!out->status && code == SQLITE_ROW) {
        size_t count;
        code = tide_places_read(statement, places, 7, names, sizeof names, &count);
        for (size_t i = 0; i < count; i++) outcome_add(out, names + places[i].name, places[i].name_length);
        if (code != SQLITE_ROW && code != SQLITE_DONE) sqlite_note(out, reader, code);
    }
    if (!out->status) outcome_add_number(out, tide_reader_is_undisturbed(reader));
    sqlite3_finalize(statement);
    if (sqlite3_close(reader) != SQLITE_OK) harness_fail("statements are left");
    tide_log_state state;
    if (!out->status) out->status = tide_log_examine(database_path(), &state, &out->error);
    if (!out->status) outcome_add_number(out, (int64_t)state.whole << 32 | state.committed);
    store_close(out, writer, NULL);
}

static void lock_use(const use *use, outcome *out) {
    (void)use;
    char path[250];
    snprintf(path, sizeof path, "%s/lock", work_folder);
    tide_lock *lock = NULL;
    out->status = tide_lock_create(path, &lock, &out->error);
    if (!out->status) out->status = tide_lock_acquire(lock, false, 10, &out->error);
    if (!out->status) outcome_add_number(out, tide_lock_is_in_place(lock));
    if (!out->status) tide_lock_release(lock);
    tide_lock_destroy(lock);
}

size_t uses_of_stores(use *uses, size_t capacity) {
    (void)capacity;
    static const use all[] = {
        {.name = "writer", .run = writer_use},         {.name = "load", .run = load_use},     {.name = "damage", .run = damage_use},
        {.name = "connection", .run = connection_use}, {.name = "rows", .run = rows_use},     {.name = "reader", .run = reader_use},
        {.name = "lock", .run = lock_use},
    };
    memcpy(uses, all, sizeof all);
    return sizeof all / sizeof *all;
}
