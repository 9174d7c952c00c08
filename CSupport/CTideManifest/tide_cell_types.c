// Infers the types of columns from their cells: the rules are in Documentation/Formats/manifest.md, "Types".

#include <stdlib.h>
#include <string.h>

#include "tide_cell_values.h"
#include "tide_json.h"
#include "tide_manifest_layout.h"
#include "tide_number.h"
#include "tide_text.h"

/// The kinds of values that a column has, as far as they decide its type.
typedef struct evidence {
    uint8_t first_kind;
    bool has_booleans, has_integers, has_reals, has_other_text, texts_are_times, lists_have_integers, lists_have_reals, lists_have_strings,
        list_strings_are_times;
} evidence;

static void weigh_text(evidence *it, const char *text, size_t length, const tide_value_rules *rules) {
    int64_t time;
    bool is_local, value;
    char local[tide_local_number_limit];
    it->texts_are_times = it->texts_are_times && tide_time_read(text, length, rules->times, &time, &is_local);
    if (tide_text_is_boolean(text, length, &value)) {
        it->has_booleans = true;
        return;
    }
    if (rules->decimal_comma) {
        length = tide_number_localize(text, length, local);
        text = local;
    }
    if (tide_text_is_integer(text, length)) {
        it->has_integers = true;
    } else if (tide_number_is_valid(text, length)) {
        it->has_reals = true;
    } else {
        it->has_other_text = true;
    }
}

static tide_type text_type(const evidence *it) { return it->texts_are_times ? TIDE_TYPE_TIMESTAMP : TIDE_TYPE_STRING; }

static tide_type list_type(const evidence *it) {
    tide_type element = TIDE_TYPE_STRING;
    if (it->lists_have_strings) {
        element = it->list_strings_are_times ? TIDE_TYPE_TIMESTAMP : TIDE_TYPE_STRING;
    } else if (it->lists_have_reals) {
        element = TIDE_TYPE_DOUBLE;
    } else if (it->lists_have_integers) {
        element = TIDE_TYPE_INT64;
    }
    return element | TIDE_TYPE_LIST;
}

static tide_type evident_type(const evidence *it) {
    switch (it->first_kind) {
    case TIDE_KIND_INTEGER:
    case TIDE_KIND_BOOLEAN:
    case TIDE_KIND_REAL:
        if (it->has_reals) return TIDE_TYPE_DOUBLE;
        return it->has_integers ? TIDE_TYPE_INT64 : TIDE_TYPE_BOOLEAN;
    case TIDE_KIND_TEXT: return text_type(it);
    case TIDE_KIND_RAW_TEXT:
        if (it->has_other_text) return text_type(it);
        if (it->has_booleans) return it->has_integers || it->has_reals ? TIDE_TYPE_STRING : TIDE_TYPE_BOOLEAN;
        return it->has_reals ? TIDE_TYPE_DOUBLE : TIDE_TYPE_INT64;
    case TIDE_KIND_RAW_LIST: return list_type(it);
    case TIDE_KIND_RAW_OBJECT: return TIDE_TYPE_LOCATION;
    default: return TIDE_TYPE_UNKNOWN;
    }
}

static tide_status type_infer(
    tide_json *json, const tide_batch *batch, uint32_t column, const tide_value_rules *rules, tide_type *type
) {
    evidence it = {.texts_are_times = true, .list_strings_are_times = true};
    uint32_t rows = tide_batch_row_count(batch);
    for (uint32_t row = 0; row < rows; row++) {
        if (!tide_batch_row_is_live(batch, row)) continue;
        tide_cell cell = tide_batch_cell(batch, row, column);
        if (cell.kind <= TIDE_KIND_NULL) continue;
        if (!it.first_kind) it.first_kind = cell.kind;
        switch (cell.kind) {
        case TIDE_KIND_INTEGER: it.has_integers = true; break;
        case TIDE_KIND_BOOLEAN: it.has_booleans = true; break;
        case TIDE_KIND_REAL: it.has_reals = true; break;
        case TIDE_KIND_TEXT:
        case TIDE_KIND_RAW_TEXT: weigh_text(&it, tide_batch_text(batch, cell.offset), cell.length, rules); break;
        case TIDE_KIND_RAW_LIST: {
            tide_list_summary summary;
            const char *text = tide_batch_text(batch, cell.offset);
            tide_status status = tide_json_summarize_list(json, text, cell.length, rules->times, &summary, NULL);
            if (status == TIDE_NO_MEMORY) return status;
            if (status) break;
            it.lists_have_integers |= summary.has_integers;
            it.lists_have_reals |= summary.has_reals;
            it.lists_have_strings |= summary.has_strings;
            if (summary.has_strings) it.list_strings_are_times &= summary.strings_are_times;
            break;
        }
        default: break;
        }
    }
    *type = evident_type(&it);
    return TIDE_OK;
}

/// The type of a field that has values or lists of `type`: its first value decides.
static tide_type first_type(const tide_batch *batch, uint32_t column, tide_type type) {
    uint32_t rows = tide_batch_row_count(batch);
    for (uint32_t row = 0; row < rows; row++) {
        uint8_t kind = tide_batch_row_is_live(batch, row) ? tide_batch_cell(batch, row, column).kind : TIDE_KIND_NULL;
        if (kind > TIDE_KIND_NULL) return kind == TIDE_KIND_RAW_LIST ? type | TIDE_TYPE_LIST : type;
    }
    return TIDE_TYPE_UNKNOWN;
}

static tide_status shape_add(tide_manifest *manifest, const char *name, size_t length, tide_type type) {
    if (manifest->shape_count == manifest->shape_capacity) {
        uint32_t larger = manifest->shape_capacity * 2;
        void *moved = realloc(manifest->shape, larger * sizeof *manifest->shape);
        if (!moved) return TIDE_NO_MEMORY;
        manifest->shape = moved;
        manifest->shape_capacity = larger;
    }
    char *copy = strndup(name, length);
    if (!copy) return TIDE_NO_MEMORY;
    manifest->shape[manifest->shape_count++] = (tide_shape_field){.name = copy, .length = length, .type = type};
    return TIDE_OK;
}

tide_status tide_batch_infer_types(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    // The batch's first columns are those of the shape. A column that is added to the shape now has another index there.
    uint32_t columns = tide_batch_column_count(batch), shared = manifest->shape_count;
    for (uint32_t column = 0; column < columns; column++) {
        size_t length;
        const char *name = tide_batch_column_name(batch, column, &length);
        uint32_t place = column;
        tide_value_rules rules = {
            .times = &manifest->times, .decimal_comma = manifest->decimal_comma,
            .names_options = manifest->names_options,
            .target = column < shared ? manifest->shape[column].target : NULL};
        if (tide_batch_column_type(batch, column) == TIDE_TYPE_UNKNOWN) {
            tide_shape_field *known = column < shared ? &manifest->shape[column] : NULL;
            tide_type type = TIDE_TYPE_UNKNOWN;
            if (known) type = first_type(batch, column, known->type);
            else if (type_infer(manifest->json, batch, column, &rules, &type)) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
            if (type == TIDE_TYPE_UNKNOWN) continue;
            tide_batch_column_set_type(batch, column, type);
            if (known) {
                known->type = type;
                known->may_be_list = false;
            } else if (shape_add(manifest, name, length, type)) {
                return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
            } else {
                place = manifest->shape_count - 1;
            }
        }
        tide_status status = tide_column_convert(manifest, batch, column, &rules, error);
        if (status) return status;
        manifest->shape[place].has_local_times |= rules.has_local_times;
    }
    return TIDE_OK;
}
