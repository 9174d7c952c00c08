/// The inside of an intake, for the core.

#ifndef TIDE_BLOB_LAYOUT_H
#define TIDE_BLOB_LAYOUT_H

#include <xxhash.h>

#include "tide_blob.h"

/// What became of the paths that a run has met.
typedef struct tide_paths tide_paths;
void tide_paths_destroy(tide_paths *paths);

struct tide_intake {
    tide_blob_store *store;
    int root;
    uint8_t *buffer;
    uint8_t *compare;
    XXH3_state_t *hash;
    struct tide_paths *paths;
};

#endif
