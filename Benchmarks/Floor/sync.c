/// The synchronisation of a store with a cloud, as SQLite alone could do it: rows from one database into another, and from there
/// into a third, 400 in a transaction, each of which is durable. One thread.

#include "database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// A table as a store's: short binary names, and a tag that says what the cloud has.
static const char store_tables[] =
    "CREATE TABLE Destination(_id INTEGER PRIMARY KEY, _key BLOB NOT NULL, _tag TEXT, _pending INTEGER, createdAt INTEGER NOT NULL,"
    " caption TEXT NOT NULL, details TEXT NOT NULL, rating INTEGER NOT NULL, elevation REAL NOT NULL);"
    "CREATE UNIQUE INDEX names ON Destination(_key);"
    "CREATE TABLE state(id INTEGER PRIMARY KEY, token INTEGER NOT NULL);"
    "INSERT INTO state VALUES(1, 0)";

/// The cloud's: names as text, a record's fields as one run of bytes.
static const char cloud_tables[] =
    "CREATE TABLE records(id INTEGER PRIMARY KEY, name TEXT NOT NULL, fields BLOB NOT NULL, changed INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX by_name ON records(name);"
    "CREATE UNIQUE INDEX by_change ON records(changed)";

static const char store_insert[] =
    "INSERT INTO Destination(_key, _tag, _pending, createdAt, caption, details, rating, elevation) VALUES(?, ?, ?, ?, ?, ?, ?, ?)";

typedef struct buffer {
    uint8_t *bytes;
    size_t length, capacity;
} buffer;

static void append(buffer *to, const void *bytes, size_t count) {
    if (to->length + count > to->capacity) {
        to->capacity = 2 * (to->length + count);
        to->bytes = realloc(to->bytes, to->capacity);
        if (to->bytes == NULL) floor_fail(0, "no memory");
    }
    memcpy(to->bytes + to->length, bytes, count);
    to->length += count;
}

static void append_text(buffer *to, const void *text, uint32_t length) {
    append(to, &length, sizeof(length));
    append(to, text, length);
}

static void print_name(const uint8_t name[16], char text[37]) {
    char *next = text;
    for (int index = 0; index < 16; index++) {
        if (index == 4 || index == 6 || index == 8 || index == 10) *next++ = '-';
        *next++ = "0123456789abcdef"[name[index] >> 4];
        *next++ = "0123456789abcdef"[name[index] & 15];
    }
    *next = 0;
}

static void parse_name(const char *text, uint8_t name[16]) {
    for (int index = 0; index < 16; index++) {
        if (*text == '-') text++;
        uint8_t byte = 0;
        for (int half = 0; half < 2; half++, text++) byte = (uint8_t)(byte << 4 | (*text <= '9' ? *text - '0' : *text - 'a' + 10));
        name[index] = byte;
    }
}

static void fill(const floor_options *options, sqlite3 *store) {
    floor_journal journal = floor_journal_make(options, false);
    sqlite3_stmt *insert = database_prepare(store, store_insert);
    database_execute(store, "BEGIN IMMEDIATE");
    for (uint64_t index = 0; index < journal.count; index++) {
        const floor_row *row = &journal.rows[index];
        sqlite3_bind_blob(insert, 1, row->name, sizeof(row->name), SQLITE_STATIC);
        sqlite3_bind_null(insert, 2);
        sqlite3_bind_int(insert, 3, -1);
        sqlite3_bind_int64(insert, 4, row->created_at);
        sqlite3_bind_text(insert, 5, row->caption, (int)row->caption_length, SQLITE_STATIC);
        sqlite3_bind_text(insert, 6, row->details, (int)row->details_length, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 7, row->rating);
        sqlite3_bind_double(insert, 8, row->elevation);
        database_run(store, insert);
    }
    database_execute(store, "COMMIT");
    sqlite3_finalize(insert);
    database_checkpoint(store);
    floor_journal_free(&journal);
}

/// Sends what is pending: reads rows in order, writes them to the cloud, commits, notes their tags, commits.
static uint64_t export_all(sqlite3 *store, sqlite3 *cloud, const floor_options *at_store, const floor_options *at_cloud) {
    sqlite3_stmt *read = database_prepare(
        store, "SELECT _id, _key, createdAt, caption, details, rating, elevation FROM Destination"
               " WHERE _id > ? AND _pending IS NOT NULL ORDER BY _id LIMIT ?");
    sqlite3_stmt *note = database_prepare(store, "UPDATE Destination SET _tag = ?, _pending = NULL WHERE _id = ? AND _tag IS NULL");
    sqlite3_stmt *insert = database_prepare(cloud, "INSERT INTO records(name, fields, changed) VALUES(?, ?, ?)");
    int64_t *ids = floor_allocate(at_store->batch * sizeof(*ids));
    buffer fields = {0};
    int64_t last = 0, changed = 0;
    uint64_t bytes = 0;
    while (true) {
        uint64_t count = 0;
        int64_t first = changed;
        database_execute(cloud, "BEGIN IMMEDIATE");
        sqlite3_bind_int64(read, 1, last);
        sqlite3_bind_int64(read, 2, (int64_t)at_store->batch);
        while (sqlite3_step(read) == SQLITE_ROW) {
            char name[37];
            ids[count++] = last = sqlite3_column_int64(read, 0);
            print_name(sqlite3_column_blob(read, 1), name);
            int64_t numbers[2] = {sqlite3_column_int64(read, 2), sqlite3_column_int64(read, 5)};
            double elevation = sqlite3_column_double(read, 6);
            fields.length = 0;
            append(&fields, numbers, sizeof(numbers));
            append(&fields, &elevation, sizeof(elevation));
            for (int column = 3; column <= 4; column++) {
                const void *text = sqlite3_column_text(read, column);
                append_text(&fields, text, (uint32_t)sqlite3_column_bytes(read, column));
            }
            sqlite3_bind_text(insert, 1, name, 36, SQLITE_STATIC);
            sqlite3_bind_blob(insert, 2, fields.bytes, (int)fields.length, SQLITE_STATIC);
            sqlite3_bind_int64(insert, 3, ++changed);
            database_run(cloud, insert);
            bytes += fields.length;
        }
        sqlite3_reset(read);
        database_commit(cloud, at_cloud);
        if (count == 0) break;
        database_execute(store, "BEGIN IMMEDIATE");
        for (uint64_t index = 0; index < count; index++) {
            char tag[24];
            int length = snprintf(tag, sizeof(tag), "%llx", (unsigned long long)(first + 1 + (int64_t)index));
            sqlite3_bind_text(note, 1, tag, length, SQLITE_STATIC);
            sqlite3_bind_int64(note, 2, ids[index]);
            database_run(store, note);
        }
        database_commit(store, at_store);
    }
    sqlite3_finalize(read);
    sqlite3_finalize(note);
    sqlite3_finalize(insert);
    free(ids);
    free(fields.bytes);
    return bytes;
}

/// Fetches everything: pages in the order of change, each durable with the place that it goes up to.
static void fetch_all(sqlite3 *cloud, sqlite3 *store, const floor_options *at_store) {
    sqlite3_stmt *read =
        database_prepare(cloud, "SELECT changed, name, fields FROM records WHERE changed > ? ORDER BY changed LIMIT ?");
    sqlite3_stmt *insert = database_prepare(store, store_insert);
    sqlite3_stmt *place = database_prepare(store, "UPDATE state SET token = ? WHERE id = 1");
    int64_t last = 0;
    while (true) {
        uint64_t count = 0;
        database_execute(store, "BEGIN IMMEDIATE");
        sqlite3_bind_int64(read, 1, last);
        sqlite3_bind_int64(read, 2, (int64_t)at_store->batch);
        while (sqlite3_step(read) == SQLITE_ROW) {
            uint8_t name[16];
            char tag[24];
            count++;
            last = sqlite3_column_int64(read, 0);
            parse_name((const char *)sqlite3_column_text(read, 1), name);
            const uint8_t *fields = sqlite3_column_blob(read, 2);
            int64_t numbers[2];
            double elevation;
            uint32_t length;
            memcpy(numbers, fields, sizeof(numbers));
            memcpy(&elevation, fields += sizeof(numbers), sizeof(elevation));
            fields += sizeof(elevation);
            sqlite3_bind_blob(insert, 1, name, sizeof(name), SQLITE_STATIC);
            sqlite3_bind_text(insert, 2, tag, snprintf(tag, sizeof(tag), "%llx", (unsigned long long)last), SQLITE_STATIC);
            sqlite3_bind_null(insert, 3);
            sqlite3_bind_int64(insert, 4, numbers[0]);
            for (int column = 5; column <= 6; column++) {
                memcpy(&length, fields, sizeof(length));
                sqlite3_bind_text(insert, column, (const char *)fields + sizeof(length), (int)length, SQLITE_STATIC);
                fields += sizeof(length) + length;
            }
            sqlite3_bind_int64(insert, 7, numbers[1]);
            sqlite3_bind_double(insert, 8, elevation);
            database_run(store, insert);
        }
        sqlite3_reset(read);
        sqlite3_bind_int64(place, 1, last);
        database_run(store, place);
        database_commit(store, at_store);
        if (count == 0) break;
    }
    sqlite3_finalize(read);
    sqlite3_finalize(insert);
    sqlite3_finalize(place);
}

static sqlite3 *open_fresh(const floor_options *options, const char *name, const char *tables) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", options->path, name);
    sqlite3 *database = database_open(options, path);
    database_execute(database, tables);
    database_checkpoint(database);
    return database;
}

void floor_sync(const floor_options *options) {
    // The page size that is asked for is the cloud's; stores have theirs.
    floor_options at_store = *options;
    at_store.page_size = 16384;
    floor_make_folder(options->path);
    sqlite3 *one = open_fresh(&at_store, "one.sqlite", store_tables);
    sqlite3 *cloud = open_fresh(options, "cloud.sqlite", cloud_tables);
    sqlite3 *other = open_fresh(&at_store, "other.sqlite", store_tables);
    fill(options, one);

    double start = floor_clock();
    uint64_t bytes = export_all(one, cloud, &at_store, options);
    floor_report("export", floor_clock() - start, options->records, bytes);
    start = floor_clock();
    fetch_all(cloud, other, &at_store);
    floor_report("fetch", floor_clock() - start, options->records, bytes);
    database_check(one, sqlite3_close(one));
    database_check(cloud, sqlite3_close(cloud));
    database_check(other, sqlite3_close(other));
}
