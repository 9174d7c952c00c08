/// Reads a file descriptor through a buffer, which can look ahead as far as one row, and digests the bytes that were consumed.

#ifndef TIDE_SOURCE_H
#define TIDE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "tide_input.h"
#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_source {
    int descriptor;
    /// The input that decompresses and converts; NULL where the bytes of the descriptor are the text. Owned.
    tide_input *input;
    char *buffer;
    size_t capacity;
    /// Unconsumed bytes: buffer[start, end).
    size_t start, end;
    bool is_at_end;
    uint64_t consumed;
    XXH3_state_t *digest;
} tide_source;

/// Reads the beginning, to find out whether the source has to be decompressed, or converted from `encoding` (NULL: none is given).
tide_status tide_source_open(tide_source *source, int descriptor, const char *encoding, tide_error *error);
void tide_source_close(tide_source *source);

/// Reads on until at least `wanted` bytes are unconsumed, or the end is reached. Moves the buffer.
tide_status tide_source_fill(tide_source *source, size_t wanted, tide_error *error);
/// As `tide_source_fill`, for at least one byte more than there is, in steps that suit the device.
tide_status tide_source_more(tide_source *source, tide_error *error);
void tide_source_consume(tide_source *source, size_t length);

static inline const char *tide_source_bytes(const tide_source *source) { return source->buffer + source->start; }
static inline size_t tide_source_length(const tide_source *source) { return source->end - source->start; }

#ifdef __cplusplus
}
#endif

#endif
