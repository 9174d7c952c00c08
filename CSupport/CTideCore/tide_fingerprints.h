/// A set of fingerprints that only grows, up to a bound: the names that have occurred in a load. It keeps 60 of 64 bits. With three
/// million names, one load in a quarter of a million mistakes a new name for a known one.
///
/// Memory: 8 to 12 bytes a member in 4,096 open-addressing tables, each of which grows by itself, so that growing never needs a
/// second copy of the whole. It holds `tide_fingerprints_limit` members at most: the load ends when they are reached.

#ifndef TIDE_FINGERPRINTS_H
#define TIDE_FINGERPRINTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_fingerprints tide_fingerprints;

enum { tide_fingerprints_limit = 3000000 };

tide_fingerprints *tide_fingerprints_create(void);
void tide_fingerprints_destroy(tide_fingerprints *set);

/// Adds a fingerprint. False when it was there already, or the set is full, or memory ran out: it may not be new.
bool tide_fingerprints_add(tide_fingerprints *set, uint64_t print);
/// Returns whether a call of `tide_fingerprints_add` ran out of memory for this set.
bool tide_fingerprints_memory_ran_out(const tide_fingerprints *set);

#endif
