// Where the rows of JSON Lines and of a JSON array begin and end.

#include <stdio.h>
#include <string.h>

#include "tide_json.h"
#include "tide_manifest_layout.h"

enum {
    /// Bytes of what is refused that a rejects file shows.
    shown_of_long_row = 64 << 10,
};

// JSON Lines

static tide_status long_row_refuse(
    tide_manifest *manifest, tide_batch *batch, const char *text, size_t length, bool is_cut, tide_error *error
) {
    tide_span source;
    char message[120];
    size_t shown = length < shown_of_long_row ? length : shown_of_long_row;
    snprintf(message, sizeof message, "the row is longer than %zu bytes", manifest->row_limit);
    if (tide_batch_text_add(batch, text, shown, &source)) return tide_out_of_memory(error);
    tide_status status =
        tide_batch_reject(batch, manifest->line + 1, source, is_cut || shown < length, TIDE_REJECT_TOO_LONG, message);
    return status ? tide_out_of_memory(error) : TIDE_OK;
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

tide_status tide_json_line_read(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
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

/// Consumes white space, and counts its lines. `*byte` is the next byte, or 0 at the end.
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

tide_status tide_json_array_begin(tide_manifest *manifest, tide_error *error) {
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

static tide_status array_refuse(
    tide_manifest *manifest, tide_batch *batch, size_t length, tide_reject reject, const char *message, tide_error *error
) {
    tide_span source;
    size_t shown = length < shown_of_long_row ? length : shown_of_long_row;
    if (tide_batch_text_add(batch, tide_source_bytes(&manifest->source), shown, &source)) return tide_out_of_memory(error);
    tide_status status = tide_batch_reject(batch, manifest->line + 1, source, shown < length, reject, message);
    return status ? tide_out_of_memory(error) : TIDE_OK;
}

/// Looks for the end of an element. It follows strings and brackets only; parsing checks the rest.
typedef struct element_scan {
    size_t at;
    uint64_t depth;
    bool in_string, after_backslash;
} element_scan;

/// Goes on with the scan. True when the end was found: then `at` is behind the element. Outside of brackets, ',' and ']' also end it.
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

/// Refuses the rest of a line where an object should begin.
static tide_status line_refuse(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    tide_status status = tide_source_fill(&manifest->source, shown_of_long_row + 1, error);
    if (status) return status;
    const char *text = tide_source_bytes(&manifest->source);
    const char *end = memchr(text, '\n', tide_source_length(&manifest->source));
    size_t length = end ? (size_t)(end - text) : tide_source_length(&manifest->source);
    status = array_refuse(manifest, batch, length, TIDE_REJECT_MALFORMED, "an object is expected here", error);
    if (!status) status = tide_line_skip(manifest, error);
    manifest->line++;
    return status;
}

static tide_status wrapper_end(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    const char *fault;
    uint64_t line;
    tide_status status = tide_json_wrapper_end(manifest, &fault, &line, error);
    manifest->array_state = array_closed;
    if (!status && fault && tide_batch_reject(batch, line + 1, (tide_span){0}, false, TIDE_REJECT_MALFORMED, fault)) {
        status = tide_out_of_memory(error);
    }
    return status ? status : TIDE_END;
}

tide_status tide_json_array_read(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    char byte;
    tide_status status = array_next_byte(manifest, &byte, error);
    if (status) return status;
    switch (manifest->array_state) {
    case array_before: return tide_json_array_begin(manifest, error);
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
        if ((status = tide_source_fill(&manifest->source, shown_of_long_row + 1, error))) return status;
        status = array_refuse(
            manifest, batch, tide_source_length(&manifest->source), TIDE_REJECT_MALFORMED, "there is text after the array", error);
        while (!status && tide_source_length(&manifest->source) > 0) {
            tide_source_consume(&manifest->source, tide_source_length(&manifest->source));
            status = tide_source_more(&manifest->source, error);
        }
        return status;
    case array_closed: return TIDE_END;
    }
    tide_source_consume(&manifest->source, 1);
    manifest->array_state = array_after;
    return TIDE_OK;
unclosed:
    manifest->array_state = array_after;
    return array_refuse(manifest, batch, 0, TIDE_REJECT_MALFORMED, "the source ends before the array does", error);
}
