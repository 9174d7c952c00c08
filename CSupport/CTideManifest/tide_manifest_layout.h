/// The fields of a manifest, shared by the readers of its formats.

#ifndef TIDE_MANIFEST_LAYOUT_H
#define TIDE_MANIFEST_LAYOUT_H

#include "tide_manifest.h"
#include "tide_source.h"
#include "tide_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The name of the field that stands for the record name where no other is given.
#define TIDE_NAME_FIELD "_name"

typedef struct tide_shape_field {
    char *name;
    size_t length;
    tide_type type;
    /// Whether it is not known yet if the field is a list.
    bool may_be_list;
    bool has_occurred;
    bool has_local_times;
    /// The prefix of the names of records that it refers to: the type and a colon; or NULL.
    char *target;
} tide_shape_field;

typedef struct tide_renaming {
    char *from, *to;
    size_t from_length, to_length;
    bool has_occurred;
} tide_renaming;

/// A column of a CSV.
typedef struct tide_csv_column {
    char *name;
    size_t length;
    bool is_name;
} tide_csv_column;

struct tide_manifest {
    tide_source source;
    tide_format format;
    uint64_t line;
    size_t row_limit;
    char *type_name;
    char *name_field;
    size_t name_field_length;
    bool name_is_required;
    bool decimal_comma;
    /// Messages about values name the options of an import.
    bool names_options;
    char delimiter;
    tide_nesting nesting;
    tide_time_rules times;
    /// The prefix that short names get: the type and a colon; NULL where names are taken as they are.
    char *name_prefix;
    tide_renaming *renamings;
    uint32_t renaming_count;
    /// Fields whose types are known, in the order in which batches get their columns.
    tide_shape_field *shape;
    uint32_t shape_count, shape_capacity;
    struct tide_json *json;
    /// The reader's place in a JSON array. `array_sequence`: objects follow one another without an array. `array_closed`: the wrapper of the
    /// array has been read to its end. A position has the number, so the order stays.
    enum { array_before, array_first, array_next, array_after, array_sequence, array_closed } array_state;
    /// The array is a member of an object.
    bool is_wrapped;
    tide_csv_column *csv_columns;
    uint32_t csv_column_count;
};

/// Fills the error: memory has run out.
static inline tide_status tide_out_of_memory(tide_error *error) { return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory"); }

/// Copies a row's text into the batch, with room for everything that parsing may add. `*source` is the copy.
tide_status tide_row_take(tide_batch *batch, const char *text, size_t length, tide_span *source, tide_error *error);

uint64_t tide_count_lines(const char *text, size_t length);

/// Consumes up to and including the next line end, in bounded memory.
tide_status tide_line_skip(tide_manifest *manifest, tide_error *error);

/// Names a row by the text of its name field, with the prefix for short names.
tide_status tide_row_name(
    const tide_manifest *manifest, tide_batch *batch, uint32_t row, const char *name, size_t length, tide_error *error);

/// Writes a short name with `prefix` before it. False where the name is whole: a UUID, or a name with that prefix.
bool tide_name_qualify(const char *prefix, const char *name, size_t length, tide_text *qualified);

/// The name that a source's field has in the store.
void tide_manifest_rename(tide_manifest *manifest, const char **name, size_t *length);

/// Records that a source has the field of a batch's column.
static inline void tide_manifest_note_field(tide_manifest *manifest, uint32_t column) {
    // Batches get the columns of the shape first.
    if (column < manifest->shape_count) manifest->shape[column].has_occurred = true;
}

/// Refuses a row if `reason` is a rejection. Passes any other failure on.
tide_status tide_row_refuse(
    tide_batch *batch, uint32_t row, const char *field, size_t field_length, const tide_error *reason, tide_error *error);

/// Read the header of a CSV, or one of its rows; see tide_csv.c.
tide_status tide_csv_read_header(tide_manifest *manifest, tide_error *error);
tide_status tide_csv_read_row(tide_manifest *manifest, tide_batch *batch, tide_error *error);

/// Reads one row of JSON Lines; TIDE_END at the end of the source.
tide_status tide_json_line_read(tide_manifest *manifest, tide_batch *batch, tide_error *error);
/// Reads the beginning of an array. A source that does not begin so is refused.
tide_status tide_json_array_begin(tide_manifest *manifest, tide_error *error);
/// Reads an element of an array, or the text between two elements; TIDE_END at the end of the source.
tide_status tide_json_array_read(tide_manifest *manifest, tide_batch *batch, tide_error *error);

/// Finds out how a source that begins with '{' is laid out, and sets format and state. With `lines_are_meant`, an object on one line is a
/// row even if it has an array of objects and is alone.
tide_status tide_json_layout_detect(tide_manifest *manifest, bool lines_are_meant, tide_error *error);
/// Reads the text after the array of a wrapper, to the end of the source. `*fault` is a fault of that text, or NULL; `*line` is the number of
/// lines before it.
tide_status tide_json_wrapper_end(tide_manifest *manifest, const char **fault, uint64_t *line, tide_error *error);

/// Derives a name for each live row that has none: from its type, and its values in the order of their fields' names.
tide_status tide_batch_name_rows(tide_manifest *manifest, tide_batch *batch, tide_error *error);

/// Infers the types of a batch's columns, and converts the values of its cells; see tide_cell_types.c.
tide_status tide_batch_infer_types(tide_manifest *manifest, tide_batch *batch, tide_error *error);

#ifdef __cplusplus
}
#endif

#endif
