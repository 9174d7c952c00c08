// Goal: the writer stores what a batch says, and nothing else: values, versions, fields that a cloud does not have yet, and history.
// Method: batches and tables as texts; whole tables are compared. A model that applies rows one after the other says what random batches store.

#include "store_fixture.h"

static void test_inserts(void) {
    store it;
    store_open(&it, "DELETE");
    // The rows come in the order of the source, whatever the order of their names.
    store_apply(&it, "b|caption='x|rating=#-5\n00112233-4455-6677-8899-aabbccddeeff|height=%1.5|notes=!ab\na|photo='p|rating=~\nempty\n"
                     "cloud|caption='c|@t1,{}\ncloud 2|@t2\n");
    expect_counts(&it, "6 0 0 0 0");
    expect_rows(&it, store_records,
                "1|b|1|1|-1|~|~|~|x|-5|~|~|~\n2|x'00112233445566778899aabbccddeeff'|1|1|-1|~|~|~|~|~|1.5|x'6162'|~\n"
                "3|a|1|1|-1|~|~|~|~|~|~|~|p\n4|empty|1|1|-1|~|~|~|~|~|~|~|~\n5|cloud|1|1|~|t1|1|{}|c|~|~|~|~\n6|cloud 2|1|1|~|t2|1|~|~|~|~|~|~\n");
    // One entry of history stands for all inserts of a batch.
    expect_rows(&it, store_history, "1|1|1|6|~|~|~|~|~|~\n");
    expect_rows(&it, "SELECT transaction_id, type_id FROM tide_changes", "5|7\n");
    check(it.counters.next_row == 7 && it.counters.next_change == 2, "%d, %d", (int)it.counters.next_row, (int)it.counters.next_change);
    store_apply(&it, "");
    expect_counts(&it, "0 0 0 0 0");
    expect_rows(&it, "SELECT count(*) FROM tide_changes", "1\n");
    expect_damaged(&it, "");
    store_close(&it);
}

static void test_updates(void) {
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "a|caption='x|rating=#1|height=%2|notes=!n|photo='p|@t\nb|caption='y\n");
    // Values that are as stored, fields that are not mentioned: nothing changes.
    store_apply(&it, "a|caption='x|rating=#1|height=%2|notes=!n|photo='p\nb|caption='y\na|rating=#1\n");
    expect_counts(&it, "0 0 3 0 0");
    expect_rows(&it, store_history, "1|1|1|2|~|~|~|~|~|~\n");
    // The set of fields that a cloud lacks grows with each change; a record that it has never had lacks all.
    store_apply(&it, "a|rating=#2\nb|rating=#2\n");
    expect_counts(&it, "0 2 0 0 0");
    store_apply(&it, "a|caption='x2|rating=#2\n");
    expect_rows(&it, store_records, "1|a|1|7|x'03'|t|1|~|x2|2|2.0|x'6e'|p\n2|b|1|5|-1|~|~|~|y|2|~|~|~\n");
    expect_rows(&it, store_history,
                "1|1|1|2|~|~|~|~|~|~\n4|2|1|1|1|{\"rating\":1}|~|~|~|~\n5|2|2|2|1|{\"rating\":null}|~|~|~|~\n"
                "7|2|1|1|4|{\"caption\":\"x\"}|~|~|~|~\n");
    store_apply(&it, "b|height=%1|notes=!x\n");
    expect_counts(&it, "0 1 0 0 0");
    // Each value can be replaced, by another one, by one of the same length, or by none.
    store_apply(&it, "a|height=%2.5|notes=!m|photo='q|caption=~|rating=~\n");
    store_apply(&it, "a|height=~|notes=!long|photo=~\n");
    store_apply(&it, "a|height=~|notes=!|photo='|caption='\n");
    expect_rows(&it, "SELECT caption, rating, height, notes, photo FROM Place WHERE _id = 1", "|~|~|x''|\n");
    expect_rows(&it, "SELECT before FROM tide_changes WHERE id > 9",
                "{\"caption\":\"x2\",\"rating\":2,\"height\":2,\"notes\":\"bg==\",\"photo\":\"p\"}\n"
                "{\"height\":2.5,\"notes\":\"bQ==\",\"photo\":\"q\"}\n{\"caption\":null,\"notes\":\"bG9uZw==\",\"photo\":null}\n");
    store_apply(&it, "a|notes=!|photo='|caption='\n");
    expect_counts(&it, "0 0 1 0 0");
    // A cloud's version is stored with its tag, and marks the record as synchronised, whether or not values differ.
    store_apply(&it, "a|caption='z|rating=~|height=~|notes=!|photo='|@t2,{}\n");
    expect_counts(&it, "0 1 0 0 0");
    store_apply(&it, "a|caption='z|rating=~|height=~|notes=!|photo='|@t3\n");
    expect_counts(&it, "0 0 1 0 0");
    expect_rows(&it, "SELECT _pending, _tag, _base = _version, _edited FROM Place WHERE _id = 1", "~|t3|1|~\n");
    expect_damaged(&it, "");
    store_close(&it);
}

/// Rows of one name count as if they were applied one after the other.
static void test_repeated_names(void) {
    store it;
    store_open(&it, "DELETE");
    // A new record is inserted by the first row, and changed by the others.
    store_apply(&it, "a|caption='1|rating=#1\nb\na|caption='2\na|rating=#3\n");
    expect_counts(&it, "2 2 0 0 0");
    expect_rows(&it, "SELECT _id, _key, caption, rating FROM Place", "1|a|2|3\n2|b|~|~\n");
    // Rows of a known record become one. So the same source changes nothing when it is applied again.
    store_apply(&it, "a|caption='1|rating=#1\nb\na|caption='2\na|rating=#3\n");
    expect_counts(&it, "0 0 4 0 0");
    store_apply(&it, "a|caption='5\na|height=%1\na|caption='6|rating=~\n");
    expect_counts(&it, "0 1 2 0 0");
    expect_rows(&it, "SELECT _id, _key, caption, rating, height FROM Place", "1|a|6|~|1.0\n2|b|~|~|~\n");
    // A claim is compared with what the rows before it have stored.
    store_apply(&it, "a|photo='p1\na|caption='7\n");
    store_apply(&it, "a|photo='p2\na|photo=?p2\na|photo=?p1|@t\n");
    expect_counts(&it, "0 1 1 0 0");
    expect_rejections(&it, "3, photo, assetUnknown: the row names an asset that this record does not hold; give the file instead (export with its"
                           " assets)\n");
    // A cloud's rows: the last one's tag is kept.
    store_apply(&it, "c|photo='p|@t1\nc|photo=?p|@t2\n");
    expect_rows(&it, "SELECT _key, photo, _tag, _pending FROM Place WHERE _id > 1", "b|~|~|-1\nc|p|t2|~\n");
    expect_damaged(&it, "");
    store_close(&it);
}

static void test_zones(void) {
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "a|rating=#1\n");
    it.zone = 2;
    store_apply(&it, "a|rating=#2\nb|rating=#2\n");
    it.zone = 3;
    store_apply(&it, "a|rating=#3\n");
    expect_rows(&it, "SELECT _id, _key, _zone, rating FROM Place", "1|a|1|1\n2|a|2|2\n3|b|2|2\n4|a|3|3\n");
    // Anywhere: the zone of the least id has precedence, and new records go to the zone that was given.
    it.is_anywhere = true;
    store_apply(&it, "a|rating=#9\nb|rating=#9\nc|rating=#9\n");
    expect_rows(&it, "SELECT _id, _key, _zone, rating FROM Place", "1|a|1|9\n2|a|2|2\n3|b|2|9\n4|a|3|3\n5|c|3|9\n");
    store_close(&it);
}

static void test_refusals(void) {
    store it;
    store_open(&it, "DELETE");
    // A name is unique in its zone, whatever the type.
    store_apply(&it, "taken|rating=#1\ntaken in zone 2\nfree|rating=#1\n");
    expect_rejections(&it, "1, , nameTaken: a record of type Other has this name; a name is unique in its zone\n");
    it.is_anywhere = true;
    store_apply(&it, "taken\ntaken in zone 2|rating=#2\ntaken\n");
    expect_rejections(&it, "1, , nameTaken: a record of type Other has this name; a name is unique in its zone\n"
                           "3, , nameTaken: a record of type Other has this name; a name is unique in its zone\n");
    expect_rows(&it, "SELECT _id, _key, rating FROM Place", "1|taken in zone 2|2\n2|free|1\n");
    // A field that the table lacks; a row that has no value for it is written. Columns come in any order.
    it.is_anywhere = false;
    store_apply(&it, "free|colour='red|rating=#2\nfree 2|colour=~|rating=#3\nfree 3|caption='c\nfree 4|height=%1|Caption='c\n");
    expect_rejections(&it, "1, colour, unknownField: the type has no field 'colour'; in production the schema is fixed\n"
                           "4, Caption, unknownField: the type has no field 'Caption'; in production the schema is fixed\n");
    expect_rows(&it, "SELECT _key, caption, rating FROM Place WHERE _id > 1", "free|~|1\nfree 2|~|3\nfree 3|c|~\n");
    // A claim of an asset that the record does not hold, or of a record that is not there. The other values of the row are not written.
    store_apply(&it, "free|rating=#4|photo=?p\nfree 5|photo=?p\nfree 2|rating=#4|photo='p\n");
    expect_rejections(&it, "2, photo, assetUnknown: the row names an asset that this record does not hold; give the file instead (export with its"
                           " assets)\n1, photo, assetUnknown: the row names an asset that this record does not hold; give the file instead (export"
                           " with its assets)\n");
    store_apply(&it, "free 2|rating=#5|photo=?p\n");
    expect_rejections(&it, "");
    expect_rows(&it, "SELECT _key, rating, photo FROM Place WHERE _id > 1", "free|1|~\nfree 2|5|p\nfree 3|~|~\n");
    // Rows that were refused before are passed over.
    tide_batch *batch = batch_of("free|rating=#7\nfree 2|rating=#7\nnew\n");
    for (uint32_t row = 0; row < 3; row += 2) check(!tide_batch_row_reject(batch, row, "", 0, TIDE_REJECT_RAGGED, "no"), "no memory");
    check(!tide_writer_apply(it.writer, batch, 1, false, 5, &it.counters, &it.counts, NULL), "applied");
    tide_batch_destroy(batch);
    expect_rows(&it, "SELECT _key, rating FROM Place WHERE _id > 1", "free|1\nfree 2|7\nfree 3|~\n");
    store_close(&it);
}

static void test_types(void) {
    store it;
    store_open(&it, "DELETE");
    static const struct {
        const char *text;
        tide_type type;
        tide_status status;
    } cases[] = {
        {"a|rating=#1\n", TIDE_TYPE_INT64, TIDE_OK},      {"a|rating=#0\n", TIDE_TYPE_BOOLEAN, TIDE_OK},
        {"a|rating=#2\n", TIDE_TYPE_UNKNOWN, TIDE_OK},
        {"a|rating=%1\n", TIDE_TYPE_DOUBLE, TIDE_MISUSE}, {"a|notes='x\n", TIDE_TYPE_STRING, TIDE_MISUSE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tide_batch *batch = batch_of(cases[i].text);
        tide_batch_column_set_type(batch, 0, cases[i].type);
        tide_status status = tide_writer_apply(it.writer, batch, 1, false, 5, &it.counters, &it.counts, &it.error);
        check(status == cases[i].status, "%s: %s", cases[i].text, it.error.message);
        tide_batch_destroy(batch);
    }
    check(!strcmp(it.error.message, "field 'notes' has another type in the store than in the batch"), "%s", it.error.message);
    expect_rows(&it, "SELECT rating, notes FROM Place", "2|~\n");
    store_close(&it);
}

static void test_deletions(void) {
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "a|caption='\"x\"|rating=#1|height=%1.5|notes=!ab|photo='p|@t,{}\n00112233-4455-6677-8899-aabbccddeeff|rating=#2\nc\n");
    it.zone = 2;
    store_apply(&it, "d|rating=#3\n");
    const int64_t ids[] = {4, 1, 99, 2};
    it.counts = (tide_counts){0};
    check(!tide_writer_delete(it.writer, ids, 4, 8, &it.counters, &it.counts, &it.error), "%s", it.error.message);
    expect_counts(&it, "0 0 0 3 0");
    expect_rows(&it, "SELECT _key FROM Place", "c\n");
    // History has all that restores the records, and their names. NULL stands for the default zone.
    expect_rows(&it, store_history " WHERE transaction_id = 8",
                "3|3|4|4|2|{\"rating\":3}|d|~|~|2\n"
                "4|3|1|1|1|{\"caption\":\"\\\"x\\\"\",\"rating\":1,\"height\":1.5,\"notes\":\"YWI=\",\"photo\":\"p\"}|a|t|1|~\n"
                "5|3|2|2|1|{\"rating\":2}|x'00112233445566778899aabbccddeeff'|~|~|~\n");
    // The next entry has nothing of a deletion's.
    it.zone = 1;
    store_apply(&it, "c|rating=#1\n");
    expect_rows(&it, store_history " WHERE id > 5", "7|2|3|3|1|{\"rating\":null}|~|~|~|~\n");
    store_close(&it);
}

static void test_acknowledgements(void) {
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "a|rating=#1\nb|rating=#1|@old\nc|rating=#1\nd|rating=#1|@old\n");
    store_apply(&it, "b|rating=#2\nc|rating=#2\nd|rating=#2\n");
    static const char text[] = "newold{}other";
    const tide_span tag = {0, 3}, old = {3, 3}, edited = {6, 2}, other = {8, 5};
    tide_acknowledgement records[] = {
        {.row = 1, .version = 1, .tag = tag, .edited = edited},
        {.row = 2, .version = 3, .tag = tag, .edited = edited, .known_tag = old, .has_known_tag = true},
        // Changed since, or another tag than was known, or not there any more: they stay as they are.
        {.row = 3, .version = 1, .tag = tag, .edited = edited},
        {.row = 4, .version = 5, .tag = tag, .edited = edited, .known_tag = other, .has_known_tag = true},
        {.row = 4, .version = 5, .tag = tag, .edited = edited},
        {.row = 9, .version = 1, .tag = tag, .edited = edited},
    };
    check(!tide_writer_acknowledge(it.writer, text, records, 6, &it.error), "%s", it.error.message);
    for (int i = 0; i < 6; i++) check(records[i].is_noted == (i < 2), "record %d", i);
    expect_rows(&it, "SELECT _key, _version, _pending, _tag, _base, _edited FROM Place",
                "a|1|~|new|1|{}\nb|3|~|new|3|{}\nc|4|-1|~|~|~\nd|5|x'02'|old|1|~\n");
    store_close(&it);
}

/// Damage: a record whose values do not match its digest.
static void test_damaged_records(void) {
    static const char damaged[] = "the record's values in the store are damaged, and nothing is merged with them; repair it ('tidemark verify"
                                  " --repair'), or delete it";
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, "a|caption='abc|rating=#1|photo='p\nb|caption='abc|rating=#1\nc|caption='abc|rating=#1\nd|caption='abc|rating=#1\n");
    store_execute(&it, "UPDATE Place SET caption = 'abd', height = 2 WHERE _id < 4; UPDATE Place SET _digest = 1 WHERE _id = 4");
    expect_damaged(&it, " 1 2 3 4");
    // Other rows are refused, also where they agree with the damaged values, or with a part of the original ones.
    char expected[600];
    snprintf(expected, sizeof expected, "1, , damaged: %s\n2, , damaged: %s\n", damaged, damaged);
    store_apply(&it, "a|caption='abd\nb|caption='abc\n");
    expect_rejections(&it, expected);
    // All original values repair it, without an entry of history. A claim of an original asset is none of another one.
    store_apply(&it, "a|caption='abc|rating=#1|photo=?p\n");
    expect_counts(&it, "0 0 1 0 1");
    expect_rows(&it, store_records " WHERE _id = 1", "1|a|1|1|-1|~|~|~|abc|1|~|~|p\n");
    // Nor is one of the asset that was damaged.
    store_execute(&it, "UPDATE Place SET photo = 'q' WHERE _id = 1");
    store_apply(&it, "a|caption='abc|rating=#1|photo=?p\n");
    expect_counts(&it, "0 0 1 0 1");
    expect_rows(&it, "SELECT photo FROM Place WHERE _id = 1", "p\n");
    // A cloud's row replaces it; history keeps the values with a mark.
    store_apply(&it, "b|caption='cloud|rating=#1|height=~|notes=~|photo=~|@t\nd|caption='abc|rating=#1|height=~|notes=~|photo=~|@t\n");
    expect_counts(&it, "0 1 1 0 1");
    store_delete(&it, 3);
    expect_rows(&it, store_history " WHERE id > 1",
                "6|2|2|2|1|{\"_damaged\":1,\"caption\":\"abd\",\"height\":2}|~|~|~|~\n"
                "7|3|3|3|1|{\"_damaged\":1,\"caption\":\"abd\",\"rating\":1,\"height\":2}|c|~|~|~\n");
    expect_rows(&it, "SELECT _key, _pending, caption, height FROM Place", "a|-1|abc|~\nb|~|cloud|~\nd|~|abc|~\n");
    expect_damaged(&it, "");
    store_close(&it);
}

/// Damaged texts that are no UTF-8, and numbers that JSON does not have, must not make history unreadable.
static void test_damaged_values_in_history(void) {
    static const struct {
        const char *bytes, *json;
    } cases[] = {
        {"c3a9", "\"\xc3\xa9\""}, {"e282ac", "\"\xe2\x82\xac\""}, {"f09f9880", "\"\xf0\x9f\x98\x80\""},
        {"ed9fbf", "\"\xed\x9f\xbf\""}, {"f48fbfbf", "\"\xf4\x8f\xbf\xbf\""},
        // A byte that leads nothing; overlong; a surrogate; beyond the last character; cut off; no byte that continues.
        {"80", "null"}, {"c0af", "null"}, {"e09f80", "null"}, {"f08f8080", "null"}, {"eda080", "null"}, {"f4908080", "null"}, {"f5808080", "null"},
        {"61c3", "null"}, {"e282", "null"}, {"c341", "null"}, {"e28241", "null"}, {"c3ff", "null"},
    };
    store it;
    store_open(&it, "DELETE");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        store_apply(&it, "a|caption='abc|rating=#1|notes=!x\n");
        char sql[200], expected[200];
        snprintf(sql, sizeof sql, "UPDATE Place SET caption = CAST(x'%s' AS TEXT), height = 9e999", cases[i].bytes);
        store_execute(&it, sql);
        store_delete(&it, it.counters.next_row - 1);
        snprintf(expected, sizeof expected, "{\"_damaged\":1,\"caption\":%s,\"rating\":1,\"height\":null,\"notes\":\"eA==\"}\n",
                 cases[i].json);
        expect_rows(&it, "SELECT before FROM tide_changes ORDER BY id DESC LIMIT 1", expected);
    }
    store_close(&it);
}

/// More fields than a byte has bits, and more sets of changed fields than the writer has statements for.
static void test_many_fields(void) {
    enum { count = 20 };
    static char names[count][4];
    tide_field fields[count];
    store it;
    store_open(&it, "DELETE");
    tide_table table = store_table;
    table.name = "Wide", table.index_name = "tide_name_Wide", table.fields = fields, table.field_count = count, table.index_count = 0;
    tide_text text = {0};
    tide_text_format(&text, "CREATE TABLE Wide (_id INTEGER PRIMARY KEY, _key, _zone, _version, _tag, _base, _edited, _pending, _digest");
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        fields[i] = (tide_field){names[i], names[i], TIDE_TYPE_INT64};
        tide_text_format(&text, ", f%d", i);
    }
    tide_text_append(&text, ")", 1);
    store_execute(&it, text.bytes);
    tide_text_free(&text);
    check(!tide_writer_set_table(it.writer, &table, &it.error), "%s", it.error.message);
    store_apply(&it, "a|f1=#1|@t\n");
    static const struct {
        const char *text, *pending;
    } cases[] = {{"a|f0=#2\n", "x'01'\n"}, {"a|f9=#2\n", "x'0102'\n"}, {"a|f1=#2\n", "x'0302'\n"}, {"a|f19=#2|f16=#2\n", "x'030209'\n"}};
    for (int i = 0; i < 4; i++) {
        store_apply(&it, cases[i].text);
        expect_rows(&it, "SELECT _pending FROM Wide", cases[i].pending);
    }
    // A file from elsewhere may have bits beyond the fields.
    store_execute(&it, "UPDATE Wide SET _pending = x'0000000001'");
    store_apply(&it, "a|f0=#3\n");
    expect_rows(&it, "SELECT _pending FROM Wide", "x'01'\n");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i++) {
            char row[40], sql[60], expected[30];
            snprintf(row, sizeof row, "a|f%d=#%d\n", i, 100 + i + round);
            store_apply(&it, row);
            expect_counts(&it, "0 1 0 0 0");
            snprintf(sql, sizeof sql, "SELECT f%d FROM Wide", i);
            snprintf(expected, sizeof expected, "%d\n", 100 + i + round);
            expect_rows(&it, sql, expected);
        }
    }
    store_close(&it);
}

int main(void) {
    test_inserts();
    test_updates();
    test_repeated_names();
    test_zones();
    test_refusals();
    test_types();
    test_deletions();
    test_acknowledgements();
    test_damaged_records();
    test_damaged_values_in_history();
    test_many_fields();
    puts("writer: passed");
    return 0;
}
