/// The limits of compressed data: how far they may expand, and how many entries an archive may have. They keep a small file from filling the disk
/// or the memory.

#ifndef TIDE_ARCHIVE_LIMITS_H
#define TIDE_ARCHIVE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    tide_expansion_limit = 200,
    /// libarchive keeps some 120 bytes and the name of each entry.
    tide_archive_entry_limit = 400000,
};

static inline bool tide_archive_expands_too_far(uint64_t bytes_in, uint64_t bytes_out) {
    return bytes_out > 1u << 30 && bytes_out / tide_expansion_limit > bytes_in;
}

#endif
