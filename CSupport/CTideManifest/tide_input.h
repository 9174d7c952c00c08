/// The text of a source that is compressed, or in another encoding than UTF-8: decompressed (`tide_decompression.h`), converted by iconv.
///
/// Rules: compression (gzip, zstd) is detected by the content, and so are UTF-16 and UTF-32 with a byte order mark. A byte that the
/// encoding does not have becomes 0xFF, so that only the row with it is refused, and not the whole source. Memory is bounded by a
/// constant.
/// Threads: one at a time.

#ifndef TIDE_INPUT_H
#define TIDE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_input tide_input;

/// Whether a source that begins with `head` has to be read through an input.
bool tide_input_is_needed(const char *head, size_t length, const char *encoding);

/// Begins to read a source of which `head` has been read already; `descriptor` stays the caller's. The caller ends the input with
/// `tide_input_destroy`. TIDE_REJECTED where the encoding is unknown, or the source is an archive of several files.
tide_status tide_input_create(
    int descriptor, const char *head, size_t length, const char *encoding, tide_input **input, tide_error *error);
void tide_input_destroy(tide_input *input);

/// Reads up to `capacity` bytes of UTF-8; `capacity` is at least 64. `*count` is 0 at the end. TIDE_REJECTED when the compressed data is
/// damaged or expands too far.
tide_status tide_input_read(tide_input *input, char *buffer, size_t capacity, size_t *count, tide_error *error);

#ifdef __cplusplus
}
#endif

#endif
