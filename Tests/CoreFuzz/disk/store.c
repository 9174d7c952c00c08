#include "store.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "disk.h"
#include "tide_connection.h"
#include "tide_digest.h"
#include "tide_verify.h"
#include "tide_writer.h"

enum { digest_seed = 4711, name_count = 90, large_value = 40000 };

static const tide_field fields[] = {
    {"caption", "caption", TIDE_TYPE_STRING}, {"rating", "rating", TIDE_TYPE_INT64}, {"notes", "notes", TIDE_TYPE_BYTES},
    {"added", "added", TIDE_TYPE_DOUBLE},
};
static const tide_index indexes[] = {{"tide_index_rating", "\"rating\""}};

static const char schema[] =
    "CREATE TABLE tide_changes (id INTEGER PRIMARY KEY, transaction_id INTEGER NOT NULL, type_id INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " first_row INTEGER NOT NULL, last_row INTEGER NOT NULL, previous INTEGER, before TEXT, key ANY, tag TEXT, base INTEGER, zone INTEGER)"
    " STRICT;"
    "CREATE TABLE \"Place\" (_id INTEGER PRIMARY KEY, _key ANY NOT NULL, _zone INTEGER NOT NULL, _version INTEGER NOT NULL, _tag TEXT,"
    " _base INTEGER, _edited TEXT, _pending ANY, _digest INTEGER NOT NULL, caption TEXT, rating INTEGER, notes BLOB) STRICT;"
    "CREATE UNIQUE INDEX \"tide_name_Place\" ON \"Place\" (_key, _zone);"
    "CREATE INDEX tide_index_rating ON \"Place\" (\"rating\");";

struct store {
    sqlite3 *connection;
    tide_writer *writer;
    tide_table table;
    /// Whether the writer has another description of the table, since a step was rolled back.
    bool is_stale;
};

static tide_status run(store *store, const char *sql, tide_error *error) {
    if (sqlite3_exec(store->connection, sql, NULL, NULL, NULL) == SQLITE_OK) return TIDE_OK;
    return tide_sqlite_error(store->connection, sql, error);
}

/// Reads the number that a query yields.
static tide_status number(store *store, const char *sql, int64_t *value, tide_error *error) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->connection, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    tide_status status = TIDE_OK;
    if (code == SQLITE_ROW) *value = sqlite3_column_int64(statement, 0);
    else status = tide_sqlite_error(store->connection, "read a number", error);
    sqlite3_finalize(statement);
    return status;
}

void store_make(void) {
    disk_clear();
    sqlite3 *connection = NULL;
    check(sqlite3_open_v2("store", &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, DISK_VFS_NAME) == SQLITE_OK, "cannot open");
    check(sqlite3_exec(connection, "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL", NULL, NULL, NULL) == SQLITE_OK
              && sqlite3_exec(connection, schema, NULL, NULL, NULL) == SQLITE_OK, "cannot make a store: %s", sqlite3_errmsg(connection));
    check(sqlite3_close(connection) == SQLITE_OK, "cannot close");
}

store *store_open(bool is_normal, tide_error *error) {
    store *store = calloc(1, sizeof *store);
    check(store != NULL, "out of memory");
    tide_status status = TIDE_OK;
    if (sqlite3_open_v2("store", &store->connection, SQLITE_OPEN_READWRITE, DISK_VFS_NAME) != SQLITE_OK) {
        status = tide_sqlite_error(store->connection, "open the store", error);
    }
    if (!status) status = tide_connection_prepare(store->connection, error);
    // A small cache lets statements read and write the files in the middle of a transaction.
    if (!status) status = run(store, "PRAGMA cache_size = 10", error);
    if (!status && is_normal) status = run(store, "PRAGMA synchronous = NORMAL", error);
    int64_t columns = 0;
    if (!status) status = number(store, "SELECT count(*) FROM pragma_table_info('Place') WHERE name = 'added'", &columns, error);
    store->table = (tide_table){
        .name = "Place", .index_name = "tide_name_Place", .type_id = 1, .fields = fields, .field_count = columns ? 4 : 3, .indexes = indexes,
        .index_count = 1,
    };
    if (!status) status = tide_writer_create(store->connection, digest_seed, &store->table, &store->writer, error);
    if (!status) return store;
    store_close(store);
    return NULL;
}

void store_close(store *store) {
    tide_writer_destroy(store->writer);
    check(sqlite3_close(store->connection) == SQLITE_OK, "statements are left");
    free(store);
}

/// Adds a value to the last row.
static void cell_add(tide_batch *batch, const tide_field *field, tide_cell cell, const void *bytes, size_t length) {
    uint32_t column;
    tide_error error;
    check(tide_batch_column(batch, field->name, strlen(field->name), &column, &error) == TIDE_OK, "%s", error.message);
    tide_batch_column_set_type(batch, column, field->type);
    if (bytes) {
        tide_span span;
        check(tide_batch_text_add(batch, bytes, length, &span) == TIDE_OK, "no room");
        cell.offset = span.offset, cell.length = span.length;
    }
    check(tide_batch_row_set(batch, column, cell) == TIDE_OK, "a value twice");
}

/// Makes rows of which `first` to `first` + `count` - 1 name new records, or any records where `first` is negative.
static tide_batch *batch_make(const store *store, int first, int count, uint64_t *random) {
    static uint8_t large[large_value];
    tide_batch *batch = NULL;
    check(tide_batch_create(1000, 1 << 22, &batch) == TIDE_OK, "out of memory");
    for (int i = 0; i < count; i++) {
        int name_number = first < 0 ? (int)random_below(random, name_count) : first + i;
        char name[48], text[64];
        snprintf(name, sizeof name, name_number % 2 ? "00000000-0000-4000-8000-%012d" : "place %d", name_number);
        snprintf(text, sizeof text, "caption %d", (int)random_below(random, 1000));
        uint32_t row;
        tide_span source;
        tide_error error;
        check(tide_batch_text_add(batch, name, strlen(name), &source) == TIDE_OK
                  && tide_batch_row_add(batch, (uint64_t)i + 1, source, &row) == TIDE_OK, "no room");
        check(tide_batch_row_name(batch, row, name, strlen(name), &error) == TIDE_OK, "%s", error.message);
        cell_add(batch, &fields[0], (tide_cell){.kind = TIDE_KIND_TEXT}, text, strlen(text));
        cell_add(batch, &fields[1], (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = (int64_t)random_below(random, 50)}, NULL, 0);
        // Some values lie on pages of their own.
        size_t length = random_below(random, 16) ? 200 : large_value;
        memset(large, (int)random_below(random, 256), length);
        cell_add(batch, &fields[2], (tide_cell){.kind = TIDE_KIND_BLOB}, large, length);
        if (store->table.field_count == 4) {
            cell_add(batch, &fields[3], (tide_cell){.kind = TIDE_KIND_REAL, .real = (double)random_below(random, 100) / 4}, NULL, 0);
        }
        if (random_below(random, 5) == 0) check(tide_batch_row_from_cloud(batch, row, "tag", 3, "{}", 2) == TIDE_OK, "no room");
    }
    tide_batch_digest(batch, digest_seed);
    return batch;
}

static tide_status apply(store *store, int step, int first, int count, uint64_t *random, tide_error *error) {
    tide_counters counters;
    tide_status status = number(store, "SELECT coalesce(max(_id), 0) + 1 FROM \"Place\"", &counters.next_row, error);
    if (!status) status = number(store, "SELECT coalesce(max(id), 0) + 1 FROM tide_changes", &counters.next_change, error);
    if (status) return status;
    tide_batch *batch = batch_make(store, first, count, random);
    tide_counts counts = {0};
    status = tide_writer_apply(store->writer, batch, 1, false, step + 1, &counters, &counts, error);
    if (!status) check(tide_batch_rejection_count(batch) == 0, "a row was refused");
    tide_batch_destroy(batch);
    return status;
}

static tide_status delete (store *store, int step, uint64_t *random, tide_error *error) {
    int64_t ids[9];
    for (size_t i = 0; i < 9; i++) ids[i] = (int64_t)random_below(random, name_count);
    tide_counters counters = {0};
    tide_counts counts = {0};
    tide_status status = number(store, "SELECT coalesce(max(id), 0) + 1 FROM tide_changes", &counters.next_change, error);
    return status ? status : tide_writer_delete(store->writer, ids, 9, step + 1, &counters, &counts, error);
}

static tide_status acknowledge(store *store, tide_error *error) {
    tide_acknowledgement records[20];
    for (size_t i = 0; i < 20; i++) records[i] = (tide_acknowledgement){.row = (int64_t)i * 3 + 1, .version = 1, .tag = {0, 3}, .edited = {3, 2}};
    return tide_writer_acknowledge(store->writer, "new{}", records, 20, error);
}

/// Describes the table with its first fields.
static tide_status fields_set(store *store, uint32_t count, tide_error *error) {
    store->table.field_count = count;
    return tide_writer_set_table(store->writer, &store->table, error);
}

static tide_status transaction_step(store *store, int step, uint64_t *random, tide_error *error) {
    tide_status status;
    switch (step) {
    case 0:
        status = tide_writer_load_begin(store->writer, error);
        return status ? status : apply(store, step, 0, 40, random, error);
    case 1:
        status = apply(store, step, 40, 30, random, error);
        return status ? status : tide_writer_load_end(store->writer, error);
    case 3:
    case 12: return delete (store, step, random, error);
    case 6: return acknowledge(store, error);
    case 8:
        status = run(store, "ALTER TABLE \"Place\" ADD COLUMN added REAL", error);
        if (!status) status = fields_set(store, 4, error);
        return status ? status : apply(store, step, -1, 10, random, error);
    default: return apply(store, step, -1, 12, random, error);
    }
}

tide_status store_step(store *store, int step, uint64_t seed, tide_error *error) {
    uint64_t random = seed * STORE_STEPS + (uint64_t)step;
    if (step == 4 || step == STORE_TRUNCATION || step == 14) {
        int32_t remaining;
        return tide_connection_checkpoint(store->connection, step == STORE_TRUNCATION, &remaining, error);
    }
    tide_status status = store->is_stale ? fields_set(store, store->table.field_count, error) : TIDE_OK;
    if (status) return status;
    store->is_stale = false;
    status = run(store, "BEGIN IMMEDIATE", error);
    if (status) return status;
    status = transaction_step(store, step, &random, error);
    if (!status) status = run(store, "COMMIT", error);
    if (!status) return TIDE_OK;
    tide_error other;
    if (!sqlite3_get_autocommit(store->connection)) run(store, "ROLLBACK", &other);
    tide_writer_load_forget(store->writer);
    if (step == 8) store->table.field_count = 3, store->is_stale = true;
    return status;
}

tide_status store_verify(store *store, void (*report)(void *context, int64_t row), void *context, tide_error *error) {
    uint64_t rows;
    return tide_table_verify(store->connection, digest_seed, &store->table, &rows, report, context, error);
}

bool store_is_whole(store *store) {
    sqlite3_stmt *statement = NULL;
    bool is_whole = sqlite3_prepare_v2(store->connection, "PRAGMA integrity_check", -1, &statement, NULL) == SQLITE_OK
                    && sqlite3_step(statement) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
    sqlite3_finalize(statement);
    return is_whole;
}

struct sqlite3 *store_connection(store *store) { return store->connection; }

static void row_fail(void *context, int64_t row) {
    check_fail(__FILE__, __LINE__, "a row matches its digest", "%s: row %lld", (char *)context, (long long)row);
}

uint64_t store_digest(store *store, const char *what) {
    check(store_is_whole(store), "%s: %s", what, sqlite3_errmsg(store->connection));
    tide_error error;
    check(store_verify(store, row_fail, (void *)what, &error) == TIDE_OK, "%s: %s", what, error.message);
    static const char *const queries[] = {
        "SELECT * FROM \"Place\" ORDER BY _id", "SELECT * FROM tide_changes ORDER BY id", "SELECT name, sql FROM sqlite_master ORDER BY name"};
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        tide_digest digest;
        check(tide_digest_rows(store->connection, queries[i], &digest, &error) == TIDE_OK, "%s: %s", what, error.message);
        sum = sum * 31 + (digest.low ^ digest.high);
    }
    return sum;
}
