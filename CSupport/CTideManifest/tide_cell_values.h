#ifndef TIDE_CELL_VALUES_H
#define TIDE_CELL_VALUES_H

#include "tide_json.h"
#include "tide_manifest_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Room for a number that `tide_number_localize` writes.
enum { tide_local_number_limit = 64 };

/// Writes a number with a decimal comma, such as 1.234,5, in the form of JSON. Returns its length, or 0 for a text that is no number.
size_t tide_number_localize(const char *text, size_t length, char out[tide_local_number_limit]);

/// Tells whether a text is an integer without leading zeros.
bool tide_text_is_integer(const char *text, size_t length);

/// Tells whether a text is `true` or `false`, in small letters, in capitals, or with one capital; `*value` gets its value.
bool tide_text_is_boolean(const char *text, size_t length, bool *value);

/// Converts the cells of a column to values of its type. A row whose cell can't be converted is refused.
tide_status tide_column_convert(
    tide_manifest *manifest, tide_batch *batch, uint32_t column, tide_value_rules *rules, tide_error *error);

#ifdef __cplusplus
}
#endif

#endif
