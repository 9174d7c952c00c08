// CSV as RFC 4180 defines it, with any delimiter, and after a byte order mark: rows of cells, separated by delimiters and line ends. A
// cell that begins with a quote ends with one, and may hold delimiters, line ends and doubled quotes.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide_manifest_layout.h"
#include "tide_utf8.h"

enum { column_limit = TIDE_BATCH_COLUMN_LIMIT };

/// One cell in the row's text, quotes left out.
typedef struct csv_cell {
    size_t start, end;
    bool is_quoted, has_doubled_quotes;
} csv_cell;

/// Scans the next cell from `*at`. TIDE_END when more text is needed to find the cell's end.
static tide_status cell_scan(
    char delimiter, const char *text, size_t length, bool is_last, size_t *at, csv_cell *cell, bool *ends_row, tide_error *error
) {
    *cell = (csv_cell){.start = *at};
    *ends_row = false;
    size_t i = *at;
    if (i < length && text[i] == '"') {
        cell->is_quoted = true;
        cell->start = ++i;
        for (;;) {
            const char *quote = memchr(text + i, '"', length - i);
            if (!quote) {
                if (!is_last) return TIDE_END;
                return tide_error_reject(error, TIDE_REJECT_MALFORMED, "a quote is not closed");
            }
            i = (size_t)(quote - text) + 1;
            if (i == length && !is_last) return TIDE_END;
            if (i == length || text[i] != '"') break;
            cell->has_doubled_quotes = true;
            i++;
        }
        cell->end = i - 1;
        if (i < length && text[i] == '\r' && i + 1 == length && !is_last) return TIDE_END;
        if (i < length && text[i] != delimiter && text[i] != '\n' && !(text[i] == '\r' && (i + 1 == length || text[i + 1] == '\n'))) {
            return tide_error_reject(error, TIDE_REJECT_MALFORMED, "there is text after the closing quote of a cell");
        }
    } else {
        while (i < length && text[i] != delimiter && text[i] != '\n' && text[i] != '"') i++;
        if (i < length && text[i] == '"') {
            return tide_error_reject(error, TIDE_REJECT_MALFORMED, "there is a quote inside a cell that is not quoted");
        }
        if (i == length && !is_last) return TIDE_END;
        cell->end = i > cell->start && (i == length || text[i] == '\n') && text[i - 1] == '\r' ? i - 1 : i;
        if (i < length && text[i] == delimiter) cell->end = i;
    }
    while (i < length && text[i] != delimiter && text[i] != '\n') i++;
    *ends_row = i >= length || text[i] == '\n';
    *at = i < length ? i + 1 : i;
    return TIDE_OK;
}

/// Finds the end of the line on which a refused row begins, its line end included, and reads on as far as a row may be long.
static tide_status first_line_find(tide_manifest *manifest, size_t *length, bool *goes_on, tide_error *error) {
    tide_source *source = &manifest->source;
    for (;;) {
        const char *text = tide_source_bytes(source);
        size_t available = tide_source_length(source);
        const char *end = memchr(text, '\n', available);
        *length = end ? (size_t)(end - text) + 1 : available;
        *goes_on = !end && !source->is_at_end;
        if (!*goes_on || available > manifest->row_limit) return TIDE_OK;
        tide_status status = tide_source_more(source, error);
        if (status) return status;
    }
}

/// Finds the end of the row that begins at the source's next byte, reading on as needed. When it is no row, `*is_refused` is set, with the reason.
/// Then `*length` covers the first line only, so that lines behind a stray quote are read again as rows. If that line is longer than a row may be,
/// and the buffer does not have all of it, `*goes_on` is set. Any status but TIDE_OK is an error of the whole source, such as damaged compression.
static tide_status row_find(
    tide_manifest *manifest, size_t *length, size_t *cells, bool *is_refused, bool *goes_on, tide_error *reason, tide_error *error
) {
    tide_source *source = &manifest->source;
    size_t at = 0, count = 0;
    *is_refused = *goes_on = false;
    for (;;) {
        const char *text = tide_source_bytes(source);
        size_t available = tide_source_length(source);
        bool ends_row = false;
        tide_status status = TIDE_OK;
        while (!ends_row && !status) {
            csv_cell cell;
            status = cell_scan(manifest->delimiter, text, available, source->is_at_end, &at, &cell, &ends_row, reason);
            if (!status) count++;
        }
        if (status == TIDE_OK) {
            *length = at;
            *cells = count;
            if (at <= manifest->row_limit) return TIDE_OK;
            status = tide_error_reject(
                reason, TIDE_REJECT_TOO_LONG, "the row is longer than %zu bytes", manifest->row_limit);
        } else if (status == TIDE_END && available > manifest->row_limit) {
            status = tide_error_reject(
                reason, TIDE_REJECT_TOO_LONG, "the row is longer than %zu bytes; is a quote not closed?", manifest->row_limit);
        }
        if (status == TIDE_REJECTED) {
            *is_refused = true;
            return first_line_find(manifest, length, goes_on, error);
        }
        // Twice as much each time, because the unfinished cell is scanned again.
        if ((status = tide_source_fill(source, 2 * available + 1, error))) return status;
    }
}

// Header

static bool names_collide(const tide_csv_column *column, const char *other) {
    return tide_identifiers_collide(column->name, column->length, other, strlen(other));
}

static tide_status refuse_spelling(
    tide_error *error, const tide_csv_column *column, uint32_t index, const char *what, const char *other
) {
    return tide_error_reject(
        error, TIDE_REJECT_BAD_IDENTIFIER,
        "line 1: column %u, '%.100s', differs from %s '%.100s' by the case of letters only; give it that name, or another one, with --map "
        "'%.100s=NAME'",
        index + 1, column->name, what, other, column->name);
}

static tide_status column_check(const tide_manifest *manifest, uint32_t index, size_t cells, tide_error *error) {
    const tide_csv_column *column = &manifest->csv_columns[index];
    if (!column->is_name && !tide_identifier_is_valid(column->name, column->length)) {
        if (column->length == 0) {
            return tide_error_reject(
                error, TIDE_REJECT_BAD_IDENTIFIER, "line 1: column %u has no name; give it one in the file", index + 1);
        }
        const char *separator = strpbrk(column->name, manifest->delimiter == ',' ? ";\t" : manifest->delimiter == ';' ? ",\t" : ",;");
        if (cells == 1 && separator) {
            return tide_error_reject(
                error, TIDE_REJECT_BAD_IDENTIFIER,
                "line 1: the only column is '%.100s'; if %s separate columns, add --delimiter %s",
                column->name, *separator == ';' ? "semicolons" : *separator == '\t' ? "tabs" : "commas",
                *separator == ';' ? "';'" : *separator == '\t' ? "tab" : "','");
        }
        return tide_error_reject(
            error, TIDE_REJECT_BAD_IDENTIFIER,
            "line 1: column %u, '%.100s', cannot name a field: %s; give it another name with --map '%.100s=NAME'",
            index + 1, column->name, tide_identifier_fault(column->name, column->length), column->name);
    }
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(manifest->csv_columns[i].name, column->name) == 0) {
            return tide_error_reject(
                error, TIDE_REJECT_DUPLICATE_KEY, "line 1: columns %u and %u have the same name, '%.100s'", i + 1, index + 1,
                column->name);
        }
        if (names_collide(column, manifest->csv_columns[i].name)) {
            return refuse_spelling(error, column, index, "the column", manifest->csv_columns[i].name);
        }
    }
    for (uint32_t i = 0; i < manifest->shape_count; i++) {
        if (names_collide(column, manifest->shape[i].name)) {
            return refuse_spelling(error, column, index, "the field", manifest->shape[i].name);
        }
    }
    return names_collide(column, manifest->name_field)
               ? refuse_spelling(error, column, index, "the field of the record names,", manifest->name_field)
               : TIDE_OK;
}

static tide_status header_parse(tide_manifest *manifest, const char *text, size_t length, size_t cells, tide_error *error) {
    if (cells > column_limit) {
        return tide_error_reject(
            error, TIDE_REJECT_TOO_MANY_FIELDS, "line 1: %zu columns; at most %d are possible", cells, column_limit);
    }
    if (!(manifest->csv_columns = calloc(cells, sizeof *manifest->csv_columns))) {
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    size_t at = 0;
    bool has_name = false;
    for (size_t i = 0; i < cells; i++) {
        csv_cell cell;
        bool ends_row;
        tide_status status = cell_scan(manifest->delimiter, text, length, true, &at, &cell, &ends_row, error);
        if (status) return status;
        const char *name = text + cell.start;
        size_t name_length = cell.end - cell.start;
        tide_manifest_rename(manifest, &name, &name_length);
        tide_csv_column *column = &manifest->csv_columns[manifest->csv_column_count];
        *column = (tide_csv_column){.name = strndup(name, name_length), .length = name_length};
        if (!column->name) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        manifest->csv_column_count++;
        column->is_name =
            name_length == manifest->name_field_length && memcmp(name, manifest->name_field, name_length) == 0;
        has_name = has_name || column->is_name;
        for (uint32_t j = 0; j < manifest->shape_count; j++) {
            tide_shape_field *field = &manifest->shape[j];
            if (field->length == name_length && memcmp(field->name, name, name_length) == 0) field->has_occurred = true;
        }
        if ((status = column_check(manifest, (uint32_t)i, cells, error))) return status;
    }
    if (manifest->name_is_required && !has_name) {
        return tide_error_reject(
            error, TIDE_REJECT_MISSING_NAME, "line 1: there is no column '%.100s' for the record names", manifest->name_field);
    }
    return TIDE_OK;
}

tide_status tide_csv_read_header(tide_manifest *manifest, tide_error *error) {
    tide_error reason;
    size_t length, cells;
    bool is_refused, goes_on;
    tide_status status = tide_source_fill(&manifest->source, 1, error);
    if (status) return status;
    if (tide_source_length(&manifest->source) == 0) {
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "the source is empty: a CSV begins with a row of column names");
    }
    status = row_find(manifest, &length, &cells, &is_refused, &goes_on, &reason, error);
    if (status) return status;
    if (is_refused) return tide_error_reject(error, reason.reject, "line 1: %s", reason.message);
    const char *text = tide_source_bytes(&manifest->source);
    if (!tide_utf8_is_valid(text, length)) {
        return tide_error_reject(
            error, TIDE_REJECT_INVALID_UTF8,
            "line 1: the column names are not valid UTF-8; --encoding names another encoding (windows-1252, latin-1, …)");
    }
    if ((status = header_parse(manifest, text, length, cells, error))) return status;
    manifest->line += tide_count_lines(text, length);
    tide_source_consume(&manifest->source, length);
    return TIDE_OK;
}

// Rows

/// Whether a text is a spreadsheet's formula behind one or more apostrophes. An export writes one of them, as other programs do, so that
/// no spreadsheet runs the formula.
static bool is_formula_behind_apostrophe(const char *text, size_t length) {
    if (length < 2 || text[0] != '\'') return false;
    size_t i = 1;
    while (i < length && text[i] == '\'') i++;
    if (i == length) return false;
    if (memchr("=+-@\t\r\n", text[i], 7)) return true;
    // U+FF1D, U+FF0B, U+FF0D, U+FF20.
    return length - i >= 3 && text[i] == '\xef' && text[i + 1] == '\xbc' && memchr("\x9d\x8b\x8d\xa0", text[i + 2], 4);
}

/// Reads the value of a cell. An empty cell without quotes has no value. Doubled quotes become single ones, in a copy.
static tide_status cell_value(tide_batch *batch, tide_span row, const csv_cell *cell, tide_cell *value) {
    uint32_t length = (uint32_t)(cell->end - cell->start);
    if (!cell->is_quoted && length == 0) {
        *value = (tide_cell){.kind = TIDE_KIND_NULL};
        return TIDE_OK;
    }
    *value = (tide_cell){.kind = TIDE_KIND_RAW_TEXT, .offset = row.offset + cell->start, .length = length};
    if (is_formula_behind_apostrophe(tide_batch_text(batch, value->offset), length)) {
        value->offset++;
        value->length = --length;
    }
    if (!cell->has_doubled_quotes) return TIDE_OK;
    char *room = tide_batch_text_reserve(batch, length);
    if (!room) return TIDE_NO_MEMORY;
    const char *text = tide_batch_text(batch, value->offset);
    size_t out = 0;
    for (size_t i = 0; i < length; i++) {
        room[out++] = text[i];
        if (text[i] == '"') i++;
    }
    tide_span span = tide_batch_text_commit(batch, out);
    value->offset = span.offset;
    value->length = span.length;
    return TIDE_OK;
}

static tide_status cell_take(
    tide_manifest *manifest, tide_batch *batch, uint32_t row, uint32_t index, tide_cell value, tide_error *error
) {
    const tide_csv_column *column = &manifest->csv_columns[index];
    if (value.kind == TIDE_KIND_RAW_TEXT && memchr(tide_batch_text(batch, value.offset), 0, value.length)) {
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "a cell holds the character NUL, which cannot be stored");
    }
    if (column->is_name) {
        // Copied, because naming the row adds to the arena that has the text.
        char name[256];
        size_t length = value.kind == TIDE_KIND_NULL ? 0 : value.length;
        if (length < sizeof name) memcpy(name, tide_batch_text(batch, value.offset), length);
        return tide_row_name(manifest, batch, row, name, length, error);
    }
    uint32_t place;
    tide_status status = tide_batch_column(batch, column->name, column->length, &place, NULL);
    if (!status) status = tide_batch_row_set(batch, place, value);
    return status ? tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory") : TIDE_OK;
}

static tide_status row_parse(
    tide_manifest *manifest, tide_batch *batch, uint32_t row, tide_span source, size_t cells, uint32_t *column, tide_error *error
) {
    if (!tide_utf8_is_valid(tide_batch_text(batch, source.offset), source.length)) {
        return tide_error_reject(error, TIDE_REJECT_INVALID_UTF8, "the row is not valid UTF-8; --encoding names another");
    }
    if (cells != manifest->csv_column_count) {
        return tide_error_reject(
            error, TIDE_REJECT_RAGGED, "the row has %zu cells; the header has %u", cells, manifest->csv_column_count);
    }
    size_t at = 0;
    for (*column = 0; *column < cells; ++*column) {
        csv_cell cell;
        bool ends_row;
        tide_cell value;
        tide_status status =
            cell_scan(
                manifest->delimiter, tide_batch_text(batch, source.offset), source.length, true, &at, &cell, &ends_row, error);
        if (status) return status;
        if (cell_value(batch, source, &cell, &value)) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        if ((status = cell_take(manifest, batch, row, *column, value, error))) return status;
    }
    return TIDE_OK;
}

tide_status tide_csv_read_row(tide_manifest *manifest, tide_batch *batch, tide_error *error) {
    tide_source *input = &manifest->source;
    tide_status status = tide_source_fill(input, 1, error);
    if (status) return status;
    if (tide_source_length(input) == 0) return TIDE_END;
    tide_error reason = {0};
    size_t length, cells = 0;
    bool is_refused, goes_on;
    status = row_find(manifest, &length, &cells, &is_refused, &goes_on, &reason, error);
    if (status) return status;
    const char *text = tide_source_bytes(input);
    bool is_blank = !is_refused && (text[0] == '\n' || (length == 2 && text[0] == '\r' && text[1] == '\n'));
    if (!is_blank || manifest->csv_column_count == 1) {
        bool is_cut = goes_on;
        tide_span source;
        size_t kept = length;
        if (is_refused && kept > 64 * 1024) {
            kept = 64 * 1024;
            is_cut = true;
        }
        if ((status = tide_row_take(batch, text, kept, &source, error))) return status;
        uint64_t line = manifest->line + 1;
        if (is_refused) {
            status = tide_batch_reject(batch, line, source, is_cut, reason.reject, reason.message);
            if (status) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        } else {
            uint32_t row, column = 0;
            if (tide_batch_row_add(batch, line, source, &row)) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
            status = row_parse(manifest, batch, row, source, cells, &column, &reason);
            if (status) {
                bool has_field = reason.status == TIDE_REJECTED && reason.reject != TIDE_REJECT_RAGGED &&
                                 reason.reject != TIDE_REJECT_INVALID_UTF8;
                const tide_csv_column *field = &manifest->csv_columns[has_field ? column : 0];
                status = tide_row_refuse(batch, row, field->name, has_field ? field->length : 0, &reason, error);
                if (status) return status;
            }
        }
    }
    manifest->line += tide_count_lines(tide_source_bytes(input), length);
    tide_source_consume(input, length);
    if (!goes_on) return TIDE_OK;
    manifest->line++;
    return tide_line_skip(manifest, error);
}
