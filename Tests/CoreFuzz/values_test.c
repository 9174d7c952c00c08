// Goal: a batch holds what its reader put into it, and refuses names that no record or field can have; digests are those of the values; the set of
// names of a load errs in one direction only.
// Method: batches are filled in the ways that readers fill them, and compared cell by cell; sets of names are compared with what was added.

#include <string.h>

#include "../../CSupport/CTideCore/tide_fingerprints.h"
#include "check.h"
#include "tide_batch.h"

static tide_error error;

static tide_batch *batch_make(uint32_t rows, size_t bytes) {
    tide_batch *batch;
    check(tide_batch_create(rows, bytes, &batch) == TIDE_OK, "a batch");
    return batch;
}

static uint32_t column_of(tide_batch *batch, const char *name) {
    uint32_t column = UINT32_MAX;
    check(tide_batch_column(batch, name, strlen(name), &column, &error) == TIDE_OK, "%s: %s", name, error.message);
    return column;
}

static uint32_t row_add(tide_batch *batch) {
    uint32_t row = UINT32_MAX;
    check(tide_batch_row_add(batch, tide_batch_row_count(batch) + 1, (tide_span){0}, &row) == TIDE_OK, "a row");
    return row;
}

static tide_cell number(int64_t value) { return (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = value}; }

/// The cells of a column, each behind a space: a number, ~ for NULL, - where it is absent.
static void expect_cells(const tide_batch *batch, uint32_t column, const char *expected) {
    char text[300] = "";
    for (uint32_t row = 0; row < tide_batch_row_count(batch); row++) {
        tide_cell cell = tide_batch_cell(batch, row, column);
        size_t length = strlen(text);
        if (cell.kind == TIDE_KIND_INTEGER) snprintf(text + length, sizeof text - length, " %d", (int)cell.integer);
        else strcat(text, cell.kind == TIDE_KIND_NULL ? " ~" : " -");
    }
    check(!strcmp(text, expected), "%s, not %s", text, expected);
}

static void test_cells(void) {
    tide_batch *batch = batch_make(100, 1 << 20);
    uint32_t a = column_of(batch, "a"), b = column_of(batch, "b"), c = column_of(batch, "c");
    for (int row = 0; row < 6; row++) {
        row_add(batch);
        if (row % 2) check(tide_batch_row_set(batch, a, number(row)) == TIDE_OK, "a cell");
        if (row == 3) check(tide_batch_row_set(batch, b, number(30)) == TIDE_OK, "a cell");
        if (row == 4) check(tide_batch_row_set(batch, b, (tide_cell){.kind = TIDE_KIND_NULL}) == TIDE_OK, "a cell");
    }
    expect_cells(batch, a, " - 1 - 3 - 5");
    expect_cells(batch, b, " - - - 30 ~ -");
    expect_cells(batch, c, " - - - - - -");
    // A cell is set once: a source that names a field twice is refused.
    check(tide_batch_row_set(batch, a, number(7)) == TIDE_REJECTED, "twice");
    expect_cells(batch, a, " - 1 - 3 - 5");
    // Cells of other rows: before the column's first, between, behind its last, and of a column that has none.
    check(!tide_batch_cell_set(batch, 1, b, number(10)) && !tide_batch_cell_set(batch, 5, b, number(50)), "cells");
    expect_cells(batch, b, " - 10 - 30 ~ 50");
    check(!tide_batch_cell_set(batch, 2, b, number(20)) && !tide_batch_cell_set(batch, 3, b, number(31)), "cells");
    expect_cells(batch, b, " - 10 20 31 ~ 50");
    check(!tide_batch_cell_set(batch, 4, c, number(4)) && !tide_batch_cell_set(batch, 0, c, number(0)), "cells");
    expect_cells(batch, c, " 0 - - - 4 -");
    // Only a cell that the column has is replaced; an absent one of the last row can still be set.
    tide_batch_cell_replace(batch, 3, b, number(32));
    tide_batch_cell_replace(batch, 0, b, number(99));
    tide_batch_cell_replace(batch, 5, c, number(99));
    expect_cells(batch, b, " - 10 20 32 ~ 50");
    expect_cells(batch, c, " 0 - - - 4 -");
    tide_batch_cell_replace(batch, 5, a, (tide_cell){.kind = TIDE_KIND_ABSENT});
    check(tide_batch_row_set(batch, a, number(55)) == TIDE_OK, "an absent cell");
    expect_cells(batch, a, " - 1 - 3 - 55");
    // Nor is anything written beyond a column's memory.
    uint32_t d = column_of(batch, "d");
    check(!tide_batch_cell_set(batch, 0, d, number(1)), "a cell");
    for (int row = 6; row < 60; row++) row_add(batch);
    tide_batch_cell_replace(batch, 59, d, number(99));
    check(tide_batch_cell(batch, 59, d).kind == TIDE_KIND_ABSENT, "absent");
    // A column counts as used by live rows with values.
    check(tide_batch_column_is_used(batch, a) && tide_batch_column_is_used(batch, c), "used");
    for (uint32_t row = 0; row < 5; row += 4) check(!tide_batch_row_reject(batch, row, "c", 1, TIDE_REJECT_WRONG_TYPE, "no"), "refused");
    check(!tide_batch_column_is_used(batch, c), "not used");
    check(tide_batch_live_count(batch) == 58 && tide_batch_row_count(batch) == 60, "rows");
    // Empty again, columns included.
    tide_batch_reset(batch);
    check(!tide_batch_row_count(batch) && !tide_batch_live_count(batch) && !tide_batch_column_count(batch) && !tide_batch_rejection_count(batch),
          "empty");
    a = column_of(batch, "b");
    row_add(batch);
    expect_cells(batch, a, " -");
    tide_batch_destroy(batch);
    tide_batch_destroy(NULL);
}

static void test_columns(void) {
    tide_batch *batch = batch_make(100, 1 << 20);
    uint32_t a = column_of(batch, "a"), b = column_of(batch, "b_2");
    check(a != b && column_of(batch, "a") == a && column_of(batch, "b_2") == b && column_of(batch, "b_2") == b, "one column for each name");
    size_t length;
    check(!strcmp(tide_batch_column_name(batch, b, &length), "b_2") && length == 3, "the name");
    check(tide_batch_column_type(batch, a) == TIDE_TYPE_UNKNOWN, "no type");
    tide_batch_column_set_type(batch, a, TIDE_TYPE_BOOLEAN);
    check(tide_batch_column_type(batch, a) == TIDE_TYPE_BOOLEAN, "a type");
    uint32_t column;
    check(tide_batch_column(batch, "2b", 2, &column, &error) == TIDE_REJECTED && error.reject == TIDE_REJECT_BAD_IDENTIFIER, "%s", error.message);
    check(!strcmp(error.message, "'2b' cannot name a field: a letter, then letters, digits or '_'; give it another name with --map"), "%s",
          error.message);
    char longest[301];
    memset(longest, 'x', 300);
    longest[300] = 0;
    char expected[200];
    snprintf(expected, sizeof expected, "'%.100s' cannot name a field", longest);
    check(tide_batch_column(batch, longest, 300, &column, &error) == TIDE_REJECTED && !strncmp(error.message, expected, strlen(expected)), "%s",
          error.message);
    // Names that differ by the case of letters only.
    check(!tide_batch_source_column(batch, "a", 1, "Name", &column, &error) && column == a, "known");
    check(!tide_batch_source_column(batch, "c", 1, "Name", &column, &error) && tide_batch_column_count(batch) == 3, "new");
    check(tide_batch_source_column(batch, "B_2", 3, "Name", &column, &error) == TIDE_REJECTED && error.reject == TIDE_REJECT_BAD_IDENTIFIER, "%s",
          error.message);
    check(!strcmp(error.message, "'B_2' differs from the field 'b_2' by the case of letters only; give it that name, or another one, with --map"),
          "%s", error.message);
    check(tide_batch_source_column(batch, "naMe", 4, "Name", &column, &error) == TIDE_REJECTED && strstr(error.message, "the field 'Name'"), "%s",
          error.message);
    longest[255] = 0;
    column_of(batch, longest);
    memset(longest, 'X', 255);
    check(tide_batch_source_column(batch, longest, 255, "", &column, &error) == TIDE_REJECTED && strlen(error.message) < 400, "%s", error.message);
    for (int i = 4; i < TIDE_BATCH_COLUMN_LIMIT; i++) {
        char name[20];
        snprintf(name, sizeof name, "field%d", i);
        check(column_of(batch, name) == (uint32_t)i, "%s", name);
    }
    check(tide_batch_column(batch, "more", 4, &column, &error) == TIDE_REJECTED && error.reject == TIDE_REJECT_TOO_MANY_FIELDS, "%s", error.message);
    check(!strcmp(error.message, "there are more than 1900 fields"), "%s", error.message);
    check(column_of(batch, "b_2") == b, "the others are still found");
    tide_batch_destroy(batch);
}

static void test_names(void) {
    tide_batch *batch = batch_make(100, 1 << 20);
    char text[300];
    memset(text, 'x', sizeof text);
    static const struct {
        const char *name;
        size_t length;
        tide_reject reject;
        const char *message;
    } cases[] = {
        {"", 0, TIDE_REJECT_MISSING_NAME, "the record name is empty"},
        {"a\nb", 3, TIDE_REJECT_BAD_NAME, "the record name has a control character at byte 1"},
        {"ab\x7f", 3, TIDE_REJECT_BAD_NAME, "the record name has a control character at byte 2"},
        {"\0", 1, TIDE_REJECT_BAD_NAME, "the record name has a control character at byte 0"},
        {NULL, 256, TIDE_REJECT_BAD_NAME, "the record name has 256 bytes; at most 255 are allowed"},
    };
    uint32_t row = row_add(batch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tide_status status = tide_batch_row_name(batch, row, cases[i].name ? cases[i].name : text, cases[i].length, &error);
        check(status == TIDE_REJECTED && error.reject == cases[i].reject && !strcmp(error.message, cases[i].message), "%s", error.message);
    }
    size_t length;
    bool is_blob;
    tide_batch_row_key(batch, row, &length, &is_blob);
    check(length == 0, "no name");
    check(!tide_batch_row_name(batch, row, text, 255, &error), "%s", error.message);
    check(!memcmp(tide_batch_row_key(batch, row, &length, &is_blob), text, 255) && length == 255 && !is_blob, "the longest name");
    check(!tide_batch_row_name(batch, row, " a \xc3\xa9", 5, &error) && !tide_batch_may_need_composing(batch), "%s", error.message);
    check(!tide_batch_row_name(batch, row, "e\xcc\x81", 3, &error) && tide_batch_may_need_composing(batch), "%s", error.message);
    check(!tide_batch_row_name(batch, row, "30313233-3435-3637-3839-616263646566", 36, &error), "%s", error.message);
    check(!memcmp(tide_batch_row_key(batch, row, &length, &is_blob), "0123456789abcdef", 16) && length == 16 && is_blob, "a UUID");
    tide_batch_reset(batch);
    check(!tide_batch_may_need_composing(batch), "names of the next use");
    tide_batch_destroy(batch);
}

static void test_refusals(void) {
    tide_batch *batch = batch_make(100, 1 << 20);
    tide_span source, other;
    check(!tide_batch_text_add(batch, "the source", 10, &source) && !tide_batch_text_add(batch, NULL, 0, &other), "texts");
    uint32_t row;
    check(!tide_batch_row_add(batch, 17, source, &row), "a row");
    check(tide_batch_row_line(batch, row) == 17 && tide_batch_row_source(batch, row).length == 10 && tide_batch_row_is_live(batch, row), "a row");
    check(!tide_batch_row_reject(batch, row, "rating", 6, TIDE_REJECT_WRONG_TYPE, "is no number"), "refused");
    // What has been refused already stays as it is.
    check(!tide_batch_row_reject(batch, row, "caption", 7, TIDE_REJECT_TOO_LONG, "is too long"), "refused");
    check(!tide_batch_row_is_live(batch, row) && tide_batch_live_count(batch) == 0, "refused");
    check(!tide_batch_reject(batch, 18, source, true, TIDE_REJECT_MALFORMED, "is no JSON"), "refused");
    check(tide_batch_rejection_count(batch) == 2, "refusals");
    tide_rejection first = tide_batch_rejection(batch, 0), second = tide_batch_rejection(batch, 1);
    check(first.row == row && first.line == 17 && first.reject == TIDE_REJECT_WRONG_TYPE && !first.source_is_cut, "the first");
    check(!memcmp(tide_batch_text(batch, first.field.offset), "rating", 6) && first.field.length == 6, "the field");
    check(!memcmp(tide_batch_text(batch, first.message.offset), "is no number", 12) && first.message.length == 12, "the message");
    check(!memcmp(tide_batch_text(batch, first.source.offset), "the source", 10) && first.source.length == 10, "the source");
    check(second.row == UINT32_MAX && second.line == 18 && second.reject == TIDE_REJECT_MALFORMED && second.source_is_cut && !second.field.length,
          "the second");
    tide_batch_destroy(batch);
}

static void test_bounds(void) {
    // Rows, and refusals.
    tide_batch *batch = batch_make(3, 1 << 20);
    row_add(batch), row_add(batch);
    check(!tide_batch_is_full(batch), "two rows");
    check(!tide_batch_reject(batch, 1, (tide_span){0}, false, TIDE_REJECT_MALFORMED, "no") && tide_batch_is_full(batch), "and a refusal");
    tide_batch_reset(batch);
    check(!tide_batch_is_full(batch), "empty");
    tide_batch_destroy(batch);
    // Text, and cells: a row's text may go beyond.
    batch = batch_make(1000, 4000);
    check(!strcmp(tide_batch_text(batch, 0), ""), "no text");
    char *room = tide_batch_text_reserve(batch, 3990);
    check(room, "room");
    memset(room, 'x', 3990 + 64);
    tide_span span = tide_batch_text_commit(batch, 3990);
    check(span.offset == 0 && span.length == 3990 && !tide_batch_is_full(batch), "below");
    check(!tide_batch_text_add(batch, "0123456789", 10, &span) && span.offset == 3990 && tide_batch_is_full(batch), "reached");
    check(!memcmp(tide_batch_text(batch, 3980), "xxxxxxxxxx0123456789", 20), "the text");
    tide_batch_reset(batch);
    column_of(batch, "a"), column_of(batch, "b");
    for (int row = 0; row < 124; row++) row_add(batch);
    check(!tide_batch_is_full(batch), "124 rows of two cells");
    row_add(batch);
    check(tide_batch_is_full(batch), "125 rows of two cells");
    // Memory far beyond the bound is freed, and the batch goes on.
    room = tide_batch_text_reserve(batch, 1 << 20);
    check(room, "room");
    memset(room, 'y', 1 << 20);
    tide_batch_reset(batch);
    check(!strcmp(tide_batch_text(batch, 0), ""), "no text");
    check(!tide_batch_text_add(batch, "z", 1, &span) && tide_batch_text(batch, span.offset)[0] == 'z', "a text");
    // The arena ends at 4 GiB.
    check(!tide_batch_text_reserve(batch, UINT32_MAX) && tide_batch_text_add(batch, "", UINT32_MAX, &span) == TIDE_NO_MEMORY, "4 GiB");
    tide_batch_destroy(batch);
}

static void test_digests(void) {
    enum { seed = 99 };
    tide_batch *batch = batch_make(100, 1 << 20);
    uint32_t a = column_of(batch, "a"), b = column_of(batch, "b");
    tide_span text;
    check(!tide_batch_text_add(batch, "text", 4, &text), "a text");
    static const uint8_t kinds[] = {TIDE_KIND_TEXT, TIDE_KIND_BLOB, TIDE_KIND_CLAIM, TIDE_KIND_INTEGER, TIDE_KIND_REAL, TIDE_KIND_NULL,
                                    TIDE_KIND_ABSENT};
    uint64_t key = tide_key_digest(seed, "name", 4, false), field = tide_field_seed(seed, "a", 1);
    for (int i = 0; i < 7; i++) {
        uint32_t row = row_add(batch);
        check(!tide_batch_row_name(batch, row, "name", 4, &error), "%s", error.message);
        tide_cell cell = {.kind = kinds[i], .length = 4, .offset = text.offset};
        if (kinds[i] == TIDE_KIND_INTEGER) cell.integer = -3;
        if (kinds[i] == TIDE_KIND_REAL) cell.real = 1.5;
        check(!tide_batch_row_set(batch, a, cell), "a cell");
        if (i == 2) check(!tide_batch_row_set(batch, b, number(1)), "a cell");
    }
    tide_batch_digest(batch, seed);
    // The sum over the key and the values; NULL counts nothing. The seed is that of the field's name.
    uint64_t of_text = tide_value_digest_bytes(field, "text", 4);
    check(tide_batch_row_digest(batch, 0) == key + of_text && tide_batch_row_digest(batch, 1) == key + of_text, "bytes");
    check(tide_batch_row_digest(batch, 2) == key + of_text + tide_value_digest_integer(tide_field_seed(seed, "b", 1), 1), "two fields");
    check(tide_batch_row_digest(batch, 3) == key + tide_value_digest_integer(field, -3), "an integer");
    check(tide_batch_row_digest(batch, 4) == key + tide_value_digest_real(field, 1.5), "a real number");
    check(tide_batch_row_digest(batch, 5) == key && tide_batch_row_digest(batch, 6) == key, "no value");
    check(tide_value_digest_bytes(field, "", 0) == tide_value_digest_bytes(field, NULL, 0), "no bytes");
    check(key != tide_key_digest(seed, "name", 4, true) && key != tide_key_digest(seed + 1, "name", 4, false), "other keys");
    check(field != tide_field_seed(seed, "b", 1) && field != tide_field_seed(seed + 1, "a", 1), "other fields");
    // Of an integer its 8 bytes, least significant first; of a real number its bits.
    static const uint8_t bytes[8] = {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, real[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x3f};
    check(tide_value_digest_integer(field, -3) == tide_value_digest_bytes(field, bytes, 8), "the bytes of an integer");
    check(tide_value_digest_real(field, 1.5) == tide_value_digest_bytes(field, real, 8), "the bytes of a real number");
    tide_batch_destroy(batch);
}

// Fingerprints

static uint64_t mixed(uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static void test_fingerprints(void) {
    tide_fingerprints *set = tide_fingerprints_create();
    check(set, "a set");
    // What was added is never new again, and what was not is.
    for (uint64_t i = 1; i <= 200000; i++) {
        check(tide_fingerprints_add(set, mixed(i)), "%d is new", (int)i);
        check(!tide_fingerprints_add(set, mixed(1 + mixed(i) % i)), "an earlier one than %d is known", (int)i);
    }
    tide_fingerprints_destroy(set);
    // A single table: places that are taken, also at its end; 0 and 1 are the same; the bits between are not kept.
    set = tide_fingerprints_create();
    uint64_t last = (UINT64_C(1) << 48) - 1;
    for (uint64_t i = 3; i < 9; i++) check(tide_fingerprints_add(set, i), "%d", (int)i);
    for (uint64_t i = 0; i < 1000; i++) check(tide_fingerprints_add(set, last - i), "%d", (int)i);
    for (uint64_t i = 3; i < 9; i++) check(!tide_fingerprints_add(set, i), "%d", (int)i);
    for (uint64_t i = 0; i < 1000; i++) check(!tide_fingerprints_add(set, last - i), "%d", (int)i);
    check(tide_fingerprints_add(set, 0) && !tide_fingerprints_add(set, 0) && !tide_fingerprints_add(set, 1) && tide_fingerprints_add(set, 2), "0");
    check(!tide_fingerprints_add(set, last | UINT64_C(0xf) << 48) && tide_fingerprints_add(set, last | UINT64_C(0x10) << 48), "60 bits");
    tide_fingerprints_destroy(set);
    // A full set takes no more: every name may have occurred.
    set = tide_fingerprints_create();
    uint32_t count = 0;
    for (uint64_t i = 1; count < tide_fingerprints_limit; i++) count += tide_fingerprints_add(set, mixed(i));
    for (uint64_t i = 1; i < 100; i++) check(!tide_fingerprints_add(set, mixed(UINT64_C(1) << 40 | i)), "full");
    check(!tide_fingerprints_memory_ran_out(set), "memory is left");
    tide_fingerprints_destroy(set);
    tide_fingerprints_destroy(NULL);
}

int main(void) {
    test_cells();
    test_columns();
    test_names();
    test_refusals();
    test_bounds();
    test_digests();
    test_fingerprints();
    puts("values: passed");
    return 0;
}
