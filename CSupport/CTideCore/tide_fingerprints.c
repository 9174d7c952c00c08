#include "tide_fingerprints.h"

#include <stdlib.h>
#include <string.h>

// A fingerprint is cut to 60 bits: 12 choose the shelf, 48 lie in a slot of 6 bytes, in which 0 marks a free one.
enum { shelf_bits = 12, shelf_count = 1 << shelf_bits, slot_bits = 48, slot_size = slot_bits / 8, smallest_shelf = 16 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a slot is the first bytes of a word");

typedef struct shelf {
    uint8_t *slots;
    uint32_t capacity, count;
} shelf;

struct tide_fingerprints {
    uint32_t count;
    shelf shelves[shelf_count];
};

tide_fingerprints *tide_fingerprints_create(void) { return calloc(1, sizeof(tide_fingerprints)); }

void tide_fingerprints_destroy(tide_fingerprints *set) {
    if (!set) return;
    for (int i = 0; i < shelf_count; i++) free(set->shelves[i].slots);
    free(set);
}

static uint64_t slot_read(const shelf *shelf, uint32_t index) {
    uint64_t value = 0;
    memcpy(&value, shelf->slots + (size_t)index * slot_size, slot_size);
    return value;
}

static bool shelf_put(shelf *shelf, uint64_t value) {
    uint32_t index = (uint32_t)((value >> 16) * shelf->capacity >> (slot_bits - 16));
    for (;; index = index + 1 == shelf->capacity ? 0 : index + 1) {
        uint64_t there = slot_read(shelf, index);
        if (there == value) return false;
        if (there) continue;
        memcpy(shelf->slots + (size_t)index * slot_size, &value, slot_size);
        shelf->count++;
        return true;
    }
}

static bool shelf_grow(shelf *it) {
    shelf larger = {.capacity = it->capacity ? it->capacity + it->capacity / 2 : smallest_shelf};
    if (!(larger.slots = calloc(larger.capacity, slot_size))) return false;
    for (uint32_t i = 0; i < it->capacity; i++) {
        uint64_t value = slot_read(it, i);
        if (value) shelf_put(&larger, value);
    }
    free(it->slots);
    *it = larger;
    return true;
}

bool tide_fingerprints_add(tide_fingerprints *set, uint64_t print) {
    shelf *shelf = &set->shelves[print >> (64 - shelf_bits)];
    // 0 marks a free slot; its stand-in can only make one name look like a repeated one.
    uint64_t value = print & ((1ULL << slot_bits) - 1);
    if (value == 0) value = 1;
    if (set->count >= tide_fingerprints_limit) return false;
    if (shelf->count >= shelf->capacity - shelf->capacity / 4 && !shelf_grow(shelf)) return false;
    if (!shelf_put(shelf, value)) return false;
    set->count++;
    return true;
}
