/// The made-up travel journal that every benchmark reads: record number `index` of the journal with seed `seed`.
///
/// A record depends on its seed and index alone, so that the generator can write it to several files, the floor can make it in
/// memory, and a changed variant differs in the field that was changed and nowhere else. Nothing here allocates or keeps state.

#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /// Longest caption and details, in characters; no character takes more than four bytes.
    JOURNAL_CAPTION_CHARACTERS = 40,
    JOURNAL_DETAILS_CHARACTERS = 2000,
    JOURNAL_CAPTION_BYTES = 4 * JOURNAL_CAPTION_CHARACTERS,
    JOURNAL_DETAILS_BYTES = 4 * JOURNAL_DETAILS_CHARACTERS,
    /// Room for the relative path of any picture, terminator included.
    JOURNAL_PATH_BYTES = 48,
};

typedef struct journal_caption {
    uint32_t length;
    char bytes[JOURNAL_CAPTION_BYTES];
} journal_caption;

typedef struct journal_record {
    uint8_t id[16];
    /// Milliseconds since 1970, UTC.
    int64_t created_at;
    /// Tenths of a metre.
    int32_t elevation;
    int32_t rating;
    /// Whether `details` holds quotes, line breaks and letters that its JSON writes as escapes: about one record in twenty.
    bool escaped;
    journal_caption caption;
    uint32_t details_length;
    char details[JOURNAL_DETAILS_BYTES];
} journal_record;

/// A small, fast, seedable generator (splitmix64). Not for secrets.
typedef struct journal_random {
    uint64_t state;
} journal_random;

/// Starts the stream `stream` of item `index`: streams never share a state.
journal_random journal_random_make(uint64_t seed, uint32_t stream, uint64_t index);
uint64_t journal_random_next(journal_random *random);
/// A number in 0..<bound; `bound` is not 0.
uint64_t journal_random_below(journal_random *random, uint64_t bound);

/// Fills `record` with record `index`.
void journal_record_make(uint64_t seed, uint64_t index, journal_record *record);

/// Fills `caption` with the other caption of record `index`, which always differs from the one in `record`.
/// `caption` is not the record's own.
void journal_caption_change(uint64_t seed, uint64_t index, const journal_record *record, journal_caption *caption);

/// The picture of record `index` when `pictures` of `records` have one, spread evenly; -1 for none.
int64_t journal_picture_of(uint64_t index, uint64_t records, uint64_t pictures);

/// Writes the path of a picture relative to the journal's folder: pictures/ab/0123.jpg.
void journal_picture_path(uint64_t seed, uint64_t picture, char path[JOURNAL_PATH_BYTES]);

#endif
