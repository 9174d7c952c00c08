/// The properties of an image file, without decoding it: format, size in pixels, whether it is whole, where its EXIF lies.
///
/// Rules: formats are told by content, never by name. Nothing is decoded; only headers, chunk lengths and ends are read, each
/// checked against the file's size. Work and memory are bounded by a constant per file, but for JPEG without an end marker in its
/// last 64 KiB, which is read once from its scan data to the end. Every input is hostile.
///
/// Why C: it runs on each asset during intake, on bytes that are in memory already.

#ifndef TIDE_IMAGE_H
#define TIDE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// An image format told by its content. The values are stored (tide_assets.media).
typedef enum tide_media {
    TIDE_MEDIA_UNKNOWN = 0,
    TIDE_MEDIA_JPEG = 1,
    TIDE_MEDIA_PNG = 2,
    TIDE_MEDIA_GIF = 3,
    TIDE_MEDIA_WEBP = 4,
    TIDE_MEDIA_HEIC = 5,
    TIDE_MEDIA_TIFF = 6,
} tide_media;

/// Where the bytes come from: memory or an open file.
typedef struct tide_bytes {
    /// The whole content, or NULL when it is read through `descriptor`.
    const uint8_t *TIDE_NULLABLE memory;
    /// A readable, seekable file descriptor, used with pread when `memory` is NULL; its offset is left alone.
    int descriptor;
    /// Bytes in all.
    uint64_t size;
} tide_bytes;

/// The properties of an image, read from its headers.
typedef struct tide_image {
    tide_media media;
    /// As stored, before any rotation that EXIF asks for; 0 when unknown.
    uint32_t width, height;
    /// The TIFF block of the EXIF data (it begins with "II" or "MM", after any "Exif\0\0"); length 0 when there is none.
    uint64_t exif_offset;
    uint32_t exif_length;
} tide_image;

/// Finds the format and the properties of the image in `bytes`, and whether it is whole.
///
/// JPEG is whole when its segments are well-formed up to a start of scan, it has a frame header, and an end-of-image marker follows
/// (trailing bytes after it are allowed); PNG when its chunks run from IHDR to IEND; GIF when its blocks run to the trailer; WebP
/// when RIFF's size lies within the file; HEIC (also HEIF and AVIF brands) when its boxes lie within the file and it has `meta`; TIFF
/// (also raw formats of cameras that are TIFF) when its directories and the strips or tiles that they name lie within the file.
///
/// Returns TIDE_OK with `media` UNKNOWN when the content is no image that it knows; TIDE_REJECTED with
/// TIDE_REJECT_ASSET_TRUNCATED when it begins like a known format and is cut off or broken off; TIDE_IO_ERROR when reading fails.
/// Thread-safe; keeps nothing.
tide_status tide_image_probe(tide_bytes bytes, tide_image *image, tide_error *TIDE_NULLABLE error);

/// The usual file name extension of a format, without the dot ("jpg"); "bin" for UNKNOWN. Static storage.
const char *tide_media_extension(tide_media media);

/// Whether a file name's extension claims a format above (jpg, jpeg, png, gif, webp, heic, heif, avif, tif,
/// tiff; any case).
bool tide_media_claimed(const char *name, size_t length);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif
