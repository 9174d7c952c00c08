// Reads a manifest to its end, and writes down all that came of it as a text, which a test compares with the expected one:
//
//     types: n int64, s string
//     2: 'a' n=1 s='x'
//     line 3, n, wrongType: the value is no integer <x,y>
//     the end
//
// A row has its line, its name and its values. A refusal has its line, its field, its code, its message and the row's source; `…` stands behind a
// source that is cut. A reading that ends otherwise has its error in place of the end.

#ifndef MANIFEST_READING_H
#define MANIFEST_READING_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "tide_manifest.h"
#include "tide_number.h"
#include "tide_text.h"

/// Texts that were not as expected.
static int failures;

// Sources

/// A file with these bytes, at its beginning.
static inline int source_of(const void *bytes, size_t length) {
    char path[] = "/tmp/tidemark-manifest-XXXXXX";
    int descriptor = mkstemp(path);
    check(descriptor >= 0 && unlink(path) == 0, "%s", path);
    check(write(descriptor, bytes, length) == (ssize_t)length && lseek(descriptor, 0, SEEK_SET) == 0, "%zu bytes", length);
    return descriptor;
}

/// A source of which the first read gets `first` bytes, and the second gets the rest. Without the rest, the second read fails.
static inline int source_of_parts(const char *bytes, size_t length, size_t first, bool has_rest) {
    // The other end of the source before, which stays open while the source is read.
    static int kept = -1;
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0, "a pair of sockets");
    check(first == 0 || send(ends[1], bytes, first, 0) == (ssize_t)first, "%zu bytes", first);
    if (has_rest) {
        size_t rest = length - first;
        check(rest == 0 || send(ends[1], bytes + first, rest, 0) == (ssize_t)rest, "%zu bytes", rest);
        // Reading an empty message is reading the end.
        for (int i = 0; i < 4; i++) check(send(ends[1], "", 0, 0) == 0, "the end");
    }
    if (kept >= 0) close(kept);
    kept = ends[1];
    return ends[0];
}

// Writing batches and errors

/// Writes bytes; `\0` stands for the character NUL.
static inline void bytes_write(tide_text *out, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) tide_text_append(out, bytes[i] ? bytes + i : "\\0", bytes[i] ? 1 : 2);
}

static inline void value_write(tide_text *out, const tide_batch *batch, tide_cell cell) {
    char number[TIDE_NUMBER_SIZE];
    const char *text = cell.kind >= TIDE_KIND_TEXT ? tide_batch_text(batch, cell.offset) : "";
    switch (cell.kind) {
    case TIDE_KIND_NULL: tide_text_format(out, "null"); break;
    case TIDE_KIND_INTEGER: tide_text_format(out, "%lld", (long long)cell.integer); break;
    case TIDE_KIND_REAL:
        tide_number_print(cell.real, 15, number);
        tide_text_format(out, "%s%s", number, strpbrk(number, ".e") ? "" : ".0");
        break;
    case TIDE_KIND_TEXT: tide_text_format(out, "'%.*s'", (int)cell.length, text); break;
    case TIDE_KIND_PATH: tide_text_format(out, "path '%.*s'", (int)cell.length, text); break;
    case TIDE_KIND_CLAIM: tide_text_format(out, "claim '%.*s'", (int)cell.length, text); break;
    case TIDE_KIND_PATHS:
        for (uint32_t at = 0; at < cell.length; at += (uint32_t)strlen(text + at) + 1) tide_text_format(out, "%spath '%s'", at ? " " : "", text + at);
        break;
    case TIDE_KIND_BLOB:
        tide_text_append(out, "x", 1);
        for (uint32_t i = 0; i < cell.length; i++) tide_text_format(out, "%02x", (uint8_t)text[i]);
        break;
    default: tide_text_format(out, "a value of the kind %d", cell.kind);
    }
}

static inline void type_write(tide_text *out, tide_type type) {
    static const char *const names[] = {"unknown", "string", "int64", "double", "timestamp", "bytes", "location", "reference", "asset"};
    const char *name = type & TIDE_TYPE_BOOLEAN & ~TIDE_TYPE_INT64 ? "boolean" : names[type & 15];
    tide_text_format(out, type & TIDE_TYPE_LIST ? "list<%s>" : "%s", name);
}

/// Writes a batch. Names of rows that are derived are long, and are left out where `has_names` is false.
static inline void batch_write(tide_text *out, const tide_batch *batch, bool has_names) {
    uint32_t columns = tide_batch_column_count(batch);
    size_t length;
    tide_text_format(out, "types:");
    for (uint32_t column = 0; column < columns; column++) {
        tide_text_format(out, "%s%s ", column ? ", " : " ", tide_batch_column_name(batch, column, &length));
        type_write(out, tide_batch_column_type(batch, column));
    }
    tide_text_append(out, "\n", 1);
    for (uint32_t row = 0; row < tide_batch_row_count(batch); row++) {
        if (!tide_batch_row_is_live(batch, row)) continue;
        bool is_blob;
        const char *key = tide_batch_row_key(batch, row, &length, &is_blob);
        char name[36];
        size_t decoded = is_blob ? tide_name_decode(key, length, name) : 0;
        tide_text_format(out, "%llu:", (unsigned long long)tide_batch_row_line(batch, row));
        if (has_names) tide_text_format(out, " '%.*s'", (int)(is_blob ? decoded : length), is_blob ? name : key);
        for (uint32_t column = 0; column < columns; column++) {
            tide_cell cell = tide_batch_cell(batch, row, column);
            if (cell.kind == TIDE_KIND_ABSENT) continue;
            tide_text_format(out, " %s=", tide_batch_column_name(batch, column, &length));
            value_write(out, batch, cell);
        }
        tide_text_append(out, "\n", 1);
    }
    for (uint32_t i = 0; i < tide_batch_rejection_count(batch); i++) {
        tide_rejection it = tide_batch_rejection(batch, i);
        tide_text_format(out, "line %llu, ", (unsigned long long)it.line);
        if (it.field.length) tide_text_format(out, "%.*s, ", (int)it.field.length, tide_batch_text(batch, it.field.offset));
        tide_text_format(out, "%s: %.*s <", tide_reject_name(it.reject), (int)it.message.length, tide_batch_text(batch, it.message.offset));
        if (it.source.length <= 60) bytes_write(out, tide_batch_text(batch, it.source.offset), it.source.length);
        else tide_text_format(out, "%u bytes", it.source.length);
        tide_text_format(out, "%s>\n", it.source_is_cut ? "…" : "");
    }
}

static inline void error_write(tide_text *out, tide_status status, const tide_error *error) {
    check(status == error->status, "the status is %d, and that of the error %d", status, error->status);
    if (status == TIDE_REJECTED) tide_text_format(out, "%s: %s\n", tide_reject_name(error->reject), error->message);
    else tide_text_format(out, "status %d: %s\n", status, error->message);
}

/// Options for `source_read`.
typedef struct reading {
    /// NULL stands for options with only a type, `T`.
    const tide_manifest_options *options;
    /// Rows of a batch; 0 stands for 1000.
    uint32_t row_limit;
    bool has_names;
    /// Where to go on; NULL stands for the beginning.
    const tide_position *from;
    /// Gets the position behind each batch, if it is not NULL.
    tide_position *positions;
    uint32_t position_count;
} reading;

/// Reads a source, and closes it.
static inline tide_text source_read(int source, reading *how) {
    static const tide_manifest_options plain = {.type_name = "T"};
    tide_text out = {0};
    tide_error error = {0};
    tide_manifest *manifest = NULL;
    tide_batch *batch = NULL;
    check(!tide_batch_create(how->row_limit ? how->row_limit : 1000, 1 << 24, &batch), "a batch");
    tide_status status = tide_manifest_create(source, how->options ? how->options : &plain, &manifest, &error);
    if (!status && how->from) status = tide_manifest_resume(manifest, how->from, &error);
    while (!status) {
        status = tide_manifest_read(manifest, batch, &error);
        if (status && status != TIDE_END) break;
        batch_write(&out, batch, how->has_names);
        if (how->positions) how->positions[how->position_count++] = tide_manifest_position(manifest);
        tide_batch_reset(batch);
    }
    if (status == TIDE_END) tide_text_format(&out, "the end\n");
    else error_write(&out, status, &error);
    tide_manifest_destroy(manifest);
    tide_batch_destroy(batch);
    close(source);
    check(!out.failed, "no memory");
    return out;
}

static inline void expect_text(const char *file, int line, const char *found, const char *expected) {
    if (strcmp(found, expected) == 0) return;
    fprintf(stderr, "%s:%d: expected\n%sbut found\n%s\n", file, line, expected, found);
    failures++;
}

static inline void expect_read(
    const char *file, int line, const void *bytes, size_t length, const tide_manifest_options *options, bool has_names, const char *expected
) {
    reading how = {.options = options, .has_names = has_names};
    tide_text found = source_read(source_of(bytes, length), &how);
    expect_text(file, line, found.bytes, expected);
    tide_text_free(&found);
}

/// Compares the reading of a text with the expected one. Options are the members of `tide_manifest_options`.
#define expect(text, expected, ...) \
    expect_read(__FILE__, __LINE__, text, strlen(text), &(tide_manifest_options){.type_name = "T", __VA_ARGS__}, false, expected)
/// As `expect`, of a text in which NUL may be: an array of characters.
#define expect_bytes(bytes, expected, ...) \
    expect_read(__FILE__, __LINE__, bytes, sizeof bytes - 1, &(tide_manifest_options){.type_name = "T", __VA_ARGS__}, false, expected)
/// As `expect`, with the names of the rows, which the field `id` has unless the options say otherwise.
#define expect_named(text, expected, ...) \
    expect_read(__FILE__, __LINE__, text, strlen(text), &(tide_manifest_options){.type_name = "T", .name_field = "id", __VA_ARGS__}, true, expected)

/// Ends a test program.
static inline int tests_end(const char *program) {
    if (failures == 0) printf("%s: passed\n", program);
    return failures != 0;
}

#endif
