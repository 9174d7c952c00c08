/// When and where a photo was taken, from the TIFF block of its EXIF data.
///
/// Rules: reading of tags is libexif's; this only interprets them. Every input is hostile: a block that makes no sense yields
/// nothing, never an error. Thread-safe; keeps nothing.

#ifndef TIDE_EXIF_H
#define TIDE_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What the EXIF data of a photo say.
typedef struct tide_exif {
    /// DateTimeOriginal (else DateTimeDigitized, else DateTime) with its SubSecTime; OffsetTimeOriginal (and kin) applied when
    /// present and valid, else taken as UTC. Microseconds since 1970 UTC.
    int64_t time;
    /// Degrees, north and east positive, -90...90 and -180...180.
    double latitude, longitude;
    bool has_time;
    bool has_position;
    /// 1...8 as in EXIF; 1 when absent or senseless. 5...8 exchange width and height for the viewer.
    uint8_t orientation;
} tide_exif;

/// Reads a TIFF block (it begins with "II" or "MM"); only its first 65,528 bytes count: libexif uses no more.
void tide_exif_read(const uint8_t *_Nonnull block, size_t length, tide_exif *_Nonnull exif);

#ifdef __cplusplus
}
#endif

#endif
