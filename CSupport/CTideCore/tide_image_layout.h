/// The declarations that the readers of image formats share.

#ifndef TIDE_IMAGE_LAYOUT_H
#define TIDE_IMAGE_LAYOUT_H

#include "tide_image.h"

enum {
    tide_image_window = 16 * 1024,
    // libpng cuts image data into chunks of 8 KiB: 2 GiB of them. A file of nothing but empty parts ends here too.
    tide_image_part_limit = 256 * 1024,
    tide_tiff_header_size = 8,
};

/// An image's bytes. Those of a file are read through a window.
typedef struct tide_image_source {
    tide_bytes bytes;
    tide_error *error;
    /// The name of the format, for messages.
    const char *name;
    /// The result of reading. After a failure nothing more is read.
    tide_status status;
    /// The fewest bytes that are read at once.
    size_t ahead;
    uint64_t window_offset;
    size_t window_length;
    uint8_t window[tide_image_window];
} tide_image_source;

/// Up to `tide_image_window` bytes at `offset`, good until the next call; NULL past the end of the file or when reading fails.
const uint8_t *tide_image_at(tide_image_source *from, uint64_t offset, size_t length);

/// Refuses the file because `what` is missing at byte `offset`. If reading has failed, returns that failure instead.
tide_status tide_image_broken(tide_image_source *from, const char *what, uint64_t offset);

/// Records the place of the TIFF block in the `length` bytes at `offset`, which lie in the file. Only the first block counts.
void tide_image_note_exif(tide_image_source *from, tide_image *image, uint64_t offset, uint64_t length);

static inline uint32_t tide_be16(const uint8_t *bytes) { return (uint32_t)bytes[0] << 8 | bytes[1]; }
static inline uint32_t tide_be32(const uint8_t *bytes) { return tide_be16(bytes) << 16 | tide_be16(bytes + 2); }
static inline uint64_t tide_be64(const uint8_t *bytes) { return (uint64_t)tide_be32(bytes) << 32 | tide_be32(bytes + 4); }
static inline uint32_t tide_le16(const uint8_t *bytes) { return (uint32_t)bytes[1] << 8 | bytes[0]; }
static inline uint32_t tide_le24(const uint8_t *bytes) { return (uint32_t)bytes[2] << 16 | tide_le16(bytes); }
static inline uint32_t tide_le32(const uint8_t *bytes) { return tide_le16(bytes + 2) << 16 | tide_le16(bytes); }
static inline uint32_t tide_image_code(const char *name) { return tide_be32((const uint8_t *)name); }

/// Each reads the properties of a whole file of its format.
tide_status tide_heic_read(tide_image_source *from, tide_image *image);
tide_status tide_tiff_read(tide_image_source *from, tide_image *image);

/// Tells whether a brand (four bytes) belongs to HEIC or to a format with the same layout.
bool tide_heic_is_brand(const uint8_t *brand);

#endif
