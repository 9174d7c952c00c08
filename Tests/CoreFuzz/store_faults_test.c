// Goal: whichever statement of SQLite fails, the writer reports it with what it was doing, and after a rollback the same calls work, with the same
// tables as without a failure.
// Method: the same calls run again and again, and each time another statement is interrupted as it begins, or after some steps; or can't be
// prepared; or has values that are longer than SQLite is allowed to take.

#include "store_fixture.h"
#include "tide_digest.h"
#include "tide_indexes.h"

// Faults

static sqlite3 *connection;
/// How many statements, or steps, go well before one fails; -1: all do.
static int remaining;
static bool has_failed;

static bool fails(void) {
    if (remaining < 0 || remaining-- > 0) return false;
    return has_failed = true;
}

static int statement_begins(unsigned reason, void *context, void *statement, void *text) {
    (void)reason, (void)context, (void)statement, (void)text;
    if (fails()) sqlite3_interrupt(connection);
    return 0;
}

static int step_done(void *context) {
    (void)context;
    return fails();
}

/// SQLite asks for each table that a statement reads or changes as it prepares the statement.
static int statement_prepared(void *context, int action, const char *one, const char *two, const char *database, const char *trigger) {
    (void)context, (void)one, (void)two, (void)database, (void)trigger;
    return action != SQLITE_READ && action != SQLITE_FUNCTION && fails() ? SQLITE_DENY : SQLITE_OK;
}

typedef enum kind { kind_statement, kind_step, kind_preparation, kind_length } kind;

static void faults_begin(kind kind, int number) {
    remaining = kind == kind_length ? -1 : number;
    has_failed = false;
    if (kind == kind_statement) sqlite3_trace_v2(connection, SQLITE_TRACE_STMT, statement_begins, NULL);
    if (kind == kind_step) sqlite3_progress_handler(connection, 7, step_done, NULL);
    if (kind == kind_preparation) sqlite3_set_authorizer(connection, statement_prepared, NULL);
    if (kind == kind_length) sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, 30 + number);
}

static void faults_end(void) {
    remaining = -1;
    sqlite3_trace_v2(connection, 0, NULL, NULL);
    sqlite3_progress_handler(connection, 0, NULL, NULL);
    sqlite3_set_authorizer(connection, NULL, NULL);
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, 1000000000);
}

// Uses

typedef tide_status (*use)(store *it);

/// Longer than the texts of the schema, so that a limit lets SQLite read them, and take no such value.
#define length_50 "12345678901234567890123456789012345678901234567890"
#define length_400 length_50 length_50 length_50 length_50 length_50 length_50 length_50 length_50
static const char long_name[] = length_50 length_50 length_50 length_50 "abc", long_text[] = length_400 "abc";

static tide_status use_writing(store *it) {
    char text[4000];
    tide_writer *writer = NULL;
    tide_status status = tide_writer_create(connection, store_seed, &store_table, &writer, &it->error);
    if (status) return status;
    tide_writer_destroy(it->writer);
    it->writer = writer;
    snprintf(text, sizeof text, "a|caption='%s\n%s|rating=#1\nb|rating=#2|@%s,%s\nc|photo='p|height=%%1\nd|notes=!%s\ne|photo='%s\n", long_text,
             long_name, long_text, long_text, long_text, long_text);
    if ((status = store_try(it, text))) return status;
    // Updates, of which one has a claim and waits; rows of the cloud; a new record; values before that are long.
    snprintf(text, sizeof text, "a|caption='x|rating=#5\nb|rating=#3|@t2\nc|photo='q|rating=#1\nc|photo=?q|rating=#2|@t\nf|rating=#1\nf|rating=#2\n"
                                "e|photo=?%s\nd|caption=~\n", long_text);
    if ((status = store_try(it, text))) return status;
    tide_acknowledgement records[] = {{.row = 1, .version = 3, .tag = {0, 400}, .edited = {0, 390}},
                                      {.row = 3, .version = 9, .tag = {0, 1}, .edited = {0, 1}, .known_tag = {0, 400}, .has_known_tag = true}};
    if ((status = tide_writer_acknowledge(it->writer, long_text, records, 2, &it->error))) return status;
    const int64_t ids[] = {1, 2, 3, 4, 5, 6, 99};
    return tide_writer_delete(it->writer, ids, 7, 5, &it->counters, &it->counts, &it->error);
}

static tide_status use_loading(store *it) {
    tide_status status = tide_writer_load_begin(it->writer, &it->error);
    if (!status) status = store_try(it, "a|rating=#1\nb|rating=#2\ntaken\n");
    if (!status) status = store_try(it, "c|rating=#1\nb|rating=#3\n");
    if (!status) status = tide_writer_load_end(it->writer, &it->error);
    return status;
}

/// Writes rows whose values do not match their indexes. Those of b alone, and its index, are not the ones that were written.
static void damage_make(store *it) {
    store_apply(it, "a|caption='abc|rating=#1\nb|caption='abc|rating=#1\nc|caption='abc|rating=#1\n");
    store_execute(it, "UPDATE Place SET rating = 9 WHERE _key = 'a'");
    store_damage(it, "UPDATE Place SET rating = 1 WHERE _key = 'a'; UPDATE Place SET rating = 3 WHERE _key = 'b'");
}

static tide_status delete (store *it, int64_t id) {
    return tide_writer_delete(it->writer, &id, 1, 5, &it->counters, &it->counts, &it->error);
}

static tide_status use_deletion(store *it) { return delete (it, 1); }
static tide_status use_deletion_of_damage(store *it) { return delete (it, 2); }

static tide_status use_repair(store *it) {
    tide_status status = tide_writer_set_table(it->writer, &store_table, &it->error);
    return status ? status : store_try(it, "b|caption='abc|rating=#1\n");
}

static tide_status use_update(store *it) { return store_try(it, "a|rating=#2\n"); }

static tide_status use_mending(store *it) {
    bool is_mended;
    return tide_row_mend_bit(connection, store_seed, &store_table, 2, &is_mended, &it->error);
}

static tide_status use_indexes(store *it) {
    uint64_t rows = 0;
    tide_text damaged = {0};
    tide_status status = tide_table_verify(connection, store_seed, &store_table, &rows, id_append, &damaged, &it->error);
    tide_text_free(&damaged);
    tide_digest digest;
    if (!status) status = tide_digest_rows(connection, "SELECT * FROM Place", &digest, &it->error);
    if (!status) status = tide_indexes_drop(connection, &store_table, &it->error);
    if (!status) status = tide_indexes_build(connection, &store_table, &it->error);
    if (!status) status = tide_indexes_rebuild(connection, "Place", NULL, &it->error);
    return status;
}

// Runs

/// Runs a use in a transaction that is rolled back, and returns what the tables had before that, or an empty text after a failure.
static tide_text run(store *it, use use, tide_counters counters, kind kind, int number) {
    tide_text text = {0};
    it->counters = counters;
    it->error = (tide_error){0};
    store_execute(it, "BEGIN IMMEDIATE");
    faults_begin(kind, number);
    tide_status status = use(it);
    faults_end();
    if (status) {
        check(it->error.status == status && !strncmp(it->error.message, "cannot ", 7) && !it->error.reject, "%d, %s", number, it->error.message);
        int code = it->error.system & 0xff;
        check(code == (kind == kind_preparation ? SQLITE_AUTH : kind == kind_length ? SQLITE_TOOBIG : SQLITE_INTERRUPT), "%d: %s", code,
              it->error.message);
    } else {
        tide_text tables[] = {
            rows_text(connection, store_records " ORDER BY _id"), rows_text(connection, store_history " ORDER BY id"),
            rows_text(connection, "SELECT name, sql FROM sqlite_master ORDER BY name")};
        for (int i = 0; i < 3; i++) {
            tide_text_format(&text, "%s\n", tables[i].bytes);
            tide_text_free(&tables[i]);
        }
    }
    // After some failures SQLite has rolled back by itself.
    if (!sqlite3_get_autocommit(connection)) store_execute(it, "ROLLBACK");
    tide_writer_load_forget(it->writer);
    return text;
}

static void expect_recovery(use use, void (*prepare)(store *it), const char *name) {
    store it;
    store_open(&it, "DELETE");
    connection = it.connection;
    if (prepare) prepare(&it);
    store_execute(&it, "COMMIT");
    tide_counters counters = it.counters;
    tide_text expected = run(&it, use, counters, kind_statement, -1);
    check(expected.length, "%s: %s", name, it.error.message);
    int failures[4] = {0};
    for (int kind = kind_statement; kind <= kind_length; kind++) {
        for (int number = 0;; number += kind == kind_step ? 1 + number / 24 : kind == kind_length ? 5 : 1) {
            tide_text found = run(&it, use, counters, kind, number);
            bool has_ended = kind == kind_length ? number > 1500 : !has_failed;
            if (found.length) {
                check(!strcmp(found.bytes, expected.bytes), "%s, kind %d, %d: all was well, and the tables are\n%s\nnot\n%s", name, kind, number,
                      found.bytes, expected.bytes);
            } else {
                failures[kind]++;
                tide_text again = run(&it, use, counters, kind_statement, -1);
                check(again.length && !strcmp(again.bytes, expected.bytes), "%s, kind %d, %d: the next run: %s\n%s", name, kind, number,
                      it.error.message, again.bytes);
                tide_text_free(&again);
            }
            tide_text_free(&found);
            if (has_ended) break;
        }
        check(failures[kind] > 0, "%s: no faults of kind %d", name, kind);
    }
    tide_text_free(&expected);
    store_execute(&it, "BEGIN");
    store_close(&it);
}

/// A value that SQLite does not take is no failure of other rows; nor one of its own row, if that is refused anyway.
static void test_long_values(void) {
    store it;
    store_open(&it, "DELETE");
    connection = it.connection;
    store_apply(&it, "a|rating=#1\n");
    char text[1000];
    snprintf(text, sizeof text, "b|caption='%s|photo=?p\n", long_text);
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, 350);
    store_apply(&it, text);
    expect_rejections(&it, "1, photo, assetUnknown: the row names an asset that this record does not hold; give the file instead (export with its"
                           " assets)\n");
    store_apply(&it, "a|rating=#2\n");
    // A value that is not taken is reported once.
    snprintf(text, sizeof text, "b|caption='%s\n", long_text);
    store_execute(&it, "SAVEPOINT before");
    check(store_try(&it, text) == TIDE_SQLITE_ERROR && it.error.system == SQLITE_TOOBIG, "%s", it.error.message);
    check(!strcmp(it.error.message, "cannot insert a record: string or blob too big"), "%s", it.error.message);
    store_execute(&it, "ROLLBACK TO before");
    store_apply(&it, "a|rating=#2\n");
    faults_end();
    expect_rows(&it, "SELECT _key, rating FROM Place", "a|2\n");
    store_close(&it);
}

int main(void) {
    test_long_values();
    expect_recovery(use_writing, NULL, "writing");
    expect_recovery(use_loading, NULL, "loading");
    expect_recovery(use_deletion, damage_make, "deletion");
    expect_recovery(use_deletion_of_damage, damage_make, "deletion of a damaged record");
    expect_recovery(use_repair, damage_make, "repair");
    expect_recovery(use_update, damage_make, "update");
    expect_recovery(use_mending, damage_make, "mending");
    expect_recovery(use_indexes, damage_make, "indexes");
    puts("store_faults: passed");
    return 0;
}
