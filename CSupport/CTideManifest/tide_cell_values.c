// Converts cells to values, or refuses them: the rules are in Documentation/Formats/manifest.md, "Types".

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tide_blob.h"
#include "tide_cell_values.h"
#include "tide_json.h"
#include "tide_manifest_layout.h"
#include "tide_number.h"
#include "tide_text.h"

// Numbers in text

/// The length of a mark that separates groups of three digits: a point, a space (also a no-break or narrow one), an apostrophe. 0 for any
/// other text.
static size_t group_mark(const char *text, size_t length) {
    static const char *const marks[] = {".", " ", "'", "\u00a0", "\u202f", "\u2019"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t size = strlen(marks[i]);
        if (length >= size && memcmp(text, marks[i], size) == 0) return size;
    }
    return 0;
}

static size_t digits_count(const char *text, size_t length) {
    size_t count = 0;
    while (count < length && text[count] >= '0' && text[count] <= '9') count++;
    return count;
}

size_t tide_number_localize(const char *text, size_t length, char out[tide_local_number_limit]) {
    size_t at = 0, used = 0;
    if (length == 0 || length >= tide_local_number_limit) return 0;
    if (text[0] == '-') out[used++] = text[at++];
    size_t digits = digits_count(text + at, length - at);
    if (digits == 0) return 0;
    memcpy(out + used, text + at, digits);
    at += digits;
    used += digits;
    if (digits <= 3) {
        for (size_t mark; (mark = group_mark(text + at, length - at)); at += mark + 3, used += 3) {
            if (digits_count(text + at + mark, length - at - mark) != 3) return 0;
            memcpy(out + used, text + at + mark, 3);
        }
    }
    if (at < length && text[at] == ',') {
        digits = digits_count(text + at + 1, length - at - 1);
        if (digits == 0) return 0;
        out[used] = '.';
        memcpy(out + used + 1, text + at + 1, digits);
        at += digits + 1;
        used += digits + 1;
    }
    return at == length ? used : 0;
}

bool tide_text_is_integer(const char *text, size_t length) {
    size_t i = length > 0 && text[0] == '-';
    size_t first = i;
    // A number with leading zeros is an article number or a postcode.
    if (i == length || (text[i] == '0' && length > i + 1)) return false;
    while (i < length && text[i] >= '0' && text[i] <= '9') i++;
    return i == length && !(text[0] == '-' && text[first] == '0');
}

static tide_status text_to_number(
    const char *text, size_t length, const tide_value_rules *rules, tide_cell *cell, const char *wanted, tide_error *error
) {
    char local[tide_local_number_limit];
    if (rules->decimal_comma) {
        if (!(length = tide_number_localize(text, length, local))) {
            return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the value is no %s with a decimal comma", wanted);
        }
        text = local;
    }
    int shown = length < 60 ? (int)length : 60;
    if (tide_text_is_integer(text, length)) {
        // An integer that does not fit into the copy is beyond 64 bits: it has no leading zeros.
        char copy[24];
        size_t kept = length < sizeof copy ? length : sizeof copy - 1;
        memcpy(copy, text, kept);
        copy[kept] = 0;
        errno = 0;
        long long integer = strtoll(copy, NULL, 10);
        if (errno == ERANGE) {
            return tide_error_reject(
                error, TIDE_REJECT_OUT_OF_RANGE, "the number %.*s is beyond what 64 bits hold", shown, text);
        }
        *cell = (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = integer};
        return TIDE_OK;
    }
    double real;
    if (!tide_number_parse(text, length, &real)) {
        char ignored[tide_local_number_limit];
        bool has_comma = rules->names_options && memchr(text, ',', length) && tide_number_localize(text, length, ignored);
        return tide_error_reject(
            error, TIDE_REJECT_WRONG_TYPE, "the value is no %s%s", wanted,
            has_comma ? "; --decimal-comma reads such as 1,5" : "");
    }
    if (isinf(real)) {
        return tide_error_reject(error, TIDE_REJECT_OUT_OF_RANGE, "the number %.*s is beyond what 64 bits hold", shown, text);
    }
    *cell = (tide_cell){.kind = TIDE_KIND_REAL, .real = real == 0 ? 0 : real};
    return TIDE_OK;
}

bool tide_text_is_boolean(const char *text, size_t length, bool *value) {
    static const char *const words[] = {"true", "True", "TRUE", "false", "False", "FALSE"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) != length || memcmp(words[i], text, length) != 0) continue;
        *value = i < 3;
        return true;
    }
    return false;
}

static bool integer_fits_real(int64_t value) {
    double real = (double)value;
    return fabs(real) < 9223372036854775808.0 && (int64_t)real == value;
}

// Conversion

static const char *kind_name(uint8_t kind) {
    switch (kind) {
    case TIDE_KIND_INTEGER: return "an integer";
    case TIDE_KIND_REAL: return "a number with a fraction";
    case TIDE_KIND_BOOLEAN: return "a Boolean";
    case TIDE_KIND_RAW_LIST: return "a list";
    case TIDE_KIND_RAW_OBJECT: return "an object";
    default: return "a string";
    }
}

static tide_status refuse_kind(const char *wanted, tide_cell cell, tide_error *error) {
    return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the field is %s; the row has %s", wanted, kind_name(cell.kind));
}

static bool cell_is_text(tide_cell cell) { return cell.kind == TIDE_KIND_TEXT || cell.kind == TIDE_KIND_RAW_TEXT; }

static tide_status to_boolean(const tide_batch *batch, tide_cell *cell, tide_error *error) {
    bool value = false;
    if (cell->kind == TIDE_KIND_RAW_TEXT) {
        const char *text = tide_batch_text(batch, cell->offset);
        if (!tide_text_is_boolean(text, cell->length, &value)) {
            if (cell->length != 1 || (*text != '0' && *text != '1')) {
                return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the value is no Boolean; write true or false");
            }
            value = *text == '1';
        }
        *cell = (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = value};
        return TIDE_OK;
    }
    if (cell->kind != TIDE_KIND_BOOLEAN && cell->kind != TIDE_KIND_INTEGER) return refuse_kind("a Boolean", *cell, error);
    if (cell->integer != 0 && cell->integer != 1) {
        return tide_error_reject(
            error, TIDE_REJECT_WRONG_TYPE, "the field is a Boolean, true or false; the row has %lld", (long long)cell->integer);
    }
    cell->kind = TIDE_KIND_INTEGER;
    return TIDE_OK;
}

static tide_status to_integer(
    const tide_batch *batch, const tide_value_rules *rules, tide_cell *cell, tide_error *error
) {
    bool value;
    if (cell->kind == TIDE_KIND_RAW_TEXT && tide_text_is_boolean(tide_batch_text(batch, cell->offset), cell->length, &value)) {
        *cell = (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = value};
    }
    if (cell->kind == TIDE_KIND_RAW_TEXT) {
        tide_cell number;
        tide_status status = text_to_number(
            tide_batch_text(batch, cell->offset), cell->length, rules, &number, "integer", error);
        if (status) return status;
        *cell = number;
    }
    if (cell->kind == TIDE_KIND_BOOLEAN) cell->kind = TIDE_KIND_INTEGER;
    if (cell->kind == TIDE_KIND_REAL && cell->real == floor(cell->real) && fabs(cell->real) <= 9007199254740992.0) {
        *cell = (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = (int64_t)cell->real};
    }
    return cell->kind == TIDE_KIND_INTEGER ? TIDE_OK : refuse_kind("an integer", *cell, error);
}

static tide_status to_real(const tide_batch *batch, const tide_value_rules *rules, tide_cell *cell, tide_error *error) {
    if (cell->kind == TIDE_KIND_RAW_TEXT) {
        tide_cell number;
        tide_status status = text_to_number(
            tide_batch_text(batch, cell->offset), cell->length, rules, &number, "number", error);
        if (status) return status;
        *cell = number;
    }
    if (cell->kind == TIDE_KIND_INTEGER) {
        if (!integer_fits_real(cell->integer)) {
            return tide_error_reject(
                error, TIDE_REJECT_OUT_OF_RANGE, "the integer %lld cannot be held by a double without loss",
                (long long)cell->integer);
        }
        *cell = (tide_cell){.kind = TIDE_KIND_REAL, .real = (double)cell->integer};
    }
    return cell->kind == TIDE_KIND_REAL ? TIDE_OK : refuse_kind("a number", *cell, error);
}

static tide_status to_time(const tide_batch *batch, tide_value_rules *rules, tide_cell *cell, tide_error *error) {
    int64_t time;
    bool is_local;
    if (!cell_is_text(*cell)) return refuse_kind("a time", *cell, error);
    const char *text = tide_batch_text(batch, cell->offset);
    if (!tide_time_read(text, cell->length, rules->times, &time, &is_local)) {
        bool has_slash = cell->length > 0 && text[0] >= '0' && text[0] <= '9' && memchr(text, '/', cell->length);
        return tide_error_reject(
            error, TIDE_REJECT_WRONG_TYPE, "the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024%s",
            has_slash && rules->names_options && rules->times->order == TIDE_DATE_ORDER_NONE
                ? "; --date-order dmy or mdy reads 5/1/2024" : "");
    }
    rules->has_local_times = rules->has_local_times || is_local;
    *cell = (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = time};
    return TIDE_OK;
}

static int base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+' || c == '-') return 62;
    if (c == '/' || c == '_') return 63;
    return -1;
}

static tide_status to_bytes(tide_batch *batch, tide_cell *cell, tide_error *error) {
    if (!cell_is_text(*cell)) return refuse_kind("bytes in Base64", *cell, error);
    char *room = tide_batch_text_reserve(batch, cell->length);
    if (!room) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    const char *text = tide_batch_text(batch, cell->offset);
    size_t length = cell->length;
    while (length > 0 && text[length - 1] == '=' && cell->length - length < 2) length--;
    bool is_padded = length < cell->length;
    uint32_t bits = 0;
    int count = 0;
    size_t out = 0;
    bool is_valid = length % 4 != 1 && (!is_padded || cell->length % 4 == 0);
    for (size_t i = 0; i < length && is_valid; i++) {
        int digit = base64_digit(text[i]);
        is_valid = digit >= 0;
        bits = bits << 6 | (uint32_t)(digit & 63);
        count += 6;
        if (count >= 8) room[out++] = (char)(bits >> (count -= 8));
    }
    if (!is_valid) return tide_error_reject(error, TIDE_REJECT_WRONG_TYPE, "the value is no Base64");
    tide_span span = tide_batch_text_commit(batch, out);
    *cell = (tide_cell){.kind = TIDE_KIND_BLOB, .offset = span.offset, .length = span.length};
    return TIDE_OK;
}

static tide_status to_asset(const tide_batch *batch, tide_cell *cell, tide_error *error) {
    if (!cell_is_text(*cell)) return refuse_kind("an asset, given as the path of a file", *cell, error);
    const char *text = tide_batch_text(batch, cell->offset);
    if (cell->length == 0) return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "the path of the asset is empty");
    bool begins_list = cell->kind == TIDE_KIND_RAW_TEXT && cell->length > 1 && text[0] == '[' && text[cell->length - 1] == ']';
    if (begins_list && (cell->length == 2 || text[1] == '"')) {
        return tide_error_reject(
            error, TIDE_REJECT_WRONG_TYPE,
            "the field is an asset, given as the path of a file; the row has a list. In a CSV, a schema file must say that the field "
            "is list<asset> (--schema)");
    }
    if (cell->length > 6 && memcmp(text, "asset:", 6) == 0) {
        if (!tide_blob_id_is_valid(text + 6, cell->length - 6)) {
            return tide_error_reject(error, TIDE_REJECT_ASSET_UNKNOWN, "the value is no asset identifier");
        }
        *cell = (tide_cell){.kind = TIDE_KIND_CLAIM, .offset = cell->offset + 6, .length = cell->length - 6};
        return TIDE_OK;
    }
    cell->kind = TIDE_KIND_PATH;
    return TIDE_OK;
}

static tide_status add_converted(tide_batch *batch, const tide_text *text, tide_kind kind, tide_cell *cell, tide_error *error) {
    tide_span span;
    if (tide_batch_text_add(batch, text->bytes, text->length, &span)) {
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    *cell = (tide_cell){.kind = (uint8_t)kind, .offset = span.offset, .length = span.length};
    return TIDE_OK;
}

/// Converts to a reference. A short name gets the type of the record that it refers to before it.
static tide_status to_reference(tide_batch *batch, const tide_value_rules *rules, tide_cell *cell, tide_error *error) {
    if (cell->kind == TIDE_KIND_INTEGER) {
        // An integer stands for the record that is named by its digits.
        tide_text digits = {0};
        tide_text_format(&digits, "%lld", (long long)cell->integer);
        tide_status status = digits.failed ? tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory")
                                           : add_converted(batch, &digits, TIDE_KIND_TEXT, cell, error);
        tide_text_free(&digits);
        if (status) return status;
    }
    if (!cell_is_text(*cell)) return refuse_kind("a record name", *cell, error);
    cell->kind = TIDE_KIND_TEXT;
    tide_text whole = {0};
    tide_status status = TIDE_OK;
    if (cell->length > 0 && rules->target
        && tide_name_qualify(rules->target, tide_batch_text(batch, cell->offset), cell->length, &whole)) {
        status = whole.failed ? tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory")
                              : add_converted(batch, &whole, TIDE_KIND_TEXT, cell, error);
    }
    tide_text_free(&whole);
    if (!status && (cell->length == 0 || cell->length > 255)) {
        status = tide_error_reject(error, TIDE_REJECT_BAD_NAME, "a reference is a record name of 1 to 255 bytes");
    }
    return status;
}

static tide_status to_list(
    tide_json *json, tide_batch *batch, tide_type element, tide_value_rules *rules, tide_cell *cell, tide_error *error
) {
    if (cell->kind != TIDE_KIND_RAW_LIST && cell->kind != TIDE_KIND_RAW_TEXT) return refuse_kind("a list", *cell, error);
    tide_text text = {0};
    tide_kind kind;
    tide_status status =
        tide_json_convert_list(json, tide_batch_text(batch, cell->offset), cell->length, element, rules, &text, &kind, error);
    if (!status) status = add_converted(batch, &text, kind, cell, error);
    tide_text_free(&text);
    return status;
}

static tide_status to_location(tide_json *json, tide_batch *batch, tide_cell *cell, tide_error *error) {
    if (cell->kind != TIDE_KIND_RAW_OBJECT && cell->kind != TIDE_KIND_RAW_TEXT) return refuse_kind("a location", *cell, error);
    tide_text text = {0};
    tide_status status =
        tide_json_convert_location(json, tide_batch_text(batch, cell->offset), cell->length, &text, error);
    if (!status) status = add_converted(batch, &text, TIDE_KIND_TEXT, cell, error);
    tide_text_free(&text);
    return status;
}

static tide_status convert(
    tide_json *json, tide_batch *batch, tide_type type, tide_value_rules *rules, tide_cell *cell, tide_error *error
) {
    if (type & TIDE_TYPE_LIST) return to_list(json, batch, type & ~TIDE_TYPE_LIST, rules, cell, error);
    switch (type) {
    case TIDE_TYPE_INT64: return to_integer(batch, rules, cell, error);
    case TIDE_TYPE_BOOLEAN: return to_boolean(batch, cell, error);
    case TIDE_TYPE_DOUBLE: return to_real(batch, rules, cell, error);
    case TIDE_TYPE_TIMESTAMP: return to_time(batch, rules, cell, error);
    case TIDE_TYPE_BYTES: return to_bytes(batch, cell, error);
    case TIDE_TYPE_LOCATION: return to_location(json, batch, cell, error);
    case TIDE_TYPE_ASSET: return to_asset(batch, cell, error);
    case TIDE_TYPE_REFERENCE: return to_reference(batch, rules, cell, error);
    // Strings.
    default:
        if (!cell_is_text(*cell)) return refuse_kind("a string", *cell, error);
        cell->kind = TIDE_KIND_TEXT;
        return TIDE_OK;
    }
}

tide_status tide_column_convert(
    tide_manifest *manifest, tide_batch *batch, uint32_t column, tide_value_rules *rules, tide_error *error
) {
    tide_type type = tide_batch_column_type(batch, column);
    uint32_t rows = tide_batch_row_count(batch);
    size_t name_length;
    const char *name = tide_batch_column_name(batch, column, &name_length);
    for (uint32_t row = 0; row < rows; row++) {
        tide_cell cell = tide_batch_cell(batch, row, column);
        if (cell.kind <= TIDE_KIND_NULL || (type == TIDE_TYPE_STRING && cell.kind == TIDE_KIND_TEXT)) continue;
        if (!tide_batch_row_is_live(batch, row)) continue;
        tide_error reason;
        tide_status status = convert(manifest->json, batch, type, rules, &cell, &reason);
        if (status) {
            if ((status = tide_row_refuse(batch, row, name, name_length, &reason, error))) return status;
        } else {
            tide_batch_cell_replace(batch, row, column, cell);
        }
    }
    return TIDE_OK;
}
