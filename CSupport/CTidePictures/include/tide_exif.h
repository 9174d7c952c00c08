/// When and where a photo was taken, from the TIFF block of its EXIF data.
///
/// Rules: libexif reads the tags. The functions here interpret them, and write the few that a picture keeps. Every input is hostile. A block
/// that makes no sense yields nothing, and is no error: TIDE_NO_MEMORY is the only one. Thread-safe; keeps nothing.

#ifndef TIDE_EXIF_H
#define TIDE_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The time, position and orientation in the EXIF data of a photo.
typedef struct tide_exif {
    /// DateTimeOriginal (else DateTimeDigitized, else DateTime) with its SubSecTime; OffsetTimeOriginal (and kin) applied when
    /// present and valid, else taken as UTC. Microseconds since 1970 UTC.
    int64_t time;
    /// Degrees, north and east positive, -90...90 and -180...180.
    double latitude, longitude;
    /// Seconds east of UTC, by OffsetTimeOriginal (or kin); 0 when there is none.
    int32_t offset;
    bool has_time;
    bool has_offset;
    bool has_position;
    /// 1...8 as in EXIF; 1 when absent or out of range. 5...8 exchange width and height for the viewer.
    uint8_t orientation;
} tide_exif;

/// Reads a TIFF block (it begins with "II" or "MM"); only its first 65,528 bytes count: libexif uses no more. TIDE_NO_MEMORY, and then
/// `exif` says nothing.
tide_status tide_exif_read(const uint8_t *_Nonnull block, size_t length, tide_exif *_Nonnull exif);

/// The most bytes that `tide_exif_write` needs.
#define TIDE_EXIF_WRITE_SIZE 320

/// Writes a TIFF block with the time (DateTimeOriginal, with its SubSecTime and OffsetTime) and the position, as far as `exif` has them. The
/// orientation is left out, which means 1. Returns the length of the block, or 0 when there is nothing to write.
size_t tide_exif_write(const tide_exif *_Nonnull exif, uint8_t block[_Nonnull TIDE_EXIF_WRITE_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
