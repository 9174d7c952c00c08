/// The bytes of a source, decompressed where they are gzip or zstd.
///
/// zlib decompresses gzip, because libarchive does not compare the checksum and the length of gzip's members (RFC 1952, 2.3.1). libarchive
/// decompresses zstd. Rules: members or frames one after the other are one text; zeros behind the last member are passed over, and other
/// bytes are damage; a source that decompresses to over 1 GiB and over 200 times its size is refused. Memory is bounded by a constant.
/// Threads: one at a time.

#ifndef TIDE_DECOMPRESSION_H
#define TIDE_DECOMPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_decompression tide_decompression;

/// Returns whether a source that begins with `head` is gzip or zstd.
bool tide_is_compressed(const char *head, size_t length);

/// Begins to read a source of which `head` has been read already; `descriptor` stays the caller's. The caller ends it with
/// `tide_decompression_destroy`. TIDE_REJECTED where zstd data is damaged from the beginning.
tide_status tide_decompression_create(
    int descriptor, const char *head, size_t length, tide_decompression **decompression, tide_error *error);
void tide_decompression_destroy(tide_decompression *decompression);

/// Reads up to `capacity` bytes. `*count` is 0 at the end. TIDE_REJECTED when the compressed data is damaged, ends too soon, or expands too far.
tide_status tide_decompression_read(
    tide_decompression *decompression, char *buffer, size_t capacity, size_t *count, tide_error *error);

#ifdef __cplusplus
}
#endif

#endif
