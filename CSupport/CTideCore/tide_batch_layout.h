/// The fields of a batch, for the core's own loops.

#ifndef TIDE_BATCH_LAYOUT_H
#define TIDE_BATCH_LAYOUT_H

#include "tide_batch.h"

typedef struct tide_column {
    char *name;
    uint32_t name_length;
    uint32_t type;
    /// Cells of rows [first_row, first_row + count); rows outside are absent.
    uint32_t first_row;
    uint32_t count;
    uint32_t capacity;
    tide_cell *cells;
} tide_column;

typedef struct tide_row {
    uint64_t line;
    uint64_t digest;
    tide_span source;
    /// The encoded name.
    tide_span key;
    /// The cloud's tag and times of edits, if the row is from the cloud.
    tide_span tag, edited;
    bool is_from_cloud;
    bool has_edited;
    bool key_is_blob;
    bool is_rejected;
} tide_row;

struct tide_batch {
    char *text;
    size_t text_length, text_capacity;
    tide_column *columns;
    uint32_t column_count, column_capacity;
    tide_row *rows;
    uint32_t row_count, row_capacity;
    uint32_t live_count;
    tide_rejection *rejections;
    uint32_t rejection_count, rejection_capacity;
    uint32_t row_limit;
    size_t byte_limit;
    /// The column that a lookup by name tries first: rows of a source have their fields in the same order.
    uint32_t next_column;
    /// False only if the names of all rows are in Unicode's normal form C.
    bool may_need_composing;
};

static inline tide_cell tide_column_cell(const tide_column *column, uint32_t row) {
    uint32_t index = row - column->first_row;
    return row >= column->first_row && index < column->count ? column->cells[index] : (tide_cell){.kind = TIDE_KIND_ABSENT};
}

/// Returns the digest of a cell's value; 0 for a cell without a value.
uint64_t tide_cell_digest(const tide_batch *batch, tide_cell cell, uint64_t field_seed);

/// Fills fields that a row does not mention from an earlier row, and adds their values to the row's digest.
tide_status tide_batch_row_complete(tide_batch *batch, uint32_t row, uint32_t earlier, uint64_t seed);

#endif
