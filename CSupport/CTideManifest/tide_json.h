/// Reads JSON values into cells, over simdjson.

#ifndef TIDE_JSON_H
#define TIDE_JSON_H

#include "tide_batch.h"
#include "tide_text.h"

#ifdef __cplusplus
extern "C" {
#endif



typedef struct tide_json tide_json;
struct tide_manifest;

tide_json *tide_json_create(void);
void tide_json_destroy(tide_json *json);

/// Adds the object in `source` (text in the batch's arena) as a row. A text that is no proper object is refused in the batch.
tide_status tide_json_read_row(
    tide_json *json, struct tide_manifest *manifest, tide_batch *batch, uint64_t line, tide_span source,
    tide_error *error);

/// The kinds of values in a list.
typedef struct tide_list_summary {
    bool has_integers, has_reals, has_strings;
    bool strings_are_times;
} tide_list_summary;

/// The rules by which values are read, beside the type of their field.
typedef struct tide_value_rules {
    const struct tide_time_rules *times;
    /// The prefix of the names that a reference refers to: a type and a colon; NULL where names are taken as they are.
    const char *target;
    bool has_local_times;
    /// Numbers in text have a decimal comma.
    bool decimal_comma;
    /// Messages name the options of an import that would read a refused value.
    bool names_options;
} tide_value_rules;

/// Summarises a list. `text` must have 64 readable bytes behind it, also for the next two. TIDE_REJECTED when it is no list of scalars.
tide_status tide_json_summarize_list(
    tide_json *json, const char *text, size_t length, const struct tide_time_rules *times, tide_list_summary *summary,
    tide_error *error);

/// Converts a list to its stored form: a JSON array, or, of assets, paths each ended by NUL (`kind` tells which).
tide_status tide_json_convert_list(
    tide_json *json, const char *text, size_t length, tide_type element, tide_value_rules *rules, tide_text *out,
    tide_kind *kind, tide_error *error);

/// Converts an object with `latitude` and `longitude` (degrees) to its stored form: these two, then `altitude`,
/// `horizontalAccuracy`, `verticalAccuracy`, `course`, `speed` as far as given.
tide_status tide_json_convert_location(
    tide_json *json, const char *text, size_t length, tide_text *out, tide_error *error);



#ifdef __cplusplus
}
#endif

#endif
