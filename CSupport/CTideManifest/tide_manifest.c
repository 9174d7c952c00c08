#include "tide_manifest.h"

#include <stdlib.h>
#include <string.h>

#include "tide_json.h"
#include "tide_manifest_layout.h"
#include "tide_text.h"

enum {
    default_row_limit = 16 << 20,
};

// Shared by the formats

tide_status tide_row_take(tide_batch *batch, const char *text, size_t length, tide_span *source, tide_error *error) {
    // Unescaped strings add up to less than the row itself; the name and a message come on top. The arena must not move while the row is
    // parsed in place.
    char *room = tide_batch_text_reserve(batch, 2 * length + 4096);
    if (!room) return tide_out_of_memory(error);
    memcpy(room, text, length);
    memset(room + length, 0, 64);
    *source = tide_batch_text_commit(batch, length);
    return TIDE_OK;
}

uint64_t tide_count_lines(const char *text, size_t length) {
    uint64_t count = 0;
    for (const char *end; length && (end = memchr(text, '\n', length)); count++) {
        length -= (size_t)(end - text) + 1;
        text = end + 1;
    }
    return count;
}

void tide_manifest_rename(tide_manifest *manifest, const char **name, size_t *length) {
    for (uint32_t i = 0; i < manifest->renaming_count; i++) {
        tide_renaming *it = &manifest->renamings[i];
        if (it->from_length == *length && memcmp(it->from, *name, *length) == 0) {
            it->has_occurred = true;
            *name = it->to;
            *length = it->to_length;
            return;
        }
    }
}

tide_status tide_row_refuse(
    tide_batch *batch, uint32_t row, const char *field, size_t field_length, const tide_error *reason, tide_error *error
) {
    if (reason->status != TIDE_REJECTED) {
        if (error) *error = *reason;
        return reason->status;
    }
    // The field's name may lie in the arena that the refusal adds to.
    char name[256];
    if (field_length > sizeof name) field_length = sizeof name;
    memcpy(name, field, field_length);
    tide_status status = tide_batch_row_reject(batch, row, name, field_length, reason->reject, reason->message);
    return status ? tide_out_of_memory(error) : TIDE_OK;
}

// Beginning and end

/// A type's name and a colon; the caller frees it. NULL when memory runs out.
static char *prefix_create(const char *type) {
    size_t length = strlen(type);
    char *prefix = malloc(length + 2);
    if (prefix) {
        memcpy(prefix, type, length);
        memcpy(prefix + length, ":", 2);
    }
    return prefix;
}

static tide_status options_copy(tide_manifest *manifest, const tide_manifest_options *options) {
    const char *name_field = options->name_field ? options->name_field : TIDE_NAME_FIELD;
    manifest->row_limit = options->row_limit ? options->row_limit : default_row_limit;
    manifest->name_is_required = options->name_is_required;
    manifest->decimal_comma = options->decimal_comma;
    manifest->delimiter = options->delimiter ? options->delimiter : ',';
    manifest->nesting = options->nesting;
    // The offsets are copied below.
    manifest->times = (tide_time_rules){.offset_count = options->times.offset_count, .order = options->times.order};
    manifest->type_name = strdup(options->type_name);
    manifest->name_field = strdup(name_field);
    manifest->name_field_length = strlen(name_field);
    manifest->renamings = calloc(options->mapping_count + 1, sizeof *manifest->renamings);
    manifest->shape = calloc(options->field_count + 1, sizeof *manifest->shape);
    manifest->shape_capacity = options->field_count + 1;
    manifest->json = tide_json_create();
    if (options->times.offset_count > 0) {
        size_t size = options->times.offset_count * sizeof *options->times.offsets;
        tide_zone_offset *offsets = malloc(size);
        manifest->times.offsets = offsets;
        if (!offsets) return TIDE_NO_MEMORY;
        memcpy(offsets, options->times.offsets, size);
    }
    if (options->names_have_type && !(manifest->name_prefix = prefix_create(options->type_name))) return TIDE_NO_MEMORY;
    if (!manifest->type_name || !manifest->name_field || !manifest->renamings || !manifest->shape || !manifest->json) {
        return TIDE_NO_MEMORY;
    }
    for (uint32_t i = 0; i < options->mapping_count; i++) {
        const tide_mapping *mapping = &options->mappings[i];
        tide_renaming *it = &manifest->renamings[manifest->renaming_count++];
        *it = (tide_renaming){
            .from = strdup(mapping->from), .to = strdup(mapping->to), .from_length = strlen(mapping->from),
            .to_length = strlen(mapping->to)};
        if (!it->from || !it->to) return TIDE_NO_MEMORY;
    }
    for (uint32_t i = 0; i < options->field_count; i++) {
        const tide_known_field *field = &options->fields[i];
        tide_shape_field *it = &manifest->shape[manifest->shape_count++];
        *it = (tide_shape_field){
            .name = strdup(field->name), .length = strlen(field->name), .type = field->type,
            .may_be_list = options->field_count - i <= options->open_field_count};
        if (!it->name) return TIDE_NO_MEMORY;
        if (field->target && !(it->target = prefix_create(field->target))) return TIDE_NO_MEMORY;
    }
    return TIDE_OK;
}

static tide_status format_detect(tide_manifest *manifest, tide_error *error) {
    tide_source *source = &manifest->source;
    tide_status status = tide_source_fill(source, 3, error);
    if (status) return status;
    if (tide_source_length(source) >= 3 && memcmp(tide_source_bytes(source), "\xef\xbb\xbf", 3) == 0) {
        tide_source_consume(source, 3);
    }
    if (manifest->format == TIDE_FORMAT_CSV) return TIDE_OK;
    tide_format given = manifest->format;
    size_t at = 0;
    for (;;) {
        for (; at < tide_source_length(source); at++) {
            char c = tide_source_bytes(source)[at];
            if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
            if (c == '{') return tide_json_layout_detect(manifest, given == TIDE_FORMAT_JSON_LINES, error);
            if (given == TIDE_FORMAT_AUTO) manifest->format = c == '[' ? TIDE_FORMAT_JSON_ARRAY : TIDE_FORMAT_CSV;
            return TIDE_OK;
        }
        if (source->is_at_end || at > manifest->row_limit) break;
        if ((status = tide_source_more(source, error))) return status;
    }
    if (given == TIDE_FORMAT_AUTO) manifest->format = TIDE_FORMAT_JSON_LINES;
    return TIDE_OK;
}

bool tide_manifest_mapping_occurred(const tide_manifest *manifest, uint32_t mapping) {
    return manifest->renamings[mapping].has_occurred;
}

bool tide_manifest_field_occurred(const tide_manifest *manifest, uint32_t field) { return manifest->shape[field].has_occurred; }

tide_status tide_manifest_create(
    int descriptor, const tide_manifest_options *options, tide_manifest **manifest, tide_error *error
) {
    *manifest = NULL;
    tide_manifest *created = calloc(1, sizeof *created);
    if (!created) return tide_out_of_memory(error);
    created->format = options->format;
    created->names_options = true;
    tide_status status = tide_source_open(&created->source, descriptor, options->encoding, error);
    if (!status && options_copy(created, options)) status = tide_out_of_memory(error);
    if (!status) status = format_detect(created, error);
    if (!status && created->format == TIDE_FORMAT_CSV) status = tide_csv_read_header(created, error);
    if (!status && created->format == TIDE_FORMAT_JSON_ARRAY && created->array_state == array_before) {
        status = tide_json_array_begin(created, error);
    }
    if (status) {
        tide_manifest_destroy(created);
        return status;
    }
    *manifest = created;
    return TIDE_OK;
}

void tide_manifest_destroy(tide_manifest *manifest) {
    if (!manifest) return;
    tide_source_close(&manifest->source);
    for (uint32_t i = 0; i < manifest->renaming_count; i++) {
        free(manifest->renamings[i].from);
        free(manifest->renamings[i].to);
    }
    for (uint32_t i = 0; i < manifest->shape_count; i++) {
        free(manifest->shape[i].name);
        free(manifest->shape[i].target);
    }
    for (uint32_t i = 0; i < manifest->csv_column_count; i++) free(manifest->csv_columns[i].name);
    free(manifest->renamings);
    free(manifest->shape);
    free(manifest->csv_columns);
    free(manifest->type_name);
    free(manifest->name_field);
    free(manifest->name_prefix);
    free((tide_zone_offset *)manifest->times.offsets);
    tide_json_destroy(manifest->json);
    free(manifest);
}

tide_format tide_manifest_format(const tide_manifest *manifest) { return manifest->format; }

bool tide_manifest_is_converted(const tide_manifest *manifest) { return manifest->source.input != NULL; }

const char *tide_manifest_local_time_field(const tide_manifest *manifest, uint32_t index) {
    for (uint32_t i = 0; i < manifest->shape_count; i++) {
        if (manifest->shape[i].has_local_times && index-- == 0) return manifest->shape[i].name;
    }
    return NULL;
}

tide_position tide_manifest_position(const tide_manifest *manifest) {
    tide_position position = {.offset = manifest->source.consumed, .line = manifest->line};
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(manifest->source.digest));
    memcpy(position.digest, canonical.digest, sizeof position.digest);
    position.state = (uint8_t)manifest->array_state;
    return position;
}

tide_status tide_manifest_resume(tide_manifest *manifest, const tide_position *position, tide_error *error) {
    tide_source *source = &manifest->source;
    while (source->consumed < position->offset) {
        tide_status status = tide_source_more(source, error);
        if (tide_source_length(source) == 0) {
            if (status) return status;
            break;
        }
        uint64_t rest = position->offset - source->consumed;
        tide_source_consume(source, rest < tide_source_length(source) ? (size_t)rest : tide_source_length(source));
    }
    tide_position reached = tide_manifest_position(manifest);
    if (reached.offset != position->offset || memcmp(reached.digest, position->digest, sizeof reached.digest) != 0) {
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_CHANGED,
            "the source is not the one whose import was interrupted (it differs within its first %llu bytes); "
            "import it without --resume",
            (unsigned long long)position->offset);
    }
    manifest->line = position->line;
    if (position->state <= array_closed) manifest->array_state = position->state;
    return TIDE_OK;
}

// Batches

static tide_status columns_declare(const tide_manifest *manifest, tide_batch *batch) {
    for (uint32_t i = 0; i < manifest->shape_count; i++) {
        uint32_t column;
        tide_status status = tide_batch_column(batch, manifest->shape[i].name, manifest->shape[i].length, &column, NULL);
        if (status) return status;
        if (!manifest->shape[i].may_be_list) tide_batch_column_set_type(batch, column, manifest->shape[i].type);
    }
    return TIDE_OK;
}

tide_status tide_manifest_read(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    if (columns_declare(manifest, batch)) return tide_out_of_memory(error);
    tide_status status = TIDE_OK;
    while (!status && !tide_batch_is_full(batch)) {
        switch (manifest->format) {
        case TIDE_FORMAT_CSV: status = tide_csv_read_row(manifest, batch, error); break;
        case TIDE_FORMAT_JSON_ARRAY: status = tide_json_array_read(manifest, batch, error); break;
        default: status = tide_json_line_read(manifest, batch, error); break;
        }
    }
    if (status && status != TIDE_END) return status;
    tide_status failure = tide_batch_infer_types(manifest, batch, error);
    if (!failure) failure = tide_batch_name_rows(manifest, batch, error);
    return failure ? failure : status;
}

// Texts

static tide_status text_set(tide_batch *batch, uint32_t row, const tide_field_text *text, tide_error *error) {
    tide_cell cell = {.kind = TIDE_KIND_NULL};
    if (text->text) {
        tide_span span;
        if (memchr(text->text, 0, text->length)) {
            tide_error reason;
            tide_error_reject(&reason, TIDE_REJECT_MALFORMED, "the value holds the character NUL, which cannot be stored");
            return tide_row_refuse(batch, row, text->name, strlen(text->name), &reason, error);
        }
        tide_status status = tide_row_take(batch, text->text, text->length, &span, error);
        if (status) return status;
        cell = (tide_cell){.kind = TIDE_KIND_RAW_TEXT, .offset = span.offset, .length = span.length};
    }
    uint32_t column;
    tide_status status = tide_batch_column(batch, text->name, strlen(text->name), &column, error);
    if (status) return status;
    if ((status = tide_batch_row_set(batch, column, cell)) == TIDE_REJECTED) {
        return tide_error_reject(error, TIDE_REJECT_DUPLICATE_KEY, "the field %.100s is set twice", text->name);
    }
    return status ? tide_out_of_memory(error) : TIDE_OK;
}

tide_status tide_texts_read(
    const tide_manifest_options *options, const tide_field_text *texts, uint32_t count, tide_batch *batch, tide_error *error
) {
    tide_manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest) return tide_out_of_memory(error);
    tide_status status = TIDE_OK;
    uint32_t row;
    if (options_copy(manifest, options) || columns_declare(manifest, batch)
        || tide_batch_row_add(batch, 1, (tide_span){0}, &row)) {
        status = tide_out_of_memory(error);
    }
    for (uint32_t i = 0; i < count && !status; i++) status = text_set(batch, row, &texts[i], error);
    if (!status) status = tide_batch_infer_types(manifest, batch, error);
    tide_manifest_destroy(manifest);
    return status;
}
