#include "tide_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// Inlined: most values have some bytes only, and their digests are computed for every row that is read to be passed on.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tide_batch_layout.h"

_Static_assert(sizeof(tide_cell) == 16, "a cell is 16 bytes");

enum { parser_padding = 64, longest_name = 255 };

static bool grow(void **items, uint32_t *capacity, uint32_t needed, size_t item_size) {
    if (needed <= *capacity) return true;
    uint32_t larger = *capacity ? *capacity : 16;
    while (larger < needed) larger *= 2;
    void *moved = realloc(*items, (size_t)larger * item_size);
    if (!moved) return false;
    *items = moved;
    *capacity = larger;
    return true;
}

tide_status tide_batch_create(uint32_t row_limit, size_t byte_limit, tide_batch **batch) {
    *batch = NULL;
    tide_batch *created = calloc(1, sizeof *created);
    if (!created) return TIDE_NO_MEMORY;
    created->row_limit = row_limit;
    created->byte_limit = byte_limit;
    *batch = created;
    return TIDE_OK;
}

static void columns_clear(tide_batch *batch) {
    for (uint32_t i = 0; i < batch->column_count; i++) {
        free(batch->columns[i].name);
        free(batch->columns[i].cells);
    }
    batch->column_count = 0;
}

void tide_batch_destroy(tide_batch *batch) {
    if (!batch) return;
    columns_clear(batch);
    free(batch->columns);
    free(batch->rows);
    free(batch->rejections);
    free(batch->text);
    free(batch);
}

void tide_batch_reset(tide_batch *batch) {
    columns_clear(batch);
    if (batch->text_capacity > 2 * batch->byte_limit) {
        free(batch->text);
        batch->text = NULL;
        batch->text_capacity = 0;
    }
    batch->text_length = 0;
    batch->row_count = batch->live_count = batch->rejection_count = 0;
    batch->next_column = 0;
    batch->may_need_composing = false;
}

bool tide_batch_is_full(const tide_batch *batch) {
    // A cell for each field of each row: the next row may make a column that is empty so far as long as the batch.
    size_t cells = (size_t)batch->column_count * batch->row_count * sizeof(tide_cell);
    size_t bytes = batch->text_length + cells + (size_t)batch->rejection_count * sizeof(tide_rejection);
    return batch->row_count + batch->rejection_count >= batch->row_limit || bytes >= batch->byte_limit;
}

uint32_t tide_batch_row_count(const tide_batch *batch) { return batch->row_count; }
uint32_t tide_batch_live_count(const tide_batch *batch) { return batch->live_count; }

// Text

char *tide_batch_text_reserve(tide_batch *batch, size_t length) {
    size_t needed = batch->text_length + length + parser_padding;
    if (needed > UINT32_MAX) return NULL;
    if (needed > batch->text_capacity) {
        size_t larger = batch->text_capacity ? batch->text_capacity : 4 * 1024;
        while (larger < needed) larger += larger / 2;
        char *moved = realloc(batch->text, larger);
        if (!moved) return NULL;
        batch->text = moved;
        batch->text_capacity = larger;
    }
    return batch->text + batch->text_length;
}

tide_span tide_batch_text_commit(tide_batch *batch, size_t length) {
    tide_span span = {(uint32_t)batch->text_length, (uint32_t)length};
    batch->text_length += length;
    return span;
}

tide_status tide_batch_text_add(tide_batch *batch, const void *bytes, size_t length, tide_span *span) {
    char *room = tide_batch_text_reserve(batch, length);
    if (!room) return TIDE_NO_MEMORY;
    if (length) memcpy(room, bytes, length);
    *span = tide_batch_text_commit(batch, length);
    return TIDE_OK;
}

const char *tide_batch_text(const tide_batch *batch, size_t offset) { return batch->text ? batch->text + offset : ""; }

// Columns

static bool column_has_name(const tide_column *column, const char *name, size_t length) {
    return column->name_length == length && memcmp(column->name, name, length) == 0;
}

static bool column_find(tide_batch *batch, const char *name, size_t length, uint32_t *column) {
    uint32_t guess = batch->next_column < batch->column_count ? batch->next_column : 0;
    for (uint32_t i = 0; i < batch->column_count; i++) {
        uint32_t index = guess + i < batch->column_count ? guess + i : guess + i - batch->column_count;
        if (column_has_name(&batch->columns[index], name, length)) {
            batch->next_column = index + 1;
            *column = index;
            return true;
        }
    }
    return false;
}

tide_status tide_batch_source_column(
    tide_batch *batch, const char *name, size_t length, const char *name_field, uint32_t *column, tide_error *error
) {
    if (column_find(batch, name, length, column)) return TIDE_OK;
    const char *other = tide_identifiers_collide(name, length, name_field, strlen(name_field)) ? name_field : NULL;
    for (uint32_t i = 0; i < batch->column_count && !other; i++) {
        const tide_column *it = &batch->columns[i];
        if (tide_identifiers_collide(name, length, it->name, it->name_length)) other = it->name;
    }
    if (other) {
        return tide_error_reject(
            error, TIDE_REJECT_BAD_IDENTIFIER,
            "'%.*s' differs from the field '%.100s' by the case of letters only; give it that name, or another one, with --map",
            (int)(length < 100 ? length : 100), name, other);
    }
    return tide_batch_column(batch, name, length, column, error);
}

tide_status tide_batch_column(tide_batch *batch, const char *name, size_t length, uint32_t *column, tide_error *error) {
    if (column_find(batch, name, length, column)) return TIDE_OK;
    if (!tide_identifier_is_valid(name, length)) {
        return tide_error_reject(
            error, TIDE_REJECT_BAD_IDENTIFIER,
            "'%.*s' cannot name a field: a letter, then letters, digits or '_'; give it another name with --map",
            (int)(length < 100 ? length : 100), name);
    }
    if (batch->column_count >= TIDE_BATCH_COLUMN_LIMIT) {
        return tide_error_reject(
            error, TIDE_REJECT_TOO_MANY_FIELDS, "there are more than %d fields", TIDE_BATCH_COLUMN_LIMIT);
    }
    char *copy = malloc(length + 1);
    if (!copy || !grow((void **)&batch->columns, &batch->column_capacity, batch->column_count + 1, sizeof(tide_column))) {
        free(copy);
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    memcpy(copy, name, length);
    copy[length] = 0;
    batch->columns[batch->column_count] = (tide_column){.name = copy, .name_length = (uint32_t)length};
    *column = batch->column_count++;
    batch->next_column = batch->column_count;
    return TIDE_OK;
}

uint32_t tide_batch_column_count(const tide_batch *batch) { return batch->column_count; }

const char *tide_batch_column_name(const tide_batch *batch, uint32_t column, size_t *length) {
    *length = batch->columns[column].name_length;
    return batch->columns[column].name;
}

tide_type tide_batch_column_type(const tide_batch *batch, uint32_t column) { return (tide_type)batch->columns[column].type; }

void tide_batch_column_set_type(tide_batch *batch, uint32_t column, tide_type type) { batch->columns[column].type = type; }

bool tide_batch_column_is_used(const tide_batch *batch, uint32_t column) {
    const tide_column *it = &batch->columns[column];
    for (uint32_t i = 0; i < it->count; i++) {
        if (it->cells[i].kind > TIDE_KIND_NULL && !batch->rows[it->first_row + i].is_rejected) return true;
    }
    return false;
}

// Rows

tide_status tide_batch_row_add(tide_batch *batch, uint64_t line, tide_span source, uint32_t *row) {
    if (!grow((void **)&batch->rows, &batch->row_capacity, batch->row_count + 1, sizeof(tide_row))) return TIDE_NO_MEMORY;
    batch->rows[batch->row_count] = (tide_row){.line = line, .source = source};
    *row = batch->row_count++;
    batch->live_count++;
    batch->next_column = 0;
    return TIDE_OK;
}

/// Sets a cell beyond the column's end.
static tide_status cell_put(tide_column *column, uint32_t place, tide_cell cell) {
    if (!grow((void **)&column->cells, &column->capacity, place + 1, sizeof(tide_cell))) return TIDE_NO_MEMORY;
    while (column->count < place) column->cells[column->count++] = (tide_cell){.kind = TIDE_KIND_ABSENT};
    column->cells[column->count++] = cell;
    return TIDE_OK;
}

tide_status tide_batch_row_set(tide_batch *batch, uint32_t index, tide_cell cell) {
    tide_column *column = &batch->columns[index];
    uint32_t row = batch->row_count - 1;
    if (column->count == 0) column->first_row = row;
    uint32_t place = row - column->first_row;
    if (place < column->count) {
        if (column->cells[place].kind != TIDE_KIND_ABSENT) return TIDE_REJECTED;
        column->cells[place] = cell;
        return TIDE_OK;
    }
    return cell_put(column, place, cell);
}

tide_status tide_batch_row_complete(tide_batch *batch, uint32_t row, uint32_t earlier, uint64_t seed) {
    for (uint32_t i = 0; i < batch->column_count; i++) {
        tide_column *column = &batch->columns[i];
        tide_cell cell = tide_column_cell(column, earlier);
        if (cell.kind == TIDE_KIND_ABSENT || tide_column_cell(column, row).kind != TIDE_KIND_ABSENT) continue;
        // The column has the earlier row, so it begins before this one.
        uint32_t place = row - column->first_row;
        if (place < column->count) {
            column->cells[place] = cell;
        } else if (cell_put(column, place, cell)) {
            return TIDE_NO_MEMORY;
        }
        batch->rows[row].digest += tide_cell_digest(batch, cell, tide_field_seed(seed, column->name, column->name_length));
    }
    return TIDE_OK;
}

tide_status tide_batch_cell_set(tide_batch *batch, uint32_t row, uint32_t index, tide_cell cell) {
    tide_column *column = &batch->columns[index];
    if (column->count == 0) column->first_row = row;
    if (row < column->first_row) {
        uint32_t before = column->first_row - row;
        if (!grow((void **)&column->cells, &column->capacity, column->count + before, sizeof(tide_cell))) return TIDE_NO_MEMORY;
        memmove(column->cells + before, column->cells, column->count * sizeof(tide_cell));
        for (uint32_t i = 0; i < before; i++) column->cells[i] = (tide_cell){.kind = TIDE_KIND_ABSENT};
        column->first_row = row;
        column->count += before;
    }
    uint32_t place = row - column->first_row;
    if (place >= column->count) return cell_put(column, place, cell);
    column->cells[place] = cell;
    return TIDE_OK;
}

void tide_batch_cell_replace(tide_batch *batch, uint32_t row, uint32_t index, tide_cell cell) {
    tide_column *column = &batch->columns[index];
    if (row >= column->first_row && row - column->first_row < column->count) column->cells[row - column->first_row] = cell;
}

tide_cell tide_batch_cell(const tide_batch *batch, uint32_t row, uint32_t column) {
    return tide_column_cell(&batch->columns[column], row);
}

bool tide_batch_may_need_composing(const tide_batch *batch) { return batch->may_need_composing; }

tide_status tide_batch_row_name(tide_batch *batch, uint32_t row, const char *name, size_t length, tide_error *error) {
    if (length == 0) return tide_error_reject(error, TIDE_REJECT_MISSING_NAME, "the record name is empty");
    if (length > longest_name) {
        return tide_error_reject(
            error, TIDE_REJECT_BAD_NAME, "the record name has %zu bytes; at most %d are allowed", length, longest_name);
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) {
            return tide_error_reject(error, TIDE_REJECT_BAD_NAME, "the record name has a control character at byte %zu", i);
        }
    }
    batch->may_need_composing |= tide_text_may_need_composing(name, length);
    uint8_t key[17];
    size_t encoded = tide_name_encode(name, length, key);
    tide_row *it = &batch->rows[row];
    it->key_is_blob = encoded > 0;
    if (tide_batch_text_add(batch, encoded ? (const void *)key : name, encoded ? encoded : length, &it->key)) {
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    return TIDE_OK;
}

const char *tide_batch_row_key(const tide_batch *batch, uint32_t row, size_t *length, bool *is_blob) {
    *length = batch->rows[row].key.length;
    *is_blob = batch->rows[row].key_is_blob;
    return tide_batch_text(batch, batch->rows[row].key.offset);
}

tide_status tide_batch_row_from_cloud(
    tide_batch *batch, uint32_t row, const char *tag, size_t tag_length, const char *edited, size_t edited_length
) {
    tide_span tag_span = {0}, edited_span = {0};
    if (tide_batch_text_add(batch, tag, tag_length, &tag_span)) return TIDE_NO_MEMORY;
    if (edited && tide_batch_text_add(batch, edited, edited_length, &edited_span)) return TIDE_NO_MEMORY;
    batch->rows[row].tag = tag_span;
    batch->rows[row].edited = edited_span;
    batch->rows[row].has_edited = edited != NULL;
    batch->rows[row].is_from_cloud = true;
    return TIDE_OK;
}

uint64_t tide_batch_row_line(const tide_batch *batch, uint32_t row) { return batch->rows[row].line; }
tide_span tide_batch_row_source(const tide_batch *batch, uint32_t row) { return batch->rows[row].source; }
bool tide_batch_row_is_live(const tide_batch *batch, uint32_t row) { return !batch->rows[row].is_rejected; }

static tide_status rejection_add(tide_batch *batch, tide_rejection rejection, const char *message) {
    if (!grow((void **)&batch->rejections, &batch->rejection_capacity, batch->rejection_count + 1, sizeof(tide_rejection))) {
        return TIDE_NO_MEMORY;
    }
    if (tide_batch_text_add(batch, message, strlen(message), &rejection.message)) return TIDE_NO_MEMORY;
    batch->rejections[batch->rejection_count++] = rejection;
    return TIDE_OK;
}

tide_status tide_batch_row_reject(
    tide_batch *batch, uint32_t row, const char *field, size_t field_length, tide_reject reject, const char *message
) {
    tide_row *it = &batch->rows[row];
    if (it->is_rejected) return TIDE_OK;
    tide_rejection rejection = {.reject = reject, .row = row, .line = it->line, .source = it->source};
    if (tide_batch_text_add(batch, field, field_length, &rejection.field)) return TIDE_NO_MEMORY;
    tide_status status = rejection_add(batch, rejection, message);
    if (status) return status;
    it->is_rejected = true;
    batch->live_count--;
    return TIDE_OK;
}

tide_status tide_batch_reject(
    tide_batch *batch, uint64_t line, tide_span source, bool source_is_cut, tide_reject reject, const char *message
) {
    tide_rejection rejection = {
        .reject = reject, .row = UINT32_MAX, .line = line, .source = source, .source_is_cut = source_is_cut};
    return rejection_add(batch, rejection, message);
}

uint32_t tide_batch_rejection_count(const tide_batch *batch) { return batch->rejection_count; }
tide_rejection tide_batch_rejection(const tide_batch *batch, uint32_t index) { return batch->rejections[index]; }

// Digests

uint64_t tide_field_seed(uint64_t seed, const char *name, size_t length) { return XXH3_64bits_withSeed(name, length, seed); }

uint64_t tide_value_digest_bytes(uint64_t field_seed, const void *bytes, size_t length) {
    return XXH3_64bits_withSeed(length ? bytes : "", length, field_seed);
}

static uint64_t digest_word(uint64_t field_seed, uint64_t word) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(word >> (8 * i));
    return XXH3_64bits_withSeed(bytes, sizeof bytes, field_seed);
}

uint64_t tide_value_digest_integer(uint64_t field_seed, int64_t value) { return digest_word(field_seed, (uint64_t)value); }

uint64_t tide_value_digest_real(uint64_t field_seed, double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return digest_word(field_seed, word);
}

uint64_t tide_cell_digest(const tide_batch *batch, tide_cell cell, uint64_t field_seed) {
    switch (cell.kind) {
    case TIDE_KIND_INTEGER: return tide_value_digest_integer(field_seed, cell.integer);
    case TIDE_KIND_REAL: return tide_value_digest_real(field_seed, cell.real);
    case TIDE_KIND_TEXT:
    case TIDE_KIND_BLOB:
    case TIDE_KIND_CLAIM: return tide_value_digest_bytes(field_seed, batch->text + cell.offset, cell.length);
    default: return 0;
    }
}

uint64_t tide_key_digest(uint64_t seed, const void *key, size_t length, bool is_blob) {
    // No field has such a name.
    return tide_value_digest_bytes(tide_field_seed(seed, is_blob ? "_key" : "_name", is_blob ? 4 : 5), key, length);
}

void tide_batch_digest(tide_batch *batch, uint64_t seed) {
    for (uint32_t i = 0; i < batch->row_count; i++) {
        tide_row *row = &batch->rows[i];
        row->digest = tide_key_digest(seed, tide_batch_text(batch, row->key.offset), row->key.length, row->key_is_blob);
    }
    for (uint32_t i = 0; i < batch->column_count; i++) {
        const tide_column *column = &batch->columns[i];
        uint64_t field_seed = tide_field_seed(seed, column->name, column->name_length);
        for (uint32_t j = 0; j < column->count; j++) {
            batch->rows[column->first_row + j].digest += tide_cell_digest(batch, column->cells[j], field_seed);
        }
    }
}

uint64_t tide_batch_row_digest(const tide_batch *batch, uint32_t row) { return batch->rows[row].digest; }
