#include "tide_fingerprints.h"

#include <stdlib.h>
#include <string.h>

typedef struct shelf {
    uint64_t *slots;
    uint32_t capacity, count;
} shelf;

struct tide_fingerprints {
    uint32_t count;
    shelf shelves[256];
};

tide_fingerprints *tide_fingerprints_create(void) { return calloc(1, sizeof(tide_fingerprints)); }

void tide_fingerprints_destroy(tide_fingerprints *set) {
    if (!set) return;
    for (int i = 0; i < 256; i++) free(set->shelves[i].slots);
    free(set);
}

static bool shelf_put(shelf *shelf, uint64_t print) {
    for (uint32_t i = (uint32_t)print & (shelf->capacity - 1);; i = (i + 1) & (shelf->capacity - 1)) {
        if (shelf->slots[i] == print) return false;
        if (shelf->slots[i]) continue;
        shelf->slots[i] = print;
        shelf->count++;
        return true;
    }
}

static bool shelf_grow(shelf *it) {
    shelf larger = {.capacity = it->capacity ? it->capacity * 2 : 64};
    if (!(larger.slots = calloc(larger.capacity, sizeof *larger.slots))) return false;
    for (uint32_t i = 0; i < it->capacity; i++) {
        if (it->slots[i]) shelf_put(&larger, it->slots[i]);
    }
    free(it->slots);
    *it = larger;
    return true;
}

bool tide_fingerprints_add(tide_fingerprints *set, uint64_t print) {
    // 0 marks a free slot; its stand-in can only make one name look like a repeated one.
    if (print == 0) print = 1;
    shelf *shelf = &set->shelves[print >> 56];
    if (set->count >= tide_fingerprints_limit) return false;
    if (shelf->count >= shelf->capacity - shelf->capacity / 8 && !shelf_grow(shelf)) return false;
    if (!shelf_put(shelf, print)) return false;
    set->count++;
    return true;
}
