// Goal: a load leaves the same table and the same indexes as writing with indexes does, however it ends; and what random batches store is what a
// model says that applies their rows one after the other. Records can be written where an index does not match the table.
// Method: tables and lists of indexes are compared as texts. Damage is written behind the backs of the indexes.

#include "store_fixture.h"
#include "tide_indexes.h"

#define index_names "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name"
#define all_indexes "tide_index_caption\ntide_index_rating\ntide_name_Place\n"

static void expect_sound(store *it) { expect_rows(it, "PRAGMA integrity_check", "ok\n"); }

static void test_loads(void) {
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "");
    expect_rows(&it, index_names, all_indexes);
    check(!tide_writer_is_loading(it.writer), "not before");
    check(!tide_writer_load_begin(it.writer, &it.error) && tide_writer_is_loading(it.writer), "%s", it.error.message);
    check(!tide_writer_load_begin(it.writer, &it.error) && tide_writer_is_loading(it.writer), "%s", it.error.message);
    expect_rows(&it, index_names, "");
    // Names of other types, and claims, are refused as otherwise.
    store_apply(&it, "b|rating=#1\ntaken\nclaim|photo=?p\na|rating=#1|@t\n");
    expect_counts(&it, "2 0 0 0 0");
    expect_rejections(&it, "2, , nameTaken: a record of type Other has this name; a name is unique in its zone\n"
                           "3, photo, assetUnknown: the row names an asset that this record does not hold; give the file instead (export with its"
                           " assets)\n");
    store_apply(&it, "c|rating=#1\n");
    expect_rows(&it, index_names, "");
    check(tide_writer_is_loading(it.writer), "more batches of new names");
    // A name that has occurred ends the load within the batch.
    store_apply(&it, "d|rating=#1\nc|rating=#2\ne|rating=#1\nd|rating=#2\n");
    expect_counts(&it, "2 2 0 0 0");
    check(!tide_writer_is_loading(it.writer), "a known name");
    expect_rows(&it, index_names, all_indexes);
    expect_rows(&it, "SELECT _id, _key, rating FROM Place", "1|b|1\n2|a|1\n3|c|2\n4|d|2\n5|e|1\n");
    expect_rows(&it, store_history, "2|1|1|2|~|~|~|~|~|~\n3|1|3|3|~|~|~|~|~|~\n4|1|4|5|~|~|~|~|~|~\n5|2|3|3|3|{\"rating\":1}|~|~|~|~\n"
                                    "6|2|4|4|4|{\"rating\":1}|~|~|~|~\n");
    // A table with records is not loaded.
    check(!tide_writer_load_begin(it.writer, &it.error) && !tide_writer_is_loading(it.writer), "%s", it.error.message);
    expect_rows(&it, index_names, all_indexes);
    expect_damaged(&it, "");
    expect_sound(&it);
    store_close(&it);
}

static void test_ends_of_loads(void) {
    store it;
    store_open(&it, "DELETE");
    // A load ends by the call.
    check(!tide_writer_load_begin(it.writer, &it.error), "%s", it.error.message);
    store_apply(&it, "b\na\n");
    check(!tide_writer_load_end(it.writer, &it.error) && !tide_writer_is_loading(it.writer), "%s", it.error.message);
    expect_rows(&it, index_names, all_indexes);
    store_apply(&it, "a|rating=#1\n");
    expect_counts(&it, "0 1 0 0 0");
    store_execute(&it, "DELETE FROM Place; COMMIT; BEGIN IMMEDIATE");
    // A load whose transaction was rolled back: the names are forgotten with it.
    check(!tide_writer_load_begin(it.writer, &it.error), "%s", it.error.message);
    store_apply(&it, "b\na\n");
    store_execute(&it, "ROLLBACK; BEGIN IMMEDIATE");
    tide_writer_load_forget(it.writer);
    check(!tide_writer_is_loading(it.writer), "forgotten");
    store_apply(&it, "b\na\nb|rating=#1\n");
    expect_counts(&it, "2 1 0 0 0");
    // Another connection has written: indexes that it lacks are built.
    store_execute(&it, "DROP INDEX tide_index_rating");
    tide_writer_load_forget(it.writer);
    store_apply(&it, "b|rating=#2\n");
    expect_rows(&it, index_names, all_indexes);
    // A load that was interrupted: the next writer builds the indexes.
    store_execute(&it, "DELETE FROM Place");
    check(!tide_writer_load_begin(it.writer, &it.error), "%s", it.error.message);
    store_apply(&it, "b\na\n");
    store_execute(&it, "COMMIT; BEGIN IMMEDIATE");
    tide_writer_destroy(it.writer);
    check(!tide_writer_create(it.connection, store_seed, &store_table, &it.writer, &it.error), "%s", it.error.message);
    expect_rows(&it, index_names, "");
    store_apply(&it, "b|rating=#1\n");
    expect_counts(&it, "0 1 0 0 0");
    expect_rows(&it, index_names, all_indexes);
    tide_writer_destroy(NULL);
    store_close(&it);
}

static void test_changed_tables(void) {
    store it;
    store_open(&it, "DELETE");
    check(!tide_writer_load_begin(it.writer, &it.error), "%s", it.error.message);
    store_apply(&it, "a|rating=#1|colour='red\n");
    expect_counts(&it, "0 0 0 0 0");
    // A field more, an index more, a sibling less; loading goes on.
    store_execute(&it, "ALTER TABLE Place ADD COLUMN colour TEXT");
    tide_field fields[store_field_count + 1];
    memcpy(fields, store_fields, sizeof store_fields);
    fields[store_field_count] = (tide_field){"colour", "colour", TIDE_TYPE_STRING};
    const tide_index index = {"tide_index_colour", "\"colour\""};
    tide_table table = store_table;
    table.fields = fields, table.field_count++;
    table.indexes = &index, table.index_count = 1;
    table.sibling_count = 0;
    check(!tide_writer_set_table(it.writer, &table, &it.error) && tide_writer_is_loading(it.writer), "%s", it.error.message);
    store_apply(&it, "a|rating=#1|colour='red\ntaken|colour='red\n");
    check(tide_writer_is_loading(it.writer), "a known name would end it");
    store_apply(&it, "a|rating=#2\n");
    expect_rows(&it, index_names, "tide_index_colour\ntide_name_Place\n");
    expect_rows(&it, "SELECT _key, rating, colour FROM Place", "a|2|red\ntaken|~|red\n");
    // One index more, of a table that is not loaded.
    table.indexes = store_indexes, table.index_count = 1;
    check(!tide_writer_set_table(it.writer, &table, &it.error), "%s", it.error.message);
    store_apply(&it, "a|rating=#3\n");
    expect_rows(&it, index_names, "tide_index_colour\ntide_index_rating\ntide_name_Place\n");
    // More fields than a batch can have columns, a table that is not there, a column that is not there.
    table.field_count = TIDE_BATCH_COLUMN_LIMIT + 1;
    check(tide_writer_set_table(it.writer, &table, &it.error) == TIDE_CORRUPT, "%s", it.error.message);
    check(!strcmp(it.error.message, "the table Place has 1901 fields; at most 1900 are allowed"), "%s", it.error.message);
    tide_writer *writer = it.writer;
    table.field_count = 1, table.name = "None";
    check(tide_writer_create(it.connection, store_seed, &table, &writer, &it.error) == TIDE_SQLITE_ERROR && !writer, "%s", it.error.message);
    check(!strcmp(it.error.message, "cannot prepare the look-up: no such table: None"), "%s", it.error.message);
    store_close(&it);
}

// A model

enum { name_count = 60, round_count = 60 };

/// Names that begin alike, that are each other's beginnings, and keys of the same bytes of which one is a BLOB.
static void name_of(int number, char name[40]) {
    if (number == 0) strcpy(name, "0123456789abcdef");
    else if (number == 1) strcpy(name, "30313233-3435-3637-3839-616263646566");
    else if (number < 20) snprintf(name, 40, "%.*s", number, "prefix prefix prefix prefix");
    else if (number < 40) snprintf(name, 40, "prefix prefix %d", number);
    else snprintf(name, 40, "%d-name", number * 7919 % 100);
}

typedef struct model {
    bool is_there[name_count];
    int64_t ratings[name_count];
    char captions[name_count][8];
} model;

/// Writes random rows as a text, and applies them to the model.
static void rows_make(model *it, tide_text *text, int names) {
    int count = rand() % 40;
    for (int i = 0; i < count; i++) {
        int number = rand() % names;
        char name[40];
        name_of(number, name);
        if (!it->is_there[number]) it->ratings[number] = -1, it->captions[number][0] = 0;
        it->is_there[number] = true;
        tide_text_format(text, "%s", name);
        if (rand() % 2) {
            it->ratings[number] = rand() % 3;
            tide_text_format(text, "|rating=#%d", (int)it->ratings[number]);
        } else if (rand() % 8 == 0) {
            it->ratings[number] = -1;
            tide_text_format(text, "|rating=~");
        }
        if (rand() % 2) {
            snprintf(it->captions[number], sizeof it->captions[number], "c%d", rand() % 3);
            tide_text_format(text, "|caption='%s", it->captions[number]);
        }
        tide_text_append(text, "\n", 1);
    }
}

static void expect_model(store *it, const model *expected) {
    sqlite3_stmt *statement = store_prepare(it, "SELECT rating, caption FROM Place WHERE _key = ?1");
    int rows = 0;
    for (int number = 0; number < name_count; number++) {
        char name[40];
        uint8_t key[17];
        name_of(number, name);
        size_t length = tide_name_encode(name, strlen(name), key);
        if (length) sqlite3_bind_blob(statement, 1, key, (int)length, SQLITE_TRANSIENT);
        else sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
        bool is_there = sqlite3_step(statement) == SQLITE_ROW;
        check(is_there == expected->is_there[number], "%s", name);
        if (is_there) {
            const char *caption = (const char *)sqlite3_column_text(statement, 1);
            check(!strcmp(caption ? caption : "", expected->captions[number]), "%s: %s, not %s", name, caption, expected->captions[number]);
            bool has_rating = sqlite3_column_type(statement, 0) != SQLITE_NULL;
            check((has_rating ? sqlite3_column_int64(statement, 0) : -1) == expected->ratings[number], "%s", name);
        }
        rows += is_there;
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    char count[20];
    snprintf(count, sizeof count, "%d\n", rows);
    expect_rows(it, "SELECT count(*) FROM Place", count);
}

static void test_random_batches(void) {
    for (int seed = 0; seed < 6; seed++) {
        srand((unsigned)seed);
        store it;
        store_open(&it, "DELETE");
        model expected = {0};
        if (seed % 2) check(!tide_writer_load_begin(it.writer, &it.error), "%s", it.error.message);
        for (int round = 0; round < round_count; round++) {
            tide_text text = {0};
            rows_make(&expected, &text, round < 5 ? 3 : name_count);
            store_apply(&it, text.bytes ? text.bytes : "");
            check(it.counts.inserted + it.counts.updated + it.counts.unchanged == tide_batch_row_count(it.batch), "each row counts, seed %d", seed);
            tide_text_free(&text);
            expect_model(&it, &expected);
            // Row ids that lie far apart are read singly.
            if (round % 10 == 0) it.counters.next_row += 1000;
        }
        expect_damaged(&it, "");
        expect_sound(&it);
        store_close(&it);
    }
}

// Indexes that do not match the table

static void test_damage_of_indexed_values(void) {
    // The row is repaired by its own values; replaced by a cloud's; deleted, also where SQLite removes the name's entry before it misses the value's.
    for (int way = 0; way < 4; way++) {
        store it;
        store_open(&it, "DELETE");
        store_apply(&it, "a|caption='abc|rating=#1\nb|caption='abc|rating=#1\n");
        store_damage(&it, "UPDATE Place SET rating = 65");
        expect_damaged(&it, " 1 2");
        if (way == 0) store_apply(&it, "a|caption='abc|rating=#1\n");
        if (way == 1) store_apply(&it, "a|caption='x|rating=#2|@t\n");
        if (way == 3) store_execute(&it, "DROP INDEX tide_name_Place; CREATE UNIQUE INDEX tide_name_Place ON Place (_key, _zone)");
        if (way >= 2) store_delete(&it, 1);
        expect_counts(&it, way == 0 ? "0 0 1 0 1" : way == 1 ? "0 1 0 0 0" : "0 0 0 1 0");
        expect_rows(&it, "SELECT _key, caption, rating FROM Place WHERE _id = 1", way == 0 ? "a|abc|1\n" : way == 1 ? "a|x|2\n" : "");
        expect_damaged(&it, " 2");
        expect_sound(&it);
        store_close(&it);
    }
}

static void test_damage_of_names(void) {
    store it;
    store_open(&it, "DELETE");
    // The index of names is left as it is, because it may have the only intact copy of a name: the record is found under it.
    store_apply(&it, "name|rating=#1\n");
    int64_t id = it.counters.next_row - 1;
    store_damage(&it, "UPDATE Place SET _key = 'mame', rating = 65 WHERE _key = 'name'");
    store_apply(&it, "name|rating=#3|caption=~|height=~|notes=~|photo=~|@t\n");
    check(it.counters.next_row == id + 1, "no other record of the name");
    expect_rows(&it, "SELECT _key, rating FROM Place WHERE _id = 1", "mame|3\n");
    expect_damaged(&it, " 1");
    store_close(&it);
}

/// The table is sound, and an index is not: all indexes are built again.
static void test_damage_of_indexes(void) {
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "a|rating=#1\nb|rating=#1\nc|rating=#1\n");
    store_execute(&it, "UPDATE Place SET rating = 65");
    store_damage(&it, "UPDATE Place SET rating = 1");
    expect_damaged(&it, "");
    store_delete(&it, 1);
    expect_sound(&it);
    store_execute(&it, "UPDATE Place SET rating = 65");
    store_damage(&it, "UPDATE Place SET rating = 1");
    store_apply(&it, "b|rating=#2\n");
    expect_rows(&it, "SELECT _key, rating FROM Place", "b|2\nc|1\n");
    expect_sound(&it);
    // Two rows of one name: no index of names can be built.
    store_execute(&it, "UPDATE Place SET rating = 65 WHERE _key = 'c'");
    store_damage(&it,
                 "UPDATE Place SET rating = 1 WHERE _key = 'c'; INSERT INTO Place (_id, _key, _zone, _version, _digest) VALUES (8, 'b', 1, 1, 1)");
    const int64_t id = 3;
    check(tide_writer_delete(it.writer, &id, 1, 5, &it.counters, &it.counts, &it.error) == TIDE_CORRUPT, "%s", it.error.message);
    check(!strcmp(it.error.message, "two rows of the table Place have the same name"), "%s", it.error.message);
    store_close(&it);
}

/// A table without indexes has none that could be built again, and a table that is not there has none either.
static void test_tables_without_indexes(void) {
    store it;
    store_open(&it, "DELETE");
    check(!tide_indexes_rebuild(it.connection, "Other", NULL, &it.error) && !tide_indexes_rebuild(it.connection, "None", "x", &it.error), "%s",
          it.error.message);
    store_close(&it);
}

/// The index of names has a record that the table does not have.
static void test_records_that_are_not_there(void) {
    static const char expected[] = "the index of names has a record that is not there";
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "a|rating=#1\nb|rating=#1\nc|rating=#1\n");
    store_damage(&it, "DELETE FROM Place WHERE _key = 'a'");
    it.error = (tide_error){0};
    check(store_try(&it, "a|rating=#1\nc|rating=#1\n") == TIDE_CORRUPT && !strcmp(it.error.message, expected), "%s", it.error.message);
    it.error = (tide_error){0};
    check(store_try(&it, "a|rating=#1\n") == TIDE_CORRUPT && !strcmp(it.error.message, expected), "%s", it.error.message);
    store_apply(&it, "c|rating=#1\n");
    // A trigger that somebody has put into the file takes a record away while its batch is written.
    store_execute(&it, "CREATE TRIGGER thief AFTER UPDATE ON Place WHEN new._key = 'b' BEGIN DELETE FROM Place WHERE _key = 'c'; END");
    it.error = (tide_error){0};
    check(store_try(&it, "b|rating=#2\nc|rating=#2\n") == TIDE_CORRUPT && !strcmp(it.error.message, expected), "%s", it.error.message);
    store_close(&it);
}

int main(void) {
    test_loads();
    test_ends_of_loads();
    test_changed_tables();
    test_random_batches();
    test_damage_of_indexed_values();
    test_damage_of_names();
    test_damage_of_indexes();
    test_tables_without_indexes();
    test_records_that_are_not_there();
    puts("load: passed");
    return 0;
}
