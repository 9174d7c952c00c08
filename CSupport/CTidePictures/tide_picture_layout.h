/// The declarations that the parts of making pictures share.

#ifndef TIDE_PICTURE_LAYOUT_H
#define TIDE_PICTURE_LAYOUT_H

#include "tide_picture.h"

enum { tide_picture_cut_off = -1 };

/// Limits. An edge of a JPEG, and of any picture that is read, has at most `tide_edge_limit` pixels.
enum {
    tide_edge_limit = 65500,
    /// The most bytes of an ICC profile.
    tide_profile_limit = 4 << 20,
};

/// The layout of pixels in a row. The value is the number of bytes of a pixel.
typedef enum tide_pixels {
    TIDE_PIXELS_GREY = 1,
    TIDE_PIXELS_GREY_ALPHA = 2,
    /// Three colours and a byte without meaning.
    TIDE_PIXELS_RGBX = 4,
    /// Three colours and alpha. The value has one more bit, which `tide_pixels_size` removes.
    TIDE_PIXELS_RGBA = 4 | 8,
} tide_pixels;

static inline size_t tide_pixels_size(tide_pixels pixels) { return (size_t)pixels & 7; }
static inline bool tide_pixels_are_transparent(tide_pixels pixels) {
    return pixels == TIDE_PIXELS_RGBA || pixels == TIDE_PIXELS_GREY_ALPHA;
}

/// Pixels in memory.
typedef struct tide_canvas {
    uint8_t *bytes;
    uint32_t width, height;
    tide_pixels pixels;
} tide_canvas;

/// A growing buffer.
typedef struct tide_growing {
    uint8_t *bytes;
    size_t length, capacity;
} tide_growing;

/// Adds bytes. False when memory runs out; then the buffer is as before.
bool tide_growing_add(tide_growing *into, const void *bytes, size_t length);

/// Reads a picture's bytes, in their order or from any place.
typedef struct tide_picture_input {
    tide_bytes bytes;
    /// Where the next bytes are read.
    uint64_t offset;
    uint8_t *window;
    size_t window_size;
    /// Why reading has failed: errno; `tide_picture_cut_off` where the file has become shorter; 0: it has not failed.
    int failure;
} tide_picture_input;

/// Reads the next bytes, and moves the offset behind them. `*bytes` is valid until the next call. `*length` is 0 at the end; false when
/// reading fails.
bool tide_picture_input_next(tide_picture_input *input, const uint8_t **bytes, size_t *length);
/// Reads exactly `length` bytes at `offset`, and leaves the input's own offset alone; false when there are fewer, or reading fails.
bool tide_picture_input_read(tide_picture_input *input, uint64_t offset, void *bytes, size_t length);

// Scaling

/// Scales rows and writes them into a canvas.
typedef struct tide_scaler tide_scaler;

/// The memory that a scaler takes.
uint64_t tide_scaler_size(uint32_t in_width, uint32_t in_height, uint32_t out_width, uint32_t out_height);
/// Makes a scaler that fills `canvas` (which outlives it, has the size after turning, and the pixels of the rows) with the orientation of
/// EXIF undone. NULL when memory runs out.
tide_scaler *tide_scaler_create(
    uint32_t in_width, uint32_t in_height, uint32_t out_width, uint32_t out_height, uint8_t orientation, tide_canvas *canvas);
void tide_scaler_destroy(tide_scaler *scaler);
/// Takes the next row, of `in_width` pixels of the canvas's kind. The last row completes the canvas.
void tide_scaler_put(tide_scaler *scaler, const uint8_t *row);

// The job

/// A picture that is being made.
typedef struct tide_picture_job {
    const tide_picture_options *options;
    tide_picture_input input;
    tide_image image;
    tide_exif exif;
    /// The source's size, and the size to which it is scaled, both before it is turned.
    uint32_t width, height, out_width, out_height;
    /// The EXIF data of the result.
    uint8_t exif_block[TIDE_EXIF_WRITE_SIZE];
    size_t exif_length;
    uint8_t *profile;
    size_t profile_length;
    tide_canvas canvas;
    tide_scaler *scaler;
    /// A row of the source, or all rows if they are interlaced.
    uint8_t *rows;
    /// Whether the source is upright and keeps its size.
    bool fits;
    /// Whether the source is a JPEG that fits and whose quality is not above the one asked for.
    bool is_coarse;
    /// The error of the step that has failed, with its status.
    tide_error error;
} tide_picture_job;

bool tide_picture_job_is_stopped(const tide_picture_job *job);
/// Fills the error: the work was cancelled.
tide_status tide_picture_job_stop(tide_picture_job *job);

/// Reduces a size so that its longest edge has at most `max_pixel_size` pixels; 0 leaves it as it is.
void tide_picture_fit(uint32_t max_pixel_size, uint32_t *width, uint32_t *height);

/// Checks that a picture of this size may be decoded.
tide_status tide_picture_job_admit(tide_picture_job *job, uint32_t width, uint32_t height);
/// Makes canvas, scaler and `rows` for rows of this size and kind. `row_count` is the number of rows that are held at once, `decoder_size`
/// the memory of the decoder. TIDE_REJECTED when all of it together is beyond the limit.
tide_status tide_picture_job_begin(
    tide_picture_job *job, uint32_t width, uint32_t height, tide_pixels pixels, uint32_t row_count, uint64_t decoder_size);
/// Keeps an ICC profile, if it is one for pixels of this kind; TIDE_REJECTED when it is too long.
tide_status tide_picture_job_take_profile(tide_picture_job *job, const uint8_t *profile, size_t length, bool is_grey);

/// Decode the whole source into the job's canvas.
tide_status tide_jpeg_decode(tide_picture_job *job);
tide_status tide_png_decode(tide_picture_job *job);
/// Copies a JPEG without a loss, with the job's EXIF data and no other metadata.
tide_status tide_jpeg_copy(tide_picture_job *job, tide_growing *file);
/// Copies a PNG without its metadata, and puts the job's EXIF data before its pixels. Stops with `is_longer` where the copy would have more than
/// `most` bytes.
tide_status tide_png_copy(tide_picture_job *job, size_t most, tide_growing *file, bool *is_longer);
/// Encode a canvas; with `exif`, the job's EXIF data too. The caller frees `file` also after a failure.
tide_status tide_jpeg_encode(tide_picture_job *job, const tide_canvas *canvas, bool exif, tide_growing *file);
tide_status tide_png_encode(tide_picture_job *job, const tide_canvas *canvas, bool exif, tide_growing *file);

#endif
