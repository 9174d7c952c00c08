// Stores for the tests of the core: the tables of a store in a folder of its own, batches that are written as texts, and tables that are compared
// as texts.
//
// A batch has a record in each line: its name, then its values, each behind '|', as `field=VALUE`. The first byte of a value tells its kind:
// 'text  #integer  %real  !bytes  ?claim of an asset  ~ no value. `@TAG`, or `@TAG,EDITED`, makes the row a cloud's.
// A table has a row in each line, with '|' between its values: text and numbers as they are, x'..' for bytes, ~ for NULL.

#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <dirent.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "tide_connection.h"
#include "tide_text.h"
#include "tide_verify.h"
#include "tide_writer.h"

enum { store_seed = 4711, store_field_count = 5 };

static const tide_field store_fields[] = {
    {"caption", "caption", TIDE_TYPE_STRING}, {"rating", "rating", TIDE_TYPE_INT64}, {"height", "height", TIDE_TYPE_DOUBLE},
    {"notes", "notes", TIDE_TYPE_BYTES},      {"photo", "photo", TIDE_TYPE_ASSET},
};
static const tide_index store_indexes[] = {{"tide_index_rating", "\"rating\""}, {"tide_index_caption", "\"caption\", \"rating\""}};
static const char *const store_siblings[] = {"Other"};
static const tide_table store_table = {
    .name = "Place", .index_name = "tide_name_Place", .type_id = 7, .fields = store_fields, .field_count = store_field_count,
    .indexes = store_indexes, .index_count = 2, .siblings = store_siblings, .sibling_count = 1,
};

static const char store_schema[] =
    "CREATE TABLE tide_changes (id INTEGER PRIMARY KEY, transaction_id INTEGER NOT NULL, type_id INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " first_row INTEGER NOT NULL, last_row INTEGER NOT NULL, previous INTEGER, before TEXT, key ANY, tag TEXT, base INTEGER, zone INTEGER)"
    " STRICT;"
    "CREATE TABLE \"Place\" (_id INTEGER PRIMARY KEY, _key ANY NOT NULL, _zone INTEGER NOT NULL, _version INTEGER NOT NULL, _tag TEXT,"
    " _base INTEGER, _edited TEXT, _pending ANY, _digest INTEGER NOT NULL, caption TEXT, rating INTEGER, height REAL, notes BLOB, photo TEXT)"
    " STRICT;"
    "CREATE TABLE \"Other\" (_id INTEGER PRIMARY KEY, _key ANY NOT NULL, _zone INTEGER NOT NULL) STRICT;"
    "INSERT INTO \"Other\" VALUES (1, 'taken', 1), (2, 'taken in zone 2', 2);";

typedef struct store {
    char folder[60], path[80];
    sqlite3 *connection;
    tide_writer *writer;
    tide_counters counters;
    /// Of the last call.
    tide_counts counts;
    tide_error error;
    /// The batch that was applied last.
    tide_batch *batch;
    int64_t zone;
    bool is_anywhere;
} store;

static inline void store_execute(store *it, const char *sql) {
    check(sqlite3_exec(it->connection, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(it->connection));
}

static inline sqlite3_stmt *store_prepare(store *it, const char *sql) {
    sqlite3_stmt *statement = NULL;
    check(sqlite3_prepare_v2(it->connection, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(it->connection));
    return statement;
}

/// The rows of a query as a text, which the caller frees.
static inline tide_text rows_text(sqlite3 *connection, const char *sql) {
    sqlite3_stmt *statement = NULL;
    check(sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(connection));
    tide_text text = {0};
    tide_text_append(&text, "", 0);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            if (i) tide_text_append(&text, "|", 1);
            int type = sqlite3_column_type(statement, i);
            const uint8_t *bytes = sqlite3_column_blob(statement, i);
            int length = sqlite3_column_bytes(statement, i);
            if (type == SQLITE_NULL) {
                tide_text_append(&text, "~", 1);
            } else if (type == SQLITE_BLOB) {
                tide_text_append(&text, "x'", 2);
                for (int j = 0; j < length; j++) tide_text_format(&text, "%02x", bytes[j]);
                tide_text_append(&text, "'", 1);
            } else {
                tide_text_append(&text, sqlite3_column_text(statement, i), (size_t)sqlite3_column_bytes(statement, i));
            }
        }
        tide_text_append(&text, "\n", 1);
    }
    check(code == SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(connection));
    sqlite3_finalize(statement);
    check(!text.failed, "no memory");
    return text;
}

#define expect_rows(it, sql, expected) expect_rows_at(it, sql, expected, __FILE__, __LINE__)

static inline void expect_rows_at(store *it, const char *sql, const char *expected, const char *file, int line) {
    tide_text text = rows_text(it->connection, sql);
    const char *found = text.bytes ? text.bytes : "";
    if (strcmp(found, expected)) check_fail(file, line, sql, "found:\n%s\nexpected:\n%s", found, expected);
    tide_text_free(&text);
}

/// Opens a store in a new folder, with its tables, and begins a transaction.
static inline void store_open(store *it, const char *journal_mode) {
    *it = (store){.counters = {1, 1}, .zone = 1};
    snprintf(it->folder, sizeof it->folder, "/tmp/tidemark-test-XXXXXX");
    check(mkdtemp(it->folder), "a folder");
    snprintf(it->path, sizeof it->path, "%s/a.sqlite", it->folder);
    check(sqlite3_open(it->path, &it->connection) == SQLITE_OK, "%s", it->path);
    char sql[60];
    snprintf(sql, sizeof sql, "PRAGMA journal_mode = %s", journal_mode);
    store_execute(it, sql);
    store_execute(it, store_schema);
    check(tide_connection_prepare(it->connection, &it->error) == TIDE_OK, "%s", it->error.message);
    store_execute(it, "PRAGMA synchronous = OFF; BEGIN IMMEDIATE");
    check(tide_writer_create(it->connection, store_seed, &store_table, &it->writer, &it->error) == TIDE_OK, "%s", it->error.message);
}

static inline void store_close(store *it) {
    tide_writer_destroy(it->writer);
    tide_batch_destroy(it->batch);
    check(sqlite3_close(it->connection) == SQLITE_OK, "a statement is left");
    DIR *folder = opendir(it->folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", it->folder, entry->d_name);
        unlink(path);
    }
    closedir(folder);
    check(rmdir(it->folder) == 0, "%s", it->folder);
}

/// Reads a file in another process: as this one closes it, SQLite would lose its locks.
static inline size_t bytes_read(const char *path, uint8_t *bytes, size_t capacity) {
    char command[120];
    snprintf(command, sizeof command, "cat %s", path);
    FILE *file = popen(command, "r");
    check(file, "%s", path);
    size_t length = fread(bytes, 1, capacity, file);
    check(length < capacity && pclose(file) == 0, "%s has %zu bytes", path, length);
    return length;
}

static inline void bytes_write(const char *path, const uint8_t *bytes, size_t length) {
    unlink(path);
    FILE *file = fopen(path, "wb");
    check(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0, "%s", path);
}

static inline tide_cell batch_value(tide_batch *batch, const char *value, size_t length) {
    tide_span span;
    check(!tide_batch_text_add(batch, value + 1, length - 1, &span), "no memory");
    tide_cell cell = {.kind = TIDE_KIND_NULL};
    switch (*value) {
    case '#': cell = (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = strtoll(value + 1, NULL, 10)}; break;
    case '%': cell = (tide_cell){.kind = TIDE_KIND_REAL, .real = strtod(value + 1, NULL)}; break;
    case '~': break;
    default:
        cell = (tide_cell){.kind = *value == '!' ? TIDE_KIND_BLOB : *value == '?' ? TIDE_KIND_CLAIM : TIDE_KIND_TEXT, .length = span.length};
        cell.offset = span.offset;
    }
    return cell;
}

static inline tide_batch *batch_of(const char *text) {
    tide_batch *batch = NULL;
    tide_error error;
    check(tide_batch_create(1000, 1 << 20, &batch) == TIDE_OK, "a batch");
    for (uint64_t line = 1; *text; line++) {
        uint32_t row = 0;
        check(!tide_batch_row_add(batch, line, (tide_span){0}, &row), "no memory");
        for (bool is_name = true; *text != '\n'; is_name = false) {
            size_t length = strcspn(text, "|\n"), name_length = strcspn(text, "=|\n");
            if (is_name) {
                check(!tide_batch_row_name(batch, row, text, length, &error), "%s", error.message);
            } else if (*text == '@') {
                size_t tag = strcspn(text, ",|\n");
                const char *edited = tag < length ? text + tag + 1 : NULL;
                check(!tide_batch_row_from_cloud(batch, row, text + 1, tag - 1, edited, edited ? length - tag - 1 : 0), "no memory");
            } else {
                uint32_t column = 0;
                check(!tide_batch_column(batch, text, name_length, &column, &error), "%s", error.message);
                tide_cell cell = batch_value(batch, text + name_length + 1, length - name_length - 1);
                check(!tide_batch_row_set(batch, column, cell), "%.*s is given twice", (int)name_length, text);
            }
            text += length;
            if (*text == '|') text++;
        }
        text++;
    }
    tide_batch_digest(batch, store_seed);
    return batch;
}

/// Applies a batch, in the transaction 5.
static inline tide_status store_try(store *it, const char *text) {
    tide_batch_destroy(it->batch);
    it->batch = batch_of(text);
    it->counts = (tide_counts){0};
    return tide_writer_apply(
        it->writer, it->batch, it->zone, it->is_anywhere, 5, &it->counters, &it->counts, &it->error);
}

static inline void store_apply(store *it, const char *text) {
    check(store_try(it, text) == TIDE_OK, "%s: %s", text, it->error.message);
}

static inline void store_delete(store *it, int64_t id) {
    it->counts = (tide_counts){0};
    tide_status status = tide_writer_delete(it->writer, &id, 1, 5, &it->counters, &it->counts, &it->error);
    check(status == TIDE_OK, "%s", it->error.message);
}

#define expect_counts(it, expected) expect_counts_at(it, expected, __FILE__, __LINE__)

/// Compares the counts of the last call with a text: "inserted updated unchanged deleted repaired".
static inline void expect_counts_at(const store *it, const char *expected, const char *file, int line) {
    char found[120];
    const tide_counts *counts = &it->counts;
    snprintf(found, sizeof found, "%d %d %d %d %d", (int)counts->inserted, (int)counts->updated, (int)counts->unchanged, (int)counts->deleted,
             (int)counts->repaired);
    if (strcmp(found, expected)) check_fail(file, line, "counts", "found %s, expected %s", found, expected);
}

/// The refusals of the batch that was applied last, each a line: "line, field, reason: the message".
static inline tide_text rejections_text(const store *it) {
    tide_text text = {0};
    for (uint32_t i = 0; i < tide_batch_rejection_count(it->batch); i++) {
        tide_rejection rejection = tide_batch_rejection(it->batch, i);
        tide_text_format(&text, "%d, %.*s, %s: %.*s\n", (int)rejection.line, (int)rejection.field.length,
                         tide_batch_text(it->batch, rejection.field.offset), tide_reject_name(rejection.reject), (int)rejection.message.length,
                         tide_batch_text(it->batch, rejection.message.offset));
    }
    return text;
}

#define expect_rejections(it, expected) expect_rejections_at(it, expected, __FILE__, __LINE__)

static inline void expect_rejections_at(const store *it, const char *expected, const char *file, int line) {
    tide_text text = rejections_text(it);
    const char *found = text.bytes ? text.bytes : "";
    if (strcmp(found, expected)) check_fail(file, line, "refusals", "found:\n%s\nexpected:\n%s", found, expected);
    tide_text_free(&text);
}

static inline void id_append(void *context, int64_t id) { tide_text_format(context, " %d", (int)id); }

#define expect_damaged(it, expected) expect_damaged_at(it, expected, __FILE__, __LINE__)

/// Compares the ids of the rows whose values don't match their digests, each behind a space, with a text.
static inline void expect_damaged_at(store *it, const char *expected, const char *file, int line) {
    tide_text text = {0};
    uint64_t rows = 0;
    tide_status status = tide_table_verify(it->connection, store_seed, &store_table, &rows, id_append, &text, &it->error);
    const char *found = text.bytes ? text.bytes : "";
    if (status || strcmp(found, expected)) check_fail(file, line, "damaged", "found '%s', expected '%s', %s", found, expected, it->error.message);
    tide_text_free(&text);
}

/// Changes the table's rows behind the backs of its indexes, as a disk does.
static inline void store_damage(store *it, const char *sql) {
    sqlite3_db_config(it->connection, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    store_execute(it, "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = sql || ' WHERE 0' WHERE type = 'index' AND sql IS NOT NULL;"
                      " PRAGMA writable_schema = RESET");
    store_execute(it, sql);
    store_execute(it, "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = substr(sql, 1, length(sql) - 8) WHERE type = 'index'"
                      " AND sql IS NOT NULL; PRAGMA writable_schema = RESET");
    sqlite3_db_config(it->connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
}

#define store_records "SELECT _id, _key, _zone, _version, _pending, _tag, _base, _edited, caption, rating, height, notes, photo FROM \"Place\""
#define store_history "SELECT id, kind, first_row, last_row, previous, before, key, tag, base, zone FROM tide_changes"

#endif
