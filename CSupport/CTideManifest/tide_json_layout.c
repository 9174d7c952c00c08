// How a JSON text that begins with '{' is laid out: an object on each line (JSON Lines), objects over several lines, or an object that
// has the rows in an array.

#include <string.h>

#include "tide_manifest_layout.h"

enum {
    /// The last place in a wrapper at which an array of objects may begin.
    wrapper_limit = 1 << 20,
    depth_limit = 64,
};

/// Follows a JSON text: strings and brackets, no more.
typedef struct structure {
    size_t at;
    uint32_t depth;
    /// A bit for each depth: whether its bracket is an array's.
    uint64_t arrays;
    bool in_string, after_backslash;
    /// The last character outside of strings that is no white space.
    char last;
} structure;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool in_array(const structure *it) { return it->depth > 0 && it->depth <= depth_limit && it->arrays >> (it->depth - 1) & 1; }

static void structure_step(structure *it, char c) {
    it->at++;
    if (it->in_string) {
        if (it->after_backslash) {
            it->after_backslash = false;
        } else if (c == '\\') {
            it->after_backslash = true;
        } else if (c == '"') {
            it->in_string = false;
        }
        return;
    }
    if (is_space(c)) return;
    it->last = c;
    if (c == '"') it->in_string = true;
    if (c == '{' || c == '[') {
        it->depth++;
        if (it->depth <= depth_limit) {
            uint64_t bit = (uint64_t)1 << (it->depth - 1);
            it->arrays = c == '[' ? it->arrays | bit : it->arrays & ~bit;
        }
    }
    if ((c == '}' || c == ']') && it->depth > 0) it->depth--;
}

/// What the beginning of a source says of its layout.
typedef struct survey {
    bool is_complete, spans_lines, is_broken, is_followed, has_rows;
    /// The place behind the '[' of the first array of objects that is a member of the object.
    size_t rows_at;
} survey;

/// Finds the next character that is no white space from `*at` on; 0 at the source's end, or behind the row's limit.
static tide_status next_character(tide_manifest *manifest, size_t *at, char *c, tide_error *error) {
    tide_source *source = &manifest->source;
    for (;; ++*at) {
        if (*at >= tide_source_length(source)) {
            *c = 0;
            if (source->is_at_end || *at > manifest->row_limit) return TIDE_OK;
            tide_status status = tide_source_more(source, error);
            if (status) return status;
            if (*at >= tide_source_length(source)) return TIDE_OK;
        }
        *c = tide_source_bytes(source)[*at];
        if (!is_space(*c)) return TIDE_OK;
    }
}

/// Whether a line may end here within an object, if the next one begins with `next`. Otherwise the line is a broken row.
static bool may_break(const structure *it, char next) {
    if (it->in_string) return false;
    bool begins = it->last == '{' || it->last == '[' || it->last == ',';
    if (begins) return in_array(it) || next == '"' || next == '}';
    if (it->last == ':') return next != '{' && next != 0;
    return next == '}' || next == ']' || next == ',' || next == ':';
}

static tide_status source_survey(tide_manifest *manifest, survey *found, tide_error *error) {
    tide_source *source = &manifest->source;
    structure it = {0};
    *found = (survey){0};
    char c;
    tide_status status = next_character(manifest, &it.at, &c, error);
    if (status) return status;
    for (;;) {
        if (it.at >= tide_source_length(source)) {
            bool is_enough = it.at > wrapper_limit && (found->spans_lines || it.at > manifest->row_limit);
            if (source->is_at_end || is_enough) return TIDE_OK;
            if ((status = tide_source_more(source, error))) return status;
            continue;
        }
        c = tide_source_bytes(source)[it.at];
        if (c == '\n' && !found->spans_lines) {
            size_t next = it.at;
            char follows;
            if ((status = next_character(manifest, &next, &follows, error))) return status;
            found->spans_lines = true;
            found->is_broken = !may_break(&it, follows);
            if (found->is_broken) return TIDE_OK;
        }
        structure_step(&it, c);
        if (c == '[' && it.depth == 2 && in_array(&it) && !it.in_string && !found->has_rows && it.at <= wrapper_limit) {
            size_t next = it.at;
            char follows;
            if ((status = next_character(manifest, &next, &follows, error))) return status;
            found->has_rows = follows == '{';
            found->rows_at = it.at;
        }
        if (it.depth == 0) {
            found->is_complete = true;
            size_t next = it.at;
            if ((status = next_character(manifest, &next, &c, error))) return status;
            found->is_followed = c == '{';
            return TIDE_OK;
        }
        if (found->spans_lines && it.at > wrapper_limit) return TIDE_OK;
    }
}

tide_status tide_json_layout_detect(tide_manifest *manifest, bool lines_are_meant, tide_error *error) {
    survey found;
    tide_status status = source_survey(manifest, &found, error);
    if (status) return status;
    bool is_lines = found.is_broken || (!found.spans_lines && (lines_are_meant || !found.has_rows || found.is_followed));
    if (is_lines) {
        manifest->format = TIDE_FORMAT_JSON_LINES;
        return TIDE_OK;
    }
    manifest->format = TIDE_FORMAT_JSON_ARRAY;
    manifest->array_state = array_sequence;
    if (found.has_rows && !(found.is_complete && found.is_followed)) {
        manifest->is_wrapped = true;
        manifest->array_state = array_first;
        manifest->line += tide_count_lines(tide_source_bytes(&manifest->source), found.rows_at);
        tide_source_consume(&manifest->source, found.rows_at);
    }
    return TIDE_OK;
}

tide_status tide_json_wrapper_end(tide_manifest *manifest, const char **fault, uint64_t *line, tide_error *error) {
    tide_source *source = &manifest->source;
    structure it = {.depth = 1};
    bool after_bracket = false;
    *fault = NULL;
    for (;;) {
        if (tide_source_length(source) == 0) {
            tide_status status = tide_source_more(source, error);
            if (status) return status;
            if (tide_source_length(source) == 0) break;
        }
        const char *text = tide_source_bytes(source);
        size_t length = tide_source_length(source);
        for (size_t i = 0; i < length; i++) {
            char c = text[i];
            bool was_in_string = it.in_string;
            if (!*fault) *line = manifest->line;
            if (it.depth == 0 && !is_space(c) && !*fault) *fault = "there is text after the object";
            if (after_bracket && !is_space(c)) {
                if (c == '{' && !*fault) {
                    *fault = "the object has a second array of objects, which is not imported: take it out first, as with jq '.NAME'";
                }
                after_bracket = false;
            }
            if (it.depth > 0 || *fault == NULL) structure_step(&it, c);
            if (c == '[' && !was_in_string && it.depth == 2) after_bracket = true;
            if (c == '\n') manifest->line++;
        }
        tide_source_consume(source, length);
    }
    if (it.depth > 0 && !*fault) {
        *fault = "the source ends before its object does";
        *line = manifest->line;
    }
    return TIDE_OK;
}
