/// Records without pictures, from memory into SQLite: insert, look up unchanged, update one field.
///
/// The records are made, and their memory touched, before the clock starts. It stops when everything is durable and the WAL is
/// empty.

#include "database.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *first, const void *second) {
    return memcmp(((const floor_row *)first)->name, ((const floor_row *)second)->name, 16);
}

static void insert_all(const floor_options *options, sqlite3 *database, const floor_journal *journal) {
    sqlite3_stmt *insert = database_prepare(database, database_insert);
    for (uint64_t first = 0; first < journal->count; first += options->batch) {
        uint64_t count = journal->count - first < options->batch ? journal->count - first : options->batch;
        if (options->sorted) qsort(journal->rows + first, count, sizeof(floor_row), compare_names);
        database_execute(database, "BEGIN IMMEDIATE");
        for (uint64_t index = first; index < first + count; index++) {
            database_bind(database, insert, &journal->rows[index]);
            database_run(database, insert);
        }
        database_commit(database, options);
    }
    sqlite3_finalize(insert);
    database_checkpoint(database);
}

static bool is_empty(sqlite3 *database) {
    sqlite3_stmt *statement = database_prepare(database, "SELECT count(*) FROM sqlite_schema WHERE name = 'Destination'");
    if (sqlite3_step(statement) != SQLITE_ROW) database_check(database, sqlite3_errcode(database));
    bool empty = sqlite3_column_int(statement, 0) == 0;
    sqlite3_finalize(statement);
    return empty;
}

void floor_insert(const floor_options *options) {
    floor_journal journal = floor_journal_make(options, false);
    sqlite3 *database = database_open(options, options->path);
    if (!is_empty(database)) floor_fail(0, "%s is not a fresh database", options->path);
    database_execute(database, database_table);
    database_checkpoint(database);
    double start = floor_clock();
    insert_all(options, database, &journal);
    double seconds = floor_clock() - start;
    database_check(database, sqlite3_close(database));
    floor_report("insert", seconds, journal.count, journal.bytes);
}

/// Opens a database that holds the journal, after filling it where it is fresh.
static sqlite3 *open_filled(const floor_options *options) {
    sqlite3 *database = database_open(options, options->path);
    if (is_empty(database)) {
        floor_journal journal = floor_journal_make(options, false);
        database_execute(database, database_table);
        insert_all(options, database, &journal);
        floor_journal_free(&journal);
    }
    return database;
}

static bool same_text(sqlite3_stmt *statement, int column, const char *text, uint32_t length) {
    const void *stored = sqlite3_column_text(statement, column);
    return stored != NULL && (uint32_t)sqlite3_column_bytes(statement, column) == length && memcmp(stored, text, length) == 0;
}

void floor_unchanged(const floor_options *options) {
    sqlite3 *database = open_filled(options);
    floor_journal journal = floor_journal_make(options, false);
    sqlite3_stmt *look_up = database_prepare(
        database, "SELECT createdAt, caption, details, rating, elevation, image, imageSize FROM Destination WHERE _name = ?");
    double start = floor_clock();
    for (uint64_t first = 0; first < journal.count; first += options->batch) {
        uint64_t count = journal.count - first < options->batch ? journal.count - first : options->batch;
        if (options->sorted) qsort(journal.rows + first, count, sizeof(floor_row), compare_names);
        database_execute(database, "BEGIN IMMEDIATE");
        for (uint64_t index = first; index < first + count; index++) {
            const floor_row *row = &journal.rows[index];
            database_check(database, sqlite3_bind_blob(look_up, 1, row->name, sizeof(row->name), SQLITE_STATIC));
            if (sqlite3_step(look_up) != SQLITE_ROW) floor_fail(0, "a record is missing from %s", options->path);
            bool same = sqlite3_column_int64(look_up, 0) == row->created_at;
            same = same && same_text(look_up, 1, row->caption, row->caption_length);
            same = same && same_text(look_up, 2, row->details, row->details_length);
            same = same && sqlite3_column_int64(look_up, 3) == row->rating;
            same = same && sqlite3_column_double(look_up, 4) == row->elevation;
            same = same && sqlite3_column_type(look_up, 5) == SQLITE_NULL && sqlite3_column_type(look_up, 6) == SQLITE_NULL;
            if (!same) floor_fail(0, "a record in %s has changed", options->path);
            sqlite3_reset(look_up);
        }
        database_execute(database, "COMMIT");
    }
    double seconds = floor_clock() - start;
    sqlite3_finalize(look_up);
    database_check(database, sqlite3_close(database));
    floor_report("unchanged", seconds, journal.count, journal.bytes);
}

void floor_update_one_field(const floor_options *options) {
    sqlite3 *database = open_filled(options);
    floor_journal journal = floor_journal_make(options, true);
    sqlite3_stmt *update = database_prepare(database, "UPDATE Destination SET caption = ? WHERE _name = ?");
    double start = floor_clock();
    for (uint64_t first = 0; first < journal.count; first += options->batch) {
        uint64_t count = journal.count - first < options->batch ? journal.count - first : options->batch;
        if (options->sorted) qsort(journal.rows + first, count, sizeof(floor_row), compare_names);
        database_execute(database, "BEGIN IMMEDIATE");
        for (uint64_t index = first; index < first + count; index++) {
            const floor_row *row = &journal.rows[index];
            database_check(database, sqlite3_bind_text(update, 1, row->caption, (int)row->caption_length, SQLITE_STATIC));
            database_check(database, sqlite3_bind_blob(update, 2, row->name, sizeof(row->name), SQLITE_STATIC));
            database_run(database, update);
            if (sqlite3_changes(database) != 1) floor_fail(0, "a record is missing from %s", options->path);
        }
        database_execute(database, "COMMIT");
    }
    database_checkpoint(database);
    double seconds = floor_clock() - start;
    sqlite3_finalize(update);
    database_check(database, sqlite3_close(database));
    floor_report("update-one-field", seconds, journal.count, journal.bytes);
}
