// Goal: a row that has changed since it was written is found, a flipped bit is flipped back, and digests of rows tell different rows apart.
// Method: bits of all kinds of values are flipped, in the table, and behind the backs of its indexes; values, rows and tables are compared.

#include "store_fixture.h"
#include "tide_digest.h"

static void visitor_fail(void *context, int64_t row) { check(false, "%s: row %d", (const char *)context, (int)row); }

static bool mend(store *it, int64_t id) {
    bool is_mended;
    check(!tide_row_mend_bit(it->connection, store_seed, &store_table, id, &is_mended, &it->error), "%s", it->error.message);
    return is_mended;
}

static const char records[] = "1|a|abcd|5|1.5|x'616263'|p\n2|x'00112233445566778899aabbccddeeff'|~|-1|0.0|x''|\n";
static const char source[] = "a|caption='abcd|rating=#5|height=%1.5|notes=!abc|photo='p\n"
                             "00112233-4455-6677-8899-aabbccddeeff|rating=#-1|height=%0|notes=!|photo='\n";

static void test_single_bits(void) {
    static const char *const changes[] = {
        "caption = 'abce'", "caption = '!bcd'", "caption = CAST(x'616263e4' AS TEXT)", "rating = 4", "rating = 5 - 9223372036854775807 - 1",
        "height = 1.0", "height = -1.5", "notes = x'616223'", "notes = x'e16263'", "photo = 'q'", "_digest = _digest + 1 - 2 * (_digest & 1)",
        "_digest = _digest + 4294967296 - 2 * (_digest & 4294967296)",
    };
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, source);
    uint64_t rows = 0;
    check(!tide_table_verify(it.connection, store_seed, &store_table, &rows, visitor_fail, "sound rows", NULL) && rows == 2, "%d rows", (int)rows);
    check(!mend(&it, 1) && !mend(&it, 2) && !mend(&it, 99), "there is nothing to mend");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        for (int is_behind_indexes = 0; is_behind_indexes < 2; is_behind_indexes++) {
            char sql[120];
            snprintf(sql, sizeof sql, "UPDATE Place SET %s WHERE _id = 1", changes[i]);
            if (is_behind_indexes) store_damage(&it, sql);
            else store_execute(&it, sql);
            expect_damaged(&it, " 1");
            check(mend(&it, 1), "%s", sql);
            expect_damaged(&it, "");
            expect_rows(&it, "SELECT _id, _key, caption, rating, height, notes, photo FROM Place", records);
            expect_rows(&it, "PRAGMA integrity_check", "ok\n");
        }
    }
    // The digest of a value of 0 has bits, too.
    store_execute(&it, "UPDATE Place SET height = 2.0 WHERE _id = 2");
    check(mend(&it, 2), "0 became 2");
    expect_rows(&it, "SELECT _id, _key, caption, rating, height, notes, photo FROM Place", records);
    store_close(&it);
}

static void test_other_damage(void) {
    static const char *const changes[] = {
        "caption = 'abcddd'", "caption = NULL", "caption = 'abgf'", "rating = 6, caption = 'abce'", "rating = NULL", "rating = 2", "height = NULL",
        "height = 1e300", "notes = x'00'", "notes = x''", "photo = ''", "_key = 'b'", "_key = x'61'",
        "_digest = 3", "_digest = _digest + 1, rating = 4",
    };
    store it;
    store_open(&it, "DELETE");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        store_execute(&it, "DELETE FROM Place");
        it.counters.next_row = 1;
        store_apply(&it, source);
        char sql[120];
        snprintf(sql, sizeof sql, "UPDATE Place SET %s WHERE _id = 1", changes[i]);
        store_execute(&it, sql);
        expect_damaged(&it, " 1");
        tide_text before = rows_text(it.connection, store_records);
        check(!mend(&it, 1), "%s", sql);
        expect_rows(&it, store_records, before.bytes);
        tide_text_free(&before);
    }
    store_close(&it);
}

/// Makes a table without types, and one row in it.
static void loose_table(store *it) {
    store_open(it, "DELETE");
    store_execute(it, "DROP TABLE Place; CREATE TABLE Place (_id INTEGER PRIMARY KEY, _key, _zone, _version, _tag, _base, _edited, _pending, _digest,"
                      " caption, rating, height, notes, photo)");
    check(!tide_writer_set_table(it->writer, &store_table, &it->error), "%s", it->error.message);
    store_apply(it, source);
}

/// A damaged header of a record turns a value into one of another type, which can have the same bytes and so the same digest.
static void test_types(void) {
    static const char *const changes[] = {
        "caption = CAST(caption AS BLOB)", "notes = CAST(notes AS TEXT)", "rating = CAST(rating AS TEXT)", "height = 2",
        "caption = 5", "rating = 5.0", "photo = CAST(photo AS BLOB)", "rating = x'05', caption = 'abce'",
        "notes = CAST(notes AS TEXT), rating = 4", "rating = CAST(rating AS TEXT), caption = 'abce'"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        store it;
        loose_table(&it);
        expect_damaged(&it, "");
        char sql[120];
        snprintf(sql, sizeof sql, "UPDATE Place SET %s WHERE _id = 1", changes[i]);
        store_execute(&it, sql);
        expect_damaged(&it, " 1");
        check(!mend(&it, 1), "%s", sql);
        store_close(&it);
    }
}

/// A time is stored as an integer.
static void test_timestamps(void) {
    store it;
    loose_table(&it);
    tide_field fields[store_field_count];
    memcpy(fields, store_fields, sizeof fields);
    fields[1].type = TIDE_TYPE_TIMESTAMP;
    tide_table table = store_table;
    table.fields = fields;
    uint64_t rows = 0;
    check(!tide_table_verify(it.connection, store_seed, &table, &rows, visitor_fail, "times", &it.error) && rows == 2, "%s", it.error.message);
    store_execute(&it, "UPDATE Place SET rating = 4 WHERE _id = 1");
    bool is_mended;
    check(!tide_row_mend_bit(it.connection, store_seed, &table, 1, &is_mended, &it.error) && is_mended, "%s", it.error.message);
    expect_rows(&it, "SELECT rating FROM Place WHERE _id = 1", "5\n");
    store_close(&it);
}

/// The search takes less than seconds: a value that is too long is not searched.
static void test_long_values(void) {
    store it;
    store_open(&it, "DELETE");
    store_execute(&it, "INSERT INTO Place (_id, _key, _zone, _version, _digest, notes) VALUES (1, 'long', 1, 1, 5, zeroblob(40000))");
    expect_damaged(&it, " 1");
    check(!mend(&it, 1), "too long");
    // Not even where the first bit is the one.
    store_execute(&it, "DELETE FROM Place");
    tide_text text = {0};
    tide_text_format(&text, "long|notes=!%040000d\n", 5);
    store_apply(&it, text.bytes);
    tide_text_free(&text);
    store_execute(&it, "UPDATE Place SET notes = CAST('1' || substr(CAST(notes AS TEXT), 2) AS BLOB)");
    expect_damaged(&it, " 1");
    check(!mend(&it, 1), "too long");
    store_apply(&it, "short|notes=!some bytes that are searched\n");
    store_execute(&it, "UPDATE Place SET notes = CAST(replace(CAST(notes AS TEXT), 'are', 'arm') AS BLOB) WHERE _key = 'short'");
    check(mend(&it, it.counters.next_row - 1), "searched");
    store_close(&it);
}

static void test_parts(void) {
    store it;
    store_open(&it, "DELETE");
    store_apply(&it, source);
    store_execute(&it, "UPDATE Place SET caption = 'other' WHERE _id = 2");
    tide_field_digest fields[store_field_count];
    for (int i = 0; i < store_field_count; i++) {
        fields[i] = (tide_field_digest){tide_field_seed(store_seed, store_fields[i].name, strlen(store_fields[i].name)), store_fields[i].type};
    }
    sqlite3_stmt *row = store_prepare(&it, "SELECT _key, _digest, caption, rating, height, notes, photo FROM Place");
    const tide_row_columns columns = {.key = 0, .digest = 1, .first_field = 2};
    uint64_t parts[store_field_count];
    check(sqlite3_step(row) == SQLITE_ROW, "a row");
    check(tide_row_digest_parts(row, columns, store_seed, fields, store_field_count, parts) == 0, "an intact row");
    check(parts[0] == tide_value_digest_bytes(fields[0].seed, "abcd", 4) && parts[1] == tide_value_digest_integer(fields[1].seed, 5)
          && parts[2] == tide_value_digest_real(fields[2].seed, 1.5), "the parts are the digests of the values");
    check(sqlite3_step(row) == SQLITE_ROW, "a row");
    uint64_t difference = tide_row_digest_parts(row, columns, store_seed, fields, store_field_count, NULL);
    check(difference == -tide_value_digest_bytes(fields[0].seed, "other", 5), "the value that is too much");
    sqlite3_finalize(row);
    store_close(&it);
}

// Digests of queries

static tide_digest digest_of(sqlite3 *connection, const char *sql) {
    tide_digest digest;
    tide_error error;
    check(!tide_digest_rows(connection, sql, &digest, &error), "%s: %s", sql, error.message);
    return digest;
}

static void test_digests_of_queries(void) {
    static const char *const queries[] = {
        "SELECT 1", "SELECT 1.0", "SELECT '1'", "SELECT x'31'", "SELECT NULL", "SELECT ''", "SELECT x''", "SELECT 1, 2", "SELECT 2, 1",
        "SELECT 1 UNION ALL SELECT 2", "SELECT 'ab', 'c'", "SELECT 'a', 'bc'",
        "SELECT 'a' || char(3) || 'b', 'c'", "SELECT 'a', 'b' || char(3) || 'c'", "SELECT 1 WHERE 0", "SELECT zeroblob(512)", "SELECT zeroblob(513)",
        "SELECT zeroblob(100000)", "SELECT 'x', zeroblob(100000)",
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i, printf('%.*c', 400, 'x') FROM n",
    };
    enum { count = sizeof queries / sizeof *queries };
    sqlite3 *connection;
    check(sqlite3_open(":memory:", &connection) == SQLITE_OK, "a database");
    tide_digest digests[count];
    for (int i = 0; i < count; i++) {
        digests[i] = digest_of(connection, queries[i]);
        tide_digest again = digest_of(connection, queries[i]);
        check(!memcmp(&again, &digests[i], sizeof again), "%s", queries[i]);
        for (int j = 0; j < i; j++) check(memcmp(&digests[i], &digests[j], sizeof again), "%s and %s", queries[i], queries[j]);
    }
    check(digests[9].rows == 2 && digests[14].rows == 0 && digests[count - 1].rows == 2001, "rows are counted");
    // The bytes of the values in their order, each with its type and its length before it.
    uint8_t bytes[10 + 9 + 600 + 10] = {3, 1, 0, 0, 0, 0, 0, 0, 0, 'x', 4, 600 & 255, 600 >> 8};
    memcpy(bytes + 619, (const uint8_t[]){3, 1, 0, 0, 0, 0, 0, 0, 0, 'y'}, 10);
    uint8_t expected[16];
    tide_digest_bytes(bytes, sizeof bytes, expected);
    tide_digest digest = digest_of(connection, "SELECT 'x', zeroblob(600), 'y'");
    for (int i = 0; i < 8; i++) {
        check(expected[i] == (uint8_t)(digest.high >> (56 - 8 * i)) && expected[8 + i] == (uint8_t)(digest.low >> (56 - 8 * i)), "byte %d", i);
    }
    tide_error error;
    check(tide_digest_rows(connection, "SELECT missing", &digest, &error) == TIDE_SQLITE_ERROR, "%s", error.message);
    check(!strcmp(error.message, "cannot read the rows: no such column: missing"), "%s", error.message);
    check(tide_digest_rows(connection, "SELECT abs(-9223372036854775808)", &digest, &error) == TIDE_SQLITE_ERROR, "%s", error.message);
    sqlite3_close(connection);
}

// Digests of columns

/// Adds a number in groups of seven bits, low ones first.
static void number_add(tide_text *text, uint64_t number) {
    for (; number >= 128; number /= 128) tide_text_append(text, &(uint8_t){(uint8_t)(number % 128 + 128)}, 1);
    tide_text_append(text, &(uint8_t){(uint8_t)number}, 1);
}

/// What the header says that the digest of the columns is of.
static void columns_digest(sqlite3_stmt *row, uint8_t table, int count, uint8_t digest[16]) {
    tide_text text = {0};
    tide_text_append(&text, &table, 1);
    for (int i = 0; i < count; i++) {
        int type = sqlite3_column_type(row, i);
        int64_t number = sqlite3_column_int64(row, i);
        const void *bytes = sqlite3_column_blob(row, i);
        size_t length = (size_t)sqlite3_column_bytes(row, i);
        if (type == SQLITE_TEXT) length = strnlen(bytes ? bytes : "", length);
        tide_text_append(&text, &(uint8_t){type == SQLITE_NULL ? 0 : type == SQLITE_INTEGER ? 1 : type == SQLITE_TEXT ? 2 : 3}, 1);
        if (type == SQLITE_INTEGER) number_add(&text, number < 0 ? ~((uint64_t)number * 2) : (uint64_t)number * 2);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB) number_add(&text, length), tide_text_append(&text, bytes, length);
    }
    tide_digest_bytes(text.bytes, text.length, digest);
    tide_text_free(&text);
}

static void test_digests_of_columns(void) {
    static const char *const values[] = {
        "NULL, 0", "1, -1", "9223372036854775807, -9223372036854775808", "'', x''", "'text', x'00'", "CAST(x'610062' AS TEXT), 127",
        "printf('%.*c', 1000, 'x'), printf('%.*c', 30, 'y')", "printf('%.*c', 500, 'x'), zeroblob(600)",
        "zeroblob(100000), printf('%.*c', 2000, 'x')",
        "zeroblob(1010), printf('%.*c', 1024, 'x')", "CAST(x'00' AS TEXT), 64",
    };
    sqlite3 *connection;
    check(sqlite3_open(":memory:", &connection) == SQLITE_OK, "a database");
    static const int columns[] = {0, 1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT %s, ?1", values[i]);
        sqlite3_stmt *row;
        check(sqlite3_prepare_v2(connection, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW, "%s", sql);
        uint8_t digest[17] = {0};
        columns_digest(row, 9, 2, digest);
        // The digest; other bytes; another length; no BLOB.
        for (int way = 0; way < 5; way++) {
            sqlite3_reset(row);
            if (way == 1) digest[15] ^= 1;
            if (way == 3) sqlite3_bind_text(row, 1, (const char *)digest, 16, SQLITE_STATIC);
            else sqlite3_bind_blob(row, 1, digest, way == 2 ? 17 : 16, SQLITE_STATIC);
            sqlite3_step(row);
            check(tide_columns_have_digest(row, way == 4 ? 8 : 9, columns, 2, 2) == (way == 0), "%s, way %d", sql, way);
            if (way == 1) digest[15] ^= 1;
        }
        sqlite3_finalize(row);
    }
    // A real number is none of the types that rows with such digests have.
    sqlite3_stmt *row;
    check(sqlite3_prepare_v2(connection, "SELECT 1.5, 1, zeroblob(16)", -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW, "a row");
    check(!tide_columns_have_digest(row, 9, columns, 2, 2), "a real number");
    sqlite3_finalize(row);
    uint8_t digest[16], expected[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8, 0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
    tide_digest_bytes(NULL, 0, digest);
    check(!memcmp(digest, expected, 16), "XXH3-128 of no bytes, most significant byte first");
    sqlite3_close(connection);
}

int main(void) {
    test_single_bits();
    test_other_damage();
    test_types();
    test_timestamps();
    test_long_values();
    test_parts();
    test_digests_of_queries();
    test_digests_of_columns();
    puts("verify: passed");
    return 0;
}
