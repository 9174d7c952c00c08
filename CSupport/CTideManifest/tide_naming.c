// Tells whether a column could name the rows of a batch.

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tide_manifest.h"

static int compare_digests(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

bool tide_batch_column_names_rows(const tide_batch *batch, uint32_t column) {
    uint32_t rows = tide_batch_row_count(batch), count = 0;
    uint64_t *digests = malloc((rows + 1) * sizeof *digests);
    bool names = digests != NULL;
    for (uint32_t row = 0; row < rows && names; row++) {
        if (!tide_batch_row_is_live(batch, row)) continue;
        tide_cell cell = tide_batch_cell(batch, row, column);
        if (cell.kind == TIDE_KIND_INTEGER) {
            digests[count++] = XXH3_64bits(&cell.integer, sizeof cell.integer);
        } else if (cell.kind == TIDE_KIND_TEXT && cell.length > 0 && cell.length <= 255) {
            digests[count++] = XXH3_64bits(tide_batch_text(batch, cell.offset), cell.length);
        } else {
            names = false;
        }
    }
    if (names) {
        qsort(digests, count, sizeof *digests, compare_digests);
        for (uint32_t i = 1; i < count && names; i++) names = digests[i] != digests[i - 1];
        names = names && count > 1;
    }
    free(digests);
    return names;
}
