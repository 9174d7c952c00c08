/// Makes a smaller picture, and a thumbnail of it, from a JPEG or a PNG.
///
/// The result is the picture upright (as its EXIF orientation asks for), with its longest edge at most as long as asked, never enlarged.
/// A picture with transparency becomes a PNG, every other a JPEG; the ICC profile is kept, the time of EXIF too, the position only on
/// request, all other metadata not. A picture that fits already and is upright is copied without a loss, less its metadata, where encoding
/// it again could not make it smaller: a JPEG whose quality is not above the one asked for, a PNG that is transparent or smaller than its
/// JPEG. So a second run leaves a result as it is, byte for byte. The thumbnail is a separate picture, without metadata.
///
/// How: libjpeg-turbo or libpng yields rows; these are filtered in linear light (as sRGB; Catmull-Rom, widened to the reduction), in
/// both directions, with only as many rows in memory as the filter spans. Before that libjpeg reduces by 2, 4 or 8, as long as twice the
/// size remains. The same bytes and options yield the same bytes, on the same libraries and processor architecture.
///
/// Rules: all bytes are hostile. Limits are checked from the header, before anything of the picture's size is allocated: edges of 65,500
/// pixels, `TIDE_PICTURE_PIXEL_LIMIT` in all, `TIDE_PICTURE_MEMORY_LIMIT` bytes of memory. The time is bounded by the pixels: a JPEG
/// with more scans than encoders write is refused. A picture with damage that its decoder notices is refused, not shown in part; a JPEG
/// has no check sums.
///
/// Threads: any number at once; nothing is shared and nothing is kept.
///
/// Why C: the libraries are C and report errors by longjmp, which Swift can't take; and some ten operations per byte of each picture.

#ifndef TIDE_PICTURE_H
#define TIDE_PICTURE_H

#include "tide_blob.h"
#include "tide_exif.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// Pixels that a picture may have. The largest cameras of phones have 200 million.
#define TIDE_PICTURE_PIXEL_LIMIT 250000000u
/// Bytes of memory that one picture may take while it is made.
#define TIDE_PICTURE_MEMORY_LIMIT (512ull << 20)

/// The number of pictures to make at once: one for each core, at most 16, and no more than half of the memory has room for; at least one.
uint32_t tide_picture_concurrency(uint64_t cores, uint64_t memory);

/// The options of a result.
typedef struct tide_picture_options {
    /// The longest edge of the picture, in pixels; 0: the picture keeps its size.
    uint32_t max_pixel_size;
    /// The longest edge of the thumbnail; 0: none.
    uint32_t thumbnail_pixel_size;
    /// 1...100, as libjpeg counts.
    uint32_t quality;
    /// Whether a position of EXIF is kept.
    bool keeps_position;
    /// Whether only the thumbnail is made.
    bool thumbnail_only;
    /// The work ends with TIDE_CANCELLED soon after this is no longer 0; NULL: it can't be ended. See `tide_picture_stop`.
    const int32_t *TIDE_NULLABLE stop;
} tide_picture_options;

/// An encoded picture; `bytes` were allocated with malloc.
typedef struct tide_picture_file {
    uint8_t *TIDE_NULLABLE bytes;
    size_t length;
    uint32_t width, height;
    /// TIDE_MEDIA_JPEG or TIDE_MEDIA_PNG.
    tide_media media;
} tide_picture_file;

/// The result; the caller ends it with `tide_picture_destroy`.
typedef struct tide_picture {
    tide_picture_file image;
    /// Without bytes when none was asked for. If the picture is no larger than its thumbnail, the thumbnail is a copy of it.
    tide_picture_file thumbnail;
    /// The size of the upright picture; when only the thumbnail was made, the size of the upright source.
    uint32_t width, height;
    /// The EXIF data of the source.
    tide_exif exif;
} tide_picture;

/// Makes a picture of the JPEG or PNG in `bytes`.
///
/// Returns TIDE_REJECTED with TIDE_REJECT_PICTURE_UNSUPPORTED for another format and for kinds of JPEG that can't be decoded (12 bits,
/// lossless), TIDE_REJECT_PICTURE_TOO_LARGE for one past a limit, TIDE_REJECT_PICTURE_DAMAGED for one that can't be decoded to its end,
/// TIDE_REJECT_ASSET_TRUNCATED for one that is cut off; TIDE_CANCELLED, TIDE_MISUSE (options), TIDE_NO_MEMORY, TIDE_IO_ERROR. After a
/// failure `picture` is empty.
tide_status tide_picture_create(
    tide_bytes bytes, const tide_picture_options *options, tide_picture *picture, tide_error *TIDE_NULLABLE error);
/// Frees the bytes of a picture, and empties it.
void tide_picture_destroy(tide_picture *picture);

/// Sets or clears the mark that ends the work. Any thread.
void tide_picture_stop(int32_t *stop, bool stops);

/// Makes a picture of a file on its way into a store (`tide_conversion`): `context` is a `tide_picture_options`. A file that is neither
/// a JPEG nor a PNG is left as it is.
tide_status tide_picture_convert(
    const void *TIDE_NULLABLE context, tide_bytes bytes, const tide_image *image, tide_converted *converted, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif
