#include "tide_fingerprints.h"

#include <stdlib.h>
#include <string.h>

// A fingerprint is cut to 60 bits: 12 choose the shard, 48 lie in a slot of 6 bytes, in which 0 marks a free one.
enum { shard_bits = 12, shard_count = 1 << shard_bits, slot_bits = 48, slot_size = slot_bits / 8, smallest_shard = 16 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a slot is the first bytes of a word");

typedef struct shard {
    uint8_t *slots;
    uint32_t capacity, count;
} shard;

struct tide_fingerprints {
    uint32_t count;
    bool memory_ran_out;
    shard shards[shard_count];
};

tide_fingerprints *tide_fingerprints_create(void) { return calloc(1, sizeof(tide_fingerprints)); }

void tide_fingerprints_destroy(tide_fingerprints *set) {
    if (!set) return;
    for (int i = 0; i < shard_count; i++) free(set->shards[i].slots);
    free(set);
}

static uint64_t slot_read(const shard *shard, uint32_t index) {
    uint64_t value = 0;
    memcpy(&value, shard->slots + (size_t)index * slot_size, slot_size);
    return value;
}

static bool shard_put(shard *shard, uint64_t value) {
    uint32_t index = (uint32_t)((value >> 16) * shard->capacity >> (slot_bits - 16));
    for (;; index = index + 1 == shard->capacity ? 0 : index + 1) {
        uint64_t there = slot_read(shard, index);
        if (there == value) return false;
        if (there) continue;
        memcpy(shard->slots + (size_t)index * slot_size, &value, slot_size);
        shard->count++;
        return true;
    }
}

static bool shard_grow(shard *it) {
    shard larger = {.capacity = it->capacity ? it->capacity + it->capacity / 2 : smallest_shard};
    if (!(larger.slots = calloc(larger.capacity, slot_size))) return false;
    for (uint32_t i = 0; i < it->capacity; i++) {
        uint64_t value = slot_read(it, i);
        if (value) shard_put(&larger, value);
    }
    free(it->slots);
    *it = larger;
    return true;
}

bool tide_fingerprints_add(tide_fingerprints *set, uint64_t print) {
    shard *shard = &set->shards[print >> (64 - shard_bits)];
    // 0 marks a free slot, so 1 stands for it: that can only make a new name look like a known one.
    uint64_t value = print & ((1ULL << slot_bits) - 1);
    if (value == 0) value = 1;
    if (set->count >= tide_fingerprints_limit) return false;
    if (shard->count >= shard->capacity - shard->capacity / 4 && !shard_grow(shard)) {
        set->memory_ran_out = true;
        return false;
    }
    if (!shard_put(shard, value)) return false;
    set->count++;
    return true;
}

bool tide_fingerprints_memory_ran_out(const tide_fingerprints *set) { return set->memory_ran_out; }
