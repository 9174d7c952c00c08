// The values of a record before a change, as history has them: a JSON object.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tide_number.h"
#include "tide_writer_layout.h"

void tide_before_begin(tide_text *before, bool is_damaged) {
    tide_text_clear(before);
    tide_text_append(before, "{", 1);
    if (is_damaged) tide_text_append(before, "\"_damaged\":1", strlen("\"_damaged\":1"));
}

/// Returns whether a text is UTF-8. Stored texts are, unless they are damaged; a damaged text must not make history unreadable.
static bool utf8_is_valid(const uint8_t *text, size_t length) {
    for (size_t i = 0; i < length;) {
        uint8_t lead = text[i++];
        if (lead < 0x80) continue;
        int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if (lead < 0xc2 || lead > 0xf4 || length - i < (size_t)more) return false;
        uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80, most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        for (; more > 0; more--, least = 0x80, most = 0xbf) {
            if (text[i] < least || text[i] > most) return false;
            i++;
        }
    }
    return true;
}

static void null_append(tide_text *before) { tide_text_append(before, "null", 4); }

static void real_append(tide_text *before, double value) {
    char number[TIDE_NUMBER_SIZE];
    // JSON has no infinity. Only damage can bring one here.
    if (!isfinite(value)) null_append(before);
    else tide_text_append(before, number, tide_number_print(value, 17, number));
}

static void text_append(tide_text *before, const void *bytes, size_t length, bool is_damaged) {
    if (is_damaged && !utf8_is_valid(bytes, length)) null_append(before);
    else tide_text_json_string(before, bytes, length);
}

void tide_before_append(
    tide_text *before, const tide_stored_field *field, sqlite3_stmt *row, int column, bool is_damaged
) {
    tide_text_append(before, before->length > 1 ? ",\"" : "\"", before->length > 1 ? 2 : 1);
    tide_text_append(before, field->name, field->name_length);
    tide_text_append(before, "\":", 2);
    int type = sqlite3_column_type(row, column);
    if (type == SQLITE_NULL) {
        null_append(before);
    } else if (type == SQLITE_INTEGER) {
        tide_text_format(before, "%" PRId64, (int64_t)sqlite3_column_int64(row, column));
    } else if (type == SQLITE_FLOAT) {
        real_append(before, sqlite3_column_double(row, column));
    } else {
        const void *bytes = sqlite3_column_blob(row, column);
        size_t length = (size_t)sqlite3_column_bytes(row, column);
        if (type == SQLITE_BLOB) tide_text_base64(before, bytes, length);
        else text_append(before, bytes, length, is_damaged);
    }
}
