#include "tide_manifest.h"

#ifdef __APPLE__
#include <CommonCrypto/CommonDigest.h>
#else
#include <openssl/evp.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tide_json.h"
#include "tide_manifest_layout.h"
#include "tide_text.h"

enum {
    default_row_limit = 16 << 20,
    /// What a rejects file shows of a row that is too long.
    shown_of_long_row = 64 << 10,
};

static tide_status out_of_memory(tide_error *error) { return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory"); }

// Shared by the formats

tide_status tide_row_take(tide_batch *batch, const char *text, size_t length, tide_span *source, tide_error *error) {
    // Unescaped strings add up to less than the row itself; the name and a message come on top. What is reserved here must not move
    // while the row is parsed in place.
    char *room = tide_batch_text_reserve(batch, 2 * length + 4096);
    if (!room) return out_of_memory(error);
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
    return status ? out_of_memory(error) : TIDE_OK;
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

/// Consumes white space, counting lines; the next byte, or 0 at the end.
static tide_status array_next_byte(tide_manifest *manifest, char *byte, tide_error *error) {
    tide_source *source = &manifest->source;
    for (;;) {
        if (tide_source_length(source) == 0) {
            tide_status status = tide_source_more(source, error);
            if (status) return status;
            if (tide_source_length(source) == 0) break;
        }
        char c = *tide_source_bytes(source);
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
            *byte = c;
            return TIDE_OK;
        }
        if (c == '\n') manifest->line++;
        tide_source_consume(source, 1);
    }
    *byte = 0;
    return TIDE_OK;
}

/// Reads what an array begins with: where that is missing, the source is none.
static tide_status array_begin(tide_manifest *manifest, tide_error *error) {
    char byte;
    tide_status status = array_next_byte(manifest, &byte, error);
    if (status) return status;
    if (byte != '[') {
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "line %llu: a JSON array begins with '['",
                                 (unsigned long long)manifest->line + 1);
    }
    tide_source_consume(&manifest->source, 1);
    manifest->array_state = array_first;
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
    if (!created) return out_of_memory(error);
    created->format = options->format;
    created->names_options = true;
    tide_status status = tide_source_open(&created->source, descriptor, options->encoding, error);
    if (!status && options_copy(created, options)) status = out_of_memory(error);
    if (!status) status = format_detect(created, error);
    if (!status && created->format == TIDE_FORMAT_CSV) status = tide_csv_read_header(created, error);
    if (!status && created->format == TIDE_FORMAT_JSON_ARRAY && created->array_state == array_before) {
        status = array_begin(created, error);
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
    if (position->state <= array_sequence) manifest->array_state = position->state;
    return TIDE_OK;
}

// JSON Lines

static tide_status long_row_refuse(
    tide_manifest *manifest, tide_batch *batch, const char *text, size_t length, bool is_cut, tide_error *error
) {
    tide_span source;
    char message[120];
    size_t shown = length < shown_of_long_row ? length : shown_of_long_row;
    snprintf(message, sizeof message, "the row is longer than %zu bytes", manifest->row_limit);
    if (tide_batch_text_add(batch, text, shown, &source)) return out_of_memory(error);
    tide_status status =
        tide_batch_reject(batch, manifest->line + 1, source, is_cut || shown < length, TIDE_REJECT_TOO_LONG, message);
    return status ? out_of_memory(error) : TIDE_OK;
}

tide_status tide_line_skip(tide_manifest *manifest, tide_error *error) {
    tide_source *source = &manifest->source;
    for (;;) {
        if (tide_source_length(source) == 0) {
            tide_status status = tide_source_more(source, error);
            if (status) return status;
            if (tide_source_length(source) == 0) return TIDE_OK;
        }
        const char *end = memchr(tide_source_bytes(source), '\n', tide_source_length(source));
        if (end) {
            tide_source_consume(source, (size_t)(end - tide_source_bytes(source)) + 1);
            return TIDE_OK;
        }
        tide_source_consume(source, tide_source_length(source));
    }
}

static bool is_blank(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') return false;
    }
    return true;
}

static tide_status line_read(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    tide_source *source = &manifest->source;
    size_t searched = 0;
    const char *end = NULL;
    tide_status status;
    for (;;) {
        size_t length = tide_source_length(source);
        if (length > searched) end = memchr(tide_source_bytes(source) + searched, '\n', length - searched);
        if (end || source->is_at_end) break;
        searched = length;
        if (length > manifest->row_limit) {
            if ((status = long_row_refuse(manifest, batch, tide_source_bytes(source), length, true, error))) return status;
            if ((status = tide_line_skip(manifest, error))) return status;
            manifest->line++;
            return TIDE_OK;
        }
        if ((status = tide_source_more(source, error))) return status;
    }
    const char *text = tide_source_bytes(source);
    size_t consumed = end ? (size_t)(end - text) + 1 : tide_source_length(source);
    size_t length = end ? consumed - 1 : consumed;
    if (consumed == 0) return TIDE_END;
    if (length > manifest->row_limit) {
        status = long_row_refuse(manifest, batch, text, length, false, error);
    } else if (is_blank(text, length)) {
        status = TIDE_OK;
    } else {
        tide_span row;
        status = tide_row_take(batch, text, length, &row, error);
        if (!status) status = tide_json_read_row(manifest->json, manifest, batch, manifest->line + 1, row, error);
    }
    manifest->line++;
    tide_source_consume(source, consumed);
    return status;
}

// JSON array

static tide_status array_refuse(
    tide_manifest *manifest, tide_batch *batch, size_t length, tide_reject reject, const char *message, tide_error *error
) {
    tide_span source;
    size_t shown = length < shown_of_long_row ? length : shown_of_long_row;
    if (tide_batch_text_add(batch, tide_source_bytes(&manifest->source), shown, &source)) return out_of_memory(error);
    tide_status status = tide_batch_reject(batch, manifest->line + 1, source, shown < length, reject, message);
    return status ? out_of_memory(error) : TIDE_OK;
}

/// Where an element ends: follows strings and brackets, no more; what is inside is checked when it is parsed.
typedef struct element_scan {
    size_t at;
    uint64_t depth;
    bool in_string, after_backslash;
} element_scan;

/// True when the end was found: `at` is behind the element. Outside of brackets an element also ends before ',' and ']'.
static bool element_scan_on(element_scan *it, const char *text, size_t length) {
    for (; it->at < length; it->at++) {
        char c = text[it->at];
        if (it->in_string) {
            if (it->after_backslash) {
                it->after_backslash = false;
            } else if (c == '\\') {
                it->after_backslash = true;
            } else if (c == '"') {
                it->in_string = false;
            }
        } else if (c == '"') {
            it->in_string = true;
        } else if (c == '{' || c == '[') {
            it->depth++;
        } else if (c == ']' && it->depth == 0) {
            return true;
        } else if ((c == '}' || c == ']') && it->depth > 0) {
            if (--it->depth == 0) {
                it->at++;
                return true;
            }
        } else if (c == ',' && it->depth == 0) {
            return true;
        }
    }
    return false;
}

static void array_consume(tide_manifest *manifest, size_t length) {
    manifest->line += tide_count_lines(tide_source_bytes(&manifest->source), length);
    tide_source_consume(&manifest->source, length);
}

static tide_status element_read(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    tide_source *source = &manifest->source;
    element_scan scan = {0};
    bool is_refused = false, is_sequence = manifest->array_state == array_sequence;
    tide_status status;
    while (!element_scan_on(&scan, tide_source_bytes(source), tide_source_length(source))) {
        if (source->is_at_end) {
            if (!is_refused) {
                status = array_refuse(
                    manifest, batch, tide_source_length(source), TIDE_REJECT_MALFORMED, "the source ends within this row", error);
                if (status) return status;
            }
            array_consume(manifest, tide_source_length(source));
            manifest->array_state = array_after;
            return TIDE_OK;
        }
        if (!is_refused && tide_source_length(source) > manifest->row_limit) {
            is_refused = true;
            if ((status = long_row_refuse(
                     manifest, batch, tide_source_bytes(source), tide_source_length(source), true, error))) {
                return status;
            }
        }
        if (is_refused) {
            array_consume(manifest, scan.at);
            scan.at = 0;
        }
        if ((status = tide_source_more(source, error))) return status;
    }
    status = TIDE_OK;
    if (!is_refused) {
        tide_span row;
        if (scan.at > manifest->row_limit) {
            status = long_row_refuse(manifest, batch, tide_source_bytes(source), scan.at, false, error);
        } else {
            status = tide_row_take(batch, tide_source_bytes(source), scan.at, &row, error);
            if (!status) status = tide_json_read_row(manifest->json, manifest, batch, manifest->line + 1, row, error);
        }
    }
    array_consume(manifest, scan.at);
    manifest->array_state = is_sequence ? array_sequence : array_next;
    return status;
}

/// Refuses what stands up to the end of a line where an object should begin.
static tide_status line_refuse(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    const char *text = tide_source_bytes(&manifest->source);
    const char *end = memchr(text, '\n', tide_source_length(&manifest->source));
    size_t length = end ? (size_t)(end - text) : tide_source_length(&manifest->source);
    tide_status status = array_refuse(manifest, batch, length, TIDE_REJECT_MALFORMED, "an object is expected here", error);
    if (!status) status = tide_line_skip(manifest, error);
    manifest->line++;
    return status;
}

static tide_status wrapper_end(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    const char *fault;
    tide_status status = tide_json_wrapper_end(manifest, &fault, error);
    manifest->is_wrapped = false;
    if (!status && fault) status = array_refuse(manifest, batch, 0, TIDE_REJECT_MALFORMED, fault, error);
    return status ? status : TIDE_END;
}

static tide_status array_read(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    char byte;
    tide_status status = array_next_byte(manifest, &byte, error);
    if (status) return status;
    switch (manifest->array_state) {
    case array_before: return array_begin(manifest, error);
    case array_sequence:
        if (byte == 0) return TIDE_END;
        return byte == '{' ? element_read(manifest, batch, error) : line_refuse(manifest, batch, error);
    case array_first:
        if (byte == ']') break;
        if (byte == 0) goto unclosed;
        return element_read(manifest, batch, error);
    case array_next:
        if (byte == ']') break;
        if (byte == 0) goto unclosed;
        if (byte != ',') {
            status = array_refuse(
                manifest, batch, 1, TIDE_REJECT_MALFORMED, "a comma or ']' is missing before this place", error);
            return status ? status : element_read(manifest, batch, error);
        }
        tide_source_consume(&manifest->source, 1);
        if ((status = array_next_byte(manifest, &byte, error))) return status;
        if (byte == 0) goto unclosed;
        return element_read(manifest, batch, error);
    case array_after:
        if (manifest->is_wrapped) return wrapper_end(manifest, batch, error);
        if (byte == 0) return TIDE_END;
        status = array_refuse(
            manifest, batch, tide_source_length(&manifest->source), TIDE_REJECT_MALFORMED, "there is text after the array", error);
        while (!status && tide_source_length(&manifest->source) > 0) {
            tide_source_consume(&manifest->source, tide_source_length(&manifest->source));
            status = tide_source_more(&manifest->source, error);
        }
        return status;
    }
    tide_source_consume(&manifest->source, 1);
    manifest->array_state = array_after;
    return TIDE_OK;
unclosed:
    manifest->array_state = array_after;
    return array_refuse(manifest, batch, 0, TIDE_REJECT_MALFORMED, "the source ends before the array does", error);
}

// Names

static bool name_is_whole(const char *prefix, const char *name, size_t length) {
    uint8_t key[17];
    size_t prefix_length = strlen(prefix);
    if (length > prefix_length && memcmp(name, prefix, prefix_length) == 0) return true;
    return length == 36 && tide_name_encode(name, length, key) > 0;
}

tide_status tide_row_name(
    const tide_manifest *manifest, tide_batch *batch, uint32_t row, const char *name, size_t length, tide_error *error
) {
    const char *prefix = manifest->name_prefix;
    if (!prefix || length == 0 || length > 255 || name_is_whole(prefix, name, length)) {
        return tide_batch_row_name(batch, row, name, length, error);
    }
    char whole[512];
    size_t prefix_length = strlen(prefix);
    if (prefix_length + length > 255) {
        return tide_error_reject(
            error, TIDE_REJECT_BAD_NAME, "the record name is longer than 255 bytes with '%.100s' before it", prefix);
    }
    memcpy(whole, prefix, prefix_length);
    memcpy(whole + prefix_length, name, length);
    return tide_batch_row_name(batch, row, whole, prefix_length + length, error);
}

bool tide_name_qualify(const char *prefix, const char *name, size_t length, tide_text *qualified) {
    if (name_is_whole(prefix, name, length)) return false;
    tide_text_append(qualified, prefix, strlen(prefix));
    tide_text_append(qualified, name, length);
    return true;
}

const char *tide_identifier_fault(const char *name, size_t length) {
    if (length == 0) return "it is empty";
    if (length > 255) return "it is longer than 255 bytes";
    if (length >= 7 && strncasecmp(name, "sqlite_", 7) == 0) return "it begins with 'sqlite_', which SQLite keeps for itself";
    if (length >= 5 && strncasecmp(name, "tide_", 5) == 0) return "it begins with 'tide_', which the store keeps for itself";
    return "a name is a letter, then letters, digits or '_'";
}

tide_status tide_name_derive(const void *content, size_t length, char name[36]) {
    uint8_t digest[32];
#ifdef __APPLE__
    CC_SHA256(content, (CC_LONG)length, digest);
#else
    if (EVP_Digest(content, length, digest, NULL, EVP_sha256(), NULL) != 1) return TIDE_NO_MEMORY;
#endif
    digest[6] = (uint8_t)((digest[6] & 0x0f) | 0x80);
    digest[8] = (uint8_t)((digest[8] & 0x3f) | 0x80);
    tide_name_decode(digest, 16, name);
    return TIDE_OK;
}

typedef struct named_column {
    const char *name;
    size_t length;
    uint32_t column;
} named_column;

static int compare_columns(const void *a, const void *b) { return strcmp(((const named_column *)a)->name, ((const named_column *)b)->name); }

static void content_append(tide_text *content, const tide_batch *batch, const named_column *column, tide_cell cell) {
    uint8_t word[8];
    uint64_t bits = cell.kind == TIDE_KIND_INTEGER ? (uint64_t)cell.integer : 0;
    if (cell.kind == TIDE_KIND_REAL) memcpy(&bits, &cell.real, sizeof bits);
    bool is_text = cell.kind != TIDE_KIND_INTEGER && cell.kind != TIDE_KIND_REAL;
    if (is_text) bits = cell.length;
    for (int i = 0; i < 8; i++) word[i] = (uint8_t)(bits >> (8 * i));
    tide_text_append(content, column->name, column->length + 1);
    tide_text_append(content, &cell.kind, 1);
    tide_text_append(content, word, sizeof word);
    if (is_text) tide_text_append(content, tide_batch_text(batch, cell.offset), cell.length);
}

/// Gives a name to each live row that has none: of its type, and of its values in the order of their fields' names.
static tide_status batch_name(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    static const char prefix[] = "tidemark record name 1";
    uint32_t count = tide_batch_column_count(batch), rows = tide_batch_row_count(batch);
    named_column *columns = calloc(count + 1, sizeof *columns);
    tide_text content = {0};
    if (!columns) return out_of_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        columns[i].column = i;
        columns[i].name = tide_batch_column_name(batch, i, &columns[i].length);
    }
    qsort(columns, count, sizeof *columns, compare_columns);
    tide_status status = TIDE_OK;
    for (uint32_t row = 0; row < rows && !status; row++) {
        size_t length;
        bool is_blob;
        tide_batch_row_key(batch, row, &length, &is_blob);
        if (length > 0 || !tide_batch_row_is_live(batch, row)) continue;
        tide_text_clear(&content);
        tide_text_append(&content, prefix, sizeof prefix);
        tide_text_append(&content, manifest->type_name, strlen(manifest->type_name) + 1);
        for (uint32_t i = 0; i < count; i++) {
            tide_cell cell = tide_batch_cell(batch, row, columns[i].column);
            if (cell.kind > TIDE_KIND_NULL) content_append(&content, batch, &columns[i], cell);
        }
        char name[36];
        if (content.failed || tide_name_derive(content.bytes, content.length, name)) {
            status = out_of_memory(error);
        } else {
            status = tide_batch_row_name(batch, row, name, sizeof name, error);
        }
    }
    tide_text_free(&content);
    free(columns);
    return status;
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
    if (columns_declare(manifest, batch)) return out_of_memory(error);
    tide_status status = TIDE_OK;
    while (!status && !tide_batch_is_full(batch)) {
        switch (manifest->format) {
        case TIDE_FORMAT_CSV: status = tide_csv_read_row(manifest, batch, error); break;
        case TIDE_FORMAT_JSON_ARRAY: status = array_read(manifest, batch, error); break;
        default: status = line_read(manifest, batch, error); break;
        }
    }
    if (status && status != TIDE_END) return status;
    tide_status failure = tide_batch_infer_types(manifest, batch, error);
    if (!failure) failure = batch_name(manifest, batch, error);
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
    return status ? out_of_memory(error) : TIDE_OK;
}

tide_status tide_texts_read(
    const tide_manifest_options *options, const tide_field_text *texts, uint32_t count, tide_batch *batch, tide_error *error
) {
    tide_manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest) return out_of_memory(error);
    tide_status status = TIDE_OK;
    uint32_t row;
    if (options_copy(manifest, options) || columns_declare(manifest, batch)
        || tide_batch_row_add(batch, 1, (tide_span){0}, &row)) {
        status = out_of_memory(error);
    }
    for (uint32_t i = 0; i < count && !status; i++) status = text_set(batch, row, &texts[i], error);
    if (!status) status = tide_batch_infer_types(manifest, batch, error);
    tide_manifest_destroy(manifest);
    return status;
}
